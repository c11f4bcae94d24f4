#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Instructions of user space, and simulated misses of the first data cache, of one of each thing
# that bench/count does: `bench/count.sh [BUILD]`.  The clock is a system call under valgrind, and
# is not counted.
count=${1:-.}/bench/count

# collected WHAT N: instructions and misses.
collected()
{
	valgrind --tool=callgrind --cache-sim=yes --callgrind-out-file=/dev/null \
		"$count" "$1" "$2" 2>&1 >/dev/null |
		awk '/Collected/ { print $4, $8 + $9 }'
}

# one NAME WHAT N TEXT
one()
{
	# shellcheck disable=SC2046 # two numbers each
	set -- "$2" "$1" $(collected "$1" "$2") $(collected "$1" $((2 * $2)))
	awk -v n="$1" -v a="$3" -v b="$4" -v c="$5" -v d="$6" -v what="$2" 'BEGIN {
		printf "%-16s %10.0f %8.1f\n", what, (c - a) / n, (d - b) / n }'
}

printf '%-16s %10s %8s\n' 'one' 'instructions' 'misses'
one spawn 20000
one dump 20000
one dump-late 40000
one dump-text 20000
one read 40000
one request 2000
one request-leaves 500
one poll 50000
one poll-labelled 50000
one poll-recorded 50000
one switch 50000
one switch-fiber 50000
