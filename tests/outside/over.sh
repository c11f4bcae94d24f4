#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Tasks that go on in the very poll that is captured: every leaf that waits is in the tree, and what
# is over is left out or marked, whatever language, compiler and level.  TDT_TEST_FULL=1 has more of
# these.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

test "$SANITIZERS" = no || skip_all "a sanitized library needs a sanitized program"
libs=${top_builddir:?}/.libs
test -e "$libs/libtdt.so" || skip_all "built without a shared library"
fixtures=$top_srcdir/tests/outside/fixtures
include=-I$top_srcdir/include
shared="-L$libs -Wl,-rpath,$libs -ltdt"
cd "$tmp" || exit

# What names alone decide: these have no leaf that is over, marked or not.
cat >decided <<END
two_awaits loop lost_arm nested join_awaited join_inlined joined select_of_joins select_of_join
join_by_hand
second_await two_wakers bare_leaf coroutine coroutine_join
END

# Lines are `SHAPE: waits a b; tree a a b; marked N`.
none_lost()
{
	awk -F'[:;] (waits|tree|marked) ?' '
		function count(list, of,   n, i, words) {
			for (i in of) delete of[i]
			n = split(list, words, " ")
			for (i = 1; i <= n; i++) of[words[i]]++
		}
		{ count($2, waits); count($3, tree)
		  for (leaf in waits) if (tree[leaf] < waits[leaf]) { print "lost: " $0; bad = 1 } }
		END { exit bad || NR < 5 }' got
}

none_unmarked()
{
	awk -F'[:;] (waits|tree|marked) ?' '
		split($2, waits, " ") < split($3, tree, " ") && $4 == 0 {
			print "unmarked: " $0
			bad = 1
		}
		END { exit bad || NR < 5 }' got
}

decided()
{
	awk -F'[:;] (waits|tree|marked) ?' '
		NR == FNR {
			n = split($0, names, " ")
			for (i = 1; i <= n; i++)
				decided[names[i]] = 1
			next
		}
		decided[$1] && ($2 != $3 || $4 != 0) { print "undecided: " $0; bad = 1 }
		decided[$1] { seen++ }
		END { exit bad || seen < 4 }' decided got
}

# claims HOW: of the program.
claims()
{
	claim "it runs ($1)" run
	claim "no leaf that waits is lost ($1)" none_lost
	claim "a leaf that is over is left out or marked ($1)" none_unmarked
	claim "names decide what they can ($1)" decided
	rm -f program
}

# What names decide, alone: two leaves of a shape may share a slot, and counted clones tell that the
# first has lost it.
run()
{
	TDT_LEAF_WAKERS=0 ./program >got && cat got
}

# build_c COMPILER FLAGS..., build_cxx the same, build_rust FLAGS...
# shellcheck disable=SC2086 # lists of flags
build_c()
{
	"$@" -g $include "$fixtures/over_main.c" "$fixtures/over.c" $shared -o program
}

# shellcheck disable=SC2086
build_cxx()
{
	$CC -g $include -c "$fixtures/over_main.c" -o main.o &&
		"$@" -std=c++20 -g $include main.o "$fixtures/over.cc" $shared -o program
}

# shellcheck disable=SC2086
build_rust()
{
	$CC -g $include -c "$fixtures/over_main.c" -o main.o &&
		rustc --edition 2021 -g "$@" -L "native=$libs" -C link-arg=main.o \
			-C "link-arg=-Wl,-rpath,$libs" \
			-o program "$fixtures/over.rs"
}

works()
{
	echo 'int main(void) { return 0; }' >empty.c
	"$@" empty.c -o empty >/dev/null 2>&1
}

set -- -O2
test "${TDT_TEST_FULL-}" != 1 || set -- -O0 -O2 -Os "-O2 -flto" "-O2 -DKEEP" "-O1 -gdwarf-4"
for compiler in "$TEST_GCC" "$TEST_CLANG"; do
	if test -z "$compiler"; then
		skip "C" "there is one compiler less"
		continue
	fi
	for flags; do
		# shellcheck disable=SC2086
		if works "$compiler" $flags; then
			claim "$compiler $flags builds them" build_c "$compiler" $flags
			claims "$compiler $flags"
		else
			skip "$compiler $flags" "it can't"
		fi
	done
done

set -- -O2
test "${TDT_TEST_FULL-}" != 1 || set -- -O0 -O2 "-O2 -DKEEP"
for compiler in "$TEST_GXX" "$TEST_CLANGXX"; do
	if test -z "$compiler" || test "$(uname -m)" != x86_64 || ! echo '#include <coroutine>' |
		"$compiler" -std=c++20 -x c++ -fsyntax-only - 2>/dev/null; then
		skip "C++" "there is one compiler with coroutines less"
		continue
	fi
	for flags; do
		# shellcheck disable=SC2086
		claim "$compiler $flags builds them" build_cxx "$compiler" $flags
		claims "$compiler $flags"
	done
done

set -- -Copt-level=0
test "${TDT_TEST_FULL-}" != 1 || set -- "$@" -Copt-level=2 "-Copt-level=2 --cfg keep"
if rustc --version >&2; then
	for flags; do
		# shellcheck disable=SC2086
		claim "rustc $flags builds them" build_rust $flags
		claims "rustc $flags"
	done
else
	skip "Rust" "there is no rustc"
fi

# Without debug information anything may be inlined unseen: nothing is left out but in coroutines,
# which are one stack.
# shellcheck disable=SC2086 # $CC may hold options
stripped()
{
	build_c $CC -O2 && strip "$@" program
}

# With symbols both reads of this one are there.
symbols()
{
	run && none_lost && grep -q '^two_awaits: waits b; tree a b;' got
}

nameless()
{
	run && grep -q '^two_awaits: waits b; tree ? ?;' got && ! grep -q 'tree *;' got
}

if command -v strip >/dev/null; then
	claim "it is stripped of debug information" stripped --strip-debug
	claim "symbols alone lose no leaf" symbols
	claim "it is stripped of all" stripped
	claim "without names nothing is left out of C" nameless
else
	skip "stripped programs" "there is no strip"
fi
plan
