#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# tdt diff: which tasks of a process have moved between two answers, which have come and gone, and
# where there are more of them; and what it says of files that it cannot compare.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
LC_ALL=C
export LC_ALL

# fails MESSAGE ARGUMENTS...: status 2, and the message, which begins with the name.
fails()
{
	message=$1
	shift
	timeout 60 "$tdt" diff "$@" >"$tmp/printed" 2>"$tmp/why"
	status=$?
	cat "$tmp/why"
	[ $status = 2 ] && grep -q "^tdt: .*$message" "$tmp/why"
}

# differ ARGUMENTS...: status 0; what is printed is in $tmp/printed.
differ()
{
	timeout 100 "$tdt" diff "$@" >"$tmp/printed" 2>"$tmp/why"
	status=$?
	cat "$tmp/printed" "$tmp/why"
	[ $status = 0 ]
}

# says LINE: a line of what was printed.
says()
{
	grep "$1" "$tmp/printed"
}

# --- Usage, and files that are no answers ---

echo '{"tdt":1,"task":{"id":1,"state":"waiting"},"nodes":[{"id":0,"kind":"task"}]}' >"$tmp/trace"
echo '{"tdt":1,"ps":{"tasks":0},"tasks":[]}' >"$tmp/none"
cat "$tmp/none" "$tmp/none" >"$tmp/two"
: >"$tmp/empty"
claim "two files are needed" fails "two files are needed" "$tmp/none"
claim "and no more" fails "two files are needed" "$tmp/none" "$tmp/none" "$tmp/none"
claim "options for a process need a time" fails "need --after" -p 1 "$tmp/none" "$tmp/none"
claim "a time needs a process" fails "the target is missing" --after=1s
claim "a time has a unit" fails "not a time" --after=5 1
claim "and is more than nothing" fails "more than nothing" --after=0s 1
claim "there may be no such file" fails "No such file" "$tmp/none" "$tmp/nothing"
claim "or no such process" fails "no process 999999999 here" --after=1ms 999999999
claim "a file may be empty" fails "the files have no answers" "$tmp/empty" "$tmp/empty"
claim "or shorter than the other" fails "more answers than the other" "$tmp/two" "$tmp/none"
claim "a trace of one task is no answer" fails "trace:1:.*a trace of one task" "$tmp/none" \
	"$tmp/trace"
claim "nor is a program" fails "tdt:1:.*neither JSON nor a folded stack" "$tmp/none" "$tdt"
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "[" }' >"$tmp/deep"
claim "deep nesting does no harm" fails "deep:1:" "$tmp/deep" "$tmp/none"
sed 's/"tasks":\[\]/"tasks":[{"task":{"id":1e400,"state":"waiting"}}]/' "$tmp/none" >"$tmp/huge"
claim "nor does a number that is too large" fails "huge:1:" "$tmp/none" "$tmp/huge"
claim "empty answers can be compared" differ "$tmp/none" "$tmp/none"
claim "but are of no known process" says '^different processes.* 0 tasks\|^different processes.*no'

# --- Profiles ---

printf 'a;b 10\na;c 30\n' >"$tmp/profile.A"
printf 'a;b 3\na;d 1\n' >"$tmp/profile.B"
printf 'a;b 10 3\na;c 30 0\na;d 0 1\n' >"$tmp/expected"
claim "two profiles are compared" differ "$tmp/profile.A" "$tmp/profile.B"
claim "by the shares of their stacks" says '^-75.0 %  75.0 %   0.0 %  a;c$'
claim "also as folded stacks" differ --format=folded "$tmp/profile.A" "$tmp/profile.B"
same "with both counts" "$tmp/expected" "$tmp/printed"
claim "a profile is compared with a profile" fails "only be compared with a profile" \
	"$tmp/profile.A" "$tmp/none"
echo 'a;b' >>"$tmp/profile.B"
claim "a damaged line is named" fails "profile.B:3:1: neither JSON" "$tmp/profile.A" \
	"$tmp/profile.B"

# --- A process ---

tasks=$top_builddir/tests/outside/diff_tasks
if test "${WITH_RUNTIME:?}" != yes; then
	skip "the tasks of a process" "there is no runtime"
	plan
	exit
fi
if ! start "$tasks"; then
	cat "$tmp/said" "$tmp/dumped" >&2
	claim "the program starts" false
	plan
	exit
fi
if ! may_read; then
	cat "$tmp/why" >&2
	skip "the tasks of a process" "reading another process is not permitted here"
	stop
	plan
	exit
fi

# bt NAME: the answer of bt in which each task has its tree.  A task has a second to show it, and on
# a busy machine the process may not run meanwhile.
bt()
{
	for _ in $(seq 100); do
		"$tdt" bt --json "$pid" >"$tmp/bt.$1" || return
		! grep -q '"last":0,"none":0,"lost":0,' "$tmp/bt.$1" || return 0
	done
	head -c 200 "$tmp/bt.$1"
	return 1
}

# save NAME: the answers of bt and ps.
save()
{
	bt "$1" && "$tdt" ps --json "$pid" >"$tmp/ps.$1"
}

# ids FATE: the ids of the tasks with that fate, in order.
ids()
{
	tr '{' '\n' <"$tmp/printed" | sed -n '
		/^"fate"/ { s/^"fate":"\([a-z]*\)".*/\1/; h; }
		/^"id":[0-9]*,"name"/ { s/^"id":\([0-9]*\),.*/\1/; G; s/\n/ /p; }
		/"places"/ q' | sed -n "s/ $1\$//p" | sort -n | tr '\n' ' '
}

# tell KIND: the fates of all tasks.
tell()
{
	claim "$1: answers are compared" differ --json "$tmp/$1.A" "$tmp/$1.B"
	claim "$1: it is one process" says '"same_process":true'
	claim "$1: tasks 1 to 5 did not move" test "$(ids stuck)" = "1 2 3 4 5 "
	claim "$1: 10 and 11 came" test "$(ids came)" = "10 11 "
	claim "$1: 9 went" test "$(ids went)" = "9 "
}

claim "answers are saved" save A
echo >&3
until grep -q stepped "$tmp/said"; do
	kill -0 "$pid" || break
	sleep 0.1
done
claim "and later ones" save B
tell bt
claim "bt: the place of 8 is another" expr " $(ids moved)" : ".* 8 "
claim "bt: 6 and 7 move all the time" test -z "$(ids stuck | tr ' ' '\n' | grep -x '[67]')"
tell ps
claim "places are compared" differ "$tmp/bt.A" "$tmp/bt.B"
from_input()
{
	differ --timeout=1m - "$tmp/bt.B" <"$tmp/bt.A"
}

claim "a file may be standard input" from_input
claim "in text, too, 5 tasks did not move" says '^5 did not move, '
claim "the sleepers first" says '^4 tasks pending .* 1 "sleeper"'
claim "then the poll that goes on" says '^task 5 "blocked" running for'
claim "a place has grown" says '^+2 tasks: 4 before, 6 after$'
claim "the later answer is the second one" fails "is later than" "$tmp/bt.B" "$tmp/bt.A"
claim "trees and lists can be compared" differ "$tmp/ps.A" "$tmp/bt.B"
claim "by their tasks" says '^5 did not move, '
claim "but not by their places" test -z "$(says '^more tasks')"

# Answers of another process with the same tasks.
sed 's/"start_real_ns":"[0-9]*"/"start_real_ns":7/' "$tmp/bt.A" >"$tmp/other"
claim "other processes can be compared" differ "$tmp/other" "$tmp/bt.B"
claim "but not their tasks" says '^different processes'
claim "only their places" says '^+2 tasks: 4 before, 6 after$'

# A task that has been polled 128 times looks as if it had not been polled.
sed 's/"requested":[0-9]*,//g; s/"polls":[0-9]*/"polls":1/g' "$tmp/bt.A" >"$tmp/once"
sed 's/"requested":[0-9]*,//g; s/"polls":[0-9]*/"polls":129/g;
	s/"polled_ns":[0-9]*/"polled_ns":9/g' "$tmp/bt.B" >"$tmp/often"
claim "128 polls are not none" differ "$tmp/once" "$tmp/often"
claim "but moves" test -z "$(says ' did not move')"

claim "as folded stacks, too" differ --format=folded "$tmp/bt.A" "$tmp/bt.B"
claim "with the numbers of tasks" says '^sleeper;sleeper_poll;tdt_sleep_ms 4 6$'
# has_sleepers FORM: the process may be held up for longer than its answer is waited for, and the
# tasks for longer than the profile takes: they have no tree then.
has_sleepers()
{
	"$tdt" profile -d 200ms --format="$1" "$pid" >"$tmp/profile" ||
		{ : >"$tmp/profile"; return; }
	sed 's/{"state":/\n&/g' "$tmp/profile" | grep -q 'waiting.*sleeper_poll'
}
for form in json folded; do
	wait_until has_sleepers $form
	claim "profiles are compared ($form)" differ "$tmp/profile" "$tmp/profile"
	claim "and have the tasks that sleep ($form)" \
		says '^ *0.0 %.*sleeper;waiting: timer;sleeper_poll'
done

# sleep_in FILE: the tasks that sleep wait there, and none is in a poll for a request, which may be
# held up.
sleep_in()
{
	test "$(sed 's/"places".*//' "$1" | tr '{' '\n' | grep '"state":"waiting"' |
		grep -Ec '"id":([1-48]|10|11),"name"')" = 7
}

asks_itself()
{
	"$tdt" ps --json "$pid" >"$tmp/listed" && sleep_in "$tmp/listed" || return
	differ --json --after=100ms -p "$pid"
	status=$?
	test $status != 0 || sleep_in "$tmp/printed"
}
wait_until asks_itself >&2
claim "tdt asks for both answers itself" test "$status" = 0
claim "now 8, 10 and 11 do not move, either" \
	test "$(ids stuck | tr ' ' '\n' | grep -vx '[67]' | tr '\n' ' ')" = "1 2 3 4 5 8 10 11 "
claim "it only reads if it is told so" differ --after=100ms --no-request "$pid" 1 5
claim "and looks at the chosen tasks" says '^process .*, 2 tasks before, 2 after'
stop
plan
