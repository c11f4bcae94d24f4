#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# tdt ps and tdt bt of a process that was killed, by its recording (--dir): what each task did at
# the end, and only what the recording proves.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
LC_ALL=C
export LC_ALL
unset TDT_OUTSIDE TDT_WATCH
planted=$top_builddir/tests/outside/planted

# started MODE RING: a process records in $dir.
started()
{
	dir=$tmp/$1
	mkdir "$dir"
	TDT_RECORD=$2 TDT_RECORD_DIR=$dir TDT_RECORD_STACKS=1
	export TDT_RECORD TDT_RECORD_DIR TDT_RECORD_STACKS
	start "$planted" "$1"
	status=$?
	unset TDT_RECORD TDT_RECORD_DIR TDT_RECORD_STACKS
	return $status
}

# Kill it: its recording stays.
end()
{
	kill -KILL "$(sed -n 's/^ready //p' "$tmp/said")"
	exec 3>&-
	wait $! 2>/dev/null
	recording=$(echo "$dir"/*)
}

# look ARGUMENTS...: leaves the output in $tmp/out, and what is said besides in $tmp/why.
look()
{
	timeout 60 "$tdt" "$@" >"$tmp/out" 2>"$tmp/why"
	status=$?
	cat "$tmp/out" "$tmp/why"
	return $status
}

has()
{
	for pattern; do
		grep -q -e "$pattern" "$tmp/out" || {
			echo "there is no $pattern"
			return 1
		}
	done
}

# says MESSAGE ARGUMENTS...: tdt ends with status 2, prints nothing, and says why.
says()
{
	message=$1
	shift
	look "$@"
	[ $status = 2 ] && [ ! -s "$tmp/out" ] && grep -q "^tdt: .*$message" "$tmp/why"
}

# names ARGUMENTS...: the names of the tasks that tdt ps lists, on one line.
names()
{
	look ps --dir="$dir" "$@" >&2 || return
	sed -n 's/^ *[0-9][0-9]*  \([a-z]*\) .*/\1/p' "$tmp/out" | tr '\n' ' '
}

# lists NAMES OPTION...: tdt ps lists these tasks and no others.
lists()
{
	wanted=$1
	shift
	got=$(names "$@")
	echo "$got"
	[ "$got" = "$wanted" ]
}

# --- All events are there -----------------------------------------------------------------

started hang 256K || skip_all "no such process starts here"
end

claim "the tasks that had not ended are listed" lists "ticker owner stuck late fresh stone "
claim "those that waited" lists "ticker owner stuck fresh " --state=waiting
claim "the one that was woken, and not polled" lists "late " --state=runnable
claim "the one that was being polled" lists "stone " --state=polling
claim "nothing is unknown" lists "" --state=unknown
claim "they are sorted as those of a process" lists "stuck stone owner late fresh " \
	--sort=name --reverse --name='[!t]*'

holder_is_named()
{
	look ps --dir="$dir" && has '^process [0-9]* "planted", recorded until 20' \
		'6 tasks, 4 waiting, 1 runnable, 1 polling$' \
		'^ *9  stuck .* a mutex "gate" (0x[0-9a-f]*) held by task 8  .*planted\.c:'
}
claim "the lock and its holder are named" holder_is_named

tree_and_graph()
{
	look ps --tree --dir="$dir" && has '"stone" polling' &&
		look ps --dot --dir="$dir" && has '"9" -> "8" \[label="mutex gate"\]'
}
claim "as a tree and as a graph" tree_and_graph

json_of_list()
{
	look ps --json --dir="$recording" &&
		has '"recording":{"file":"'"$recording"'","program":"planted","until_real_ns":' \
			'"name":"stuck",.*"state":"waiting"' '"owner":8,"name":"gate"' \
			'"name":"stone",.*"state":"running"' && ! grep -q whole_ns "$tmp/out"
}
claim "as JSON, which names the recording" json_of_list

dumped()
{
	look bt --dir="$dir" && has '^process [0-9]* "planted", recorded until 20' \
		'^task 12 "stone" running for .* on thread [0-9]*, .*, spawned' \
		'^task 10 "late" runnable for .*, no stack was recorded, spawned' \
		'^task 9 "stuck" pending .*, 1 leaf, recorded .*the end.*, spawned' \
		'waits for a mutex "gate" (0x[0-9a-f]*) held by task 8 "owner"' \
		' stuck_poll at tests/outside/planted\.c:' \
		'tasks pending .*, no stack was recorded: .*"ticker"'
}
claim "where they waited, and what ran" dumped

# The recorder reads the stack of a poll that goes on; this one is blocked, so no signal has to come
# in time.
found_stone()
{
	look bt --dir="$dir" 12 && has ', recorded .*the end, spawned' \
		' stone_poll at tests/outside/planted\.c:'
}
claim "the stack of the poll that went on" found_stone

only_stuck()
{
	look bt --dir="$dir" 9 && has '"stuck"' && ! grep -q '"stone"\|"ticker"' "$tmp/out"
}
claim "of one task" only_stuck

nameless()
{
	look bt --no-symbols --dir="$dir" && has 'planted+0x' &&
		! grep -q 'stuck_poll at' "$tmp/out"
}
claim "without names" nameless

folded()
{
	look bt --format=folded --dir="$dir" && has '^stuck;stuck_poll 1$'
}
claim "as folded stacks" folded

reads_back()
{
	look bt --json --dir="$dir" && has '"outside":true,"recorded":true' &&
		cp "$tmp/out" "$tmp/bt.json" && look print "$tmp/bt.json" &&
		has '"stuck" pending .* recorded .*the end'
}
claim "as JSON, which is read again" reads_back

claim "a recording has no threads to list" says 'no list of threads' ps --threads --dir="$dir"
claim "it proves no deadlock" says 'proves no deadlock' ps --check --dir="$dir"
claim "for tdt bt, too" says 'proves no deadlock' bt --waiting-longer=1s --dir="$dir"
claim "the files of a core file are not for it" says 'not for recordings' ps --exe=x --dir="$dir"

# --- Damage -------------------------------------------------------------------------------

mkdir "$tmp/empty"
echo foreign >"$tmp/foreign"
for command in ps bt; do
	claim "tdt $command: an empty directory" says 'no recording here' $command \
		--dir="$tmp/empty"
	claim "tdt $command: a file that is none" says 'not a recording' $command \
		--dir="$tmp/foreign"
	claim "tdt $command: a file that is not there" says 'No such file' $command \
		--dir="$tmp/absent"
done

# A file that ends early, or whose rings are noise, is read as far as it goes, or refused.
copes()
{
	look "$@" --dir="$tmp/damaged"
	{ [ $status = 0 ] || { [ $status = 2 ] && [ -s "$tmp/why" ]; }; } &&
		! grep -q 'crashed\|too long\|too much' "$tmp/why"
}

head -c 100000 "$recording" >"$tmp/damaged"
claim "tdt ps copes with a file that was cut" copes ps
claim "tdt bt copes with it" copes bt
{
	head -c 65536 "$recording"
	head -c 300000 "$recording"
	tail -c +65537 "$recording"
} | head -c "$(wc -c <"$recording")" >"$tmp/damaged"
claim "tdt ps copes with rings that are noise" copes ps
claim "tdt bt copes with them" copes bt --no-symbols

# --- Events were overwritten --------------------------------------------------------------

started inside 16K && end

claim "states that lost events may have changed are unknown" \
	lists "owner stuck late fresh " --state=unknown --name='[!p]*'
claim "polls that went on are not, be they old or new" lists "ticker stone " --state=polling

started bury 16K && end

claim "they are also unknown if the process was killed between two polls" \
	lists "owner stuck late fresh " --state=unknown --name='[!p]*'
claim "the poll that went on is not" lists "stone " --state=polling
claim "nor what happened since" lists "ticker " --state=waiting

says_what_is_lost()
{
	look ps --dir="$dir" &&
		has '^only the last .* are recorded without a gap: .* is unknown' \
			'stuck *unknown (was waiting) *- ' 'stone *polling' &&
		look bt --dir="$dir" && has '^only the last .* are recorded without a gap' \
		'tasks unknown, .*"stuck"' &&
		look ps --json --dir="$dir" && has '"whole_ns":' '"state":"unknown"' \
			'"last":"waiting"'
}
claim "and what is lost is said" says_what_is_lost

# --- Live tasks were listed since ---------------------------------------------------------

knows_again()
{
	look ps --dir="$dir" && ! grep -q 'without a gap' "$tmp/out" && has \
		'stuck  *waiting .* a mutex (0x[0-9a-f]*) held by task 8 ' \
		'owner  *waiting' 'late  *runnable' 'fresh  *waiting' 'stone  *polling'
}

started settle 16K
claim "a listing of live tasks tells what lost events have led to" wait_until knows_again
end
claim "also when the process was killed" knows_again
plan
