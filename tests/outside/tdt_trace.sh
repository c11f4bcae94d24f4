#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Trace contexts: tdt ps and tdt bt show which trace a task belongs to, and find the tasks of a
# trace in a process, in its core file, and in its recording.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
DEBUGINFOD_URLS=
LC_ALL=C
export DEBUGINFOD_URLS LC_ALL

trace=0bf90000000000000000000000000036
parent=00-$trace-12000000000000b7-01

# fails MESSAGE ARGUMENTS...: status 2 and the message.
fails()
{
	message=$1
	shift
	timeout 60 "$tdt" "$@" >"$tmp/listed" 2>"$tmp/why"
	status=$?
	cat "$tmp/why"
	[ $status = 2 ] && grep -q "^tdt: .*$message" "$tmp/why"
}

# names ARGUMENTS...: the names of the tasks in the JSON of tdt, on one line.
named()
{
	wanted=$1
	shift
	got=$("$tdt" "$@" --json | grep -o '"name":"[a-z]*","file' | cut -d'"' -f4 | sort |
		tr '\n' ' ')
	echo "$got"
	[ "$got" = "$wanted" ]
}

# has LINE ARGUMENTS...: tdt prints such a line.
has()
{
	line=$1
	shift
	"$tdt" "$@" >"$tmp/listed"
	cat "$tmp/listed"
	grep -q -- "$line" "$tmp/listed"
}

printed_again()
{
	"$tdt" bt --trace=$trace "$@" --json >"$tmp/json"
	grep -q "\"traceparent\":\"$parent\"" "$tmp/json" &&
		"$tdt" print "$tmp/json" | grep -q "trace $trace"
}

# finds WHAT ARGUMENTS...
finds()
{
	what=$1
	shift
	claim "$what: tdt ps finds the tasks of the trace" \
		named "query request " ps --trace=$trace "$@"
	claim "$what: without its leading zero, in capitals" \
		named "query request " ps --trace=BF90000000000000000000000000036 "$@"
	claim "$what: the table has the trace" has "^ *[0-9]* *query .* $trace\$" ps "$@"
	claim "$what: and none for other tasks" has "^ *[0-9]* *other .* -\$" ps "$@"
	claim "$what: tdt bt finds them" named "query request " bt --trace=$trace "$@"
	claim "$what: and none of another trace" named "" bt --trace=1 "$@"
	claim "$what: tdt print reads it again" printed_again "$@"
}

claim "an id is hexadecimal" fails "up to 32 hexadecimal digits, not xyz" bt --trace=xyz 1
claim "and not longer" fails "up to 32 hexadecimal digits" ps "--trace=${trace}0" 1
claim "tasks are chosen in one way" fails "either --trace or" bt --trace=1 1 2

is_recorded()
{
	named "query request " ps --trace=$trace "--dir=$TDT_RECORD_DIR" &&
		has '^ *[0-9]* *other ' ps "--dir=$TDT_RECORD_DIR"
}

mkdir "$tmp/recordings"
TDT_RECORD=256K
TDT_RECORD_DIR=$tmp/recordings
export TDT_RECORD TDT_RECORD_DIR
if ! start "$top_builddir/tests/outside/spans"; then
	claim "the program starts" false
elif ! may_read; then
	cat "$tmp/why" >&2
	skip "the traces of a process" "reading another process is not permitted here"
	stop
else
	finds "a process" "$pid"
	if ! command -v gdb >/dev/null; then
		skip "the traces of a core file" "there is no gdb"
	elif test "${SANITIZERS:?}" != no; then
		skip "the traces of a core file" "sanitizers map terabytes"
	elif ! make_core; then
		skip "the traces of a core file" "gdb made none: $(tail -n 1 "$tmp/gdb")"
	else
		finds "a core file" "--core=$tmp/core"
		rm -f "$tmp/core"
	fi
	wait_until is_recorded
	kill -9 "$pid"
	stop
	finds "a recording" "--dir=$TDT_RECORD_DIR"
fi
plan
