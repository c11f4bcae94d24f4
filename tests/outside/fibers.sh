#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Coroutines of libraries that know nothing of tdt are tasks, with the right trees, waiting and
# under load: of a library of the demo's own, of Boost, of GNU Pth (linked and preloaded), and with
# the adapter of tdt-coroutines(7).  MINICORO=DIRECTORY, where minicoro.h is, tries that with
# minicoro itself.  ROUNDS=NUMBER takes so many snapshots under load.  TDT_TEST_FULL=1 also builds
# for -O0.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
test "$SANITIZERS" = no || skip_all "a sanitized library needs a sanitized program"
test -e "${top_builddir:?}/.libs/libtdt.so" || skip_all "built without a shared library"

LC_ALL=C
export LC_ALL
demo=$top_srcdir/demo
fixtures=$top_srcdir/tests/outside/fixtures
flags="-g -Wall -Wextra -Werror -fno-optimize-sibling-calls -I$top_srcdir/include -I$demo"
libs="-L$top_builddir/.libs -Wl,-rpath,$top_builddir/.libs -ltdt"
rounds=${ROUNDS-100}
levels=-O2
test "${TDT_TEST_FULL-}" != 1 || rounds=${ROUNDS-500} levels="-O0 -O2"

# at FILE FUNCTION TEXT [AS]: `FUNCTION at demo/FILE:LINE`, of the first line from the start of the
# function that has TEXT; AS is how the tree calls the function.
at()
{
	awk -v start="(^|[ *\t])$2[(]" -v text="$3" '
		$0 ~ start && !/;$/ { inside = 1 }
		inside && index($0, text) { print NR; exit }' "$demo/$1" |
		sed "s|^|${4-$2} at demo/$1:|"
}

spawned_at()
{
	grep -nF "$2" "$demo/$1" | sed "s|:.*||; s|^|spawned at demo/$1:|"
}

# Leave out what is not the same each time, or with each compiler: times, addresses and columns; the
# names of instances of templates; where libraries were built.
even()
{
	sed -E 's/ pending (less than )?[0-9.]+ [mnu]?s( to [0-9.]+ [mnu]?s)?/ pending/
		s/ [(]took .*//
		s/ [(]0x[0-9a-f]*[)]//; s/(:[0-9]+):[0-9]+$/\1/; s/ [(]lib[^)]*[)]$//
		s| at [^ ]*/demo/| at demo/|g
		s/- traced_stack::([a-z]*)<.*> at /- traced_stack::\1 at /
		s/- ([a-z]+(::[a-z]+)*)([(]|::[{<]).*lambda.* at /- \1::lambda at /
		s/\[abi:cxx11\]//'
}

# in_time PROGRAM: the dumps in $tmp/shown had the time for all trees and names.
in_time()
{
	"$1" >"$tmp/shown" 2>&1
	! grep -q -e 'without a tree' -e 'not named in time' "$tmp/shown"
}

# shown PROGRAM: what it prints.
shown()
{
	wait_until in_time "$1"
	cat "$tmp/shown"
}

cat >"$tmp/fibers" <<END
3 tasks: 3 answered

task 1 "letter" pending, 1 leaf, $(spawned_at fibers.c '.name = "letter"')
- $(at fibers.c co_main 'self->function(')
 \`- $(at fibers.c print_letter 'print_pages(')
    \`- $(at fibers.c print_pages 'feed_sheet(')
       \`- $(at fibers.c feed_sheet 'co_wait(')
          \`- $(at fibers.c co_wait 'co_switch(')
             \`- $(at fibers.c co_switch 'tdt_fiber_suspend(')

task 2 "invoice" pending, 1 leaf, $(spawned_at fibers.c '.name = "invoice"')
   waits for a mutex "the printer" held by task 1 "letter"
- $(at fibers.c co_main 'self->function(')
 \`- $(at fibers.c print_invoice 'print_pages(')
    \`- $(at fibers.c print_pages 'take_printer(')
       \`- $(at fibers.c take_printer 'co_wait(')
          \`- $(at fibers.c co_wait 'co_switch(')
             \`- $(at fibers.c co_switch 'tdt_fiber_suspend(')

task 3 "poster" pending, 1 leaf, $(spawned_at fibers.c '.name = "poster"')
   waits for a mutex "the printer" held by task 1 "letter"
- $(at fibers.c co_main 'self->function(')
 \`- $(at fibers.c print_poster 'print_pages(')
    \`- $(at fibers.c print_pages 'take_printer(')
       \`- $(at fibers.c take_printer 'co_wait(')
          \`- $(at fibers.c co_wait 'co_switch(')
             \`- $(at fibers.c co_switch 'tdt_fiber_suspend(')

The letter is printed.
The invoice is printed.
The poster is printed.
END
shown "$top_builddir/demo/fibers" | even >"$tmp/got"
same "fibers prints where its coroutines wait" "$tmp/fibers" "$tmp/got"

# --- Under load ---

# The adapter of the manual.
adapter_of_manual()
{
	awk '/^[.]EE/ { on = 0 }
		on { gsub(/\\-/, "-"); print }
		/^[.]EX/ { getline; if ($0 == "/* Fibers of minicoro */") on = 1 }' \
		"$top_srcdir/man/tdt-coroutines.7" >"$tmp/fibers_of_minicoro.h"
	test -s "$tmp/fibers_of_minicoro.h"
}
claim "the manual has an adapter" adapter_of_manual

# build COMPILER FLAGS...
# shellcheck disable=SC2086 # lists of flags
build()
{
	"$@" $flags -o "$tmp/load" $libs $after -lpthread
}

# load WHAT COMPILER FLAGS...: each tree under load is right.
load()
{
	what=$1
	shift
	claim "$what: a program is built ($1 $2)" build "$@"
	claim "$what: all fibers are listed, and each tree is right ($1 $2)" "$tmp/load" "$rounds"
	rm -f "$tmp/load"
}

# small COMPILER LEVEL
small()
{
	after=
	load "small coroutines" "$@" -I"$fixtures/small_coroutines" -I"$tmp" \
		"$fixtures/fiber_load_minicoro.c"
	test -z "${MINICORO-}" || load "minicoro" "$@" -I"$MINICORO" -I"$tmp" \
		"$fixtures/fiber_load_minicoro.c"
}

for compiler in "$TEST_GCC" "$TEST_CLANG"; do
	test -n "$compiler" || continue
	for level in $levels; do
		small "$compiler" "$level"
	done
done

# --- Boost ---

boost()
{
	cat >"$tmp/boost" <<END
3 tasks: 3 answered

task 1 "ann" pending, 1 leaf, $(spawned_at fibers-boost.cc 'TDT_TASK_ATTR(task_name)')
- $(at boost_fibers.hpp run 'function();' traced_stack::run)
 \`- $(at fibers-boost.cc 'explicit visitor' 'play();' visitor::visitor::lambda)
    \`- $(at fibers-boost.cc 'void play' 'name = read_line()' visitor::play)
       \`- $(at fibers-boost.cc read_line 'wait();' visitor::read_line)
          \`- $(at fibers-boost.cc 'void wait' 'task_.away(' visitor::wait)
             \`- $(at boost_fibers.hpp away 'tdt_fiber_suspend(' traced_stack::away)

task 2 "ben" pending, 1 leaf, $(spawned_at fibers-boost.cc 'TDT_TASK_ATTR(task_name)')
- $(at boost_fibers.hpp run 'function();' traced_stack::run)
 \`- $(at fibers-boost.cc 'explicit visitor' 'play();' visitor::visitor::lambda)
    \`- $(at fibers-boost.cc 'void play' 'guess()' visitor::play)
       \`- $(at fibers-boost.cc 'bool guess' 'read_line()' visitor::guess)
          \`- $(at fibers-boost.cc read_line 'wait();' visitor::read_line)
             \`- $(at fibers-boost.cc 'void wait' 'task_.away(' visitor::wait)
                \`- $(at boost_fibers.hpp away 'tdt_fiber_suspend(' traced_stack::away)

task 3 "adder" pending, 1 leaf, $(spawned_at fibers-boost.cc 'TDT_TASK_ATTR("adder")')
- $(at boost_fibers.hpp run 'function();' traced_stack::run)
 \`- $(at fibers-boost.cc 'int play' 'add_up(' play::lambda)
    \`- $(at fibers-boost.cc 'void add_up' 'task.away(' add_up)
       \`- $(at boost_fibers.hpp away 'tdt_fiber_suspend(' traced_stack::away)

No, Ann.
Yes, Ben!
The sum is 7.
no tasks

END
	shown "$top_builddir/demo/fibers-boost" | even >"$tmp/got"
	same "fibers-boost prints where its coroutines wait" "$tmp/boost" "$tmp/got"
	after=-lboost_context
	for compiler in "$TEST_GXX" "$TEST_CLANGXX"; do
		test -n "$compiler" || continue
		for level in $levels; do
			load "Boost" "$compiler" "$level" "$fixtures/fiber_load_boost.cc"
		done
	done
}
if test -x "$top_builddir/demo/fibers-boost"; then
	boost
else
	skip "coroutines of Boost" "there is no Boost (Debian: libboost-context-dev)"
fi

# --- GNU Pth ---

# Without the frames that libc has of its own, and so without the shape of the tree.  pth_read() may
# jump to pth_read_ev().
of_pth()
{
	even | sed -E 's/^[ `]*- //; s/^pth_read_ev$/pth_read/' | grep -vE '^(_start|__libc_start)'
}

# preloaded: what make demo runs, with an adapter that is preloaded.
# shellcheck disable=SC2086
preloaded()
{
	adapter=$tmp/libpth-fibers.so
	$CC $flags -O2 -shared -fPIC "$demo/pth_fibers.c" -o "$adapter" $libs -lpth &&
		$CC $flags -O2 "$demo/fibers-pth.c" -o "$tmp/bakery" -lpth &&
		mkdir "$tmp/programs" &&
		printf '#!/bin/sh\nLD_PRELOAD=%s exec %s\n' "$adapter" "$tmp/bakery" \
			>"$tmp/programs/fibers-pth" &&
		chmod +x "$tmp/programs/fibers-pth" &&
		ln -s /bin/true "$tmp/programs/fibers"
}


pth()
{
	cat >"$tmp/pth" <<END
4 tasks: 4 answered

task 1 "main" pending, 1 leaf
$(at fibers-pth.c main 'pth_join(ann')
pth_join
$(at pth_fibers.c pth_yield 'tdt_fiber_suspend(')

2 tasks pending: 2 "Ann" and 3 "Ben", spawned by task 1
$(at pth_fibers.c thread_main 'start.function(')
$(at fibers-pth.c buy_bread 'take_loaf(')
$(at fibers-pth.c take_loaf 'pth_cond_await(')
pth_cond_await
$(at pth_fibers.c pth_yield 'tdt_fiber_suspend(')

task 4 "baker" pending, 1 leaf, spawned by task 1
$(at pth_fibers.c thread_main 'start.function(')
$(at fibers-pth.c bake 'fetch_flour(')
$(at fibers-pth.c fetch_flour 'pth_read(')
pth_read
$(at pth_fibers.c pth_yield 'tdt_fiber_suspend(')

The bakery is open.
Ann has bread.
Ben has bread.
END
	sh "$demo/fibers-demo.sh" "$top_builddir/demo" | sed '1,/Pth/d' | of_pth >"$tmp/got"
	same "fibers-pth, linked with the adapter, prints where its threads wait" "$tmp/pth" \
		"$tmp/got"
	claim "the adapter can be preloaded" preloaded
	sh "$demo/fibers-demo.sh" "$tmp/programs" | sed '1,/Pth/d' | of_pth >"$tmp/got"
	same "fibers-pth, not changed, prints where its threads wait" "$tmp/pth" "$tmp/got"
	after="$demo/pth_fibers.c -lpth"
	# shellcheck disable=SC2086 # $CC may hold options
	load "Pth" $CC -O2 "$fixtures/fiber_load_pth.c"
}
# Boost.Fiber, unchanged: the functions of the demo are on the stacks, and in Boost's own switch.
boost_fiber()
{
	# shellcheck disable=SC2086 # flags have spaces between them
	$CXX -std=c++17 -O2 $flags "$demo/fiber-boost.cc" -o "$tmp/fiber-boost" $libs \
		-lboost_fiber -lboost_context -ldl -lpthread || return
	shown "$tmp/fiber-boost" | sed -nE 's/^task [0-9]+ ("[a-z]+").*/\1/p
		s/^ *(- |`- )([a-z_:]*(rest|print|serve|context::resume)) .*/\2/p' >"$tmp/got"
	for fiber in sleeper:rest waiter:print server:serve; do
		printf '"%s"\n%s\nboost::fibers::context::resume\n' "${fiber%:*}" "${fiber#*:}"
	done >"$tmp/expected"
	diff -u "$tmp/expected" "$tmp/got"
}
with_boost_fiber()
{
	printf '#include <boost/fiber/all.hpp>\nint main() {}\n' |
		$CXX -std=c++17 -x c++ - -o "$tmp/with" -lboost_fiber -lboost_context 2>/dev/null
}
if with_boost_fiber; then
	claim "fiber-boost prints where fibers of Boost.Fiber wait" boost_fiber
else
	skip "fibers of Boost.Fiber" "there is no Boost.Fiber (Debian: libboost-fiber-dev)"
fi
if test -x "$top_builddir/demo/fibers-pth"; then
	pth
else
	skip "threads of GNU Pth" "there is no Pth (Debian: libpth-dev)"
fi
plan
