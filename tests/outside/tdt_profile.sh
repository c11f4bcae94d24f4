#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# tdt profile: in all forms, with a program that knows how long its tasks waited where; that it
# leaves nothing behind; and how it ends.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
LC_ALL=C
HOME=$tmp
TDT_RECORD=4M
export LC_ALL HOME TDT_RECORD

test "${WITH_RUNTIME:?}" = yes || skip_all "there is no runtime"

# fails MESSAGE ARGUMENTS...
fails()
{
	message=$1
	shift
	timeout 60 "$tdt" profile "$@" >"$tmp/listed" 2>"$tmp/why"
	status=$?
	cat "$tmp/why"
	[ $status = 2 ] && grep -q "^tdt: .*$message" "$tmp/why"
}

claim "a target is needed" fails "the target is missing"
claim "which runs" fails "wrong option" --core="$tdt"
claim "a state that no task is profiled in" fails "not ended" --state=ended 1
claim "looks that are too frequent" fails "a number from 1 to 1000" -F 5000 1
claim "a time that is none" fails "more than nothing and a day at most" -d 0s 1
claim "a process without libtdt" fails "no libtdt was found\|not permitted" $$

# --- Truth ---

# The process may be held up for longer than tdt waits for its answer.
is_late()
{
	grep -q 'did not answer in time' "$tmp/why"
}

# profile ARGUMENTS...: of the process, with its answer; what is said of stacks that cannot be read
# is no trouble.
profile()
{
	wait_until profile_once "$@"
	cat "$tmp/profiled"
}

profile_once()
{
	timeout 100 "$tdt" profile "$@" "$pid" >"$tmp/profiled" 2>"$tmp/why" || cat "$tmp/why" >&2
	! is_late
}

may_request()
{
	"$tdt" set --for=1ms "$pid" watch=1h >"$tmp/listed" 2>"$tmp/why" || ! is_late
}

# ledger FILE: how long the tasks have waited in each function by now.
ledger()
{
	give_line end
	tail -n 6 "$tmp/said" | grep wait_ >"$1"
}

seed=${TDT_TEST_SEED:-$(date +%s)}
echo "# TDT_TEST_SEED=$seed"
if ! start "$top_builddir/tests/outside/waits" "$seed"; then
	cat "$tmp/dumped" >&2
	claim "the process starts" false
	plan
	exit
fi
if ! may_read; then
	stop
	skip_all "reading another process is not permitted here: $(cat "$tmp/why")"
fi
wait_until may_request
if test -s "$tmp/why"; then
	stop
	skip_all "requests cannot be made here: $(cat "$tmp/why")"
fi
# Shares of time need some.
span=1s
test "${TDT_TEST_FULL-}" != 1 || span=4s
ledger "$tmp/before"
profile -d $span --json >"$tmp/json"
ledger "$tmp/after"

# number NAME: a number of the profile.
number()
{
	sed 's/.*"'"$1"'":\([0-9]*\).*/\1/; q' "$tmp/json"
}

# Of each function of the program, the nanoseconds at its places.
sed 's/{"state":/\n&/g' "$tmp/json" | sed -n '/^{"state":"waiting"/{
	s/.*"ns":\([0-9]*\),.*"function":"\(wait_[cesbr][a-z]*\)".*/\2 \1/p; }' |
	awk '$1 != "wait_for_timer" { ns[$1] += $2 } END { for (i in ns) print i, ns[i] }' \
		>"$tmp/told"

# A share is off by no more than the profile says, and 1.5 percentage points.  bench/profile has the
# exact measurement.
tells_truth()
{
	cat "$tmp/before" "$tmp/after" "$tmp/told"
	awk -v may="$(number off_ns)" -v waiting="$(number waiting_ns)" '
	BEGIN {
		may = 100 * may / waiting
		print "a place may be " may " points off"
	}
	FILENAME ~ /before$/ { spent[$1] = -$2 }
	FILENAME ~ /after$/ { spent[$1] += $2; all += spent[$1] }
	FILENAME ~ /told$/ { told[$1] = $2; sum += $2 }
	END {
		for (place in spent) {
			off = 100 * told[place] / sum - 100 * spent[place] / all
			print place ": " off " percentage points off"
			if (off > may + 1.5 || off < -may - 1.5)
				wrong = 1
			n++
		}
		exit wrong || n != 5
	}' "$tmp/before" "$tmp/after" "$tmp/told"
}

if test "${TDT_TEST_FULL-}" = 1; then
	claim "the tasks waited where the profile says" tells_truth
else
	skip "the tasks waited where the profile says" "it takes long (TDT_TEST_FULL=1 has it)"
fi
claim "each look finds each task" test "$(number tasks_found)" = $((75 * $(number looks)))
claim "and counts it once" test $((($(number waiting_ns) + $(number runnable_ns) + \
	$(number polling_ns)) / 1000000)) -ge $((75 * $(number duration_ns) / 1000000 - 1))
claim "what was recorded is exact" \
	grep -q '"recorded":{"ns":[0-9]*,"tasks":.{"state":"waiting","task":"worker .","ns":' \
	"$tmp/json"
claim "the process was watched" test "$(number watch_ns)" = 10000000
profile -d 1ms --json >"$tmp/json"
claim "there is one look, however short the time" test "$(number looks)" = 1

# --- Tasks that wait for ever ---

# samples TASK: how often it was seen waiting.
samples()
{
	sed 's/{"state":/\n&/g' "$tmp/json" | awk -F'"samples":' -v task="\"task\":\"$1\"," '
		/"places":/ { places = 1 }
		places && /^{"state":"waiting"/ && index($1, task) {
			split($2, n, ",")
			all += n[1]
		}
		END { print all + 0 }'
}

# at_rest: all that wait have a fresh tree, and no look found one in a poll for a request, which may
# be held up.
at_rest()
{
	profile -d 300ms --json >"$tmp/json"
	test "$(number unknown_ns)" = 0 && test "$(number stale_ns)" = 0 &&
		! sed 's/{"state":/\n&/g' "$tmp/json" |
			grep '^{"state":"[pr][^[]*"task":"[sdab][^[]*"samples":'
}

# The three sessions wait at one place, and each other task at one of its own.
sees_all()
{
	looks=$(number looks)
	echo "$looks looks, $(samples 'session *') sessions, $(samples desk) desks"
	test "$(samples 'session *')" = $((3 * looks)) && test "$(samples desk)" = "$looks" &&
		test "$(samples 'alice to bob')" = "$looks" &&
		test "$(samples 'bob to alice')" = "$looks"
}

stop
if start "$top_builddir/tests/outside/outside_bank" 3 rests; then
	wait_until at_rest >&2
	claim "each look sees where tasks wait for ever" sees_all
	claim "and names the place" sh -c 'sed "s/{\"state\":/\n&/g" "$1" |
		grep "\"task\":\"session .*\"samples\".*\"function\":\"next_order_poll\""' - \
		"$tmp/json"
	stop
else
	claim "the bank starts" false
fi
start "$top_builddir/tests/outside/waits" "$seed" || exit

# --- It leaves nothing behind ---

# Nobody wants a shorter watch than this connection.
watched()
{
	"$tdt" set --json --for=1ms "$pid" watch=1h | sed 's/.*"watch_ns":\([0-9]*\).*/\1/'
}

unwatched()
{
	[ "$(watched)" = 3600000000000 ]
}

claim "the watch ends with the profile" wait_until unwatched

# --- Forms ---

profile -d 500ms >"$tmp/text"
claim "text names the places" grep -q "^  *wait_[a-z]* at .*waits.c:" "$tmp/text"
claim "and says on what they rest" grep -q "^of the waiting time, .* without a fresh tree, and" \
	"$tmp/text"
claim "the numbers of tasks do not matter" grep -q " waiting .* worker \*$" "$tmp/text"
profile -d 500ms -o "$tmp/out.folded" >"$tmp/listed"
claim "a file's name tells the form" grep -q '^worker \*;waiting;waiting_poll;wait_.* [0-9]*$' \
	"$tmp/out.folded"
claim "and nothing is printed" test ! -s "$tmp/listed"
profile -d 300ms --state=runnable --format=folded >"$tmp/listed"
claim "only some states" sh -c '! grep -q "^[^;]*;waiting[;:]" "$1"' - "$tmp/listed"
profile -d 500ms -o "$tmp/one.pb.gz"
profile -d 900ms -o "$tmp/two.pb.gz" # longer, as equal times are left out of a comparison
if command -v protoc >/dev/null; then
	gzip -dc "$tmp/one.pb.gz" | protoc -I "$top_srcdir/tests/outside" --decode=Profile \
		profile.proto >"$tmp/decoded"
	claim "protoc reads it" grep -q '^sample {' "$tmp/decoded"
	claim "with all fields" sh -c '! grep -E "^ *[0-9]+:" "$1"' - "$tmp/decoded"
	for text in waiting nanoseconds samples count task state 'worker \*' waiting_poll; do
		claim "it has the text $text" grep -q "^string_table: \"$text\"" "$tmp/decoded"
	done
	claim "and build-ids" grep -q '  build_id: ' "$tmp/decoded"
else
	skip "protoc reads it" "there is no protoc"
fi
if command -v go >/dev/null && go tool -n pprof >/dev/null 2>&1; then
	go tool pprof -top "$tmp/one.pb.gz" >"$tmp/top" 2>"$tmp/why"
	claim "go tool pprof reads it" grep -q ' waiting_poll$' "$tmp/top"
	claim "with time in waits" grep -q '^Type: waiting' "$tmp/top"
	go tool pprof -top -diff_base "$tmp/one.pb.gz" "$tmp/two.pb.gz" >"$tmp/top" 2>"$tmp/why"
	claim "and compares two" grep -q ' waiting_poll$' "$tmp/top"
else
	skip "go tool pprof reads it" "there is no go"
fi

# --- The end ---

# begin_profile: a long one, which has begun to look when this returns.
begin_profile()
{
	: >"$tmp/why"
	"$tdt" profile -d 100s --verbose "$pid" >"$tmp/listed" 2>"$tmp/why" 3>&- &
	profiler=$!
	until [ "$(watched)" = 10000000 ]; do
		kill -0 $profiler || return
		if is_late; then
			kill $profiler
			wait $profiler
			begin_profile
			return
		fi
		sleep 0.1
	done
}

# ended MESSAGE: it ends with status 0, and prints what there is.
ended()
{
	wait $profiler
	status=$?
	cat "$tmp/why" "$tmp/listed"
	[ $status = 0 ] && grep -q "^process $pid, libtdt" "$tmp/listed"
}

begin_profile
kill -INT $profiler
claim "Ctrl-C ends it early" ended
claim "and the watch, too" wait_until unwatched
begin_profile
stop
claim "so does the end of the process" ended
claim "which is said" grep -q "^tdt: the process has ended meanwhile: this is what was seen" \
	"$tmp/why"
plan
