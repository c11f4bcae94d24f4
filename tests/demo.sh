#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The demos print true trees, of their own sources; and the lines that were added to a foreign runtime are all there is
# to it.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?}/tests/tap.sh"

LC_ALL=C
export LC_ALL
demo=$top_srcdir/demo
libs=${top_builddir:?}/.libs

# at FILE FUNCTION TEXT: `FUNCTION at demo/FILE:LINE`, of the first line from the start of the function that has TEXT.
at()
{
	awk -v start="static tdt_poll_t $2(" -v text="$3" 'index($0, start) == 1 { inside = 1 }
		inside && index($0, text) { print NR; exit }' "$demo/$1" | sed "s|^|$2 at demo/$1:|"
}

# Leave out what is not the same each time, or in each build: how long, where the sources are, and columns.
even()
{
	sed -E 's/ pending [0-9.]+ [mnu]?s/ pending/; s#( at )[^ ]*/((demo|src)/)#\1\2#; s/(:[0-9]+):[0-9]+/\1/' "$@"
}

spawned_at()
{
	grep -nF "$2" "$demo/$1" | sed "s|:.*||; s|^|spawned at demo/$1:|"
}

join="tdt_join_all at src/combine.c:$(grep -nF 'result = tdt_future_poll(child, cx);' "$top_srcdir/src/combine.c" |
	cut -d: -f1)"

cat >"$tmp/taskdump" <<END
task 1 "foo" pending, 2 leaves, $(spawned_at taskdump.c '.name = "foo"')
- $(at taskdump.c foo_poll 'TDT_AWAIT(bar())')
 \`- $(at taskdump.c bar_poll 'TDT_AWAIT(fiz_and_buz())')
    \`- $join
       |- $(at taskdump.c fiz_poll 'TDT_AWAIT(pending())')
       |  \`- $(at taskdump.c pending_poll 'tdt_waker_clone(')
       \`- $(at taskdump.c buz_poll 'TDT_AWAIT(baz())')
          \`- $(at taskdump.c baz_poll 'TDT_AWAIT(pending())')
             \`- $(at taskdump.c pending_poll 'tdt_waker_clone(')
END
"$top_builddir/demo/taskdump" 2>"$tmp/out"
even "$tmp/out" >"$tmp/got"
same "taskdump prints where foo waits" "$tmp/taskdump" "$tmp/got"

order="task 1 \"order 1\" pending, N, $(spawned_at foreign-runtime.c '.name = "order 1"')
- $(at foreign-runtime.c order_poll 'TDT_AWAIT(')"
pack=$(at foreign-runtime.c pack_poll 'TDT_AWAIT(')
bill=$(at foreign-runtime.c bill_poll 'TDT_AWAIT(')
event=$(at foreign-runtime.c event_poll 'tdt_waker_clone(')
cat >"$tmp/foreign" <<END
Nothing has come yet:
$(echo "$order" | sed 's/ N,/ 2 leaves,/')
 \`- $join
    |- $pack
    |  \`- $event
    \`- $bill
       \`- $event
The goods have come:
$(echo "$order" | sed 's/ N,/ 1 leaf,/')
 \`- $bill
    \`- $event
And the payment: shipped.
END
"$top_builddir/demo/foreign-runtime" >"$tmp/out"
even "$tmp/out" >"$tmp/got"
if test "$SANITIZERS" = no; then
	same "foreign-runtime prints where an order waits, before and after a part of it has come" \
		"$tmp/foreign" "$tmp/got"
else
	skip "foreign-runtime prints where an order waits" "gcc splits event_poll, and tells of two of them"
	claim "foreign-runtime ships the order" grep -qx "And the payment: shipped." "$tmp/got"
fi

# shellcheck disable=SC2086 # the compiler may be a list of words
build_without_hooks()
{
	mkdir -p "$tmp/without" &&
		grep -v 'added for tdt' "$demo/their_runtime.c" >"$tmp/without/their_runtime.c" &&
		test "$(grep -c 'tdt_worker_\|tdt_task_' "$tmp/without/their_runtime.c")" = 0 &&
		test "$(grep -c 'added for tdt' "$demo/their_runtime.c")" = 7 &&
		(cd "$top_srcdir" && $CC -g -D_GNU_SOURCE -I"include" -Idemo demo/foreign-runtime.c \
			"$tmp/without/their_runtime.c" -L"$libs" -Wl,-rpath,"$libs" -ltdt -lpthread \
			-o "$tmp/without/foreign-runtime")
}

# run PROGRAM: sets $pid.
run()
{
	"$1" >/dev/null &
	pid=$!
	wait $pid
}

# fired: which probes have fired, in any process or in $1.
fired()
{
	sed -En "s/^${1-[0-9]+} .*:([a-z_]+)\$/\1/p" "$tmp/bpftrace" | sort -u
}

# trace: write which probes fire with the lines, $tmp/all, and without, $tmp/without/probes.  A tracer attaches to them
# one after the other, so that it has is known when all were seen; and prints them some time later.
trace()
{
	bpftrace -B line -e "usdt:$(readlink -f "$libs/libtdt.so"):$provider:* { printf(\"%d %s\n\", pid, probe); }
		interval:s:60 { exit(); }" >"$tmp/bpftrace" 2>&1 &
	tracer=$!
	for _ in $(seq 100); do
		run "$top_builddir/demo/foreign-runtime"
		test "$(fired | wc -l)" = 10 && break
		sleep 0.1
	done
	fired >"$tmp/all"
	run "$tmp/without/foreign-runtime"
	for _ in $(seq 100); do
		test "$(fired "$pid" | wc -l)" -ge 5 && break
		sleep 0.1
	done
	kill -INT $tracer
	wait $tracer
	fired "$pid" >"$tmp/without/probes"
}

provider=$(sed -n 's/^#define TDT_USDT_PROVIDER //p' "$top_builddir/config.h")
if test "$SANITIZERS" != no; then
	skip "without the lines that were added" "a sanitized library needs a sanitized program"
elif ! test -e "$libs/libtdt.so"; then
	skip "without the lines that were added" "built without a shared library"
else
	claim "without the lines that were added the runtime can be built" build_without_hooks
	"$tmp/without/foreign-runtime" >"$tmp/out"
	even "$tmp/out" >"$tmp/got"
	same "and the same trees come" "$tmp/foreign" "$tmp/got"
	why=
	grep -q 'TDT_PROBES 1' "$top_builddir/config.h" || why="built without probes"
	test "$(id -u)" = 0 || why="only root may trace"
	bpftrace -e 'BEGIN { exit(); }' >/dev/null 2>&1 || why="there is no bpftrace, or it may not trace"
	if test -n "$why"; then
		skip "then five probes fire" "$why"
		skip "and all of them with those lines" "$why"
	else
		trace
		printf 'task__%s\n' poll__end poll__start spawn terminate waker__clone >"$tmp/five"
		same "then five probes fire" "$tmp/five" "$tmp/without/probes"
		{ cat "$tmp/five" && printf '%s\n' task__wake worker__thread__park worker__thread__start \
			worker__thread__stop worker__thread__unpark; } | sort >"$tmp/ten"
		same "and all of them with those lines" "$tmp/ten" "$tmp/all"
	fi
fi
plan
