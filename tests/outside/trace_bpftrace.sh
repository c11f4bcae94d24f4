#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The probes under bpftrace: what it sees of a program that knows what it does; and the remote
# control, by tracers that come to a running program and leave it.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/tracing.sh
. "$top_srcdir/tests/lib/tracing.sh"
may_trace bpftrace bpftrace

BPFTRACE_STRLEN=100
export BPFTRACE_STRLEN

# trace PROGRAM OUTPUT [OPTION...]: in the background, as $tracer.
trace()
{
	program=$1
	output=$2
	shift 2
	bpftrace -B line "$@" "$program" >"$output" 2>"$output.err" 3>&- &
	tracer=$!
	started="$started $tracer"
}

# Its lines come by processor, not by time.
for probe in $task_probes; do
	printf '%s {\n\tprintf("%s %s %s\\n", %s);\n}\n' \
		"usdt:$lib:$provider:$probe" "%llu %d" "$(dashed "$probe")" "%llu %s %u %u" \
		'nsecs, tid, arg0, str(arg1), (uint32)arg2, (uint32)arg3'
done >"$tmp/all.bt"
for probe in $worker_probes; do
	printf '%s {\n\tprintf("%s %s\\n", nsecs, tid);\n}\n' \
		"usdt:$lib:$provider:$probe" "%llu %d" "$(dashed "$probe")"
done >>"$tmp/all.bt"

printed()
{
	grep -E '^[0-9]+ [0-9]+ (task|worker)-' "$tmp/got"
}

all_printed()
{
	test "$(printed | wc -l)" -ge "$(wc -l <"$tmp/said")"
}

# see_all WHO [OPTION...]
see_all()
{
	who=$1
	shift
	trace "$tmp/all.bt" "$tmp/got" "$@"
	# shellcheck disable=SC2086 # lists of names
	claim "$who attaches to all probes" attaches 1 $task_probes $worker_probes
	claim "and is ready" attached "$tmp/got" "$tmp/got.err"
	go_on
	wait_until all_printed # what it has not when it is stopped is lost
	detach "$tracer"
	printed | sort -n | cut -d' ' -f2- >"$tmp/events"
	claim_events "$who" "$tmp/events"
}

start_probed work
see_all bpftrace
start_probed work
see_all "bpftrace -p" -p "$probed"

# The stack of the task, leaf first, as far as it is the program's and the library's.
cat >"$tmp/expected" <<'END'
task 4711
tdt_probe_task__waker__clone
tdt_substitute_clone
wait_for_delivery
serve_customer
run_shop
tdt__observed_poll
tdt__traced_poll
END

saw_stack()
{
	sed -n '/^task/{:next;$!{N;b next};s/\n$//;p}' "$1" | sed 's/+[0-9]*$//; s/^[ \t]*//' |
		grep . |
		head -n "$(wc -l <"$tmp/expected")" >"$1.stack"
	cmp -s "$tmp/expected" "$1.stack"
}

# remote_control WHO [OPTION...]
remote_control()
{
	who=$1
	shift
	printf '%s /pid == %d/ { printf("task %%d%%s\\n", arg0, ustack()); }\n' \
		"usdt:$lib:$provider:task__waker__clone" "$probed" >"$tmp/clone.bt"
	claim "a program that runs untraced has the runtime's waker" wait_until last_said real
	# shellcheck disable=SC2086 # lists of names
	claim "and the semaphores are down" semaphores 0 $task_probes $worker_probes
	trace "$tmp/clone.bt" "$tmp/first" "$@"
	first=$tracer
	claim "$who attaches to it" attaches 1 task__waker__clone
	claim "its leaves get a substitute" wait_until last_said substituted
	claim "its stack names the user's functions" wait_until saw_stack "$tmp/first"
	saw_stack "$tmp/first" || diff "$tmp/expected" "$tmp/first.stack" >&2
	trace "$tmp/clone.bt" "$tmp/second" "$@"
	claim "a second one attaches too, and sees the same" wait_until saw_stack "$tmp/second"
	detach "$first"
	claim "when the first leaves the semaphore stays up" semaphores 1 task__waker__clone
	lines=$(wc -l <"$tmp/second")
	more() { test "$(wc -l <"$tmp/second")" -gt "$lines"; }
	claim "and the second goes on seeing the task" wait_until more
	claim "whose leaves have had a substitute all the time" last_said substituted
	detach "$tracer"
	claim "when the second leaves too the semaphore is down" wait_until semaphores 0 \
		task__waker__clone
	claim "and leaves get the runtime's waker again" wait_until last_said real
	go_on
	printf 'real\nsubstituted\nreal\n' >"$tmp/kinds"
	uniq "$tmp/said" >"$tmp/changes"
	same "the waker changed when it should, and then alone" "$tmp/kinds" "$tmp/changes"
}

start_probed watch
remote_control bpftrace
start_probed watch
remote_control "bpftrace -p" -p "$probed"
plan
