#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# tdt bt: the trees of a process and of its core file are those of the process's own dump, task by
# task and frame by frame.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
DEBUGINFOD_URLS=
LC_ALL=C
export DEBUGINFOD_URLS LC_ALL

# fails MESSAGE ARGUMENTS...: status 2 and the message.
fails()
{
	message=$1
	shift
	timeout 60 "$tdt" bt "$@" >"$tmp/listed" 2>"$tmp/why"
	status=$?
	cat "$tmp/why"
	[ $status = 2 ] && grep -q "^tdt: .*$message" "$tmp/why"
}

# says LINE ARGUMENTS...: tdt bt prints the line.
says()
{
	line=$1
	shift
	"$tdt" bt "$@" >"$tmp/listed"
	cat "$tmp/listed"
	grep -q -- "$line" "$tmp/listed"
}

# stacks ARGUMENTS...: the stacks of each task, by JSON.
stacks()
{
	"$tdt" bt --json "$@" | "$tdt" print --format=folded --plumbing | sort
}

claim "a target is needed" fails "the target is missing"
claim "times are times" fails "not a time" --waiting-longer=soon 1
claim "ids are numbers" fails "not the id of a task: seven" 1 seven
claim "there may be no such process" fails "no process 999999999 here" 999999999

# --- A process, and its core file ---

# has_threads ARGUMENTS...: a thread that computes is sampled, unless it has no CPU just now; nor is
# one whose own dump has interrupted its read(), until it is back there.
has_threads()
{
	stacks "$@" >"$tmp/outside"
	grep '^report;.*;compute ' "$tmp/outside" && grep '^reload;.*;read_config;' "$tmp/outside"
}

# as_own WHAT ARGUMENTS...: the stacks are those of the process's own dump.
as_own()
{
	what=$1
	shift
	if test "${SANITIZERS:?}" = no; then
		wait_until has_threads "$@" >&2
		same "$what: the stacks are those that the process itself prints" \
			"$tmp/own" "$tmp/outside"
	else
		skip "$what: the stacks" "a sanitizer's function stands between read() and the poll"
	fi
	claim "$what: the deadlock is named" says \
		'^deadlock: task 2 "alice to bob" waits for a mutex "bob"' "$@"
	claim "$what: and found by --check" sh -c '"$@" >/dev/null; test $? = 1' - \
		"$tdt" bt --check "$@"
	claim "$what: one task alone" says '^1 task: 1 as last watched' "$@" 6
	# The poll for the process's own dump may have come too soon for another tree.
	claim "$what: it has its own line" \
		says '^task 6 "session 1" pending .*, watched [0-9.]* m*s ago, [01] polls* since' \
		"$@" 6
	claim "$what: without names there are modules and offsets" \
		says '^- [a-z_]*outside_bank+0x[0-9a-f]*$' --no-symbols "$@" 6
	claim "$what: and no function" sh -c "! grep -q session_poll '$tmp/listed'"
}

# exits STATUS ARGUMENTS...
exits()
{
	expected=$1
	shift
	"$tdt" bt "$@" >/dev/null
	test $? = "$expected"
}

# checks: tasks 4 and 5 are in polls, and task 6 waits, for less than an hour.
checks()
{
	claim "--check finds no deadlock in one task" exits 0 --check "$pid" 6
	claim "--polling-longer finds long polls" exits 1 --polling-longer=1ms "$pid" 4
	claim "and none in a task that waits" exits 0 --polling-longer=1ms "$pid" 6
	claim "and no shorter ones" exits 0 --polling-longer=1h "$pid" 4
	claim "--waiting-longer finds long waits" exits 1 --waiting-longer=1ms "$pid" 6
	claim "and none in a poll" exits 0 --waiting-longer=1ms "$pid" 4
	claim "and no shorter ones" exits 0 --waiting-longer=1h "$pid" 6
}

# The process has printed its own dump.
has_dumped()
{
	echo >&3
	wait_until grep -q dumped "$tmp/said"
	"$tdt" print --format=folded --plumbing "$tmp/dumped" | sort >"$tmp/own"
	test -s "$tmp/own"
}

# Whether the stacks of running threads may be read.
may_sample()
{
	"$tdt" bt "$pid" 5 >/dev/null 2>"$tmp/why"
	! grep -q perf_event_open "$tmp/why"
}

bank=$top_builddir/tests/outside/outside_bank
TDT_WATCH=10ms
export TDT_WATCH
if test "${WITH_RUNTIME:?}" != yes; then
	skip "the trees of a process" "there is no runtime"
elif ! start "$bank" 3; then
	cat "$tmp/said" "$tmp/dumped" >&2
	claim "the bank starts" false
elif ! may_read; then
	cat "$tmp/why" >&2
	skip "the trees of a process" "reading another process is not permitted here"
	stop
else
	claim "the process prints a dump of its own" has_dumped
	if may_sample; then
		as_own "a process" --no-request "$pid"
		claim "a task that blocks its thread has the system call" says \
			'^task 4 "reload" running .* on thread [0-9]*, in read()' "$pid"
		# A thread that was stopped comes back to its read() some time later.
		as_own "a process whose running threads are stopped" --no-request --ptrace "$pid"
		claim "nothing traces it afterwards" \
			grep -q '^TracerPid:	0$' "/proc/$pid/status"
	else
		skip "the trees of a process" "perf_event_open is not permitted here"
	fi
	checks
	claim "--verbose says how long it took" sh -c '"$@" 2>&1 >/dev/null | grep -q "reading the
trees took"' - "$tdt" bt --verbose "$pid"
	if ! command -v gdb >/dev/null; then
		skip "the trees of a core file" "there is no gdb"
	elif test "${SANITIZERS:?}" != no; then
		skip "the trees of a core file" "sanitizers map terabytes"
	elif ! make_core; then
		skip "the trees of a core file" "gdb made none: $(tail -n 1 "$tmp/gdb")"
	else
		as_own "a core file" "--core=$tmp/core"
		gzip -1 <"$tmp/core" >"$tmp/core.gz"
		as_own "a compressed core file" "--core=$tmp/core.gz"
		rm "$tmp/core.gz"
		claim "that a wait is longer may be known of a core file" \
			exits 1 --waiting-longer=1ms "--core=$tmp/core" 6
		claim "that it is not is unknown" exits 3 --waiting-longer=1h "--core=$tmp/core" 6
		"$tdt" bt --json "--core=$tmp/core" | "$tdt" print |
			sed 's/ (took.*//' >"$tmp/saved"
		"$tdt" bt "--core=$tmp/core" | sed 's/ (took.*//' >"$tmp/printed"
		same "tdt print prints the same from JSON" "$tmp/saved" "$tmp/printed"
		stacks "--core=$tmp/core" --exe=/bin/ls >"$tmp/outside"
		same "a file with another build-id is not the program" "$tmp/own" "$tmp/outside"
		head -c 200000 "$tmp/core" >"$tmp/short"
		claim "a truncated core file is called so" \
			fails "is truncated" "--core=$tmp/short"
		rm -f "$tmp/core"
	fi
	stop
fi

# --- Fibers ---

# fibers ARGUMENTS...: the functions of the two fibers.
fibers()
{
	stacks "$@" | sed 's/^[^;]*;//; s/ [0-9]*$//' | diff -u "$tmp/fibers" -
}

cat >"$tmp/fibers" <<'END'
fibered_entry;shallow;first;fibered_yield
fibered_entry;deep;second;second;second;first;fibered_yield
END
"$top_builddir/tests/outside/fiber_core" <"$tmp/input" \
	>"$tmp/records" &
pid=$!
exec 3>"$tmp/input"
until test "$(wc -l <"$tmp/records")" = 2; do
	sleep 0.1
done
if may_read; then
	claim "the stacks of suspended fibers are read" fibers "$pid"
	line=$(grep -n "^	tdt_fiber_suspend(it->fiber);" "$top_srcdir/tests/lib/fibered.c")
	claim "the innermost frame is at the line of tdt_fiber_suspend()" \
		says "fibered_yield at .*fibered.c:${line%%:*}:" "$pid"
else
	skip "the stacks of suspended fibers" "reading another process is not permitted here"
fi
if command -v gdb >/dev/null && test "${SANITIZERS:?}" = no && make_core; then
	claim "in a core file, too" fibers "--core=$tmp/core"
else
	skip "fibers in a core file" "no core file can be made"
fi
stop
plan
