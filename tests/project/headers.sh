#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Each public header stands alone, and programs that use all their macros
# compile, with no warning, in every language and with every compiler we promise.  Whether a header
# stands alone hardly depends on the year of the language: only TDT_TEST_FULL=1 tries all.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

warnings='-Wall -Wextra -Wpedantic -Wshadow -Wpointer-arith -Wundef -Wvla -Wcast-qual
	-Wwrite-strings -Wconversion -Wimplicit-fallthrough -Wredundant-decls -Wnull-dereference
	-Werror'
include=${top_srcdir:?is set by make check}/include
number=0

# claim COMPILER TEXT COMMAND...: one line of TAP; what the command said, if it
# failed; a skip, if there is no COMPILER.
claim() {
	compiler=$1 text=$2
	shift 2
	number=$((number + 1))
	if [ -z "$compiler" ]; then
		echo "ok $number - $text # SKIP no such compiler"
	elif "$@" >"$work/log" 2>&1; then
		echo "ok $number - $text"
	else
		echo "not ok $number - $text"
		sed 's/^/# /' "$work/log"
	fi
}

# compile LANGUAGE STANDARD [FLAG...] FILE: with the compiler of the claim.
compile() {
	speech=$1 year=$2
	shift 2
	# shellcheck disable=SC2086 # a list of flags
	"$compiler" -x "$speech" -std="$year" -O2 $warnings -I"$include" -c -o /dev/null "$@"
}

# headers_alone LANGUAGE STANDARD: each included twice, because of its guard.
headers_alone() {
	for header in "$include"/tdt/*.h "$include"/tdt/*/*.h; do
		public=${header#"$include/"}
		printf '#include <%s>\n#include <%s>\nextern int unit;\n' "$public" "$public" \
			>"$work/alone"
		compile "$1" "$2" "$work/alone" || return 1
	done
}

# A hole in a struct is a field that a program with a later header may leave unset, and that the
# rule for sizes (struct tdt_task_attr) takes for one that is set.
without_holes() {
	for header in "$include"/tdt/*.h "$include"/tdt/*/*.h; do
		printf '#include <%s>\nextern int unit;\n' "${header#"$include/"}" >"$work/alone"
		compile c gnu11 -Wpadded "$work/alone" || return 1
	done
}

# Each header by itself, without what C99 lacks.  (An await needs a type of 128 bits, which no
# standard has.)
in_c99() {
	for header in "$include"/tdt/*.h "$include"/tdt/*/*.h; do
		printf '#include <%s>\nextern int unit;\n' "${header#"$include/"}" >"$work/alone"
		compile c c99 -pedantic-errors "$work/alone" || return 1
	done
}

# What is for C++20 and later.
coroutines_alone() {
	printf '#include <tdt/%s>\n' coroutine.hpp coroutine.hpp coro.hpp coro.hpp >"$work/alone"
	compile c++ "$1" "$work/alone"
}

# refused REASON LANGUAGE STANDARD FILE: it does not compile, and that is why.
refused() {
	reason=$1
	shift
	! compile "$@" >"$work/refused" 2>&1 || return 1
	grep -q "$reason" "$work/refused" || { cat "$work/refused"; return 1; }
}

# try NAME COMPILER LANGUAGE FIXTURE STANDARD...
try() {
	name=$1 with=$2 language=$3 fixture=$4
	shift 4
	first=$1
	for standard; do
		if [ "$standard" = "$first" ] || [ "${TDT_TEST_FULL-}" = 1 ]; then
			claim "$with" "each header stands alone as $standard with $name" \
				headers_alone "$language" "$standard"
		fi
		claim "$with" "a program with every macro compiles as $standard with $name" \
			compile "$language" "$standard" "$top_srcdir/tests/project/$fixture"
	done
}

printf '#include <tdt/coroutine.hpp>\n' >"$work/coroutine"

try gcc "${TEST_GCC:-}" c headers.c c11 gnu11 c17
try clang "${TEST_CLANG:-}" c headers.c c11 gnu11 c17
try g++ "${TEST_GXX:-}" c++ headers.cc c++17 gnu++17 c++20
try clang++ "${TEST_CLANGXX:-}" c++ headers.cc c++17 gnu++17 c++20
claim "${TEST_GCC:-}" "no public struct has a hole" without_holes
claim "${TEST_GCC:-}" "the headers are C99" in_c99
for with in "${TEST_GXX:-}" "${TEST_CLANGXX:-}"; do
	for standard in c++20 c++2b; do
		claim "$with" \
			"coroutine.hpp, coro.hpp stand alone as $standard with ${with:-another}" \
			coroutines_alone $standard
	done
	claim "$with" "coroutine.hpp says that it wants more than C++17 with ${with:-another}" \
		refused 'compile with -std=c++20' c++ c++17 "$work/coroutine"
done
echo "1..$number"
