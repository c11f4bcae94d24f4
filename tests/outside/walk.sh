#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# All ways to walk give the same frames, whatever compiler and level made them: check_walk on stacks
# of calls to and fro between libraries of frames.c.  TDT_TEST_FULL=1 has more levels.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

# build NAME COMPILER FLAG...
build()
{
	so=$tmp/$1.so
	shift
	"$@" -shared -fPIC -w -I"$top_srcdir/tests" -o "$so" "$top_srcdir/tests/lib/frames.c" &&
		libraries="$libraries $so"
}

walk()
{
	CK_TAP_LOG_FILE_NAME=/dev/null CK_DEFAULT_TIMEOUT=60 TDT_TEST_FRAMES=$1 \
		"${top_builddir:?}/tests/unit/unwind/check_walk"
}

levels="0 2"
test "${TDT_TEST_FULL-}" != 1 || levels="0 1 2 3 s"
for compiler in gcc clang; do
	test $compiler = gcc && command=$TEST_GCC || command=$TEST_CLANG
	if [ -z "$command" ]; then
		skip "frames made by $compiler" "there is no $compiler"
		continue
	fi
	libraries=
	for level in $levels; do
		build $compiler-$level-fp "$command" -O$level -fno-omit-frame-pointer
		build $compiler-$level "$command" -O$level -fomit-frame-pointer
	done
	build $compiler-hardened "$command" -O2 -fstack-protector-strong -fcf-protection=full \
		-fstack-clash-protection
	claim "frames made by $compiler at -O $levels, with and without frame pointers" walk \
		"$libraries"
	all="$all $libraries"
done
claim "and when they call each other" walk "$all"
plan
