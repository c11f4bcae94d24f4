#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What tdt makes of processes that are made to do harm: of registries that lie (liar.c), and of
# files with damaged debug information.  It ends in time and with little memory, prints nothing that
# could harm a terminal, and does not crash.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
LC_ALL=C
export LC_ALL

liar=${top_builddir:?}/tests/outside/liar
seed=${TDT_TEST_SEED:-$(date +%s)}
echo "# TDT_TEST_SEED=$seed"

# So often what is made up at random.
times=2
test "${TDT_TEST_FULL-}" != 1 || times=10

# Sanitizers map terabytes.
memory=3000000
test "${SANITIZERS:?}" = no || memory=unlimited

# look KIBIBYTES ARGUMENTS...: run tdt with so much memory; leaves $status.  Its limit is the CPU's
# time, which other work on the machine does not take.
look()
{
	kibibytes=$1
	shift
	# shellcheck disable=SC3045
	(ulimit -v "$kibibytes" && ulimit -t 30 && exec timeout 400 "$tdt" "$@" --timeout=300s) \
		>"$tmp/listed" 2>"$tmp/why"
	status=$?
	echo "tdt $*: $status" >&2
	head -n 3 "$tmp/why" >&2
}

# The lines of --dot begin with a tab.
printable()
{
	! sed 's/^	//' "$1" | tr -d '\n -~' | grep -q .
}

# Whether tdt has ended by itself, without harm.
ended_well()
{
	{ test $status = 0 || { test $status = 2 && test -s "$tmp/why"; }; } &&
		! grep -q 'crashed\|too long\|too much' "$tmp/why" &&
		printable "$tmp/why" && printable "$tmp/listed"
}

# copes VERB OPTION...: with the process $pid.
copes()
{
	look $memory "$@" "$pid" && ended_well
}

# tells LIE: start a process that tells it.
tells()
{
	lie=$1
	start "$liar" "$lie" "$seed"
}

tells none || skip_all "no such process starts here"
look $memory ps "$pid"
test $status = 0 || skip_all "reading another process is not permitted here: $(cat "$tmp/why")"
claim "tasks are listed that a process says it has" grep -q '^ *4  task 4 ' "$tmp/listed"
stop

for lie in names stacks deep leaves; do
	tells $lie
	for command in ps 'ps --tree' 'ps --dot' 'ps --json' bt 'bt --json' 'bt --format=folded' \
		metrics 'profile -d 100ms' 'top -n 1' 'top -n 1 --task=4'; do
		# shellcheck disable=SC2086 # several words
		claim "tdt $command copes with lies ($lie)" copes $command
	done
	stop
done

# Whether it is UTF-8, and does not have the character that turns the direction of text.
is_utf8()
{
	look $memory "$@" --utf8 "$pid"
	test $status = 0 && iconv -f UTF-8 -t UTF-8 <"$tmp/listed" >"$tmp/text" &&
		! grep -q "$(printf '\342\200\256')" "$tmp/text"
}

tells names
for command in ps 'ps --tree' 'ps --json' bt 'bt --json'; do
	# shellcheck disable=SC2086 # several words
	claim "tdt $command --utf8 prints UTF-8 that does no harm" is_utf8 $command
done
stop

# several TIMES: read a process that changes all the time.
several()
{
	round=0
	while test $round -lt "$1"; do
		copes ps && copes ps --tree && copes bt --json && copes bt &&
			copes metrics && copes top -n 1 || return 1
		round=$((round + 1))
	done
}

tells chaos
claim "tdt copes with chaos" several $times
stop

tells layout
look $memory ps "$pid"
claim "of two registries the one with a known layout is listed" grep -q 'task 4 ' "$tmp/listed"
claim "and the other is named" grep -q "layout 2, and this tdt reads layout 1" "$tmp/why"
stop

# gives_up COMMAND...: in time, which it says once.
gives_up()
{
	timeout -s KILL 60 "$tdt" "$@" --timeout=1s >"$tmp/listed" 2>"$tmp/why"
	test $? = 2 && test "$(grep -c "took too long" "$tmp/why")" = 1
}

if tells stalls; then
	for command in "ps $pid" "bt $pid" "metrics $pid" "profile -d 1ms $pid" "top -n 1 $pid" \
		"record -o $tmp/recording $pid" "record -d 1ms --summary $pid" \
		"set $pid watch=1s" "diff --after=1ms $pid"; do
		# shellcheck disable=SC2086 # several words
		claim "memory that never comes is not waited for (${command%% *})" \
			gives_up $command
	done
	stop
else
	skip "memory that never comes" "userfaultfd(2) is refused here"
fi

# --- Many tasks ---

# many LIE COMMAND...
many()
{
	tells "$1"
	shift
	for command; do
		# shellcheck disable=SC2086 # several words
		claim "tdt $command copes with many lies ($lie)" copes $command
	done
	stop
}

if test "$SANITIZERS" = no; then
	many same ps 'ps --tree' metrics
	many parents 'ps --tree' bt
	many huge bt
	many places ps 'top -n 1'
	tells endless
	look 1000000 ps "$pid"
	claim "a list without an end is given up without memory" test $status = 2
	claim "which is said" grep -q "^tdt: there is not enough memory" "$tmp/why"
	stop
else
	skip "many lies" "with sanitizers they take long"
fi

# --- Debug information ---

# section NAME FILE: offset and size.
section()
{
	readelf -SW "$2" | sed 's/^ *\[ *[0-9]*\] *//' | awk -v name="$1" \
		'$1 == name { print $4, $5 }'
}

# Write 20 random bytes over the section NAME of FILE; $round makes another choice of them.
damage()
{
	# shellcheck disable=SC2046 # two words
	set -- "$1" "$2" $(section "$1" "$2")
	test $# = 4 || return 0
	awk -v seed="$((seed + round))" -v at="$((0x$3))" -v size="$((0x$4))" 'BEGIN {
		srand(seed)
		for (i = 0; i < 20; i++)
			print int(at + rand() * size), int(rand() * 256)
	}' >"$tmp/bytes"
	while read -r at byte; do
		# shellcheck disable=SC2059
		printf "\\$(printf %03o "$byte")" |
			dd of="$2" bs=1 seek="$at" conv=notrunc 2>/dev/null
	done <"$tmp/bytes"
}

# The process does not use what is damaged.
copes_with_damage()
{
	round=0
	while test $round -lt $times; do
		cp "$top_builddir/tests/outside/registry_tasks_static" "$tmp/damaged"
		for name in .eh_frame .debug_info .debug_line .debug_abbrev .symtab; do
			damage $name "$tmp/damaged"
		done
		start "$tmp/damaged"
		look $memory bt "$pid" 1505
		stop
		ended_well && grep -q '^task 1505 "stuck 1505" running' "$tmp/listed" || return 1
		round=$((round + 1))
	done
}

if ! command -v readelf >/dev/null; then
	skip "damaged debug information" "there is no readelf"
elif test "$SANITIZERS" != no; then
	skip "damaged debug information" "a sanitizer reads it, too"
else
	claim "damaged debug information does no harm" copes_with_damage
fi
plan
