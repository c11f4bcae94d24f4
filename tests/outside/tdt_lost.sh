#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Asking must not hide a fault: a task whose wake-up was lost goes on when it is polled for a
# request, so a task is not requested while its watched tree shows where it waits.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
LC_ALL=C.UTF-8
DEBUGINFOD_URLS=
export LC_ALL DEBUGINFOD_URLS

test "${WITH_RUNTIME:?}" = yes || skip_all "there is no runtime"

# polls: how often the consumer was polled.
polls()
{
	"$tdt" ps --json "$pid" | tr '{' '\n' |
		sed -n 's/.*"name":"consumer".*"polls":\([0-9]*\).*/\1/p'
}

# leaves_it COMMAND...: the command shows the consumer's tree, and does not have it polled.
leaves_it()
{
	before=$(polls)
	"$@" >"$tmp/shown" 2>"$tmp/why" || return 1
	grep -q 'event_poll' "$tmp/shown" || { cat "$tmp/shown" "$tmp/why"; return 1; }
	test "$(polls)" = "$before"
}

# has_dumped N: it has printed more dumps than these.
has_dumped()
{
	test "$(grep -c '^2 tasks: ' "$tmp/dumped")" -gt "$1"
}

# dumps_watched: the newest dump by signal has the tree, and says that it is a watched one.  (The
# healthy task may be held up, and may not answer in time.)
dumps_watched()
{
	dumps=$(grep -c '^2 tasks: ' "$tmp/dumped")
	kill -USR1 "$pid"
	wait_until has_dumped "$dumps"
	awk '/^2 tasks: / { text = "" } { text = text $0 "\n" } END { printf "%s", text }' \
		"$tmp/dumped" >"$tmp/newest"
	grep 'event_poll at' "$tmp/newest" && grep '^2 tasks: .* as last watched' "$tmp/newest" &&
		! grep 'did not answer' "$tmp/newest"
}

# dump_shows: so it does, and does not have the task polled.
dump_shows()
{
	before=$(polls)
	wait_until dumps_watched && test "$(polls)" = "$before"
}

# asks_anyway: a request has the task polled, and the loss is one of that request.  If the poll is
# held up, the request may be over, and the task goes on nevertheless: so there is another event.
asks_anyway()
{
	give_line set
	"$tdt" bt --request "$pid" >"$tmp/shown" 2>"$tmp/why"
	cat "$tmp/shown" "$tmp/why"
	grep -q '^lost wake-up: task 1 .* for this request; nobody had woken it' "$tmp/shown" &&
		grep -q 'event_poll at' "$tmp/shown"
}

# The tree of before is there if the watch has captured the poll before.
tells_before()
{
	asks_anyway && grep '^1 task went on when asked; before, this was seen:' "$tmp/shown"
}

TDT_WATCH=1ms TDT_DUMP=USR1
export TDT_WATCH TDT_DUMP
start "$top_builddir/tests/outside/outside_lost"
unset TDT_WATCH TDT_DUMP
if may_read; then
	claim "tdt bt shows the tree that there is" leaves_it "$tdt" bt "$pid"
	claim "so does a request of the one task" leaves_it "$tdt" bt "$pid" 1
	claim "so does tdt profile" leaves_it "$tdt" profile -d 200ms --plumbing "$pid"
	claim "so does tdt top" leaves_it "$tdt" top -n1 --task=1 "$pid"
	claim "so does tdt diff" leaves_it "$tdt" diff --after=100ms "$pid"
	claim "so does tdt bt --check" leaves_it "$tdt" bt --check "$pid"
	if test "${SANITIZERS:?}" = thread; then
		skip "so does a dump by signal" "ThreadSanitizer delays signals"
	else
		claim "so does a dump by signal" dump_shows
	fi
	claim "tdt bt --request asks anyway, and says what moved" wait_until tells_before
	claim "with what was there before" sh -c "
		sed '1,/^1 task went on/d' '$tmp/shown' | grep -q 'wait_poll at .*outside_lost.c'"
	claim "and names the wake-up that was lost" sh -c "
		grep '^lost wake-up: task 1 \"consumer\" waited .* \"jobs\"' '$tmp/shown' |
			grep -q 'went on when it was polled for this request; nobody had woken it'"
	claim "with the place" sh -c "
		sed -n '/^lost wake-up/,/^\$/p' '$tmp/shown' |
			grep -q 'event_poll at .*outside_lost.c'"
	claim "tdt ps remembers it" sh -c "
		'$tdt' ps '$pid' | grep -q '^lost wake-up: task 1 .* ago; nobody had woken it'"
	claim "tdt top does" sh -c "
		'$tdt' top -n1 '$pid' | grep -q '^lost wake-up: task 1 '"
	claim "tdt metrics counts it" sh -c "
		'$tdt' metrics '$pid' | grep -q '^tdt_lost_wakeups_total [1-9]'"
	"$tdt" bt --json "$pid" >"$tmp/json"
	claim "JSON has it, and tdt print shows the same" sh -c "
		'$tdt' print '$tmp/json' | grep -q '^lost wake-up: task 1 '"
	for way in bt ps; do
		"$tdt" "$way" --check "$pid" >"$tmp/checked" 2>&1
		claim "tdt $way --check ends with 1" test $? = 1
	done
	"$tdt" bt --request --json "$pid" >"$tmp/shown"
	claim "nothing moves any more" sh -c "! grep -q '\"before\"' '$tmp/shown'"
else
	skip "looking before touching" "reading another process is not permitted here"
fi
stop

# The flight recorder has the event, once it is certain.
TDT_RECORD=16M
export TDT_RECORD
start "$top_builddir/tests/outside/outside_lost"
unset TDT_RECORD
if may_read; then
	wait_until asks_anyway
	claim "a summary of a recording says so" wait_until sh -c "
		'$tdt' record --summary -d 10ms '$pid' 2>/dev/null |
			grep -A1 'lost wake-ups$' | grep -q 'task 1 \"consumer\"'"
fi
stop

# Without trees, tdt top says what helps, and does it.
start "$top_builddir/tests/outside/outside_lost"
lacks_trees()
{
	"$tdt" top -n1 "$pid" >"$tmp/shown"
	grep '^2 of 2 tasks have no tree: w (--watch)' "$tmp/shown"
}
if may_read; then
	# The healthy task may be in a poll.
	claim "tdt top says that trees are missing, and what helps" wait_until lacks_trees
	# Trees are captured in polls that come after the watch has begun.
	claim "and has the tasks watched" wait_until sh -c "'$tdt' top -n3 -d 200ms --watch '$pid' |
		grep ' in wait_poll at .*outside_lost.c' >/dev/null"
	claim "the watch ends with it" wait_until sh -c "'$tdt' top -n1 '$pid' >'$tmp/shown'"
fi
stop
plan
