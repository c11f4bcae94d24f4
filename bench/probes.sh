#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What the probes cost: probes.sh LIBRARY-WITH LIBRARY-WITHOUT PROGRAM, the first two being directories.
#
# Compiled in and not attached to: a traced poll with the library as it is against one without probes, run in turn; and
# the library as it is against itself, which is the noise.  Attached: what bpftrace's counting a hit costs.
set -eu
with=$(cd "$1" && pwd)
without=$(cd "$2" && pwd)
program=$(readlink -f "$3")
rounds=21
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# median FILE: and least and most.
median()
{
	sort -n "$1" | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)], value[1], value[NR] }'
}

# row NAME FILE BASE: its figures, and the ratio to BASE's median.
row()
{
	echo "$(median "$2") $(median "$3")" |
		awk -v name="$1" '{ printf "%-44s %10.1f %10.1f %10.1f %9.3f\n", name, $2, $1, $3, $1 / $4 }'
}

# unattached WHAT TITLE
unattached()
{
	rm -f "$work"/*
	for _ in $(seq $rounds); do
		LD_LIBRARY_PATH=$with "$program" "$1" >>"$work/with"
		LD_LIBRARY_PATH=$without "$program" "$1" >>"$work/without"
		LD_LIBRARY_PATH=$with "$program" "$1" >>"$work/again"
	done
	row "$2 without probes" "$work/without" "$work/without"
	row "$2 with probes" "$work/with" "$work/without"
	row "the same once more (the noise)" "$work/again" "$work/with"
}

echo "Nobody attached; ns, $rounds rounds in turn"
printf '%-44s %10s %10s %10s %9s\n' "" least median most ratio
unattached poll "poll that does nothing,"
unattached clone "poll that clones its waker,"
unattached life "a task of one poll,"

echo
library=$(readlink -f "$with/libtdt.so.0")
if test "$(id -u)" != 0; then
	echo "attached: skipped: only root may trace"
	exit
elif ! command -v bpftrace >/dev/null; then
	echo "attached: skipped: there is no bpftrace"
	exit
fi

LD_LIBRARY_PATH=$with
export LD_LIBRARY_PATH

# Run the program with `what` under bpftrace.  It needs the library mapped to attach for -c, so there the program waits.
traced()
{
	case $site in
	"$library":*)
		place=$(readelf -n "$library" | sed -n "/Name: ${site##*:}\$/{n;s/.*Semaphore: //p}")
		bpftrace -e "usdt:$site { $action }" >"$work/out" 2>&1 &
		tracer=$!
		"$program" "$what" "$place" || :
		# Again and again: bpftrace 0.17 sleeps on if the signal comes just before it goes to sleep.
		while grep -qs '^State:[[:space:]]*[^Z]' "/proc/$tracer/status"; do
			kill -INT $tracer 2>/dev/null || :
			sleep 1
		done
		wait $tracer || :
		;;
	*)
		bpftrace -c "$program $what" -e "usdt:$site { $action }" 2>/dev/null | grep -x '[0-9][0-9.]*' || :
		;;
	esac
}

# attached NAME WHAT SITE ACTION: a hit is what the program takes longer under bpftrace.
attached()
{
	what=$2
	site=$3
	action=$4
	: >"$work/alone"
	: >"$work/traced"
	for _ in 1 2 3 4 5; do
		"$program" "$what" >>"$work/alone"
		traced >>"$work/traced"
	done
	if ! test -s "$work/traced"; then
		printf '%-44s %s\n' "$1" "skipped: bpftrace can't attach here"
		return
	fi
	alone=$(median "$work/alone" | cut -d' ' -f1)
	traced=$(median "$work/traced" | cut -d' ' -f1)
	awk -v name="$1" -v alone="$alone" -v traced="$traced" -v least="${least:-}" '
		BEGIN {
			hit = traced - alone
			printf "%-44s %10.1f %10.1f %10.1f %9.2f\n", name, alone, traced, hit, hit / (least ? least : hit)
		}'
	least=${least:-$(awk -v a="$alone" -v t="$traced" 'BEGIN { print t - a }')}
}

echo "A hit, counted by bpftrace; ns, median of 5 runs"
printf '%-44s %10s %10s %10s %9s\n' "" unattached attached "a hit" ratio
attached "a plain nop of sys/sdt.h" nop "$program:tdt_bench:nop" '@ = count();'
attached "task-poll-start" poll "$library:tdt:task__poll__start" '@ = count();'
attached "task-poll-start, by task" poll "$library:tdt:task__poll__start" '@[arg0] = count();'
attached "task-waker-clone, with the substitute" clone "$library:tdt:task__waker__clone" '@ = count();'
attached "task-waker-clone, by task and ustack" clone "$library:tdt:task__waker__clone" '@[arg0, ustack()] = count();'
