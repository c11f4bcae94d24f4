#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# bootstrap, with a false machine round it: commands that log how they are called, and an os-release
# of our own.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

sed "s|/etc/os-release|$tmp/os-release|" "$top_srcdir/bootstrap" >"$tmp/bootstrap"
mkdir "$tmp/bin" "$tmp/.git"
unset TDT_NO_INSTALL

# fake COMMAND BODY
fake()
{
	printf '#!/bin/sh\n%s\n' "$2" >"$tmp/bin/$1"
	chmod +x "$tmp/bin/$1"
}
# shellcheck disable=SC2016 # the fakes expand them
{
fake apt-get \
	'echo "apt-get $*" >&2
	case " $* " in *" $UNKNOWN "*) exit 100 ;; esac
	test "$*" != "$REFUSE"'
fake autoreconf 'echo "autoreconf $*"'
fake dpkg-query \
	'eval "package=\$$#"
	case " $ABSENT " in *" $package "*) exit 1 ;; esac
	echo "install ok installed "'
fake libtoolize :
fake id 'echo "$USER_ID"'
}

# bootstrap USER-ID "ABSENT PACKAGES" [ARGUMENTS]: all it says and calls is in $tmp/said.
bootstrap()
{
	USER_ID=$1 ABSENT=$2 PATH=$tmp/bin:$PATH
	export USER_ID ABSENT PATH
	shift 2
	sh "$tmp/bootstrap" "$@" >"$tmp/said" 2>&1
}

fails()
{
	! "$@"
}

# says TEXT: that is what it said and called (text from standard input).
says()
{
	cat >"$tmp/expected"
	same "$1" "$tmp/expected" "$tmp/said"
}

echo 'ID=debian' >"$tmp/os-release"
REFUSE=
UNKNOWN=none
export REFUSE UNKNOWN

claim "with all packages there it succeeds" bootstrap 1000 ""
says "and only generates configure" <<'END'
autoreconf --install --warnings=all
END

claim "root gets what the build needs" bootstrap 0 "gcc libdw-dev valgrind"
says "and is told so first" <<'END'
bootstrap: apt-get update && apt-get install -y --no-install-recommends gcc libdw-dev
apt-get -qq update
apt-get install -y --no-install-recommends gcc libdw-dev -qq
autoreconf --install --warnings=all
END

claim "another user is stopped" fails bootstrap 1000 "gcc libdw-dev valgrind"
says "and told the commands, for the build and for the tests" <<'END'
bootstrap: missing packages; install them with
  sudo apt-get update && sudo apt-get install -y --no-install-recommends gcc libdw-dev
and, if you want to run make check, also
  sudo apt-get install -y --no-install-recommends valgrind
END

claim "another user who has the tests' packages is stopped, too" fails bootstrap 1000 "gcc"
says "and told one command" <<'END'
bootstrap: missing packages; install them with
  sudo apt-get update && sudo apt-get install -y --no-install-recommends gcc
END

# stopped TEXT: root is treated as another user.
stopped()
{
	claim "$1" fails bootstrap 0 "gcc valgrind"
	says "and told the commands, too" <<'END'
bootstrap: missing packages; install them with
  sudo apt-get update && sudo apt-get install -y --no-install-recommends gcc
and, if you want to run make check, also
  sudo apt-get install -y --no-install-recommends valgrind
END
}
TDT_NO_INSTALL=1
export TDT_NO_INSTALL
stopped "root who sets TDT_NO_INSTALL is stopped"
unset TDT_NO_INSTALL
rmdir "$tmp/.git"
stopped "so is root where no git clone is: in a tarball"
claim "the tests of a tarball go on" bootstrap 0 "check valgrind" packages-for-check
says "and root is told the command" <<'END'
bootstrap: missing packages; install them with
  sudo apt-get update && sudo apt-get install -y --no-install-recommends check valgrind
bootstrap: going on with what is there
END
mkdir "$tmp/.git"

REFUSE="-qq update"
claim "root is stopped when apt-get fails" fails bootstrap 0 "gcc"
says "before anything is generated" <<'END'
bootstrap: apt-get update && apt-get install -y --no-install-recommends gcc
apt-get -qq update
END
REFUSE=

claim "the tests' packages are asked for apart" bootstrap 0 "gcc check valgrind" packages-for-check
says "and nothing is generated" <<'END'
bootstrap: apt-get update && apt-get install -y --no-install-recommends check valgrind
apt-get -qq update
apt-get install -y --no-install-recommends check valgrind -qq
END

claim "without the tests' packages another user goes on" bootstrap 1000 "valgrind" \
	packages-for-check
says "and is told the command" <<'END'
bootstrap: missing packages; install them with
  sudo apt-get update && sudo apt-get install -y --no-install-recommends valgrind
bootstrap: going on with what is there
END

UNKNOWN=clang
claim "a package that is not known is done without" bootstrap 0 "check clang valgrind" \
	packages-for-check
says "and the others are installed all the same" <<'END'
bootstrap: apt-get update && apt-get install -y --no-install-recommends check clang valgrind
apt-get -qq update
apt-get install -y --no-install-recommends check clang valgrind -qq
apt-get install -y --no-install-recommends check -qq
apt-get install -y --no-install-recommends clang -qq
bootstrap: no clang
apt-get install -y --no-install-recommends valgrind -qq
bootstrap: going on with what is there
END
UNKNOWN=gcc
claim "but not if the build needs it" fails bootstrap 0 "gcc"
UNKNOWN=none

claim "perf is missed by the name it has on Debian" bootstrap 1000 "linux-perf" packages-for-check
says "which is linux-perf" <<'END'
bootstrap: missing packages; install them with
  sudo apt-get update && sudo apt-get install -y --no-install-recommends linux-perf
bootstrap: going on with what is there
END

fake clang 'echo 14.0.6'
claim "clang's libFuzzer is missed by clang's version" bootstrap 1000 "libclang-rt-14-dev" \
	packages-for-check
says "which is in its name" <<'END'
bootstrap: missing packages; install them with
  sudo apt-get update && sudo apt-get install -y --no-install-recommends libclang-rt-14-dev
bootstrap: going on with what is there
END
fake clang 'exit 127'
claim "without clang another user goes on, too" bootstrap 1000 "clang libclang-rt-dev" \
	packages-for-check
says "and is told the system's own version of both" <<'END'
bootstrap: missing packages; install them with
  sudo apt-get update && sudo apt-get install -y --no-install-recommends clang libclang-rt-dev
bootstrap: going on with what is there
END

claim "with the tests' packages there it succeeds" bootstrap 1000 "" packages-for-check
says "and is silent" </dev/null

printf 'ID=linuxmint\nID_LIKE="ubuntu debian"\n' >"$tmp/os-release"
claim "a system like Debian is treated like it" fails bootstrap 1000 "gcc"
claim "perf has another name on Ubuntu" bootstrap 1000 "linux-tools-generic" packages-for-check
says "which is linux-tools-generic" <<'END'
bootstrap: missing packages; install them with
  sudo apt-get update && sudo apt-get install -y --no-install-recommends linux-tools-generic
bootstrap: going on with what is there
END

echo 'ID=fedora' >"$tmp/os-release"
claim "on another system no package is looked for" bootstrap 0 "gcc"
says "and configure is left to tell" <<'END'
autoreconf --install --warnings=all
END

# A machine that has only the shell's own tools.
mkdir "$tmp/few"
for tool in dirname grep mkdir sh; do
	ln -s "$(command -v $tool)" "$tmp/few"
done
cp "$tmp/bin/id" "$tmp/bin/autoreconf" "$tmp/few"
without_tools()
{
	! PATH=$tmp/few sh "$tmp/bootstrap" >"$tmp/said" 2>&1
}
USER_ID=1000
claim "without the tools that make configure it stops" without_tools
sed 's/^\(  [A-Z][a-z]*\): .*/\1: .../' "$tmp/said" >"$tmp/short"
cat >"$tmp/expected" <<'END'
bootstrap: missing tools: autoconf automake libtoolize pkg-config; for make and make check, install
  Debian: ...
  Fedora: ...
  Alpine: ...
END
same "and tells what the build and the tests need on three systems" "$tmp/expected" "$tmp/short"

# lists_each_package: what configure.ac names for Fedora and Alpine stands there.
lists_each_package()
{
	sed -n 's/.*\[[^]]*\], \[\([^]]*-devel\)\], \[\([^]]*\)\].*/\1 \2/p' \
		"$top_srcdir/configure.ac" >"$tmp/packages"
	test "$(wc -l <"$tmp/packages")" -ge 6 || return
	while read -r fedora alpine; do
		if ! grep -q "^  Fedora:.* $fedora" "$tmp/said" ||
			! grep -q "^  Alpine:.* $alpine" "$tmp/said"; then
			echo "missing: $fedora or $alpine"
			return 1
		fi
	done <"$tmp/packages"
}
claim "which are the packages that configure names" lists_each_package

rm "$tmp/os-release"
claim "without os-release no package is looked for, either" bootstrap 0 "gcc"

claim "an unknown argument is refused" fails bootstrap 1000 "" packages

plan
