#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The probes under perf: all arguments, also constant ones; and stacks at task-waker-clone.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/tracing.sh
. "$top_srcdir/tests/lib/tracing.sh"
may_trace perf linux-perf
perf --version >/dev/null 2>&1 || skip_all "there is no perf for this kernel"
has_tracefs || skip_all "there is no tracefs"
perf record -h 2>&1 | grep -q -e --control ||
	skip_all "this perf can't tell when it records (5.10 can)"

# Names of events are the kernel's, for all.
events=sdt_$provider
perf_names_are_free "$events" || skip_all "somebody has events named $events"
perf probe -q --del "$events:*" >/dev/null 2>&1

perf_here()
{
	perf --buildid-dir "$tmp/buildids" "$@"
}

# An event can't go while somebody records it.
clean_up_events()
{
	kill_started
	wait
	perf_here probe -q --del "$events:*" >/dev/null 2>&1
	clean_up
}

# record OUTPUT ARGUMENT...: in the background, as $tracer.  It records nothing before it is told
# to.
record()
{
	output=$1
	shift
	rm -f "$tmp/control" "$tmp/ack"
	mkfifo "$tmp/control" "$tmp/ack"
	exec 4<>"$tmp/control" 5<>"$tmp/ack"
	# Not by the function above: $! would be a shell's.
	perf --buildid-dir "$tmp/buildids" record -q -o "$output" -p "$probed" --delay=-1 \
		--control="fifo:$tmp/control,$tmp/ack" "$@" >"$output.err" 2>&1 3>&- 4>&- 5>&- &
	tracer=$!
	started="$started $tracer"
}

# perf raises the semaphores long before it records, and says when it does.
records()
{
	echo enable >&4
	timeout 180 head -n 1 <&5 | grep -q ack && return
	cat "$output.err"
	return 1
}

claim "perf finds the probes" perf_here buildid-cache --add "$lib"
trap clean_up_events EXIT
claim "and makes events of them" perf_here probe -q --add "$events:*"

start_probed work
record "$tmp/all" -e "$events:*"
# shellcheck disable=SC2086 # lists of names
claim "it attaches to all of them" attaches 1 $task_probes $worker_probes
claim "and records" records
go_on
wait "$tracer"

# perf has the address of a file's name, the program the name: both are told by the order they come
# up in.
number_files()
{
	awk -F '[ ]' \
		'NF > 2 { if (!($4 in file)) file[$4] = "file" ++n; $4 = file[$4] } { print }' "$1"
}
by_thread "$tmp/said" | number_files - >"$tmp/numbered"
mv "$tmp/numbered" "$tmp/said"
perf_here script -i "$tmp/all" -F tid,event,trace 2>/dev/null |
	sed "s/^ *//; s/ $events:/ /; s/: *(\([0-9a-f]*\))//
		s/arg[0-9]=//g; s/ \{1,\}/ /g; s/ *\$//" |
	awk '{ gsub("__", "-", $2); sub(":$", "", $2); print }' >"$tmp/raw"
by_thread "$tmp/raw" | number_files - >"$tmp/events"
claim_events perf "$tmp/events"

# Where a task waits.
start_probed watch
record "$tmp/stacks" -e "$events:task__waker__clone" --call-graph fp
claim "perf attaches to a running program" attaches 1 task__waker__clone
claim "and records" records
claim "its leaves get a substitute" wait_until last_said substituted
said=$(wc -l <"$tmp/said")
said_more() { test "$(wc -l <"$tmp/said")" -gt $((said + 2)); }
wait_until said_more
detach "$tracer"
claim "when it leaves they get the runtime's waker again" wait_until last_said real
claim "and the semaphore is down" wait_until semaphores 0 task__waker__clone
perf_here script -i "$tmp/stacks" -F comm,trace,ip,sym 2>/dev/null >"$tmp/script"
go_on
awk 'NF == 0 { exit } NR > 1 { print $2 }' "$tmp/script" | grep -A 2 wait_for_delivery >"$tmp/stack"
printf 'wait_for_delivery\nserve_customer\nrun_shop\n' >"$tmp/expected"
same "its stack names the user's functions" "$tmp/expected" "$tmp/stack"
plan
