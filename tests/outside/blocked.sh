#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# A poll that is blocked in coroutines is shown with all its callers, whatever compiler and level.
# TDT_TEST_FULL=1 tries more levels.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

test "$SANITIZERS" = no || skip_all "a sanitized library needs a sanitized program"
test -e "${top_builddir:?}/.libs/libtdt.so" || skip_all "built without a shared library"
shared="-I$top_srcdir/include -L$top_builddir/.libs -Wl,-rpath,$top_builddir/.libs -ltdt"
cd "$tmp" || exit

# path N: what is shown of a poll that is blocked in N coroutines.
path()
{
	case $1 in
	1) echo "top_poll outer inner blocked" ;;
	3) echo "top_poll outer outer outer inner blocked" ;;
	esac
}

blocked()
{
	path "$1" >want
	./blocked "$1" | sed 's/ $//' >got
	diff -u want got
}

set -- -O0 -O2
test "${TDT_TEST_FULL-}" != 1 || set -- "$@" -O1 -O3 -Os "-O2 -fno-omit-frame-pointer" "-O2 -flto"
for compiler in "$TEST_GCC" "$TEST_CLANG"; do
	if [ -z "$compiler" ]; then
		skip "blocked polls" "there is one compiler less"
		continue
	fi
	echo 'int main(void) { return 0; }' >empty.c
	for flags; do
		# shellcheck disable=SC2086 # lists of flags
		if ! "$compiler" $flags empty.c -o empty 2>/dev/null; then
			skip "$compiler $flags" "its linker can't"
			continue
		fi
		# shellcheck disable=SC2086 # lists of flags
		claim "$compiler $flags" "$compiler" $flags \
			"$top_srcdir/tests/outside/fixtures/blocked.c" $shared -o blocked
		for n in 1 3; do
			claim "$compiler $flags: a poll blocked in $n coroutines has its callers" \
				blocked $n
		done
	done
done
plan
