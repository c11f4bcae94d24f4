#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Frames of unusual shapes, whatever compiler and level: check_odd_frames with libraries of
# odd_frames.c.  TDT_TEST_FULL=1 has more levels.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

# build NAME COMPILER FLAG...
build()
{
	so=$tmp/$1.so
	shift
	"$@" -shared -fPIC -w -Wl,-z,lazy -I"$top_srcdir/tests" -o "$so" \
		"$top_srcdir/tests/lib/odd_frames.c" &&
		libraries="$libraries $so"
}

walk()
{
	CK_TAP_LOG_FILE_NAME=/dev/null CK_DEFAULT_TIMEOUT=60 TDT_TEST_FRAMES=$libraries \
		"${top_builddir:?}/tests/unit/unwind/check_odd_frames"
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
		build $compiler-$level "$command" -O$level
	done
	build $compiler-hardened "$command" -O2 -fno-omit-frame-pointer -fstack-protector-strong \
		-fcf-protection=full -fstack-clash-protection
	claim "frames made by $compiler at -O $levels, and hardened with frame pointers" walk
done
plan
