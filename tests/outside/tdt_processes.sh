#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# tdt ps, tdt top and tdt metrics of all processes that use the library, and tdt ps and tdt bt of
# several targets.  Other tests run beside, so more processes than these may be found.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
LC_ALL=C
export LC_ALL

# says LINE ARGUMENTS...: tdt succeeds, and a line matches; the output is in $tmp/listed.
says()
{
	line=$1
	shift
	wait_until lists_all "$@"
	[ $status = 0 ] && also "$line"
}

# lists_all ARGUMENTS...: tdt reads for two seconds from each process at most, so a process is left
# out if it or tdt is held up; then this is said.
lists_all()
{
	timeout 300 "$tdt" "$@" >"$tmp/listed" 2>"$tmp/why"
	status=$?
	grep -E "$first|$second|target " "$tmp/listed" | cut -c 1-300
	cat "$tmp/why"
	has_all
}

has_all()
{
	also "$line" || ! also 'took too long|no time to read'
}

also()
{
	grep -Eq -e "$1" "$tmp/listed"
}

if ! start env TDT_RECORD=64K "$top_builddir/tests/outside/metered"; then
	skip_all "the first program does not start here"
fi
may_read || { stop; skip_all "reading another process is not permitted here"; }
first=$pid
if ! start "$top_builddir/tests/outside/registry_tasks_static"; then
	stop
	skip_all "the second program does not start here"
fi
second=$pid

# --- The list ---

columns='^ *PID  PROGRAM  +TASKS  OLDEST, OR WRONG$'
metered="^ *$first  [a-z-]*metered  +[1-9]"
claim "tdt ps lists a process with its program, its tasks and the oldest of them" \
	says "$metered.*task [0-9]+ .*(waiting|polling|runnable) " ps
claim "below what the columns are" also "$columns"
claim "another one as well" says "^ *$second  registry_tasks_  +15[0-9][0-9]  " ps
claim "and no process without the library" test "$(grep -c "^ *$$ " "$tmp/listed")" = 0
claim "so does tdt top" says "$metered" top
json="\"pid\":$first,\"program\":\"[a-z-]*metered\",\"library\":\"[^\"]*\",\"tasks\":[1-9]"
claim "JSON has the same" says "^\\{\"tdt\":1,\"processes\":\\[.*$json" ps --json
claim "with the oldest task" says "\"pid\":$second,[^}]*\"oldest\":\"task " ps --json
timeout 60 "$tdt" ps --check >"$tmp/listed" 2>"$tmp/why"
status=$?
claim "a check needs a target" test $status = 2

# A name that looks like the state of a process that has ended.
lists_odd_name()
{
	program=$top_builddir/tests/outside/.libs/registry_tasks_static
	[ -x "$program" ] || program=$top_builddir/tests/outside/registry_tasks_static
	cp "$program" "$tmp/x) Z 1 1 1 1 1" && start "$tmp/x) Z 1 1 1 1 1" || return
	odd=$pid
	says "^ *$odd  x\\) Z 1 1 1 1 1 " ps
	listed=$?
	kill "$odd"
	wait "$odd"
	return $listed
}

claim "a program may have any name" lists_odd_name

# --- Several targets ---

claim "tdt ps takes several targets" says "^target $second\$" ps -p "$first" -p "$second"
claim "each has a heading" also "^target $first\$"
claim "and its own list" test "$(grep -c '^process [0-9]*, libtdt' "$tmp/listed")" = 2
claim "also without -p" says "^process $second, " ps "$first" "$second"
claim "tdt bt takes several targets" \
	says "^target $second\$" bt --no-request -p "$first" -p "$second"
claim "each with its tasks" test "$(grep -c '^[0-9,]* tasks: ' "$tmp/listed")" = 2
timeout 60 "$tdt" ps "$first" 999999999 >"$tmp/listed" 2>"$tmp/why"
status=$?
claim "a target that is none makes the whole fail" test $status = 2
claim "behind what the other ones have" also "^process $first, "

# --- The metrics of all ---

labels="\\{program=\"[a-z-]*metered\",pid=\"$first\"\\}"
claim "a page has the samples of each process" says "^tdt_up$labels 1\$" metrics --all
claim "under one heading" test "$(grep -c '^# TYPE tdt_spawned ' "$tmp/listed")" = 1
claim "with the labels before the others" also \
	"^tdt_tasks\\{program=\"[a-z-]*metered\",pid=\"$first\",state=\"waiting\"\\} 6\$"
claim "also of the recorder" also \
	"^tdt_poll_seconds_bucket\\{program=\"[a-z-]*metered\",pid=\"$first\",le=\"\\+Inf\"\\} "
if command -v promtool >/dev/null; then
	"$tdt" metrics --all --names --format=prometheus >"$tmp/older"
	claim "promtool finds no fault with it" promtool check metrics <"$tmp/older"
else
	skip "promtool finds no fault with it" "there is no promtool"
fi
claim "JSON has an object for each" \
	says "^\\{\"tdt\":1,.*\"pid\":$first[,}]" metrics --all --json
claim "patterns choose programs by their names" says "^tdt_up$labels 1\$" metrics --all '*metered'
claim "and no others" test "$(grep -c "pid=\"$second\"" "$tmp/listed")" = 0
claim "one of several patterns is enough" says "^tdt_up$labels 1\$" \
	metrics --all 'registry_tasks_' '*meter[e]d'
claim "for each program" says "^tdt_up\\{program=\"registry_tasks_\",pid=\"$second\"\\} 1\$" \
	metrics --all 'registry_tasks_' '*meter[e]d'
timeout 60 "$tdt" metrics --all 'metere' 'registry' >"$tmp/listed" 2>"$tmp/why"
status=$?
claim "a pattern that matches nothing is no error" test $status = 0
claim "and matches whole names only" test "$(grep -c '^tdt_up' "$tmp/listed")" = 0
timeout 60 "$tdt" metrics 'web-*' >"$tmp/listed" 2>"$tmp/why"
status=$?
claim "a pattern needs --all" test $status = 2
timeout 60 "$tdt" metrics --all -p 1 >"$tmp/listed" 2>"$tmp/why"
status=$?
claim "all are no target" test $status = 2

# scrapes LINE [OPTION...]
scrapes()
{
	line=$1
	shift
	wait_until scrapes_all "$@"
	also "$line"
}

scrapes_all()
{
	curl -sS --max-time 120 --noproxy '*' "$@" "$url" >"$tmp/listed" 2>"$tmp/why"
	cat "$tmp/why"
	grep -E "$first|$second" "$tmp/listed" | cut -c 1-300 | head -n 20
	has_all
}

says_not_server()
{
	says "$metered" ps && test "$(grep -c "^ *$server " "$tmp/listed")" = 0
}

third_is_found()
{
	start "$top_builddir/tests/outside/registry_tasks_static" || return
	third=$pid
	scrapes "^tdt_up\\{program=\"registry_tasks_\",pid=\"$third\"\\} 1\$"
	found=$?
	kill "$third"
	wait "$third"
	return $found
}

if command -v curl >/dev/null; then
	claim "the page is served" serve --all
	claim "tdt itself, which has never traced a task, is not listed" says_not_server
	claim "with all processes" scrapes "^tdt_up$labels 1\$"
	claim "a new one is found at the next scrape" third_is_found
	claim "and is gone when it has ended" scrapes "^tdt_up$labels 1\$"
	claim "without a trace" test "$(grep -c "pid=\"$third\"" "$tmp/listed")" = 0
	claim "a name of another machine is refused" scrapes 403 -H 'Host: evil.example' \
		-w '%{http_code}\n' -o /dev/null
	claim "localhost is not" scrapes 200 -H 'Host: localhost:80' -w '%{http_code}\n' \
		-o /dev/null
	kill "$server"
	wait "$server" 2>/dev/null
	claim "the page of a pattern is served" serve --all --names '*metered'
	url="${url%/metrics}/debug/pprof/tasks?pid=$$"
	claim "without a profile of other processes" scrapes 404 -w '%{http_code}\n' -o /dev/null
	kill "$server"
	wait "$server" 2>/dev/null
else
	skip "the page is served" "there is no curl"
fi

# --- Those that are not read in time ---

# They have smaller numbers than the one behind them, unless numbers begin anew meanwhile.  If each
# held up the others for two seconds, the time would be over.
stalled=
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
	start "$top_builddir/tests/outside/liar" stalls && stalled="$stalled $pid"
done
if [ -n "$stalled" ] && start "$top_builddir/tests/outside/registry_tasks_static"; then
	behind=$pid
	claim "processes that stall do not hide the others" says "$metered" ps --timeout=20s
	claim "nor one behind them" says "^ *$behind  registry_tasks_ " ps --timeout=20s
	claim "they are counted" also "could not be read.*reading process [0-9]* took too long\$"
	claim "the same in the page" says "^tdt_up$labels 1\$" metrics --all --timeout=20s
	claim "with the one behind" says \
		"^tdt_up\\{program=\"registry_tasks_\",pid=\"$behind\"\\} 1\$" \
		metrics --all --timeout=20s
	claim "and the number of them" also \
		'^tdt_processes_unreadable\{reason="reading process # took too long"\} [1-9]'
	# shellcheck disable=SC2086 # the numbers of processes
	kill $stalled "$behind"
	# shellcheck disable=SC2086
	wait $stalled "$behind"
else
	skip "processes that are not read in time" "userfaultfd(2) is refused here"
fi

# --- Those that may not be read ---

as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
why='could not be read, for example: .*belongs to the user with the id 0'
if ! test "$(id -u)" = 0; then
	skip "processes that may not be read" "only root can be another user"
elif ! $as_nobody "$tdt" --version >/dev/null 2>&1; then
	skip "processes that may not be read" "another user cannot run tdt here"
else
	$as_nobody "$tdt" ps >"$tmp/listed"
	claim "processes that may not be read are counted by the reason" \
		also "^[1-9][0-9,]* processes $why"
	claim "they are not listed" test "$(grep -c "$metered" "$tmp/listed")" = 0
	$as_nobody "$tdt" ps --json >"$tmp/listed"
	claim "so they are in JSON" also '"unreadable":\[.*id 0.*"processes":[1-9]'
	$as_nobody "$tdt" metrics --all >"$tmp/listed"
	claim "and in the page" also '^tdt_processes_unreadable\{reason=".*id #.*"\} [1-9]'
	# What share/systemd/tdt-metrics.service gives.
	only=-all,+sys_ptrace
	cap="--inh-caps=$only --ambient-caps=$only --bounding-set=$only"
	# shellcheck disable=SC2086 # the options
	reads_by_capability()
	{
		$as_nobody $cap --no-new-privs "$tdt" metrics --all >"$tmp/listed"
		has_all
	}
	# shellcheck disable=SC2086
	if $as_nobody $cap --no-new-privs true; then
		line="^tdt_up$labels 1\$"
		wait_until reads_by_capability
		claim "with CAP_SYS_PTRACE alone they are read" also "$line"
	else
		skip "with CAP_SYS_PTRACE alone they are read" "that capability cannot be had here"
	fi
fi

exec 3>&-
wait "$first" "$second"
plan
