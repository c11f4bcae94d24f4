#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# Fuzz for SECONDS seconds, one target after the other, in the build that is the current directory:
#
#	run.sh SECONDS TARGET...
#
# Each target goes on with the corpus of its last run, in corpus/TARGET.  An input that makes a
# target fail is put into crashes/; the next target is run all the same, and the status is 1.
set -u
each=$(($1 / ($# - 1)))
[ $each -gt 0 ] || each=1
shift
here=$(cd "$(dirname "$0")" && pwd)
seed=${TDT_TEST_SEED:-$(od -A n -N 3 -t u4 /dev/urandom | tr -d ' ')}
[ "$seed" -gt 0 ] || seed=1 # libFuzzer would take 0 for none
crashes=$PWD/crashes
mkdir -p "$crashes"
work=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM # the other trap removes the directory

TMPDIR=$work
ASAN_OPTIONS=${ASAN_OPTIONS-strict_string_checks=1:detect_leaks=1}
UBSAN_OPTIONS=${UBSAN_OPTIONS-print_stacktrace=1}
export TMPDIR ASAN_OPTIONS UBSAN_OPTIONS
unset DEBUGINFOD_URLS

# The inputs to begin with: the kept ones without those that are known to fail.
prepare()
{
	mkdir -p "corpus/$target"
	sh "$here/make_seeds.sh" "$target" "$work/$target"
	sed -n "s|^$target/\([^ ]*\) .*|\1|p" "$here/known" | while read -r input; do
		rm -f "$work/$target/$input"
	done
}

inputs()
{
	find "corpus/$target" "$work/$target" -type f | wc -l
}

# How far the process is, by libFuzzer's last line that tells it, which reads
# "#4096 pulse  cov: 312 ft: 900 corp: 80/12Kb exec/s: 512 rss: 90Mb".
how_far()
{
	sed -n 's/^#\([0-9]*\)\t[^ ]* *\(cov:.*exec\/s: [0-9]*\).*/\1 inputs, \2/p' "$work/log" |
		tail -n 1
}

# watch PID: report every ten seconds until the process is over.
watch()
{
	ticks=0
	while kill -0 "$1" 2>/dev/null; do
		sleep 1
		ticks=$((ticks + 1))
		[ $((ticks % 10)) != 0 ] || echo "   $target: $(how_far)"
	done
}

# run_process SECONDS.  The library keeps all that it has read of ELF files, so a process of
# `symbolize` ends before it is too large, and looks for leaks only then.
run_process()
{
	set -- -seed="$seed" -max_total_time="$1" -timeout=10 -rss_limit_mb=4096 -max_len=65536 \
		-artifact_prefix="$crashes/$target-"
	[ ! -f "$here/$target.dict" ] || set -- "$@" -dict="$here/$target.dict"
	[ "$target" != symbolize ] || set -- "$@" -detect_leaks=0 -runs=$(($(inputs) + 4000))
	tests/fuzz/fuzz_"$target" "$@" "corpus/$target" "$work/$target" >"$work/log" 2>&1 &
	watch $!
	wait $!
}

# Say what went wrong, and how to see it again.
report()
{
	grep -v '^#[0-9]*	' "$work/log" | tail -n 80
	artifact=$(sed -n 's/^.*Test unit written to //p' "$work/log" | tail -n 1)
	echo "fuzz: $target FAILED, with TDT_TEST_SEED=$seed"
	[ -n "$artifact" ] || return
	echo "fuzz: the input is kept: $artifact"
	echo "fuzz: to replay it: $PWD/tests/fuzz/fuzz_$target $artifact"
	echo "fuzz: to make a test of it: $here/README"
}

# Run as many processes as it takes.
fuzz()
{
	end=$(($(date +%s) + each))
	executed=0
	while left=$((end - $(date +%s))) && [ $left -gt 0 ]; do
		echo "fuzz: $target for $left s, from $(inputs) inputs, TDT_TEST_SEED=$seed"
		if ! run_process $left; then
			report
			return 1
		fi
		done_now=$(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$work/log" | tail -n 1)
		executed=$((executed + done_now))
		seed=$((seed % 1000000000 + 1))
	done
	echo "fuzz: $target: nothing found, $executed inputs; the last process: $(how_far)"
}

status=0
for target; do
	prepare
	fuzz || status=1
done
exit $status
