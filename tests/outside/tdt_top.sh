#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# tdt top: as text, and on a terminal of tmux: its keys, sizes of the window, targets that are
# stopped or end, and that the terminal is restored.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
LC_ALL=C.UTF-8
NO_COLOR=
TERM=xterm-256color
export LC_ALL NO_COLOR TERM

# --- Usage ---

# fails MESSAGE ARGUMENTS...: status 2, and the message.
fails()
{
	message=$1
	shift
	timeout 60 "$tdt" top "$@" >"$tmp/listed" 2>"$tmp/why"
	status=$?
	cat "$tmp/why"
	[ $status = 2 ] && grep -q "^tdt: .*$message" "$tmp/why"
}

claim "only one target is taken" fails "more than one target" 1 2
claim "there may be no such process" fails "no process 999999999 here" 999999999
claim "or no libtdt in it" fails "no libtdt was found\|not permitted" $$
claim "a view that is none" fails "not heap" --view=heap 1
claim "a key that is none" fails "not size" --sort=size 1
claim "rounds that come too fast" fails "0.1s at least" -d 1ms 1
claim "what is no number" fails "--rounds is a number" -n few 1

# --- As text ---

test "${WITH_RUNTIME:?}" = yes || skip_all "there is no runtime"
# prints LINE ARGUMENTS...: the rounds have such a line.
prints()
{
	line=$1
	shift
	timeout 100 "$tdt" top -d 100ms "$@" "$pid" >"$tmp/listed" 2>"$tmp/why"
	status=$?
	cat "$tmp/listed" "$tmp/why"
	[ $status = 0 ] && [ ! -s "$tmp/why" ] && grep -q -- "$line" "$tmp/listed"
}

# The head of a list ends the pipe; top notices that at its next round.
ends_with_its_reader()
{
	timeout 60 "$tdt" top -d 100ms "$pid" 2>"$tmp/why" | head -n 1 >"$tmp/listed"
	cat "$tmp/why"
	[ ! -s "$tmp/why" ] && grep -q '^process' "$tmp/listed"
}

# The polls of the last ten seconds are counted.  The tasks of this program never rest.
TDT_RECORD=1M start "$top_builddir/tests/outside/waits" 1 || exit
may_read || skip_all "reading another process is not permitted here: $(cat "$tmp/why")"
claim "polls are counted in a recording" \
	wait_until prints '^[1-9][0-9,]* polls: 50 % ≤' -n 1 --view=times
stop

TDT_WATCH=10ms TDT_RECORD=1M start "$top_builddir/tests/outside/outside_bank" 30 rests || exit

claim "tasks are counted by state" prints \
	'^35 tasks: 33 waiting ≤ [0-9.]* m*s, 0 runnable, 2 polling ≤ ' -n 1
json_of_top()
{
	"$tdt" top -n 1 --json "$pid" >"$tmp/json" &&
		grep '^{"tdt":1,"top":{"pid":'"$pid"',.*"rings":\["deadlock: ' "$tmp/json" &&
		grep '"name":"alice to bob","state":"waiting",[^}]*"deadlock":true' "$tmp/json"
}
claim "a round as JSON has the same" json_of_top
claim "and the deadlock is told" grep -q '^deadlock: task 2 "alice to bob" waits' "$tmp/listed"
line=$(sed -n '/^static tdt_poll_t next_order_poll/,/^}/{ /TDT_AWAIT/=; }' \
	"$top_srcdir/tests/outside/outside_bank.c")
claim "places have the tasks that wait there" grep -q \
	"^ *30 .*  *tdt_sleep_ms in next_order_poll at .*outside_bank.c:$line:2$" "$tmp/listed"
claim "a task waits for a holder" \
	grep -q 'alice to bob .* a mutex "bob" held by task 3 "bob to alice"$' "$tmp/listed"
# AddressSanitizer has a read() of its own, in the program.
claim "a running poll has its place" \
	grep -q 'reload .*polling .*read\( in read_config\)* at' "$tmp/listed"
claim "the second round has rates" prints '^0.0 polls/s' -n 2
claim "and workers have their CPU time" \
	grep -q '^[1-4] workers*, [0-2] polling; CPU: .* %' "$tmp/listed"
claim "names are filtered" prints '^10 of them: all, by id, filter: session 1' \
	-n 1 --name='session 1[0-9]' --sort=id
claim "threads are listed" prints 'polling .* [45] re' -n 1 --view=threads
claim "the tree of one task is printed" prints '^ └╼ tdt_mutex_lock' -n 1 --task=2 --no-request
claim "it is gone with its reader" ends_with_its_reader
LC_ALL=C
claim "and it can be ASCII" prints '^ `- tdt_mutex_lock' -n 1 --task=2 --no-request
LC_ALL=C.UTF-8

# --- On a terminal ---

if ! command -v tmux >/dev/null; then
	skip "the screen" "there is no tmux"
	stop
	plan
	exit
fi

# Each screen has a server of its own, which must not hold the input of the process open.
screens=0
mux()
{
	tmux -S "$tmp/tmux$screens" -f /dev/null "$@" 3>&-
}

trap 'mux kill-server 2>/dev/null; rm -rf "$tmp"' EXIT

cat >"$tmp/session" <<'END'
before=$(stty -g)
sh -c 'echo $$ >"$1/top" && exec "$2" top -d 200ms "$3"' - "$@"
status=$?
[ "$before" = "$(stty -g)" ] && echo "restored, status $status"
exec cat
END

# open_screen COLUMNS LINES: begin top in a window.
open_screen()
{
	mux kill-server 2>/dev/null
	screens=$((screens + 1))
	mux new-session -d -x "$1" -y "$2" sh "$tmp/session" "$tmp" "$tdt" "$pid"
}

press()
{
	mux send-keys "$@"
}

# shows PATTERN: it is on the screen, or gets there within a minute.
shows()
{
	tries=600
	until mux capture-pane -p >"$tmp/screen" && grep -q -- "$1" "$tmp/screen"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || { cat "$tmp/screen"; return 1; }
		sleep 0.1
	done
}

shows_no_more()
{
	tries=600
	while mux capture-pane -p >"$tmp/screen" && grep -q -- "$1" "$tmp/screen"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || { cat "$tmp/screen"; return 1; }
		sleep 0.1
	done
}

# presses KEY PATTERN: then that is shown.
presses()
{
	press "$1" && shows "$2"
}

colored()
{
	mux capture-pane -e -p | grep -q "$(printf '\033')\[[0-9;]*31"
}

claim "the screen has the tasks" eval 'open_screen 80 24 && shows "^35 tasks"'
claim "and the keys" shows "^1 tasks .*q quit *$"
claim "a deadlock is red" colored
claim "? has help" presses '?' "the tree of the task, each round"
claim "and any key ends it" presses x "^35 tasks"
claim "2 has places" presses 2 "3[45] of 35 tasks have a tree"
claim "3 has threads" presses 3 "THREAD NAME"
claim "4 has times" presses 4 "WAKE TO POLL"
claim "Tab has the next view" presses Tab "35 of them: all, by suspicion"
claim "> sorts by another key" presses '>' "by time"
claim "< by the one before" presses '<' "by suspicion"
claim "r reverses" presses r "reversed"
claim "and back" eval 'press r && shows_no_more reversed'
claim "s has waiting tasks" presses s "33 of them: waiting"
claim "and runnable ones" presses s "0 of them: runnable"
claim "and those that are polled" presses s "2 of them: polling"
claim "and all of them" presses s "35 of them: all"
claim "space pauses" presses Space "; paused"
claim "and goes on" presses Space "a round each 200.0 ms"
claim "+ is faster" presses + "a round each 100.0 ms"
claim "- is slower" presses - "a round each 200.0 ms"
claim "< again goes round to the last key" presses '<' "by id"
claim "End has the last task" presses End "35 session 30"
claim "Home the first" presses Home "1 desk"
claim "/ begins a filter" eval 'press / && press alice && shows "2 of them.*filter: alice_"'
claim "which Enter keeps" presses Enter "filter: alice *$"
claim "Enter opens the tree of a task" presses Enter "tdt_mutex_lock at"
claim "o that of the holder" eval 'press o && shows "^task 3 .bob to alice"'
claim "Escape comes back" presses Escape '^task 2 .alice to bob'
claim "and closes it" presses Escape "2 of them"
claim "and ends the filter" presses Escape "35 of them: all"
claim "Down and Up choose a row" eval 'press Home && press Down && press Down && press Up &&
	press Enter && shows "^task 2 .alice to bob"'
claim "Escape closes the tree again" presses Escape "35 of them: all"
claim "> goes round to the first key" presses '>' "by suspicion"
claim "a wide screen has more places" eval 'mux resize-window -x 132 -y 40 &&
	shows "1 tasks .*q quit" && shows "a mutex .bob. held by task 3 .bob to alice"'
# What was on the wide screen stays until the next round.
is_small()
{
	mux capture-pane -p >"$tmp/screen" && grep -q '^ *3 bob to' "$tmp/screen" &&
		! grep -q CPU "$tmp/screen"
}
mux resize-window -x 40 -y 10
claim "a small one has tasks" wait_until is_small
claim "a tiny one says so" eval 'mux resize-window -x 19 -y 4 && shows "too small"'
mux resize-window -x 80 -y 24
claim "a stopped process can be read" eval 'kill -STOP "$pid" && shows ": stopped"'
claim "and its trees" eval 'press Home && press Enter && shows "^task [23] "'
kill -CONT "$pid"
claim "and it goes on" shows_no_more ": stopped"
claim "q ends with a restored terminal" presses q "^restored, status 0"
claim "so does SIGTERM" eval 'open_screen 80 24 && shows "^35 tasks" &&
	kill -TERM "$(cat "$tmp/top")" && shows "^restored, status 143"'
NO_COLOR=1
claim "there may be no colours" eval 'open_screen 80 24 && shows "^35 tasks" && ! colored'
NO_COLOR=
stop
claim "the end of the process is told" shows "it has ended"
claim "and the last round stays" grep -q "^35 tasks" "$tmp/screen"
claim "until q" presses q "^restored, status 0"
plan
