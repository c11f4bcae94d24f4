#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# tdt record: recordings of processes, of core files and of directories, in all forms; and what it
# says of targets that have recorded nothing.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
LC_ALL=C
DEBUGINFOD_URLS=
export LC_ALL DEBUGINFOD_URLS
unset TDT_RECORD TDT_RECORD_DIR
planted=$top_builddir/tests/outside/planted

# fails MESSAGE ARGUMENTS...: status 2 and the message, and nothing else is printed.
fails()
{
	message=$1
	shift
	timeout 60 "$tdt" "$@" >"$tmp/out" 2>"$tmp/why"
	status=$?
	cat "$tmp/out" "$tmp/why"
	[ $status = 2 ] && [ ! -s "$tmp/out" ] && grep -q "^tdt: .*$message" "$tmp/why"
}

record()
{
	timeout 60 "$tdt" record "$@" >"$tmp/out" 2>"$tmp/why"
	status=$?
	cat "$tmp/why"
	return $status
}

claim "a file or the summary must be wanted" fails "-o OUT, --otlp=OUT or --summary" record 1
claim "a target is needed" fails "the target is missing" record --summary
claim "and only one" fails "more than one target" record --summary 1 2
claim "a time that is none" fails "not a time.*: soon" record --summary -d soon 1
claim "neither is no time" fails "more than nothing" record --summary --last=0s 1
claim "one of two times" fails "either --duration or --last" record --summary -d 1s --last=1s 1
claim "a core file has no future" fails "only a process can be waited for" \
	record --summary -d 1s --core=x
claim "a process without libtdt" fails "no libtdt was found\|not permitted" record --summary $$
claim "a directory has no memory for tdt set" fails "wrong option" set --dir="$tmp" \
	watch=10ms

# --- Processes ----------------------------------------------------------------------------

# begin MODE: start the program; $pid is its id.
begin()
{
	start "$planted" "$1" && pid=$(sed -n 's/^ready //p' "$tmp/said")
}

end()
{
	exec 3>&-
	kill -KILL "$pid"
	wait $! 2>/dev/null
}

has()
{
	file=$1
	shift
	for pattern; do
		grep -a -q -e "$pattern" "$file" || {
			echo "there is no $pattern"
			cat "$tmp/why"
			return 1
		}
	done
}

# sums_up ARGUMENTS...: the summary has what was planted.
sums_up()
{
	record --summary "$@" &&
		has "$tmp/out" '^planted\[' 'task 7 "rash"' 'task 6 "spinner"' \
			'for a mutex "table" .* held by task 4 "holder"' \
			'behind' 'from.* at tests/outside/planted.c:'
}

# traces FILE: it is a trace, in protobuf: packets with the tag 0x0a.
traces()
{
	test "$(head -c 1 "$1" | od -An -tx1 | tr -d ' ')" = 0a &&
		has "$1" spinner spinner_poll tests/outside/planted.c
}

unzips()
{
	gzip -dc "$tmp/x.pftrace.gz" >"$tmp/unzipped" && traces "$tmp/unzipped"
}

reads_again()
{
	"$tdt" print --summary "$tmp/x.rec" >"$tmp/again" 2>"$tmp/why" &&
		has "$tmp/again" 'task 7 "rash"' 'held by task 4 "holder"' \
			'from.* at tests/outside/planted.c:' '"ticker"'
}

nameless()
{
	record --summary --no-symbols "$pid" && ! grep -q 'planted\.c' "$tmp/out" &&
		has "$tmp/out" 'planted+0x'
}

is_private()
{
	test "$(stat -c %a "$tmp/x.rec")" = 600
}

keeps_old_file()
{
	echo old >"$tmp/old.rec" && ! record -o "$tmp/old.rec" $$ &&
		echo old | cmp - "$tmp/old.rec"
}

# no_more: what was before the ticks is not there.
no_more()
{
	! grep -q '"rash"\|"spinner"' "$tmp/out"
}

# only_ticks: ticker was polled besides.
only_ticks()
{
	has "$tmp/out" '"ticker"' && no_more
}

# Only they are recorded while tdt waits.  On a busy machine there may be none.
records_ticks()
{
	record --summary -d 300ms "$pid" && only_ticks
}

# ticks: how often ticker was polled.
ticks()
{
	"$tdt" ps --json "$pid" | tr '{' '\n' |
		sed -n 's/.*"name":"ticker",.*"polls":\([0-9]*\).*/\1/p'
}

has_ticked()
{
	test "$(ticks)" -gt $((ticks + 1))
}

# wait_for_tick: one that begins from now on, and has ended: the next one has begun.
wait_for_tick()
{
	ticks=$(ticks) && wait_until has_ticked
}

if begin stay; then
	if may_read; then
		claim "a process that never recorded" fails "has never recorded.*TDT_RECORD=" \
			record --summary "$pid"
		claim "nor does it now" fails "does not record.*TDT_RECORD=.*cannot be requested" \
			record --summary -d 1s "$pid"
	else
		cat "$tmp/why" >&2
		skip "a process that never recorded" "reading another process is not permitted here"
	fi
	end
fi

records_meanwhile()
{
	fails "has never recorded" record --summary "$pid" && wait_until records_ticks
}

# is_given_back: there is no recording any more.
is_given_back()
{
	fails "has never recorded" record --summary "$pid"
}

TDT_OUTSIDE=1
export TDT_OUTSIDE
if begin tick && may_read; then
	claim "a process that listens records while tdt waits" records_meanwhile
	claim "and no longer" wait_until is_given_back # when it has noticed that tdt is gone
	end
else
	cat "$tmp/why" >&2
	skip "a process that listens" "reading another process is not permitted here"
fi
unset TDT_OUTSIDE

TDT_RECORD=256K
export TDT_RECORD
if ! begin stay || ! may_read; then
	cat "$tmp/why" >&2
	skip "processes and their core files" "reading another process is not permitted here"
else
	claim "the summary names what was planted" sums_up "$pid"
	claim "a trace is written" record -o "$tmp/x.pftrace" -p "$pid"
	claim "with the names of functions" traces "$tmp/x.pftrace"
	claim "also compressed" record -o "$tmp/x.pftrace.gz" "$pid"
	claim "and with the names" unzips
	claim "the summary as a file" record -o "$tmp/x.json" "$pid"
	claim "is JSON" has "$tmp/x.json" '^{"tdt":1,' '"name":"rash"' '"owner":{"id":4'
	claim "or to standard output" record --json "$pid"
	claim "is JSON, too" has "$tmp/out" '^{"tdt":1,' '"name":"rash"'
	claim "the recording itself" record -o "$tmp/x.rec" --summary "$pid"
	claim "is read again, without the process" reads_again
	claim "and is for its owner only" is_private
	claim "the last microsecond is empty" record --summary --last=1us "$pid"
	claim "as the summary says" has "$tmp/out" '^0 polls,'
	claim "names need not be looked up" nameless
	claim "no file is made for nothing" fails 'absent/x.rec: No such file' \
		record -o "$tmp/absent/x.rec" "$pid"
	claim "nor written to what is none" fails 'not a regular file' record -o /dev/null "$pid"
	claim "the old file stays if there is no new one" keeps_old_file
	if ! command -v gdb >/dev/null; then
		skip "a core file" "there is no gdb"
	elif test "${SANITIZERS:?}" != no; then
		skip "a core file" "sanitizers map terabytes"
	elif ! make_core; then
		skip "a core file" "gdb cannot make one here"
	else
		claim "a core file" sums_up --core="$tmp/core"
		rm -f "$tmp/core"
	fi
	end
fi

# --- While time passes --------------------------------------------------------------------

# waits PID: tdt has a handler of SIGINT.  (So may the shell that is to become tdt.)
waits()
{
	grep -q -x tdt "/proc/$1/comm" && grep -q '^SigCgt:.*[2367abef]$' "/proc/$1/status"
}

# while_waiting COMMAND...: run the command while tdt waits for very long.
while_waiting()
{
	"$tdt" record -d 1h --summary "$pid" >"$tmp/out" 2>"$tmp/why" &
	waiting=$!
	wait_until waits $waiting && "$@" || kill -KILL $waiting
	wait $waiting
	status=$?
	cat "$tmp/why"
	return $status
}

ctrl_c()
{
	wait_for_tick
	kill -INT $waiting
}

ends_meanwhile()
{
	while_waiting kill -KILL "$pid"
	[ $? = 2 ] && grep -q "has ended meanwhile$1" "$tmp/why"
}

if begin tick && may_read; then
	claim "only what happens while time passes is recorded" wait_until records_ticks
	claim "Ctrl-C ends the waiting" while_waiting ctrl_c
	claim "and what there is is taken" only_ticks
	claim "the process may end meanwhile" ends_meanwhile ', and what it recorded with it'
	end 2>/dev/null
else
	cat "$tmp/why" >&2
	skip "what is recorded while time passes" "reading another process is not permitted here"
fi

# --- Locks ------------------------------------------------------------------------------------

names_orphan()
{
	record --summary "$pid" &&
		has "$tmp/out" '"orphaner", which has ended without giving it back'
}

if test "${WITH_RUNTIME:?}" != yes; then
	skip "a lock whose owner has ended is named" "there is no runtime"
elif start "$top_builddir/tests/outside/matrix" 2 && may_read; then
	claim "a lock whose owner has ended is named" names_orphan
	end 2>/dev/null
fi

# --- What the environment cannot have ---------------------------------------------------------

TDT_RECORD_DIR=$tmp/no/dir
export TDT_RECORD_DIR
if begin stay && may_read; then
	"$tdt" ps "$pid" >"$tmp/out" 2>"$tmp/why"
	claim "tdt ps says that there is no file" grep -q \
		"^tdt: TDT_RECORD_DIR=$tmp/no/dir: the process records in memory only" "$tmp/why"
	end
else
	skip "tdt ps says that there is no file" "reading another process is not permitted here"
fi
unset TDT_RECORD_DIR

# --- Directories --------------------------------------------------------------------------

TDT_RECORD_DIR=$tmp/recordings
export TDT_RECORD_DIR
mkdir "$TDT_RECORD_DIR"
if begin tick; then
	claim "the directory of a process that runs" sums_up --dir="$TDT_RECORD_DIR"
	if may_read; then
		claim "its memory" sums_up "$pid"
		if command -v gdb >/dev/null && test "$SANITIZERS" = no && make_core; then
			claim "a core file lacks it, and the file is named" \
				fails "not in the core file.*--dir=$TDT_RECORD_DIR/tdt-$pid" \
				record --summary --core="$tmp/core"
			rm -f "$tmp/core"
		else
			skip "a core file lacks it, and the file is named" \
				"gdb cannot make one here"
		fi
		claim "a process that ends leaves the file" \
			ends_meanwhile "[.] .* --dir=$TDT_RECORD_DIR/tdt-$pid"
	fi
	end 2>/dev/null
fi
claim "the directory of a process that is gone" sums_up --dir="$TDT_RECORD_DIR"
claim "a file" sums_up --dir="$(echo "$TDT_RECORD_DIR"/*)"
claim "as a trace" record -o "$tmp/y.pftrace" --dir="$TDT_RECORD_DIR"
claim "with the names of functions, too" traces "$tmp/y.pftrace"
claim "its last events" record --last=500ms --summary --dir="$TDT_RECORD_DIR"
claim "and none else" no_more # the last ones may have no tick
echo '{}' >"$tmp/x.json"
claim "a file that is no recording" fails 'not a recording' record --summary --dir="$tmp/x.json"
mkdir "$tmp/empty"
claim "a directory without recordings" fails 'no recording here' record --summary \
	--dir="$tmp/empty"
if begin stay; then
	claim "of several, one is read" sums_up --dir="$TDT_RECORD_DIR"
	claim "which is named" grep -q 'of 2 recordings, this one is read: .*/tdt-' "$tmp/why"
	end
fi
plan
