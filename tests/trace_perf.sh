#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The probes under perf: all arguments, also constant ones; and stacks at task-waker-clone.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?}/tests/tap.sh"
# shellcheck source=tests/tracing.sh
. "$top_srcdir/tests/tracing.sh"
may_trace perf linux-perf
perf --version >/dev/null 2>&1 || skip_all "there is no perf for this kernel"
mountpoint -q /sys/kernel/tracing || mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null ||
	skip_all "there is no tracefs"

# Names of events are the kernel's, for all.
events=sdt_$provider
! grep -qs "$events/" /sys/kernel/tracing/uprobe_events || skip_all "somebody has events named $events"

perf_here()
{
	perf --buildid-dir "$tmp/buildids" "$@"
}

clean_up_events()
{
	perf_here probe -q --del "$events:*" >/dev/null 2>&1
	clean_up
}

# record OUTPUT ARGUMENT...: in the background, as $tracer.
record()
{
	output=$1
	shift
	# Not by the function above: $! would be a shell's.
	perf --buildid-dir "$tmp/buildids" record -q -o "$output" -p "$probed" "$@" >"$output.err" 2>&1 3>&- &
	tracer=$!
	started="$started $tracer"
}

claim "perf finds the probes" perf_here buildid-cache --add "$lib"
trap clean_up_events EXIT
claim "and makes events of them" perf_here probe -q --add "$events:*"

start_probed work
record "$tmp/all" -e "$events:*"
# shellcheck disable=SC2086 # lists of names
claim "it attaches to all of them" attaches 1 $task_probes $worker_probes
go_on
wait "$tracer"

# perf has the address of a file's name, the program the name: both are told by the order they come up in.
number_files()
{
	awk -F '[ ]' 'NF > 2 { if (!($4 in file)) file[$4] = "file" ++n; $4 = file[$4] } { print }' "$1"
}
by_thread "$tmp/said" | number_files - >"$tmp/numbered"
mv "$tmp/numbered" "$tmp/said"
perf_here script -i "$tmp/all" -F tid,event,trace 2>/dev/null |
	sed "s/^ *//; s/ $events:/ /; s/: *(\([0-9a-f]*\))//; s/arg[0-9]=//g; s/ \{1,\}/ /g; s/ *\$//" |
	awk '{ gsub("__", "-", $2); sub(":$", "", $2); print }' >"$tmp/raw"
by_thread "$tmp/raw" | number_files - >"$tmp/events"
claim_events perf "$tmp/events"

# Where a task waits.
start_probed watch
record "$tmp/stacks" -e "$events:task__waker__clone" --call-graph fp
claim "perf attaches to a running program" attaches 1 task__waker__clone
claim "its leaves get a substitute" wait_until last_said substituted
said=$(wc -l <"$tmp/said")
said_more() { test "$(wc -l <"$tmp/said")" -gt $((said + 2)); }
wait_until said_more # perf raises the semaphore before it records
stop "$tracer"
claim "when it leaves they get the runtime's waker again" wait_until last_said real
claim "and the semaphore is down" semaphores 0 task__waker__clone
perf_here script -i "$tmp/stacks" -F comm,trace,ip,sym 2>/dev/null >"$tmp/script"
go_on
awk 'NF == 0 { exit } NR > 1 { print $2 }' "$tmp/script" | grep -A 2 wait_for_delivery >"$tmp/stack"
printf 'wait_for_delivery\nserve_customer\nrun_shop\n' >"$tmp/expected"
same "its stack names the user's functions" "$tmp/expected" "$tmp/stack"
plan
