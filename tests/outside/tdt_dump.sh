#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# TDT_DUMP as an operator uses it: a program that was not prepared for dumps, demo/stuck, dumps all
# its tasks on a signal, to standard error and to files; tdt print reads the files.
#
# The program ends when it has printed its own dump.  So its standard output is a pipe that is full:
# it stands still until this script reads the pipe.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
test "$WITH_RUNTIME" != no || skip_all "configured without the runtime"
# ThreadSanitizer keeps a signal back until the thread calls a function that it knows.  A thread
# that libc blocks in a write calls none.
test "$SANITIZERS" != thread || skip_all "ThreadSanitizer delays signals"
# shellcheck source=tests/lib/tracers.sh
. "$top_srcdir/tests/lib/tracers.sh"

LC_ALL=C
export LC_ALL
trap 'kill_started; rm -rf "$tmp"' EXIT

mkfifo "$tmp/pipe"
exec 3<>"$tmp/pipe"

# start VALUE [COMMAND...]: run demo/stuck with TDT_DUMP, by way of a command; sets $pid.
start()
{
	dd if=/dev/zero bs=4096 count=1024 oflag=nonblock >&3 2>/dev/null
	value=$1
	shift
	TDT_DUMP=$value "$@" "${top_builddir:?}/demo/stuck" >"$tmp/pipe" 2>"$tmp/err" 3>&- &
	pid=$!
	started="$started $pid"
	wait_until has_dumper
}

# The thread that dumps: a signal that comes before its time may end the program, or is dropped.
has_dumper()
{
	cat "/proc/$pid/task"/*/comm | grep -qx tdt-dump
}

ends_well()
{
	dd of=/dev/null bs=4096 iflag=nonblock <&3 2>/dev/null
	wait "$pid"
}

# dumps_in FILE: how many, in text or as JSON; 0 if there is no file.
dumps_in()
{
	sed -n '/^[0-9,]* tasks.*(took /p; /^{"tdt":1,"dump":{/p' "$1" 2>/dev/null | wc -l
}

# dumps_to FILE: send the signal, and wait until the file has one dump more.
dumps_to()
{
	before=$(dumps_in "$1")
	kill -USR1 "$pid" && wait_until has_dumps "$1" $((before + 1))
}
has_dumps()
{
	test "$(dumps_in "$1")" -ge "$2"
}

# The program stands still after a moment, and a busy machine may not have all answers in time.
has_all()
{
	grep -q '^1,004 tasks, 1 deadlock: .*(took ' "$1" &&
		grep -q '^deadlock: task [0-9]* ".* to .*" waits for a mutex' "$1"
}
dumps_all_to()
{
	dumps_to "$1" && has_all "$1"
}

is_private()
{
	test "$(stat -c '%a %F' "$1")" = '600 regular file'
}

claim "a program that was not prepared starts with TDT_DUMP" start USR1
claim "a signal prints all its tasks to standard error" wait_until dumps_all_to "$tmp/err"
claim "and the program goes on" ends_well

claim "it starts with a file for the dumps, and no standard error" \
	start "SIGUSR1:$tmp/stuck.%p.tdt" sh -c 'exec "$@" 2>&-' sh
file=$tmp/stuck.$pid.tdt
claim "dumps go to the file" wait_until dumps_all_to "$file"
claim "and are appended to it" dumps_to "$file"
claim "which belongs to its owner alone" is_private "$file"
claim "and the program goes on" ends_well

json=$tmp/stuck.json
tree()
{
	"$top_builddir/tdt" print "$json" >"$tmp/tree"
}
dumps_all_as_json()
{
	dumps_to "$json" && tree && has_all "$tmp/tree"
}
all_are_read()
{
	tree && test "$(dumps_in "$tmp/tree")" = "$(dumps_in "$json")"
}
claim "it starts with a file for JSON" start "10:$json"
claim "tdt print reads the dump" wait_until dumps_all_as_json
claim "another one is appended" dumps_to "$json"
claim "and it prints all dumps of the file" wait_until all_are_read # it may be half written
claim "and the program goes on" ends_well

# Its tasks are never polled, and it ends with this script.
start_static()
{
	TDT_DUMP="USR1:$tmp/static" "$top_builddir/tests/outside/registry_tasks_static" \
		<"$tmp/pipe" >"$tmp/ready" 3>&- &
	pid=$!
	started="$started $pid"
	wait_until grep -q '^ready$' "$tmp/ready"
}
claim "a program with the static library starts" start_static
claim "and dumps to a file, too" dumps_to "$tmp/static"

plan
