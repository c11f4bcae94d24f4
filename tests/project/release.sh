#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# make release, on a small project whose configure and make only do as if; and that the packages
# have the version of the headers.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

version=$(sed -n 's/^#define TDT_VERSION_TEXT "\(.*\)"/\1/p' "$top_srcdir/include/tdt/version.h")
numbers=$(sed -n 's/^#define TDT_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' \
	"$top_srcdir/include/tdt/version.h" | paste -sd.)
debian=$(sed -n '1s/^tdt (\(.*\)-1) .*/\1/p' "$top_srcdir/debian/changelog")
claim "the version has the same numbers" test "$numbers" = "$version"
claim "Debian's packages have it" test "$debian" = "$version"
claim "so has Fedora's" grep -qx "Version: *$version" "$top_srcdir/fedora/tdt.spec"
claim "and NEWS" grep -q "^tdt $version (" "$top_srcdir/NEWS"

command -v git >/dev/null || {
	skip "make release" "there is no git"
	plan
	exit
}
unset VERSION CHECKS MAKEFLAGS MFLAGS MAKELEVEL GIT_DIR GIT_WORK_TREE
HOME=$tmp
GIT_CONFIG_NOSYSTEM=1
export HOME GIT_CONFIG_NOSYSTEM

mkdir "$tmp/project"
cd "$tmp/project" || exit
for file in NEWS include/tdt/version.h debian/changelog fedora/tdt.spec .ci/release \
	rust/tdt/Cargo.toml rust/tdt-sys/Cargo.toml; do
	mkdir -p "$(dirname $file)"
	cp "$top_srcdir/$file" $file
done
sed -i '1s/.*/tdt 0.1.0 (unreleased)/' NEWS
printf '#!/bin/sh\ntouch configure\nchmod +x configure\n' >bootstrap
chmod +x bootstrap
cat >GNUmakefile <<'END'
dist:
	tar -cJf tdt-$(shell sed -n '1s/tdt \(.*\) .*/\1/p' NEWS).tar.xz NEWS include debian
END
git init -q . && git config user.name Me && git config user.email me@example.org &&
	git add -A && git commit -qm first || exit
first=$(git rev-parse HEAD)

release()
{
	VERSION=$1 CHECKS=$2 sh .ci/release >"$tmp/said" 2>&1
	result=$?
	cat "$tmp/said"
	return $result
}

# refused WHY VERSION CHECKS: nothing has changed.
refused()
{
	! release "$2" "$3" && grep "make release: $1" "$tmp/said" &&
		test "$(git rev-parse HEAD)" = "$first" && test -z "$(git tag)"
}
claim "a version that is none is refused" refused VERSION=1.2.3 1.2 true
claim "a release whose checks fail changes nothing" refused "the checks failed" 1.2.3 false
echo more >>NEWS
claim "changes must be committed before" refused "commit your changes" 1.2.3 true
git checkout -q NEWS

claim "a release is made by one command" release 1.2.3 "test -f NEWS"
claim "NEWS has its version and day" grep -Eqx 'tdt 1[.]2[.]3 \([0-9-]{10}\)' NEWS
sed -n 's/^#define TDT_VERSION_[A-Z]* \([0-9"].*\)/\1/p' include/tdt/version.h >"$tmp/got"
printf '1\n2\n3\n"1.2.3"\n' >"$tmp/expected"
same "so has the header" "$tmp/expected" "$tmp/got"
claim "whose comments stay" grep -q '"compiled for tdt " TDT_VERSION_TEXT ", ' include/tdt/version.h
claim "and the crates" test "$(grep -h '"1[.]2[.]3"' rust/*/Cargo.toml | sort | tr '\n' ' ')" = \
	'tdt-sys = { version = "1.2.3", path = "../tdt-sys" } version = "1.2.3" version = "1.2.3" '
claim "and Debian's changelog" grep -qx 'tdt (1.2.3-1) unstable; urgency=medium' debian/changelog
claim "and Fedora's spec" grep -q '^[*].*Me <me@example.org> - 1.2.3-1$' fedora/tdt.spec
claim "the commit has a tag" test "$(git rev-parse 'v1.2.3^{commit}')" = "$(git rev-parse HEAD)"
claim "nothing else has changed" test -z "$(git status --porcelain --untracked-files=no)"
verifies()
{
	cd build-release && sha256sum -c tdt-1.2.3.tar.xz.sha256
}
claim "its tarball has the checksum" verifies
mkdir "$tmp/unpacked"
tar -xf build-release/tdt-1.2.3.tar.xz -C "$tmp/unpacked"
claim "and the sources of the tag" sh -c "
	! git archive v1.2.3 | tar -d -C '$tmp/unpacked' 2>/dev/null | grep 'Contents differ'"
claim "the same version cannot be released twice" sh -c "
	! VERSION=1.2.3 CHECKS=true sh .ci/release"
plan
