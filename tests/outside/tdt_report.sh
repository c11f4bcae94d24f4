#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# tdt report: a page of a process, of its core file and of a recording, which tdt print reads again;
# names that are markup; what --redact replaces; and the page in a browser.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
DEBUGINFOD_URLS=
LC_ALL=C
export DEBUGINFOD_URLS LC_ALL
page=$tmp/incident.html

# fails MESSAGE ARGUMENTS...: status 2 and the message, and there is no page.
fails()
{
	message=$1
	shift
	timeout 60 "$tdt" report "$@" 2>"$tmp/why"
	status=$?
	cat "$tmp/why"
	[ $status = 2 ] && [ ! -e "$page" ] && grep -q -e "^tdt: .*$message" "$tmp/why"
}

report()
{
	timeout 60 "$tdt" report -o "$page" "$@" 2>"$tmp/why"
	status=$?
	cat "$tmp/why"
	return $status
}

test "${WITH_RUNTIME:?}" = yes || skip_all "there is no runtime"
bank=$top_builddir/tests/outside/outside_bank
name="</script><img src=x onerror=alert(1)>\"'&"
if ! start env TDT_WATCH=10ms TDT_RECORD=1M SECRET=hunter2 SESSION_NAME="$name" \
	"$bank" 10 rests; then
	cat "$tmp/said" "$tmp/dumped" >&2
	claim "the bank starts" false
	plan
	exit
fi
may_read || {
	stop
	skip_all "reading another process is not permitted here"
}

claim "a file is needed" fails "-o OUT is missing" 1
claim "a target is needed" fails "the target is missing" -o "$page"
claim "only a process can be waited for" fails "only a process" -o "$page" -d 1s --core=x
claim "there may be no such process" fails "no process 999999999 here" -o "$page" 999999999
claim "a page needs a place" fails "No such file" -o "$tmp/none/page" 1

leaves_nothing()
{
	"$tdt" report -d 60s -o "$page" "$pid" &
	until ls "$page".* >/dev/null 2>&1; do
		sleep 0.02
	done
	kill -TERM $!
	wait $!
	[ $? = 143 ] && ! ls "$page"* 2>/dev/null
}
claim "a page that is not finished goes with tdt" leaves_nothing

# --- A process --------------------------------------------------------------------------

claim "a page of a process" report "$pid"
is_whole()
{
	[ "$(stat -c %a "$page")" = 600 ] && [ "$(grep -c '^{"tdt":1,' "$page")" = 5 ] &&
		[ "$(grep -c '^<script' "$page")" = 6 ]
}
claim "it is for its owner only, and has five documents" is_whole
loads_nothing()
{
	! grep -n -i '<img\|<link\|<iframe\|src=["h/]\|href="' "$page" &&
		[ "$(grep -c -i '</script' "$page")" = 6 ] &&
		grep -q "content=\"default-src 'none'; script-src 'nonce-[0-9a-f]*';" "$page"
}
claim "no name is markup, and nothing is loaded" loads_nothing
tells_nothing()
{
	! grep -n "hunter2\|SECRET\|outside_bank 10" "$page"
}
claim "no variable and no argument is in it" tells_nothing

# says PATTERN...: tdt print prints such lines of the page.
says()
{
	"$tdt" print "$page" >"$tmp/listed" || return
	for pattern; do
		grep -q -e "$pattern" "$tmp/listed" || {
			cat "$tmp/listed"
			return 1
		}
	done
}
claim "tdt print reads it" says '^deadlock: task 2 "alice to bob" waits for a mutex "bob"' \
	'session_poll at tests/outside/outside_bank' '"</script><img src=x onerror=alert(1)>'
"$tdt" print --format=folded "$page" | sort >"$tmp/printed"
"$tdt" bt --format=folded "$pid" | sort >"$tmp/asked"
same "its stacks are those of tdt bt" "$tmp/asked" "$tmp/printed"
compares()
{
	"$tdt" diff "$page" "$page" | grep "did not move"
}
claim "and tdt diff compares it with itself" compares
refuses_others()
{
	echo '<html>' | "$tdt" print 2>"$tmp/why"
	test $? = 2 && grep 'neither JSON nor a page' "$tmp/why"
}
claim "another page is refused" refuses_others
"$tdt" print --json "$page" >"$tmp/dump.json"
claim "what is read again is the dump" "$tdt" print "$tmp/dump.json"

# --- In a browser -----------------------------------------------------------------------

# in_browser: what fixtures/report.js says of the page, in $tmp/said.
in_browser()
{
	nonce=$(sed -n 's/.*nonce-\([0-9a-f]*\).*/\1/p;T;q' "$page")
	awk -v nonce="$nonce" -v driver="$top_srcdir/tests/outside/fixtures/report.js" '
		/^<noscript/ {
			print "<script nonce=\"" nonce "\">"
			while ((getline line <driver) > 0)
				print line
			print "</script>"
		}
		{ print }' "$page" >"$tmp/driven.html"
	timeout 120 "$chromium" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
		--user-data-dir="$tmp/chromium" --enable-logging=stderr \
		--virtual-time-budget=20000 --dump-dom \
		"file://$tmp/driven.html" >"$tmp/dom" 2>"$tmp/console"
	sed -n '/<pre>said$/,/^end$/p' "$tmp/dom" | sed '1d;$d' >"$tmp/tried"
	cat "$tmp/tried"
	grep CONSOLE "$tmp/console"
	[ "$(grep -c '^ok ' "$tmp/tried")" = 19 ] && ! grep '^not ok' "$tmp/tried" &&
		! grep -q CONSOLE "$tmp/console"
}
chromium=$(command -v chromium || command -v chromium-browser)
if [ -z "${TDT_TEST_FULL:-}" ]; then
	skip "the page in a browser" "TDT_TEST_FULL=1 tries it"
elif [ -z "$chromium" ]; then
	skip "the page in a browser" "there is no chromium"
else
	claim "the page in a browser" in_browser
fi

# --- Redacted -----------------------------------------------------------------------------

claim "a page without names" report --redact "$pid"
has_no_names()
{
	! grep -n -i "alice\|bob\|session\|desk\|onerror\|outside_\|tests/" "$page" &&
		! grep -n "0x[0-9a-f]\{6\}" "$page" &&
		! grep -n -F "$(cd "$top_srcdir" && pwd)/" "$page"
}
claim "no name, path or address is left" has_no_names
claim "the same name is the same word" says \
	'^deadlock: task 2 "\(name[0-9]*\)" waits .* task 3 "\(name[0-9]*\)", .* task 2 "\1"' \
	'^ *.* tdt_mutex_lock' '^ *.* function[0-9]* at file[0-9]*:'

# --- A core file and a recording ----------------------------------------------------------

if ! command -v gdb >/dev/null; then
	skip "a page of a core file" "there is no gdb"
elif test "${SANITIZERS:?}" != no; then
	skip "a page of a core file" "sanitizers map terabytes"
elif ! make_core; then
	skip "a page of a core file" "gdb made none: $(tail -n 1 "$tmp/gdb")"
else
	claim "a page of a core file" report --core="$tmp/core"
	claim "tdt print reads that, too" says '^deadlock: task 2 ' '^all times are at least'
fi
stop
if [ -n "${TDT_TEST_FULL:-}" ]; then
	start "$bank" 21000 rests
	claim "a page of more tasks than there is room for" report --no-request "$pid"
	claim "says so" grep -q '"left_out":\["1,005 tasks' "$page"
	claim "and is no larger than 15 MB" test "$(stat -c %s "$page")" -lt 15000000
	claim "and is read again" says '^21,005 tasks' '^task 4 "reload"'
	stop
fi
mkdir "$tmp/dir"
start env TDT_RECORD=1M TDT_RECORD_DIR="$tmp/dir" "$bank" 10 rests
is_recorded()
{
	"$tdt" ps --dir="$tmp/dir" | grep '  session 10 '
}
wait_until is_recorded
kill -KILL "$pid"
wait "$pid" 2>/dev/null
exec 3>&-
claim "a page of a recording" report --dir="$tmp/dir"
claim "has its tasks and its timeline" says '"session [0-9]'
claim "and says how it ended" grep -q '"ended":"by a signal' "$page"
claim "and what each task did" grep -q '"spans":\[[0-9]' "$page"

# ends_meanwhile PROCESS...: a page of a process that is killed while tdt waits.  For the wait, tdt
# catches SIGINT, which is a bit of the last digit of the mask.
ends_meanwhile()
{
	start env "$@" "$bank" 10 rests || return
	rm -f "$page"
	"$tdt" report -d 600s -o "$page" "$pid" 2>"$tmp/why" 3>&- &
	until awk -v tdt=$! '/^PPid:/ { mine = $2 == tdt }
		/^SigCgt:.*[2367abef]$/ && mine { waits = 1 }
		END { exit !waits }' /proc/[0-9]*/status 2>/dev/null; do
		kill -0 $! || return
		sleep 0.05
	done
	kill -KILL "$pid"
	exec 3>&-
	wait $!
	status=$?
	wait "$pid" 2>/dev/null
	cat "$tmp/why"
	grep -q "^tdt: the process has ended meanwhile" "$tmp/why"
}
says_how_it_ended()
{
	grep -e '"ended":"by signal 9 (Killed)"' -e '"ended":"while it was recorded"' \
		-e '"ended":"by a signal, _exit' "$page"
}
claim "a process may end while its recording is waited for" ends_meanwhile A=1
claim "then there is a page, which says how it ended" says_how_it_ended
claim "and has its tasks as they were before" says '^unproven ring of .* task 2 "alice to bob"'
mkdir "$tmp/kept"
claim "the same of one whose recording is in a file" ends_meanwhile TDT_RECORD=1M \
	TDT_RECORD_DIR="$tmp/kept"
claim "is no failure" test "$status" = 0
claim "says how it ended" says_how_it_ended
claim "and what each task did" grep -q '"spans":\[[0-9]' "$page"

plan
