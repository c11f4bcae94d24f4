#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# flaky.sh TEST...: run each test many times, in random order, to find those that fail now and then.
# `make check-flaky` calls it with the environment of `make check`.  Variables:
#
#	ROUNDS=50   how often each test runs
#	WORKERS=n   how many tests run at once; the number of CPUs
#	BUSY=0      how many busy loops run beside them
#	PAUSES=1/20 a test and its children run for 1 ms of CPU time in each 20 ms, and are stopped for
#	            the rest, by a cgroup of their own, which needs root; 1,000 ms are the most.  The
#	            timeouts are longer by that factor
#	LIMIT=300   the most seconds that a test may take, without PAUSES
#	SEED=n      repeats the order that a run with this seed had
#	OUT=folder  where results.tsv and the log of each failure go; a new folder in $TMPDIR
#
# At the end, or at Ctrl-C, a table shows each test that failed: runs, failures, and the first claim
# that failed.  The exit status is 1 if a test failed.
set -u
rounds=${ROUNDS:-50} workers=${WORKERS:-$(nproc)} busy=${BUSY:-0}
pauses=${PAUSES:-} limit=${LIMIT:-300}
seed=${SEED:-$(date +%s)}
out=${OUT:-$(mktemp -d "${TMPDIR:-/tmp}/check-flaky.XXXXXX")} || exit
mkdir -p "$out" && : >"$out/results.tsv" || exit
echo "check-flaky: SEED=$seed ROUNDS=$rounds WORKERS=$workers BUSY=$busy PAUSES=$pauses," \
	"$# tests; logs in $out"

# The cgroup of the test that the job with this process runs.  No signal is sent, and no system call
# is interrupted: a test and its children see a machine that has no time for them, nothing else.
cgroup_of()
{
	echo "$cgroups/check-flaky.$$.$1"
}

# Limit the CPU time of a new cgroup, by the interface of version 1 or 2.
make_cgroup()
{
	mkdir "$1" || return
	if [ -e "$1/cpu.max" ]; then
		echo "$((${pauses%/*} * 1000)) $((${pauses#*/} * 1000))" >"$1/cpu.max"
	else
		echo $((${pauses#*/} * 1000)) >"$1/cpu.cfs_period_us" &&
			echo $((${pauses%/*} * 1000)) >"$1/cpu.cfs_quota_us"
	fi
} 2>/dev/null

if [ -n "$pauses" ]; then
	for cgroups in /sys/fs/cgroup/cpu /sys/fs/cgroup; do
		! make_cgroup "$(cgroup_of 0)" || break
		rmdir "$(cgroup_of 0)" 2>/dev/null
	done
	rmdir "$(cgroup_of 0)" 2>/dev/null ||
		{ echo "check-flaky: no cgroup that limits CPU time can be made" >&2; exit 1; }
	slower=$((${pauses#*/} / ${pauses%/*} + 1)) limit=$((limit * slower))
	export CK_TIMEOUT_MULTIPLIER=$((${CK_TIMEOUT_MULTIPLIER:-1} * slower))
fi

# Each loop has a session of its own, as another program has: the kernel may share a CPU between
# sessions.  It ends when this script is gone, however that ended.
loops=()
for ((i = 0; i < busy; i++)); do
	setsid bash -c 'while kill -0 "$1"; do for i in {1..99999}; do :; done; done' \
		busy-loop $$ 2>/dev/null &
	loops+=($!)
done

# Each run is a job, that is a process group, with the signals that a program has from a shell.
set -m

# The lines of all rounds: round, test.
order()
{
	awk -v seed="$seed" -v rounds="$rounds" 'BEGIN {
		srand(seed)
		for (round = 1; round <= rounds; round++)
			for (n = ARGC - 1; n > 0; n--) {
				i = int(rand() * n) + 1
				print round, ARGV[i]
				last = ARGV[n]; ARGV[n] = ARGV[i]; ARGV[i] = last
			}
	}' "$@"
}

# Run a test, and write its line of results: test, whether it failed, seconds, first failing claim.
run_test()
{
	local log claim begin=$EPOCHREALTIME status failed=0
	local command=("$2") job=$BASHPID

	log=$out/${2//\//_}.$1.log
	case $2 in
	*.sh)
		command=("${SHELL:-sh}" "$2")
		[ -f "$2" ] || command[1]=$top_srcdir/$2
		;;
	/*) ;;
	*) command=("./$2") ;;
	esac
	(
		if [ -n "$pauses" ]; then
			make_cgroup "$(cgroup_of "$job")" &&
				echo "$BASHPID" >"$(cgroup_of "$job")/cgroup.procs" || exit
		fi
		exec timeout --foreground -k 10 "$limit" "${command[@]}"
	) </dev/null >"$log" 2>&1
	status=$?
	claim=$(grep -m 1 '^not ok' "$log")
	case $status:$claim in
	0: | 77:) rm "$log" ;;
	124:* | 137:*) failed=1 claim="not done in $limit s" ;;
	*:) failed=1 claim="exit status $status" ;;
	*) failed=1 ;;
	esac
	printf '%s\t%s\t%s\t%s\n' "$2" $failed \
		"$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }')" \
		"$claim" >>"$out/results.tsv"
}

table()
{
	awk -F '\t' '
		{ runs[$1]++; failures[$1] += $2; all++; failed += $2 }
		$2 && !($1 in claim) { claim[$1] = $4 }
		END {
			if (failed)
				printf "%-44s %6s %8s  %s\n",
					"test", "runs", "failures", "first failing claim"
			for (test in claim)
				printf "%-44s %6d %8d  %s\n", test, runs[test], failures[test],
					claim[test] | "sort -k 3,3nr"
			close("sort -k 3,3nr")
			printf "check-flaky: %d runs, %d failures\n", all, failed
			exit failed != 0
		}' "$out/results.tsv"
}

declare -A running=() # the tests that run now, by process group

# Wait until fewer than so many tests run.  Nothing that a test has started stays.
wait_for_room()
{
	local pid

	while [ ${#running[@]} -ge "$1" ]; do
		wait -n -p pid "${!running[@]}"
		kill -KILL -- "-$pid"
		[ -z "$pauses" ] || rmdir "$(cgroup_of "$pid")"
		unset "running[$pid]"
	done
} 2>/dev/null

# Check ends the process of its test, which has a group of its own, if it gets SIGTERM.
finish()
{
	trap '' INT TERM HUP
	for pid in "${!running[@]}"; do
		kill -TERM -- "-$pid"
	done
	wait_for_room 1
	[ ${#loops[@]} = 0 ] || kill "${loops[@]}"
	wait
} 2>/dev/null
trap finish EXIT
trap 'finish; table; exit 130' INT
trap 'exit 143' TERM HUP

while read -r round test; do
	wait_for_room "$workers"
	run_test "$round" "$test" &
	running[$!]=
done < <(order "$@")
wait_for_room 1
table
