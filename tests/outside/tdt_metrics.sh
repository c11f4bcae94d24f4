#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# tdt metrics: the numbers of a process that knows them, in both forms; and what it says of targets
# that it cannot read.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"

metered=$top_builddir/tests/outside/metered

# fails MESSAGE ARGUMENTS...: status 2, no page, and the message, which begins with the name.
fails()
{
	message=$1
	shift
	timeout 60 "$tdt" metrics "$@" >"$tmp/page" 2>"$tmp/why"
	status=$?
	cat "$tmp/why"
	[ $status = 2 ] && [ ! -s "$tmp/page" ] && grep -q "^tdt: .*$message" "$tmp/why"
}

claim "a target is needed" fails "the target is missing"
claim "and only one" fails "more than one target" 1 2
claim "a form that is none" fails "openmetrics, prometheus or json, not xml" --format=xml 1
claim "a process without libtdt has no page" fails "no libtdt was found\|not permitted" $$
claim "an address that is none" fails "not a port, or an address and a port" --listen=here:1 1

# The samples of a page that do not depend on the time, without those of names.
samples()
{
	grep -v -e '^#' -e _created -e _seconds -e name= "$1"
}

# counts SPAWNED POLLS: what a page is to have.
counts()
{
	cat <<END
tdt_up 1
tdt_tasks{state="waiting"} 6
tdt_tasks{state="runnable"} 1
tdt_tasks{state="polling"} 1
tdt_spawned_total $1
tdt_task_panics_total 2
tdt_polls_total $2
tdt_captures_total 0
tdt_dumps_total 0
tdt_lost_wakeups_total 0
tdt_tasks_held 0
tdt_deadlocks 0
tdt_rings_unproven 1
tdt_futurelocks 0
tdt_orphaned_locks 0
END
}

# value NAME: of a sample in $tmp/page.
value()
{
	sed -n "s/^$1 //p" "$tmp/page"
}

# work: have the process poll, and end a task.
work()
{
	: >"$tmp/said"
	echo >&3
	until grep -q done "$tmp/said"; do
		kill -0 "$pid" || return 1
		sleep 0.1
	done
}

grows()
{
	"$tdt" metrics "$pid" >"$tmp/page" && samples "$tmp/page" >"$tmp/got" &&
		counts 30 86 | diff -u - "$tmp/got" && work &&
		"$tdt" metrics "$pid" >"$tmp/page" && samples "$tmp/page" >"$tmp/got" &&
		counts 31 126 | diff -u - "$tmp/got"
}

in_json()
{
	"$tdt" metrics --json "$pid" | grep '^{"tdt":1,"metrics":{"waiting":6,"runnable":1,'\
'"polling":1,"spawned":31,"panicked":2,"polls":126,.*"poll":{"bounds_ns":\[1000,.*"sum_ns":[0-9]*}'
}

# is_recent SAMPLE [TASKS]: a time in the page, of so many tasks together, is positive, and not more
# than since the test began.
is_recent()
{
	value "$1" | awk -v most=$((($(date +%s) - began + 1) * ${2:-1})) '
		{ n++; bad += $1 <= 0 || $1 > most }
		END { exit n != 1 || bad }'
}

has_histograms()
{
	test "$(value tdt_poll_seconds_gcount)" = 125 && # one poll goes on
		test "$(value 'tdt_poll_seconds_bucket{le="+Inf"}')" = 125 &&
		test "$(value tdt_wake_to_poll_seconds_gcount)" = 1 &&
		is_recent tdt_recorded_seconds
}

# The sum is that of all states.
has_groups()
{
	"$tdt" metrics --names "$pid" >"$tmp/page" && grep '^tdt_task_group' "$tmp/page" >"$tmp/got"
	cat "$tmp/got"
	awk '/^tdt_tasks{/ { sum += $2 } /^tdt_task_group{/ { sum -= $NF; n++ }
		END { exit sum != 0 || n == 0 }' "$tmp/page" &&
		grep -q '^tdt_task_group{name=".*",wait="task"} 2$' "$tmp/got" &&
		grep -q '^tdt_task_group{name="other"} 0$' "$tmp/got"
}

# The waits of its tasks that have ended; a name has the number of a line.
waits='{name="spawned at metered.c:[0-9]*",wait="unknown"}'

has_waits()
{
	test "$(value "tdt_task_waits$waits")" = 118 &&
		test "$(value 'tdt_task_waits{name="other"}')" = 0 &&
		is_recent "tdt_task_wait_seconds$waits" 8 # at a time
}

# --- Profiles ---

# profile PARAMETERS: leaves what the server says of it in $tmp/page, and its status.
profile()
{
	code=$(curl -sS --max-time 120 --noproxy '*' -o "$tmp/page" -w '%{http_code}' \
		"${url%/metrics}/debug/pprof/tasks$1")
}

refuses()
{
	profile "$2"
	cat "$tmp/page"
	[ "$code" = "$1" ]
}

# A profile has the state, and the tasks that wait; nothing was captured for it.
is_profile()
{
	profile "$1" && [ "$code" = 200 ] || return
	captures=$("$tdt" metrics "$pid" | sed -n 's/^tdt_captures_total //p')
	zcat <"$tmp/page" | grep -aq waiting && [ "$captures" = "$captures_before" ]
}

is_read_by_go()
{
	go tool pprof -top -sample_index=waiting "$tmp/page" >"$tmp/got" 2>&1
	cat "$tmp/got"
	grep -q '^Type: waiting' "$tmp/got"
}

# Profiles of the process, and, with --all, of the one that is named.
serve_profiles()
{
	captures_before=$("$tdt" metrics "$pid" | sed -n 's/^tdt_captures_total //p')
	claim "a server without --names" serve "$pid"
	claim "has no profiles, which have names" refuses 403 '?seconds=1'
	end_server
	claim "a server with --names" serve "$pid" --names
	claim "has profiles, and requests nothing for them" is_profile '?seconds=1'
	if command -v go >/dev/null; then
		claim "which go tool pprof reads" is_read_by_go
	else
		skip "which go tool pprof reads" "there is no go"
	fi
	claim "of a second or more" refuses 400 '?seconds=0'
	claim "of a number of them" refuses 400 '?seconds='
	claim "but not of hours" refuses 400 '?seconds=7200'
	claim "of the target only" refuses 400 "?seconds=1&pid=$pid"
	end_server
	claim "a server of all processes" serve --all --names
	claim "has those of each" is_profile "?pid=$pid&seconds=1"
	claim "which has to be named" refuses 400 '?seconds=1'
	claim "and read" refuses 500 "?seconds=1&pid=$$"
	end_server
}

# --- Serving ---

# scrape [OPTION...]: leaves the page in $tmp/page.
scrape()
{
	curl -sS --max-time 60 --noproxy '*' "$@" "$url" >"$tmp/page" 2>"$tmp/curl" ||
		{ cat "$tmp/curl"; false; }
}

# until_scraped SAMPLE VALUE: the newest polls are counted a little later.
until_scraped()
{
	tries=0
	until scrape && [ "$(value "$1")" = "$2" ]; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || { cat "$tmp/page"; return 1; }
		sleep 0.2
	done
}

# serves SPAWNED POLLS: the counts, and the histogram of all polls but the one that goes on.
serves()
{
	until_scraped tdt_poll_seconds_count $(($2 - 1)) && samples "$tmp/page" >"$tmp/got" &&
		counts "$1" "$2" | diff -u - "$tmp/got"
}

is_openmetrics()
{
	scrape -H 'Accept: application/openmetrics-text; version=1.0.0' &&
		[ "$(tail -n 1 "$tmp/page")" = "# EOF" ] &&
		grep -q '^# TYPE tdt_poll_seconds histogram' "$tmp/page"
}

serves_stopped()
{
	kill -STOP "$pid" && scrape && kill -CONT "$pid" && [ "$(value tdt_up)" = 1 ]
}

# Each failure after the first is silent.
serves_nothing()
{
	scrape && scrape && [ "$(grep -v '^#' "$tmp/page")" = "tdt_up 0" ] &&
		[ "$(wc -l <"$tmp/why")" = 1 ] && grep -q '^tdt: ' "$tmp/why"
}

end_server()
{
	kill "$server"
	wait "$server" 2>/dev/null
}

# The process $pid has spawned 31 tasks and polled 126 times by now, and ends.
serve_process()
{
	claim "it is served" serve "$pid" --names
	claim "with what was recorded before" serves 31 126
	claim "also the waits that have ended" until_scraped "tdt_task_waits_total$waits" 118
	claim "and what comes, once" work
	claim "in counters and in histograms" serves 32 166
	claim "and among the waits" until_scraped "tdt_task_waits_total$waits" 158
	claim "in both of these" test "$(value tdt_wake_to_poll_seconds_count)" = 2
	claim "as OpenMetrics if the client accepts it" is_openmetrics
	claim "also while the process is stopped" serves_stopped
	stop
	claim "a process that has ended is down" serves_nothing
	end_server
	serve_by_name
}

# Programs of one name, one after the other.
serve_by_name()
{
	name=metered_$$
	program=$top_builddir/tests/outside/.libs/metered
	[ -x "$program" ] || program=$metered
	cp "$program" "$tmp/$name"
	LD_LIBRARY_PATH=$top_builddir/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	export LD_LIBRARY_PATH
	claim "a process may be missing at first" serve $name
	claim "it is down then" serves_nothing
	claim "it comes" start env TDT_RECORD=64K "$tmp/$name"
	claim "and is served" serves 30 86
	claim "it works" work
	claim "and is served on" serves 31 126
	stop
	claim "it ends, and another one comes" start env TDT_RECORD=64K "$tmp/$name"
	claim "which is counted from its own start" serves 30 86
	stop
	end_server
}

# --- A scrape that fails ---

# polls_of_process: the recorded polls of $pid in a page of all processes.
polls_of_process()
{
	sed -n "s/^tdt_poll_seconds_count{.*,pid=\"$pid\"} //p" "$tmp/page"
}

# More polls than the recorder holds.
overflows()
{
	: >"$tmp/said"
	yes '' | head -n 500 >&3
	until [ "$(grep -c done "$tmp/said")" = 500 ]; do
		kill -0 "$pid" || return 1
		sleep 0.1
	done
}

# Whether the children of the server, but not the server, lack memory for once.
fails_once()
{
	size=$(awk '/^VmSize/ { print ($2 + 256) * 1024 }' "/proc/$server/status")
	prlimit --pid "$server" --as="$size:" && scrape || return
	[ -z "$(polls_of_process)" ] && grep -q 'reading process # failed' "$tmp/page"
	failed=$?
	prlimit --pid "$server" --as=unlimited:
	return $failed
}

# counts_more POLLS: the newest polls are counted a little later, and a process that could not be
# read in time has none.
counts_more()
{
	scrape && after=$(polls_of_process) && echo "$1, $after" && [ "${after:-0}" -gt "$1" ]
}

counts_on()
{
	wait_until counts_more 0 && before=$after && overflows && wait_until counts_more "$before"
}

keeps_totals()
{
	before=$after
	wait_until counts_more 0 && [ "$after" -ge "$before" ]
}

survive_failure()
{
	start env TDT_RECORD=64K "$metered" || return
	claim "all are served" serve --all
	claim "and more than was recorded is counted" counts_on
	if fails_once; then
		claim "a scrape that fails makes no counter shrink" keeps_totals
	else
		skip "a scrape that fails" "the server's children have enough memory"
	fi
	end_server
	stop
}

# --- Counters while tasks end all the time ---

never_less()
{
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		"$tdt" metrics "$pid" >"$tmp/page" || return
		echo "$(value tdt_spawned_total) $(value tdt_polls_total) $i"
	done | awk '$1 < spawned || $2 < polls { print spawned, polls, "then", $0; bad = 1 }
		{ spawned = $1; polls = $2 }
		END { exit bad || NR != 20 }'
}

never_shrink()
{
	churn=$top_builddir/tests/outside/registry_tasks_static
	claim "tasks that come and go" start "$churn" churn
	claim "never make a counter shrink" never_less
	stop
}

# --- The process ---

began=$(date +%s)
if ! start env TDT_RECORD=64K "$metered"; then
	cat "$tmp/said" "$tmp/dumped" >&2
	claim "the program starts" false
elif ! may_read; then
	cat "$tmp/why" >&2
	skip "the metrics of a process" "reading another process is not permitted here"
	stop
else
	claim "tasks and polls are counted, also those that have ended" grows
	claim "JSON has the same" in_json
	claim "with --names they are counted by name and wait" has_groups
	claim "and so are the waits that were recorded" has_waits
	claim "the longest poll has begun since the start" is_recent tdt_longest_poll_seconds
	claim "and the longest wait" is_recent tdt_longest_wait_seconds
	claim "the page has an end" test "$(tail -n 1 "$tmp/page")" = "# EOF"
	claim "the counting began with the process" test \
		"$(value tdt_polls_created | cut -d. -f1)" -ge "$began"
	claim "what was recorded is in histograms of a span" has_histograms
	"$tdt" metrics --format=prometheus "$pid" >"$tmp/page"
	claim "the older form names samples" grep -q '^# TYPE tdt_polls_total counter' "$tmp/page"
	if command -v promtool >/dev/null; then
		claim "promtool finds no fault with it" promtool check metrics <"$tmp/page"
	else
		skip "promtool finds no fault with it" "there is no promtool"
	fi
	if command -v curl >/dev/null; then
		serve_profiles
		serve_process
		if [ "${SANITIZERS:?}" != no ]; then
			skip "a scrape that fails" "a sanitizer needs all memory"
		elif command -v prlimit >/dev/null; then
			survive_failure
		else
			skip "a scrape that fails" "there is no prlimit"
		fi
	else
		skip "the metrics of a process are served" "there is no curl"
		stop
	fi
	never_shrink
fi
plan
