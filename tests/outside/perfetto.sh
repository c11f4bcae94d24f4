#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Perfetto traces of made recordings, as protoc and Google's trace_processor read them.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/trace_processor.sh
. "$top_srcdir/tests/lib/trace_processor.sh"

proto="protoc --proto_path=$top_srcdir/tests/outside perfetto.proto"

# So many polls are many.
n=5000
test "${TDT_TEST_FULL-}" != 1 || n=100000
many=many$n

for scenario in nothing story lost $many; do
	claim "the recording of $scenario becomes a trace" \
		"${top_builddir:?}/tests/outside/make_trace" $scenario "$tmp/$scenario"
done
"$top_builddir/tests/outside/make_trace" $many "$tmp/many.gz" gzip

# --- The packets ---

# decodes FILE: protoc knows all of its fields.
decodes()
{
	$proto --decode=Trace <"$1" >"$tmp/text" 2>"$tmp/err" && [ ! -s "$tmp/err" ] &&
		! grep -E '^ *[0-9]+(:| \{)' "$tmp/text"
}

if command -v protoc >/dev/null; then
	for scenario in nothing story lost $many; do
		claim "protoc decodes all packets of $scenario" decodes "$tmp/$scenario"
	done
	claim "protoc counts the packets of each kind" test \
		"$(grep -c 'type: TYPE_SLICE_BEGIN' "$tmp/text") \
$(grep -c 'type: TYPE_INSTANT' "$tmp/text")" = "$((4 * n)) $n"
else
	skip "protoc decodes all packets" "there is no protoc"
fi

# --- The meaning ---

if ! get_trace_processor; then
	skip "what trace_processor makes of traces" "$why_not"
	plan
	exit
fi

errors="errors: select name, value from stats where value != 0 and severity != 'info'"
track="(select s.*, t.name as track, h.name as thread from slice s"
track="$track join track t on t.id = s.track_id left join thread_track u on u.id = s.track_id"
track="$track left join thread h using (utid))"

# Times are of CLOCK_BOOTTIME: CLOCK_MONOTONIC and 5 seconds.
cat >"$tmp/queries" <<END
$errors
slice: select ts - 6100000000, dur, ifnull(thread, track), name from $track order by ts, id
flow: select a.name, a.ts - 6100000000, b.name, b.ts - 6100000000 from flow join slice a on a.id = slice_out join slice b on b.id = slice_in order by a.ts
process: select pid, name from process where pid != 0
thread: select tid, name from thread where tid > 4242 order by tid
argument: select s.ts - 6100000000, key, display_value from args join slice s using (arg_set_id) where key like 'debug.%' order by s.ts, s.id, key
callstack: select s.name, c.depth, f.name, f.rel_pc, m.name, m.build_id, y.source_file, y.line_number from __intrinsic_track_event_callstacks e join slice s on s.id = e.slice_id join experimental_ancestor_stack_profile_callsite(e.callsite_id) c join stack_profile_frame f on f.id = c.frame_id join stack_profile_mapping m on m.id = f.mapping left join stack_profile_symbol y using (symbol_set_id) order by s.id, c.depth
innermost: select s.name, f.name from __intrinsic_track_event_callstacks e join slice s on s.id = e.slice_id join stack_profile_callsite c on c.id = e.callsite_id join stack_profile_frame f on f.id = c.frame_id order by s.id
counter: select t.name, c.ts - 6000000000, c.value from counter c join track t on t.id = c.track_id order by c.ts, t.name
END
cat >"$tmp/expected" <<'END'
slice: 0 | 1000 | worker 2 | task 8
slice: 0 | 1000 | task 8 | polling
slice: 500 | 0 | worker 2 | spawns conn 7
slice: 500 | 1500 | conn 7 | spawned
slice: 1000 | 1500 | task 8 | waiting
slice: 2000 | 1000 | worker 1 | conn 7
slice: 2000 | 0 | worker 1 | another leaf
slice: 2000 | 1000 | conn 7 | polling
slice: 2500 | 0 | worker 1 | wakes task 8
slice: 2500 | 1500 | task 8 | runnable
slice: 2600 | 0 | worker 1 | wakes task 8
slice: 2700 | 8300 | app:request | app:request
slice: 2800 | 0 | conn 7 | app:hit
slice: 3000 | 5000 | worker 1 | parked
slice: 3000 | 6000 | conn 7 | waiting for a mutex "the table" (0xabc) held by task 9 "hol\x1bder" and 1 more
slice: 4000 | 500 | worker 2 | task 8
slice: 4000 | 500 | task 8 | polling
slice: 4500 | 15500 | task 8 | waiting
slice: 9000 | 0 | driver | wakes conn 7
slice: 9000 | 1000 | conn 7 | runnable
slice: 10000 | 1000 | worker 2 | conn 7
slice: 10000 | 1000 | conn 7 | polling
slice: 10500 | 0 | conn 7 | panicked
slice: 12000 | 0 | app:other | app:other
slice: 20000 | -1 | worker 2 | task 8
slice: 20000 | -1 | task 8 | polling
flow: wakes task 8 | 2500 | task 8 | 4000
flow: wakes conn 7 | 9000 | conn 7 | 10000
process: 4242 | ser\xffver
thread: 4243 | worker 1
thread: 4244 | worker 2
thread: 4245 | driver
argument: 0 | debug.cpu | 1
argument: 0 | debug.task | 8
argument: 500 | debug.line | 42
argument: 500 | debug.parent | 8
argument: 500 | debug.poll function | conn_poll
argument: 500 | debug.spawned in | echo.c
argument: 500 | debug.task | 7
argument: 2000 | debug.cpu | 0
argument: 2700 | debug.argument 1 | -5
argument: 2700 | debug.argument 1 of the end | -5
argument: 2700 | debug.argument 2 | /a\xff
argument: 2700 | debug.argument 2 of the end | /c
argument: 2700 | debug.argument 3 | 0.5
argument: 2700 | debug.argument 3 of the end | 0.5
argument: 2800 | debug.argument 1 | -5
argument: 2800 | debug.argument 2 | /b
argument: 2800 | debug.argument 3 | 0.5
argument: 3000 | debug.cpu | 1
argument: 4000 | debug.cpu | 1
argument: 10000 | debug.cpu | 1
argument: 10000 | debug.result | panicked
argument: 12000 | debug.argument 1 of the end | -5
argument: 12000 | debug.argument 2 of the end | /d
argument: 12000 | debug.argument 3 of the end | 0.5
callstack: conn 7 | 0 | 0x403030 | 4206640 |  |  |  | 
callstack: conn 7 | 1 | outer | 8224 | /bin/server | 01ab | echo.c | 17
callstack: conn 7 | 2 | inliner | 4112 | /bin/server | 01ab | echo.c | 17
callstack: another leaf | 0 | outer | 8224 | /bin/server | 01ab | echo.c | 17
callstack: another leaf | 1 | inliner | 4112 | /bin/server | 01ab | echo.c | 17
innermost: conn 7 | leaf\xff
innermost: another leaf | leaf\xff
counter: migrations | 101000000 | 1000
counter: polling tasks | 101000000 | 1
counter: migrations | 102000000 | 0
END
ask "$tmp/story" <"$tmp/queries" >"$tmp/got"
cat "$tmp/node" >&2
sed -i 's/ *$//' "$tmp/expected" "$tmp/got"
same "the story is told, without an error" "$tmp/expected" "$tmp/got"

# Polls of 50 tasks, each of 1,000 ns, with a wake-up 500 ns before it.
cat >"$tmp/queries" <<END
$errors
polls: select count(*), sum(dur), count(distinct name) from $track where thread like 'worker%' and name not like 'wakes%'
phases: select name, count(*), sum(dur + (dur = -1)) from $track where thread is null group by name
wakes: select count(*) from slice where name like 'wakes %'
flows: select count(*), min(b.ts - a.ts), max(b.ts - a.ts) from flow join slice a on a.id = slice_out join slice b on b.id = slice_in and a.name = 'wakes ' || b.name
cpus: select display_value, count(*) from args join slice using (arg_set_id) where key = 'debug.cpu' group by 1
waiting: select max(value) from counter join track t on t.id = track_id where t.name = 'waiting tasks'
END
cat >"$tmp/expected" <<END
polls: $n | $((n * 1000)) | 50
phases: polling | $n | $((n * 1000))
phases: runnable | $n | $((n * 500))
phases: waiting for descriptor 3 | $n | $(((n - 50) * 98500))
wakes: $n
flows: $n | 500 | 500
cpus: 0 | $((n / 2))
cpus: 1 | $((n / 2))
waiting: 50
END
ask "$tmp/$many" <"$tmp/queries" >"$tmp/got"
cat "$tmp/node" >&2
same "all of the many polls are counted, without an error" "$tmp/expected" "$tmp/got"
ask "$tmp/many.gz" <"$tmp/queries" >"$tmp/got"
same "a compressed trace says the same" "$tmp/expected" "$tmp/got"

# The ring of the first worker was overwritten; task 20 was polled before, on the second.
cat >"$tmp/queries" <<END
$errors
mark: select ts - 6000000000, name, ifnull(string_agg(key || '=' || display_value, ' '), '') from slice left join (select * from args where key like 'debug.%') using (arg_set_id) where name like '%not recorded%' group by slice.id order by slice.id
lost: select ts - 6000000000, dur, ifnull(thread, 'no name') from $track where name = 'events are lost'
unsure: select ts - 6000000000, track, name from $track where name like '%unsure%'
END
cat >"$tmp/expected" <<'END'
mark: 0 | events were not recorded: there was no ring for their thread | debug.events=5 debug.polls=3
lost: 0 | 197006100 | no name
unsure: 1001000 | task 20 | waiting (unsure, since events are lost)
unsure: 197006100 | task 21 | waiting (unsure, since events are lost)
END
ask "$tmp/lost" <"$tmp/queries" >"$tmp/got"
same "what is lost is told" "$tmp/expected" "$tmp/got"

# --- Joined with other traces ---

# A switch of the system's scheduler to the first worker, by CLOCK_BOOTTIME, and away from it.
cat >"$tmp/system.txt" <<'END'
packet { trusted_packet_sequence_id: 2 clock_snapshot { primary_trace_clock: 6
	clocks { clock_id: 6 timestamp: 6000000000 } clocks { clock_id: 3 timestamp: 1000000000 } } }
packet { trusted_packet_sequence_id: 3 ftrace_events { cpu: 0
	event { timestamp: 6100001900 pid: 0 sched_switch { prev_comm: "swapper/0" prev_pid: 0
		prev_state: 0 next_comm: "worker 1" next_pid: 4243 } }
	event { timestamp: 6100003100 pid: 4243 sched_switch { prev_comm: "worker 1" prev_pid: 4243
		prev_state: 1 next_comm: "swapper/0" next_pid: 0 } } } }
END
cat >"$tmp/queries" <<END
$errors
both: select s.name, s.ts - c.ts, c.dur, c.cpu from slice s join thread_track t on t.id = s.track_id join sched c on c.utid = t.utid and s.ts between c.ts and c.ts + c.dur where s.name = 'conn 7'
END
echo 'both: conn 7 | 100 | 1200 | 0' >"$tmp/expected"
if command -v protoc >/dev/null; then
	$proto --encode=Trace <"$tmp/system.txt" >"$tmp/system"
	cat "$tmp/system" "$tmp/story" >"$tmp/joined"
	ask "$tmp/joined" <"$tmp/queries" >"$tmp/got"
	same "behind a trace of the scheduler it is one timeline" "$tmp/expected" "$tmp/got"
	cat "$tmp/story" "$tmp/system" >"$tmp/joined"
	ask "$tmp/joined" <"$tmp/queries" >"$tmp/got"
	same "before a trace of the scheduler it is one timeline" "$tmp/expected" "$tmp/got"
else
	skip "joined with a trace of the scheduler it is one timeline" "there is no protoc"
fi

# The same as plain text of ftrace, which is in microseconds, beside the trace in one tar file.
cat >"$tmp/sched.txt" <<'END'
# tracer: nop
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
          <idle>-0       [000] d..2.     6.100002: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=worker 1 next_pid=4243 next_prio=120
        worker 1-4243    [000] d..2.     6.100004: sched_switch: prev_comm=worker 1 prev_pid=4243 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
END
cp "$tmp/story" "$tmp/app.pftrace"
tar -C "$tmp" -cf "$tmp/both.tar" app.pftrace sched.txt
ask "$tmp/both.tar" <"$tmp/queries" >"$tmp/got"
cat "$tmp/node" >&2
echo 'both: conn 7 | 0 | 2000 | 0' >"$tmp/expected"
same "with the text of ftrace in a tar file it is one timeline" "$tmp/expected" "$tmp/got"

# --- Recorded programs ---

# What a program records in $tmp/rings becomes $tmp/trace.
new_rings()
{
	rm -rf "$tmp/rings"
	mkdir "$tmp/rings"
}
trace_of_rings()
{
	"$top_builddir/tests/outside/make_trace" "$(echo "$tmp"/rings/*.rec)" "$tmp/trace"
}

# The programs need libtdt-rt, and the demos.  On a busy machine the kernel may take a thread away
# in a poll, which then takes long, or have a task wait long for a worker.
if [ -x "$top_builddir/tests/outside/recorded" ]; then
	cat >"$tmp/queries" <<END
$errors
polls: select substr(name, 1, 8), count(*) from $track where thread like 'tdt-worker%' and name glob '*ing [0-9]*' and name not like 'wakes%' group by 1
phases: select substr(track, 1, 8), name, count(*), min(dur) >= 0 from $track where thread is null and track glob '*ing [0-9]*' and name not glob '* long*' group by 1, 2
wakes: select case when thread like 'tdt-worker%' or thread = 'tdt-driver' then 'runtime' else thread end, count(*) from $track where name like 'wakes yielding%' or name like 'wakes sleeping%' group by 1
flows: select substr(b.name, 1, 8), count(*), min(b.ts >= a.ts), min(a.name = 'wakes ' || b.name) from flow join slice a on a.id = slice_out join slice b on b.id = slice_in where b.name glob '*ing [0-9]*' group by 1
END
	cat >"$tmp/expected" <<'END'
polls: sleeping | 84
polls: yielding | 3208
phases: sleeping | polling | 84 | 1
phases: sleeping | ready | 4 | 1
phases: sleeping | runnable | 80 | 1
phases: sleeping | spawned | 4 | 1
phases: sleeping | waiting for a timer | 80 | 1
phases: yielding | polling | 3208 | 1
phases: yielding | ready | 8 | 1
phases: yielding | runnable | 3200 | 1
phases: yielding | spawned | 8 | 1
wakes: runtime | 3280
flows: sleeping | 80 | 1 | 1
flows: yielding | 3200 | 1 | 1
END
	new_rings
	TDT_RECORD=1M TDT_RECORD_DIR=$tmp/rings "$top_builddir/tests/outside/recorded" \
		>"$tmp/counted"
	claim "a program counts its polls" grep -qx '3208 84' "$tmp/counted"
	claim "its recording becomes a trace" trace_of_rings
	ask "$tmp/trace" <"$tmp/queries" >"$tmp/got"
	cat "$tmp/node" >&2
	same "the trace has as many polls, phases, wake-ups and flows" "$tmp/expected" "$tmp/got"

	# wait_for_mutex N: so many tasks do.
	wait_for_mutex()
	{
		"$top_builddir/tdt" ps --dir="$tmp/rings" >"$tmp/listed" 2>&1 &&
			test "$(grep -c ' a mutex .* held by ' "$tmp/listed")" = "$1"
	}

	# nothing_comes_back CONNECTIONS
	nothing_comes_back()
	{
		! "$top_builddir/demo/echo-client" --port="$port" --connections="$1" --timeout=1500
	}

	# The third connection of this server locks a mutex twice, and the ticker waits for it.  Two
	# more connect then; the server is killed when they wait, too.
	echo_until_stuck()
	{
		new_rings
		TDT_RECORD=1M TDT_RECORD_DIR=$tmp/rings "$top_builddir/demo/echo-server" --wedge \
			--port=0 >"$tmp/server" &
		server=$!
		wait_until grep -q ' port ' "$tmp/server" || return
		port=$(sed -n 's/.* port //p' "$tmp/server")
		"$top_builddir/demo/echo-client" --port="$port" --connections=2 --messages=50 &&
			nothing_comes_back 1 && wait_until wait_for_mutex 2 &&
			nothing_comes_back 2 && wait_until wait_for_mutex 4
		kill -KILL $server
		wait $server
		[ -n "$port" ]
	}
	cat >"$tmp/queries" <<END
$errors
stuck: select track, replace(name, substr(name, instr(name, '('), instr(name, ')') - instr(name, '(') + 2), '') from $track where dur = -1 and thread is null and name glob 'waiting for a mutex*' and track not like 'tdt-%' order by track
END
	cat >"$tmp/expected" <<'END'
stuck: connection 3 5 | waiting for a mutex held by itself
stuck: connection 4 6 | waiting for a mutex held by task 5 "connection 3"
stuck: connection 5 7 | waiting for a mutex held by task 5 "connection 3"
stuck: ticker 2 | waiting for a mutex held by task 5 "connection 3"
END
	claim "a server gets stuck, and is killed" echo_until_stuck
	claim "what it recorded becomes a trace" trace_of_rings
	ask "$tmp/trace" <"$tmp/queries" >"$tmp/got"
	same "the trace tells the deadlock" "$tmp/expected" "$tmp/got"
else
	skip "the trace of a program" "there is no libtdt-rt"
fi
plan
