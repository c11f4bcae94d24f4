#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Ghost leaves, shape by shape: a leaf that waits is never lost, and one that is over is not shown,
# or the tree is marked.  In C, C++20 and Rust, as several compilers build them; TDT_TEST_FULL=1 has
# more levels.  The log has a table of what was wanted and what was got.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

test "$SANITIZERS" = no || skip_all "a sanitized library needs a sanitized program"
libs=${top_builddir:?}/.libs
test -e "$libs/libtdt.so" || skip_all "built without a shared library"
ghosts=$top_srcdir/tests/ghosts
shared="-I$top_srcdir/include -L$libs -Wl,-rpath,$libs -ltdt"
cd "$tmp" || exit

# works COMPILER FLAGS...
echo 'int main(void) { return 0; }' >empty.c
works()
{
	"$@" -x c empty.c -o empty >/dev/null 2>&1 && ./empty
}

# built HOW BUILD...: the shapes, as the command builds them.
built()
{
	how=$1
	shift
	claim "the shapes are built ($how)" "$@"
	claim "their trees show what waits ($how)" run "$how"
	rm -f shapes
}

run()
{
	./shapes >table
	result=$?
	sed "s|^|$1: |" table
	return $result
}

# build_c COMPILER FLAGS...
# shellcheck disable=SC2086 # lists of flags
build_c()
{
	"$@" -std=gnu11 -g "$ghosts/harness.c" "$ghosts/shapes.c" $shared -o shapes
}

levels=-O2
test "${TDT_TEST_FULL-}" != 1 || levels="-O0 -O2"
set -- "-O2 -flto"
test "${TDT_TEST_FULL-}" != 1 || set -- "$@" -O0 -O2 -Os
for compiler in "$TEST_GCC" "$TEST_CLANG"; do
	test -n "$compiler" || continue
	for flags; do
		# shellcheck disable=SC2086
		if works "$compiler" $flags; then
			built "C, $compiler $flags" build_c "$compiler" $flags
		else
			skip "C, $compiler $flags" "it can't"
		fi
	done
done

# build_cc COMPILER FLAGS...
# shellcheck disable=SC2086
build_cc()
{
	$CC -std=gnu11 -O2 -g -I"$top_srcdir/include" -c "$ghosts/harness.c" -o harness.o &&
		"$@" -std=c++20 -g harness.o "$ghosts/shapes.cc" $shared -o shapes
}

echo '#include <coroutine>' >empty.cc
echo 'int main() {}' >>empty.cc
for compiler in "$TEST_GXX" "$TEST_CLANGXX"; do
	test -n "$compiler" || continue
	if test "$(uname -m)" != x86_64; then
		skip "C++20, $compiler" "coroutines are in the tree on x86-64 alone"
	elif "$compiler" -std=c++20 empty.cc -o empty 2>/dev/null; then
		for level in $levels; do
			built "C++20, $compiler $level" build_cc "$compiler" "$level"
		done
	else
		skip "C++20, $compiler" "it has no coroutines"
	fi
done

# build_rs FLAGS...: without cargo.
build_rs()
{
	$CC -std=gnu11 -O2 -g -I"$top_srcdir/include" -c "$ghosts/harness.c" -o harness.o &&
		rustc --edition 2021 -g "$@" -L "native=$libs" -C link-arg=harness.o \
			-C "link-arg=-Wl,-rpath,$libs" "$ghosts/shapes.rs" -o shapes
}

if command -v rustc >/dev/null; then
	built "Rust, debug" build_rs
	built "Rust, release" build_rs -O
else
	skip "Rust" "there is no rustc"
fi
plan
