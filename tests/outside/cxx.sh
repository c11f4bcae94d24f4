#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# C++20 coroutines: what they do as futures, and that each stands in the tree at every poll, on the
# line of its co_await, whatever compiler, level and instrumentation.  TDT_TEST_FULL=1 tries more of
# these.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/instrumentation.sh
. "$top_srcdir/tests/lib/instrumentation.sh"

fixtures=$top_srcdir/tests/outside/fixtures
shared="-I$top_srcdir/include -L${top_builddir:?}/.libs -Wl,-rpath,$top_builddir/.libs -ltdt"
warnings='-Wall -Wextra -Wpedantic -Wshadow -Wundef -Wcast-qual -Wconversion -Werror'
cd "$tmp" || exit

# line WHAT: where the fixture says it wants WHAT.
line()
{
	grep -nF "/* want: $1 */" "$fixtures/tree_coroutine.cc" | cut -d: -f1
}

# The trees of the second poll, and of the third; and the one it comes to.
cat >want.2 <<END
shop::serve tree_coroutine.cc:$(line serve)
 shop::order tree_coroutine.cc:$(line first)
  shop::pack tree_coroutine.cc:$(line wrap)
   (anonymous namespace)::yield_poll tree_coroutine.cc:$(line yield)
 shop::serve()::lambda::operator() tree_coroutine.cc:$(line lambda)
  shop::pack tree_coroutine.cc:$(line wrap)
   (anonymous namespace)::yield_poll tree_coroutine.cc:$(line yield)
END
cat >want.3 <<END
shop::serve tree_coroutine.cc:$(line serve)
 shop::order tree_coroutine.cc:$(line first)
  shop::pack tree_coroutine.cc:$(line wrap)
   (anonymous namespace)::yield_poll tree_coroutine.cc:$(line yield)
 shop::serve()::lambda::operator() tree_coroutine.cc:$(line lambda)
  shop::pack tree_coroutine.cc:$(line pack)
   shop::wait_forever tree_coroutine.cc:$(line forever)
    (anonymous namespace)::pending_poll tree_coroutine.cc:$(line pending)
END
cat >want.9 <<END
shop::serve tree_coroutine.cc:$(line serve)
 shop::order tree_coroutine.cc:$(line order)
  shop::till::pay tree_coroutine.cc:$(line pay)
   shop::wait_forever tree_coroutine.cc:$(line forever)
    (anonymous namespace)::pending_poll tree_coroutine.cc:$(line pending)
 shop::serve()::lambda::operator() tree_coroutine.cc:$(line lambda)
  shop::pack tree_coroutine.cc:$(line pack)
   shop::wait_forever tree_coroutine.cc:$(line forever)
    (anonymous namespace)::pending_poll tree_coroutine.cc:$(line pending)
END
cp want.9 want.10

# build_claims COMPILER FLAGS...
# shellcheck disable=SC2086 # lists of flags
build_claims()
{
	"$@" -std=c++20 $warnings -g -pthread -I"$top_srcdir/include" "$fixtures/coroutines.cc" \
		hooks.o \
		-o coroutines
}

# build_tree COMPILER FLAGS...
# shellcheck disable=SC2086
build_tree()
{
	$CC -g -I"$top_srcdir/include" -c "$fixtures/tree_main.c" -o main.o &&
		"$@" -std=c++20 $warnings -g main.o "$fixtures/tree_coroutine.cc" hooks.o $shared \
			-o tree
}

# claims COMPILER FLAGS...: one program, many claims.
claims()
{
	claim "$* builds them" build_claims "$@"
	./coroutines >claims || echo "not ok - and ends well" >>claims
	while IFS= read -r result; do
		tests=$((tests + 1))
		echo "$result ($*)" | sed "s/ok - /ok $tests - /"
	done <claims
	rm -f coroutines
}

# Compilers have names of their own for a lambda, and for an instance of a template.
trees()
{
	claim "$* builds a tree" build_tree "$@"
	for poll in 2 3 9 10; do
		./tree $((poll - 1)) |
			sed 's/shop::serve.*::operator()/shop::serve()::lambda::operator()/
				s/pack<int>/pack/' >got
		same "each coroutine is in the tree of poll $poll ($*)" want.$poll got
	done
	rm -f tree
}

echo '#include <coroutine>' >empty.cc
echo 'int main() {}' >>empty.cc

# The program of this name in tdt-languages(7).
of_manual()
{
	awk -v first="// $1" '
		/^[.]EE/ { on = 0 }
		on { gsub(/\\-/, "-"); gsub(/\\e/, "\\"); print }
		/^[.]EX/ { getline; if ($0 == first) { on = 1; print } }' \
			"$top_srcdir/man/tdt-languages.7" >"$1"
	test -s "$1"
}

# build_manual COMPILER
# shellcheck disable=SC2086
build_manual()
{
	"$1" -std=c++20 $warnings -g greet.cc ${shared% -ltdt} -ltdt-rt -ltdt -o greet
}

# Without an answer in a second it prints nothing, and of a poll that goes on, the stack.
greets()
{
	./greet >greeted || { : >greeted; return 0; }
	grep -q ' pending ' greeted
}

manual()
{
	if test "$WITH_RUNTIME" = no; then
		skip "the manual's program is built with $1" "configured without the runtime"
		return
	fi
	claim "the manual's program is built with $1" build_manual "$1"
	wait_until greets
	sed -n 's/.*- \([a-z_]*\) at .*/\1/p' greeted >got
	same "and prints its tree" want.manual got
	rm -f greet
}
printf '%s\n' greet answer tdt_sleep_ms >want.manual

# works COMPILER FLAGS...
works()
{
	"$@" -std=c++20 empty.cc -o empty >/dev/null 2>&1 && ./empty
}

why_no_trees=
test "$SANITIZERS" = no || why_no_trees="a sanitized library needs a sanitized program"
test -e "$top_builddir/.libs/libtdt.so" || why_no_trees="built without a shared library"
test "$(uname -m)" = x86_64 || why_no_trees="coroutines are in the tree on x86-64 alone"

compilers=
for compiler in "$TEST_GXX" "$TEST_CLANGXX"; do
	if test -n "$compiler" && works "$compiler"; then
		compilers="$compilers $compiler"
	fi
done
test -n "$compilers" || skip_all "no C++ compiler has coroutines (Debian: g++)"

# Claims of instrumented programs, where the compiler and its libraries allow them.
instrumented_claims()
{
	case ${INSTRUMENTATION-}$* in
	each* | *" -O0 "* | *" -O2 -fstack"*) ;;
	*) return ;; # trees will do
	esac
	case $* in
	*clang*-fsanitize=thread*) return ;; # its library defines operator new, as the program does
	*clang*-finstrument-functions\ * | *clang*-finstrument-functions)
		# Clang 14 calls functions of std::string that no library has.
		set -- "$(echo "$*" | sed 's/-finstrument-functions/&-after-inlining/')" ;;
	esac
	# shellcheck disable=SC2086,SC2048 # a list of flags
	claims $*
}

# if_works CLAIMS COMPILER "FLAGS"
# shellcheck disable=SC2086 # a list of flags
if_works()
{
	if works "$2" $3; then
		"$1" "$2" $3
	else
		skip "$2 $3" "it can't"
	fi
}

claim "the hooks of instrumented programs are built" build_hooks
claim "the manual has a C++ program" of_manual greet.cc
for compiler in $compilers; do
	claims "$compiler" -O2
	if test "${TDT_TEST_FULL-}" = 1; then
		claims "$compiler" -O0
		# As on a machine where no frames are made up.
		claims "$compiler" -O2 -fno-dwarf2-cfi-asm
		if_works claims "$compiler" "-O1 -fsanitize=address,undefined"
		instrumented "$compiler" instrumented_claims
	fi
	if test -n "$why_no_trees"; then
		skip "trees with $compiler" "$why_no_trees"
		continue
	fi
	manual "$compiler"
	set -- -O2 "-O2 -flto"
	test "${TDT_TEST_FULL-}" != 1 || set -- "$@" -O0 "-O2 -fno-omit-frame-pointer" -O3
	for flags; do
		if_works trees "$compiler" "$flags"
	done
	instrumented "$compiler" trees
done
plan
