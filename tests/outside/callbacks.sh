#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Programs of callbacks (tdt/callback.h): ten thousand operations on four threads, which know where
# they wait, are asked for from inside, from outside, in a core file and in a recording (of 200;
# TDT_TEST_FULL=1: of all); and the programs of demo/ for libuv, GIO, libevent and epoll by hand
# print what they should.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
LC_ALL=C
export LC_ALL
here=$top_srcdir/tests/outside
demo=$top_srcdir/demo

# --- Many operations ---

# compare TEXT WHAT ANSWER: all tasks of the answer are right.
compare()
{
	claim "$1" python3 -B "$here/callbacks.py" "$tmp/said" "$tmp/$3" "$2"
}

prints()
{
	grep -q "$1" "$tmp/said"
}

# has_name PATTERN COMMAND...: what tdt says; without time it has no names, or has not looked yet.
has_name()
{
	pattern=$1
	shift
	"$tdt" "$@" 2>"$tmp/warned" | grep -q "$pattern"
}

ask()
{
	echo "dump $tmp/dump" >&3
	wait_until prints dumped
	compare "10,000 operations: a dump has the truth of each" trees dump
	claim "and for a name, the function that each runs" test \
		"$(grep -o '"name":"begin"' "$tmp/dump" | wc -l)" -eq 10000
	if ! may_read; then
		skip "10,000 operations, from outside" "not permitted here: $(cat "$tmp/why")"
		return
	fi
	"$tdt" bt --json "$pid" >"$tmp/bt" 2>"$tmp/warned"
	compare "tdt bt, too" trees bt
	: >"$tmp/nothing"
	same "and does not warn that the process does not listen" "$tmp/nothing" "$tmp/warned"
	"$tdt" ps --json "$pid" >"$tmp/ps"
	compare "tdt ps has what each waits for" records ps
	claim "and for a name, the function that it runs" test \
		"$(grep -o '"name":"begin"' "$tmp/ps" | wc -l)" -eq 10000
	claim "so has tdt top" wait_until has_name '"name":"begin"' \
		top -n1 --json --no-request "$pid"
	claim "so have metrics" wait_until has_name '^tdt_task_group{name="begin",wait=' \
		metrics --names "$pid"
	claim "so has tdt profile" wait_until has_name '"task":"begin"' \
		profile --duration 100ms --json "$pid"
	if ! command -v gdb >/dev/null; then
		skip "the core file has the truth of each" "there is no gdb"
	elif test "${SANITIZERS:?}" != no; then
		skip "the core file has the truth of each" "sanitizers map terabytes"
	else
		make_core
		"$tdt" bt --json --core "$tmp/core" >"$tmp/of_core"
		compare "the core file has the truth of each" trees of_core
		claim "and the same names" grep -q '"name":"begin"' "$tmp/of_core"
	fi
}

# record N LEAST: what a recording proves of N operations is true; it proves it of LEAST of them.
record()
{
	rm -rf "$tmp/recording"
	mkdir "$tmp/recording"
	TDT_RECORD=64M TDT_RECORD_DIR=$tmp/recording \
		start "$top_builddir/tests/outside/callbacks" "$1" 4
	"$tdt" ps --json --dir "$tmp/recording" >"$tmp/recorded"
	compare "what a recording says of $1 is true" "$2" recorded
	claim "and has the names" wait_until has_name '"name":"begin"' \
		ps --json --dir "$tmp/recording"
}

listed()
{
	"$tdt" ps --json --dir "$tmp/recording" >"$tmp/recorded"
	python3 -B "$here/callbacks.py" "$tmp/said" "$tmp/recorded" 10000 >"$tmp/proven" 2>&1
}

if command -v python3 >/dev/null; then
	TDT_OUTSIDE=0 start "$top_builddir/tests/outside/callbacks" 10000 4 && ask
	stop 2>/dev/null
	record 200 40
	stop 2>/dev/null
	# Rings that have not grown yet lose most of it, but for the callbacks that go on.
	if test "${TDT_TEST_FULL-}" = 1; then
		for round in 1 2 3 4 5 6 7 8; do
			record 10000 4
			test $round = 8 || stop 2>/dev/null
		done
		wait_until listed # within a tick of 10 s
		compare "a listing proves all" 10000 recorded
		stop 2>/dev/null
	fi
else
	skip "10,000 operations" "there is no python3"
fi

# --- The programs of demo/ ---

if test "${SANITIZERS:?}" != no || ! test -e "$top_builddir/.libs/libtdt.so"; then
	skip "the programs of demo/" "they need an installed library"
	plan
	exit
fi
flags="-O2 -g -Wall -Wextra -Werror -I$top_srcdir/include"
libs="-L$top_builddir/.libs -Wl,-rpath,$top_builddir/.libs -ltdt"

# chains: each chain of a dump, with > between the functions, which are not at lines.
chains()
{
	sed -nE '/^ *(- |`- )/{ s/ at [^ ]*$//; s/^ *(- |`- )//; H; }
		/^$/{ x; s/^\n//; s/\n/>/g; /./p; s/.*//; x; }
		${ x; s/^\n//; s/\n/>/g; /./p; }' | sort
}

# build NAME MODULE SOURCE: leaves $tmp/NAME.  False: it was skipped.
build()
{
	if test -n "$2" && ! ${PKG_CONFIG:-pkg-config} --exists "$2"; then
		skip "demo/$1" "there is no $2"
		return 1
	fi
	# shellcheck disable=SC2046,SC2086 # flags have spaces between them
	${CC:?} $flags $(test -z "$2" || ${PKG_CONFIG:-pkg-config} --cflags "$2") "$3" \
		-o "$tmp/$1" $libs $(test -z "$2" || ${PKG_CONFIG:-pkg-config} --libs "$2") \
		-lpthread
}

# in_time PROGRAM ARGUMENT...: the dump in $tmp/shown had the time for all trees and names.
in_time()
{
	"$@" >"$tmp/shown"
	! grep -q -e 'without a tree' -e 'not named in time' "$tmp/shown"
}

# shows NAME CHAIN...
shows()
{
	name=$1
	shift
	printf '%s\n' "$@" | sort >"$tmp/expected"
	wait_until in_time "$tmp/$name" 3 ${ms:+"$ms"}
	chains <"$tmp/shown" >"$tmp/got"
	same "demo/$name.c shows where its callbacks wait" "$tmp/expected" "$tmp/got"
}

if build callbacks-uv libuv "$demo/callbacks-uv.c"; then
	ms=60000
	shows callbacks-uv "begin>uv_timer" "begin>start>opened>uv_queue_work"
	ms=
fi
if build callbacks-gio "gio-2.0" "$demo/callbacks-gio.c"; then
	shows callbacks-gio "fetch>connected>wrote>g_input_stream_read_async"
fi
if build callbacks-event libevent "$demo/callbacks-event.c"; then
	shows callbacks-event "begin>a line" "begin>on_line>a rest"
fi

# The chat server, before and after.
cp "$demo/chat.c" "$tmp/chat.c"
claim "demo/chat.diff is for demo/chat.c" patch -s -d "$tmp" -p1 -i "$demo/chat.diff"
claim "it has 25 lines at most" test "$(grep -c '^[-+][^-+]' "$demo/chat.diff")" -le 25
# shellcheck disable=SC2086 # flags have spaces between them
claim "the server before is built" ${CC:?} -Wall -Wextra -Werror "$demo/chat.c" -o "$tmp/before"
build chat "" "$tmp/chat.c"
chat()
{
	python3 -B "$here/chat.py" "$tmp/chat" "$tdt" >"$tmp/got" && diff -u - "$tmp/got" <<-END
		greet>a name
		greet>await_line>a line
		greet>await_line>await_room>room to write
	END
}
if command -v python3 >/dev/null && test -e "$tmp/ps"; then
	claim "the server after shows where each client is" chat
else
	skip "the server after shows where each client is" "it cannot be asked here"
fi
plan
