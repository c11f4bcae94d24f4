#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# configure refuses what cannot work in one sentence, and names the packages of all that is missing.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

# A source tree that is not configured.  It has the files that configure needs before it refuses.
mkdir -p "$tmp/source/include/tdt"
cp -R "$top_srcdir/configure" "$top_srcdir/build-aux" "$tmp/source"
cp "$top_srcdir/include/tdt/trace.h" "$tmp/source/include/tdt"
unset CONFIG_SITE PKG_CONFIG_PATH

# configures FOLDER [ARGUMENTS]: what it says on standard error is in $tmp/said.
configures()
{
	rm -rf "$1"
	mkdir "$1"
	(cd "$1" && shift && "$tmp/source/configure" -q "$@") >/dev/null 2>"$tmp/said"
}

# refuses TEXT ARGUMENTS...: what it says is what standard input says.
refuses()
{
	text=$1
	shift
	cat >"$tmp/expected"
	if configures "$tmp/build" "$@"; then
		claim "$text" false
	else
		same "$text" "$tmp/expected" "$tmp/said"
	fi
}

refuses "another kernel is refused" --host=x86_64-unknown-freebsd14 <<'END'
configure: error: tdt runs on Linux only, not on freebsd14: it reads stacks and threads through Linux's system calls and /proc
END
refuses "another machine is refused" --host=riscv64-linux-gnu <<'END'
configure: error: tdt runs on x86_64 and aarch64, not on riscv64: the frames of that machine are not known to it
END
if command -v aarch64-linux-gnu-gcc >/dev/null; then
	refuses "a cross build takes no compiler of this machine" --host=aarch64-linux-gnu \
		CC=aarch64-linux-gnu-gcc CXX=c++ <<'END'
configure: error: c++ is not for aarch64-unknown-linux-gnu: name the compiler in CXX
END
else
	skip "a cross build takes no compiler of this machine" "there is no cross compiler"
fi

cat >"$tmp/musl" <<'END'
configure: error: tdt needs glibc 2.35 or newer, not musl or another C library: it finds modules with _dl_find_object(), which only glibc has
END
refuses "a system with musl is refused" --host=x86_64-unknown-linux-musl <"$tmp/musl"
if command -v musl-gcc >/dev/null; then
	refuses "musl's compiler is refused" CC=musl-gcc <"$tmp/musl"
else
	skip "musl's compiler is refused" "there is no musl-gcc"
fi

# Without this macro the compiler looks like one for 32 bits, which few machines have.
refuses "a 32-bit system is refused" CC="$CC -U__LP64__" <<'END'
configure: error: tdt needs a 64-bit system: the records of tasks hold 64-bit addresses, which are written in one atomic step
END

says_space()
{
	! configures "$tmp/a folder" && test "$(wc -l <"$tmp/said")" = 1 &&
		grep "the path '$tmp/a folder' or .* has a space, which make cannot handle" \
			"$tmp/said"
}
claim "a path with a space is refused" says_space

refuses "a provider's name that can't be one is refused" --with-usdt-provider=a-b <<'END'
configure: error: --with-usdt-provider=a-b: not a name (letters, digits and _)
END

# --- What is missing ---

# These runs get far: what the build's configure knows of the compiler they need not find out.
sed -n 's/^\(\(lt\|am\)_cv_.*\)/\1/p; s/^\(ac_cv_\(prog\|c\|cxx\|header_std\)_.*\)/\1/p' \
	"${top_builddir:?}/config.log" >"$tmp/site"
export CONFIG_SITE="$tmp/site" CC CXX

cat >"$tmp/pkg-config" <<'END'
#!/bin/sh
case $1 in
--atleast-pkgconfig-version) exit 0 ;;
*) exit 1 ;;
esac
END
chmod +x "$tmp/pkg-config"
no_headers="ac_cv_header_sys_sdt_h=no ac_cv_header_libiberty_demangle_h=no"
# shellcheck disable=SC2086 # a list of words
refuses "all that is missing is named at once, with its packages" \
	PKG_CONFIG="$tmp/pkg-config" $no_headers <<'END'
configure: error: these are missing:
  sys/sdt.h (Debian: systemtap-sdt-dev; Fedora: systemtap-sdt-devel; Alpine: none, so configure with --disable-probes)
  libunwind-generic >= 1.6 (Debian: libunwind-dev; Fedora: libunwind-devel; Alpine: libunwind-dev)
  libdw >= 0.186 (Debian: libdw-dev; Fedora: elfutils-devel; Alpine: elfutils-dev)
  zlib (Debian: zlib1g-dev; Fedora: zlib-devel; Alpine: zlib-dev)
  jansson >= 2.13 (Debian: libjansson-dev; Fedora: jansson-devel; Alpine: jansson-dev)
  ncursesw >= 6.1 (Debian: libncurses-dev; Fedora: ncurses-devel; Alpine: ncurses-dev)
  libiberty (Debian: libiberty-dev; Fedora: binutils-devel; Alpine: binutils-dev)
  check >= 0.15, for make check only (Debian: check; Fedora: check-devel; Alpine: check-dev)
END

# docs/install.md has the same packages.
documents_packages()
{
	sed -n 's/.*(Debian: \([^;]*\); Fedora: \([^;]*\); Alpine: \([^,)]*\).*/\1 \2 \3/p' \
		"$tmp/expected" |
		while read -r debian fedora alpine; do
			grep -q "^|.*| *$debian *| *$fedora *| *$alpine *|$" \
				"$top_srcdir/docs/install.md" ||
				{
					echo "no line with $debian, $fedora and $alpine"
					exit 1
				}
		done
}
claim "docs/install.md lists the same packages" documents_packages

refuses "without pkg-config that is all it says" \
	ac_cv_path_PKG_CONFIG= ac_cv_path_ac_pt_PKG_CONFIG= PKG_CONFIG= <<'END'
configure: error: pkg-config is missing (Debian: pkg-config; Fedora: pkgconf-pkg-config; Alpine: pkgconf)
END

plan
