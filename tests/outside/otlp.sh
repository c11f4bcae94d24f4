#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# tdt print --otlp and tdt record --otlp: the spans of a program that hangs, as protoc and a strict
# receiver read them; and collectors that refuse them, or part of them.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
LC_ALL=C
export LC_ALL
unset TDT_RECORD TDT_RECORD_DIR
traced=$top_builddir/tests/outside/traced
otlp=$top_srcdir/tests/outside/otlp.py

receiver()
{
	python3 -B "$otlp" "$@"
}

# look ARGUMENTS...: leaves the output in $tmp/out, and what is said besides in $tmp/why.
look()
{
	timeout 60 "$tdt" "$@" >"$tmp/out" 2>"$tmp/why"
	status=$?
	cat "$tmp/why"
	return $status
}

# says MESSAGE ARGUMENTS...: status 2 and the message, and nothing is printed.
says()
{
	message=$1
	shift
	look "$@"
	[ $status = 2 ] && [ ! -s "$tmp/out" ] && grep -q "^tdt: .*$message" "$tmp/why"
}

# tells MESSAGE ARGUMENTS...: status 0 and the message.
tells()
{
	message=$1
	shift
	look "$@" && grep -q "^tdt: $message" "$tmp/why"
}

test -x "$traced" || skip_all "there is no runtime"
command -v python3 >/dev/null || skip_all "there is no python3"

: >"$tmp/none.rec"
claim "--longer is one of spans" says "needs --otlp" print --longer=1s "$tmp/none.rec"
claim "of a recording, too" says "needs --otlp" record --longer=1s -o "$tmp/x.rec" 1
claim "a recording must be named" says "no recording is named" print --otlp=-

# --- A program that hangs, and is killed ---

before=$(date +%s%N)
TDT_RECORD=1M TDT_RECORD_DIR=$tmp/rings
export TDT_RECORD TDT_RECORD_DIR
start "$traced"
unset TDT_RECORD TDT_RECORD_DIR

# Two forms of one recording, which may have the tasks in another order.
of_a_process()
{
	look record -o "$tmp/live.rec" --otlp="$tmp/live" "$pid" &&
		look print --otlp="$tmp/again" "$tmp/live.rec" &&
		receiver read "$tmp/live" | sort >"$tmp/live.txt" &&
		receiver read "$tmp/again" | sort >"$tmp/again.txt" &&
		diff "$tmp/live.txt" "$tmp/again.txt"
}

if may_read; then
	claim "the spans of a process are those of its recording" of_a_process
	claim "and a program that hangs has some" grep -q tdt.not_over "$tmp/live.txt"
else
	skip "the spans of a process" "reading another process is not permitted here"
fi
kill -KILL "$pid"
exec 3>&-
wait "$pid" 2>/dev/null
after=$(date +%s%N)

claim "spans are written to a file" tells '[0-9]* spans$' print --otlp="$tmp/spans" "$tmp/rings"
claim "which is its owner's" test "$(stat -c %a "$tmp/spans")" = 600
claim "a strict receiver reads them" receiver read "$tmp/spans"
receiver read "$tmp/spans" >"$tmp/read"
n=$(grep -vc '^resource' "$tmp/read")

# of PATTERN: spans, with the first bytes of the ids of the trace and of its parent, without times.
of()
{
	sed -n "s/^\(..\)[^ ]* \(..\)[^ ]* [0-9]* [0-9]* /\1 \2 /p" "$tmp/read" | grep -e "$1"
}

# hangs NAME: the waits that are not over of tasks of this name, without what differs.
hangs()
{
	of "tdt.not_over=True.*tdt.task.name=$1" |
		sed -E 's/0x[0-9a-f]+/0x/; s/ tdt.(task|holder|waker).id=[0-9]+//g
			s/ tdt.waker.[^ ]*//g; s/-> (..)[^ ]* (..)[^ ]*/-> \1 \2/' | sort
}

hangs request >"$tmp/got"
for i in 0 1 2; do
	echo "a$i b$i waiting for a mutex \"db pool\" tdt.holder.name=vacuum tdt.not_over=True" \
		"tdt.task.name=request tdt.wait.kind=mutex tdt.wait.object=0x" \
		"-> e0 e1 tdt.link=holder"
done >"$tmp/expected"
same "each request waits for the lock, with a link to who holds it" "$tmp/expected" "$tmp/got"
hangs audit >"$tmp/got"
for i in 0 1 2; do
	echo "a$i b$i waiting for a timer tdt.not_over=True tdt.task.name=audit tdt.wait.kind=timer"
done >"$tmp/expected"
same "what a request has spawned belongs to its trace" "$tmp/expected" "$tmp/got"

polls_have_threads()
{
	of ' polling ' >"$tmp/polls"
	test "$(grep -c 'thread.id=[1-9][0-9]* thread.name=tdt-worker' "$tmp/polls")" -ge 7
}
claim "polls have their threads" polls_have_threads
claim "the resource is the process" grep -q "^resource service.name=traced process.pid=[0-9]*$" \
	"$tmp/read"
# shellcheck disable=SC2016 # fields of awk
claim "times are those of the clock of the system" awk -v a="$before" -v b="$after" \
	'/^resource/ { next } $3 < a - 1e9 || $4 > b + 1e9 { exit 1 }' "$tmp/read"
look print --otlp=- "$tmp/rings"
same "standard output has the same spans" "$tmp/spans" "$tmp/out"

decodes()
{
	protoc --proto_path="$top_srcdir/tests/outside" --decode=ExportTraceServiceRequest \
		otlp.proto <"$tmp/spans" >"$tmp/text" 2>"$tmp/err" && [ ! -s "$tmp/err" ] &&
		! grep -E '^ *[0-9]+(:| \{)' "$tmp/text" &&
		test "$(grep -c ' spans {' "$tmp/text")" = "$n"
}

if command -v protoc >/dev/null; then
	claim "protoc knows all fields" decodes
else
	skip "protoc knows all fields" "there is no protoc"
fi

claim "short phases are left out, and counted" \
	tells "0 spans; $n phases shorter than 3600 s left out$" \
	print --otlp="$tmp/long" --longer=1h "$tmp/rings"
claim "then there is nothing" test ! -s "$tmp/long"
# A wait that began with the last event has lasted for no time.  Compared as text: numbers of awk
# have fewer digits.
# shellcheck disable=SC2016 # fields of awk
awk '/^resource/ || $3 "" < $4 ""' "$tmp/read" >"$tmp/longer"
left=$((n + 1 - $(wc -l <"$tmp/longer")))
claim "a phase that lasted longer is not" tells \
	"$((n - left)) spans; $left phases* shorter than 1 ns left out$" \
	print --otlp="$tmp/long" --longer=1ns "$tmp/rings"
receiver read "$tmp/long" >"$tmp/got"
same "and is the same" "$tmp/longer" "$tmp/got"

# --- Collectors ---

# collector MODE: it takes one message; leaves its address in $address.
collector()
{
	: >"$tmp/port"
	rm -f "$tmp/body"
	python3 -B "$otlp" serve "$1" "$tmp/body" >"$tmp/port" 3>&- &
	collector=$!
	wait_until test -s "$tmp/port" && address=127.0.0.1:$(cat "$tmp/port")
}

send()
{
	"$@" --otlp="http://$address" "$tmp/rings"
	status=$?
	kill "$collector" 2>/dev/null
	wait "$collector"
	return $status
}

collector ok
claim "a collector takes spans" send tells "$n spans$" print
same "as they are in the file" "$tmp/spans" "$tmp/body"
collector partial
claim "a collector that rejects some is believed" send says \
	"3 spans of these rejected: too old" print
collector chunked
claim "in chunks, too" send says "2 spans of these rejected: in chunks" print
collector open
claim "one that keeps the connection open, too" send tells "$n spans$" print
collector warning
claim "a warning is shown" send tells "http://$address: names are long" print
collector busy
claim "one that refuses all says why" send says \
	"the spans are refused: 503 Service Unavailable: try later" print
collector lost
claim "what is no collector, too" send says \
	"the spans are refused: 404 Not Found: 404 page not found" print
claim "and where nobody listens, nobody takes them" says \
	"no collector took the spans: Connection refused" \
	print --otlp="http://$address" "$tmp/rings"
claim "TLS is not spoken" says "only http:// is known" print --otlp=https://a "$tmp/rings"
claim "a URL has a host" says "it has no host" print --otlp=http:///v1/traces "$tmp/rings"

# --- A hang that is older than the recording ---

start "$traced"
if may_read; then
	look record -d 1ms --otlp="$tmp/late" "$pid"
	receiver read "$tmp/late" >"$tmp/read"
	hangs request >"$tmp/got"
	for i in 0 1 2; do
		echo "a$i b$i waiting for a mutex tdt.holder.name=vacuum tdt.not_over=True" \
			"tdt.task.name=request tdt.wait.kind=mutex tdt.wait.object=0x" \
			"-> e0 e1 tdt.link=holder"
	done >"$tmp/expected"
	same "a wait from before the recording is sent, too" "$tmp/expected" "$tmp/got"
else
	skip "a wait from before the recording" "reading another process is not permitted here"
fi
kill -KILL "$pid"
exec 3>&-
wait "$pid" 2>/dev/null

# --- Without traces ---

TDT_RECORD=1M TDT_RECORD_DIR=$tmp/planted
export TDT_RECORD TDT_RECORD_DIR
start "$top_builddir/tests/outside/planted" stay
unset TDT_RECORD TDT_RECORD_DIR
exec 3>&-
kill -KILL "$pid"
wait "$pid" 2>/dev/null
claim "without a trace there are no spans" tells "no spans: the recording has no phase" \
	print --otlp="$tmp/long" "$tmp/planted"
claim "and the file is empty" test -f "$tmp/long" -a ! -s "$tmp/long"

plan
