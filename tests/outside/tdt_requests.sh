#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# tdt bt and tdt set, of processes that listen for requests: fresh trees, what is refused, and what
# is left behind.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
LC_ALL=C
unset TDT_OUTSIDE
export LC_ALL
tree=${top_builddir:?}/tdt-tree

test "${WITH_RUNTIME:?}" = yes || skip_all "there is no runtime"

# says LINE ARGUMENTS...: tdt bt prints the line, and ends with 0.
says()
{
	line=$1
	shift
	timeout 60 "$tdt" bt "$@" >"$tmp/listed" 2>"$tmp/why"
	status=$?
	cat "$tmp/listed" "$tmp/why"
	[ $status = 0 ] && grep -q -- "$line" "$tmp/listed"
}

# comes_to_say LINE ARGUMENTS...: the same, once no task is held up in the poll that is to answer,
# which would be shown as a running one.
comes_to_say()
{
	wait_until says "$@"
}

# notes TEXT ARGUMENTS...: tdt bt says so on stderr, and prints tasks nevertheless.
notes()
{
	text=$1
	shift
	says '^[1-9][0-9,]* tasks*' "$@" && grep -q -- "$text" "$tmp/why"
}

stacks()
{
	"$tdt" bt --json "$@" | "$tree" --format=folded --plumbing | sort
}

# Whether requests may be made: if not, why.
may_request()
{
	may_read && "$tdt" bt "$pid" >/dev/null 2>"$tmp/why" &&
		! grep -q "pidfd_getfd\|pidfd_open" "$tmp/why"
}

# polls TASK: how often it was polled.
polls()
{
	"$tdt" ps --json "$pid" | tr '{' '\n' | sed -n "s/^\"id\":$1,.*\"polls\":\([0-9]*\).*/\1/p"
}

# --- A process that stands still, and was not watched ---

bank=$top_builddir/tests/outside/outside_bank
start "$bank" 3 rests || skip_all "the bank does not start here"
if ! may_request; then
	stop
	skip_all "requests cannot be made here: $(cat "$tmp/why")"
fi

# The process has printed its own dump.
has_dumped()
{
	echo >&3
	wait_until grep -q dumped "$tmp/said"
	"$tree" --format=folded --plumbing "$tmp/dumped" | sort |
		sed '/^reload;/d; /^report;/d' >"$tmp/own"
	test -s "$tmp/own"
}

as_own()
{
	stacks "$pid" 1 2 3 6 7 8 >"$tmp/outside"
	diff "$tmp/own" "$tmp/outside"
}

# rests: each task has answered, and waits again: no poll is due that an earlier request caused,
# which was not answered in time.
rests()
{
	says '^8 tasks.*: 6 answered, ' "$pid" &&
		"$tdt" ps "$pid" | grep -q '^process.*, 6 waiting, 2 polling$'
}

# rings TASK COMMAND...: whether the command has the task polled.
rings()
{
	rung=$1
	shift
	wait_until rests
	before=$(polls "$rung")
	"$@" >/dev/null
	after=$(polls "$rung")
	echo "$before and $after polls"
	test "$after" -gt "$before"
}

silent()
{
	! rings "$@" && test -n "$after" && test "$after" = "$before"
}

# exits STATUS ARGUMENTS...: tdt bt ends with the status.
exits()
{
	expected=$1
	shift
	timeout 60 "$tdt" bt "$@" >"$tmp/listed" 2>"$tmp/why"
	test $? = "$expected"
}

claim "the process prints a dump of its own" has_dumped
claim "all trees are those that the process itself prints" wait_until as_own
claim "each waiting task has answered" comes_to_say '^8 tasks, 1 deadlock: 6 answered, ' "$pid"
claim "and says so" comes_to_say '^3 tasks pending .*, asked just now: .*"session 1"' "$pid"
claim "the deadlock is proved by the answers" comes_to_say '^deadlock: task 2 "alice to bob"' "$pid"
claim "a ring is shown to who asks for one of its tasks" \
	comes_to_say '^unproven ring .*"alice to bob"' "$pid" 2
claim "which --check finds" wait_until exits 1 --check "$pid" 2
claim "but not for another task" exits 0 --check "$pid" 6
claim "a request wakes its task" wait_until rings 6 "$tdt" bt "$pid" 6
claim "and no other" silent 6 "$tdt" bt "$pid" 7
claim "--no-request wakes none" silent 2 "$tdt" bt --no-request "$pid"
claim "and says what there is" says '^task 6 .*, record only' --no-request "$pid" 6
claim "--check finds the deadlock" wait_until exits 1 --check "$pid"
claim "by requests to its tasks" wait_until rings 2 "$tdt" bt --check "$pid"
claim "and to no other" silent 6 "$tdt" bt --check "$pid"
wait_until rests
claim "without requests it is unproven" exits 3 --check --no-request "$pid"
claim "and --check says so" grep -q '^tdt: a ring of waits is unproven' "$tmp/why"
claim "--check makes no request where there is no ring" silent 6 "$tdt" bt --check "$pid" 6
claim "nor does --waiting-longer" silent 6 "$tdt" bt --waiting-longer=1h "$pid"
claim "tdt ps --check makes none at all" silent 2 "$tdt" ps --check "$pid"
claim "--max-requests limits the requests" wait_until notes '^tdt: [0-9]* tasks were only read' \
	--max-requests=2 "$pid"
claim "to that many" comes_to_say ': 2 answered, ' --max-requests=2 "$pid"
claim "--verbose says how long the requests took" wait_until notes 'requesting the trees took' \
	--verbose "$pid"
claim "an id that no task has is no trouble" says '^no tasks' "$pid" 4711

# A task that is polled for one of two readers may be shown as a running one to the other.
two_read()
{
	"$tdt" bt "$pid" >"$tmp/first" 2>&1 &
	first=$!
	says ': 6 answered, ' "$pid"
	read=$?
	wait $first && test $read = 0 && grep ': 6 answered, ' "$tmp/first"
}
claim "two readers at once are both answered" wait_until two_read

# --- Settings ---

# The process may be held up for longer than tdt set waits for its answer.

# watched: what is in force when almost no watch is requested.
watched()
{
	"$tdt" set --json --for=1ms "$pid" watch=1h | sed 's/.*"watch_ns":\([0-9]*\).*/\1/'
}

# is_watched NS: so it is; or, if that is an hour, the process has noticed that nobody else wants a
# watch.
is_watched()
{
	test "$(watched)" = "$1"
}

sets_both()
{
	test "$("$tdt" set --json --for=1ms "$pid" watch=10ms record=64K)" = \
		'{"tdt":1,"set":{"watch_ns":10000000,"recording":true}}'
}

# start_set: have the tasks watched, until $set ends.  The target ends with descriptor 3.
start_set()
{
	: >"$tmp/set"
	"$tdt" set "$pid" watch=10ms >"$tmp/set" 2>"$tmp/ended" 3>&- &
	set=$!
	until test -s "$tmp/set" || ! kill -0 $set; do
		sleep 0.1
	done
	cat "$tmp/ended" >&2
	test -s "$tmp/set"
}

hour=3600000000000
claim "a watch that is requested is in force" wait_until sets_both
claim "and ends with the command" wait_until is_watched $hour
for signal in TERM KILL; do
	wait_until start_set
	claim "it is in force until SIG$signal" wait_until is_watched 10000000
	kill -$signal $set
	wait $set 2>/dev/null
	status=$?
	claim "and no longer" wait_until is_watched $hour
	test $signal = KILL || claim "a signal ends it in peace" test $status = 0
done
wait_until start_set

# --- Targets that do not answer ---

kill -STOP "$pid"
wait_until grep -q '^State:.T' "/proc/$pid/status"
claim "a stopped process is said to be one" notes 'is stopped' "$pid"
kill -CONT "$pid"
claim "afterwards it answers again" comes_to_say ': 6 answered, ' "$pid"
stop
wait $set
status=$?
claim "tdt set notices the end of the process" test $status = 2
cat "$tmp/ended" >&2
claim "and says so" grep -q 'has ended' "$tmp/ended"

start env TDT_OUTSIDE=0 "$bank" 3 rests
claim "a process that refuses requests is read" notes 'started with TDT_OUTSIDE=0' "$pid"
claim "but not set" sh -c '"$@" 2>/dev/null; test $? = 2' - "$tdt" set "$pid" watch=10ms
stop

# --- A server that is wedged, one that works, and a program in C++ ---

# serve OPTION...: an echo server with five connections, whose clients have sent a message.
serve()
{
	: >"$tmp/said" # or what the server before has said might be read
	"$top_builddir/demo/echo-server" --port=0 "$@" \
		>"$tmp/said" 2>&1 &
	pid=$!
	until grep -q ' port ' "$tmp/said"; do
		kill -0 $pid || return 1
		sleep 0.1
	done
	"$top_builddir/demo/echo-client" --port="$(sed -n 's/.* port //p' "$tmp/said")" \
		--connections=5 --messages="$messages" --timeout=100000 --hold=100000 \
		>"$tmp/echoed" 2>&1 &
	client=$!
	until test "$("$tdt" ps --name='connection *' "$pid" | grep -c ' connection ')" = 5; do
		kill -0 $client && kill -0 "$pid" || return 1
		sleep 0.1
	done
}

# is_wedged: the third connection waits for the mutex that it holds, and the ticker for that.  Other
# connections may have had their echo before.
is_wedged()
{
	test "$("$tdt" ps "$pid" | grep -c '^ *[25] .* a mutex .* held by ')" = 2
}

end_server()
{
	kill $client "$pid"
	wait $client "$pid" 2>/dev/null
}

# all_answer: of the 7 tasks, no line says anything else.
all_answer()
{
	says '^7 tasks.*: 7 answered (took' "$pid" &&
		test "$(grep -c 'asked just now' "$tmp/listed")" = \
			"$(grep -c '^[0-9]*.*task.* pending ' "$tmp/listed")"
}

messages=1
if serve --wedge --report=100 && wait_until is_wedged; then
	before=$(polls 2)
	sleep 0.3
	claim "a wedged server polls nothing" test "$(polls 2)" = "$before"
	claim "and shows where all its tasks wait" wait_until all_answer
	claim "at the mutex" grep -q '`- tdt_mutex_lock at ' "$tmp/listed"
	claim "and which of them wedged it" grep -q '^deadlock: task 5 "connection 3"' \
		"$tmp/listed"
	claim "which --check finds" wait_until exits 1 --check "$pid"
	claim "one task says who holds its mutex" \
		comes_to_say 'held by task 5 "connection 3"$' "$pid" 2
	end_server
else
	claim "a wedged server starts" false
fi
asked_reads()
{
	says 'tdt_tcp_read at ' "$pid" && grep -q 'asked just now' "$tmp/listed"
}

messages=100000000
if serve; then
	claim "tasks that are polled all the time show where they wait when they are asked" \
		wait_until asked_reads
	end_server
else
	claim "a server starts" false
fi

start "$top_builddir/tests/outside/outside_shop" || cat "$tmp/dumped"
claim "where coroutines in C++ wait" comes_to_say '^2 tasks pending .*, asked just now: ' "$pid"
claim "both at once" grep -q 'shop::Clerk::take_order' "$tmp/listed"
stop
plan
