#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The program tdt-join-ustack: how stacks of tracers are laid over the wait tree, and what
# it says to damaged input.  (tests/outside/tools.sh runs it on what tracers print just then.)
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

# libtool's wrapper takes a while to start, and there are many starts below.
join=${top_builddir:?}/.libs/tdt-join-ustack
[ -x "$join" ] || join=$top_builddir/tdt-join-ustack
LD_LIBRARY_PATH=$top_builddir/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
LC_ALL=C
export LD_LIBRARY_PATH LC_ALL
unset NO_COLOR
cd "$tmp" || exit 99

# Task 7 waits in two places side by side; between its functions are plumbing and inlined functions.
# Task 8 polls `turn` in two places.
cat >tasks.json <<'END'
{"tdt":1,"task":{"id":7,"name":"serve","file":"s.c","line":88,"state":"waiting","leaves":2},"nodes":[
{"id":0,"kind":"task"},
{"id":1,"parent":0,"kind":"frame","function":"serve_poll","file":"/b/s.c","directory":"/b","line":18,"pc":"0x1010",
"module":"/b/s","symbol":"serve_poll","symbol_offset":"0x9b"},
{"id":2,"parent":1,"kind":"frame","function":"tdt_async_await","pc":"0x1010","inlined":true},
{"id":3,"parent":2,"kind":"frame","function":"tdt_select","pc":"0x2010","symbol":"tdt_select","symbol_offset":"0x48"},
{"id":4,"parent":3,"kind":"frame","function":"read_poll","file":"/b/s.c","directory":"/b","line":30,"pc":"0x1020",
"symbol":"read_poll.part.0","symbol_offset":"0x16","leaves":1},
{"id":5,"parent":3,"kind":"frame","function":"timer_poll","pc":"0x1030","module":"/b/s","module_offset":"0x30",
"leaves":1}]}
{"tdt":1,"task":{"id":8,"state":"waiting","leaves":2},"nodes":[
{"id":0,"kind":"task"},
{"id":1,"parent":0,"kind":"frame","function":"turn","line":1,"symbol":"turn","symbol_offset":"0x10","pc":"0x10"},
{"id":2,"parent":1,"kind":"frame","function":"ns::leaf","symbol":"_ZN2ns4leafEv","symbol_offset":"0x1","pc":"0x11",
"leaves":1},
{"id":3,"parent":0,"kind":"frame","function":"turn","line":2,"symbol":"turn","symbol_offset":"0x20","pc":"0x20"},
{"id":4,"parent":3,"kind":"frame","function":"krate::leaf","symbol":"_ZN5krate4leaf17h0123456789abcdefE","pc":"0x21",
"leaves":1}]}
END

# --- bpftrace ---
cat >oncpu.txt <<'END'
Attaching 4 probes...


@oncpu[7, 
    parse+99
    read_poll.part.0+40
    tdt_select+72
    serve_poll+155
    tdt__traced_poll+195
    outer_task_poll+12
    tdt__observed_poll+168
    work+185
]: 37
@oncpu[7, 
    parse.constprop.0+12
    read_poll+8
    tdt_select+72
    serve_poll+155
    tdt__traced_poll+195
    work+185
]: 3
@oncpu[7, 
    hash+2
    serve_poll+77
    tdt__traced_poll.constprop.0+195
]: 2
@oncpu[7, 
    0x1030
    tdt_select+72
    serve_poll+155
    tdt__traced_poll+195
]: 5
@oncpu[7, 
    memcpy+40
]: 4
@oncpu[7, ]: 1
@oncpu[8, 
    ns::leaf(int, char const*)+3
    turn+16
    tdt__traced_poll+195
]: 1
@oncpu[8, 
    _ZN2ns4leafEv+3
    turn+16
    tdt__traced_poll+195
]: 1
@oncpu[8, 
    krate::leaf::h0123456789abcdef+3
    turn+32
    tdt__traced_poll+195
]: 1
@oncpu[8, 
    _ZN5krate4leaf17h0123456789abcdefE+3
    turn+32
    tdt__traced_poll+195
]: 1
@samples: 56
END
cat >expected <<'END'
task 7 "serve" pending, 2 leaves, spawned at s.c:88, on CPU x52
- serve_poll at s.c:18
 |- tdt_select
 |  |- read_poll at s.c:30  waiting
 |  |  `- parse  on CPU x40
 |  `- timer_poll (s+0x30)  waiting, on CPU x5
 `- hash  on CPU x2
- ... cut: a frame without unwind information  on CPU x1
 `- memcpy  on CPU x4
task 8 pending, 2 leaves, on CPU x4
- turn
 `- ns::leaf  waiting, on CPU x2
- turn
 `- krate::leaf  waiting, on CPU x2
END
"$join" tasks.json oncpu.txt >out 2>&1
same 'samples come to the functions they are in, and waits are marked' expected out
"$join" - oncpu.txt <tasks.json >out 2>&1
same 'traces may come from standard input' expected out
"$join" tasks.json - <oncpu.txt >out 2>&1
same 'so may stacks' expected out

cat >waits.txt <<'END'
@spawned[7]: (s.c, 88)
@waits[7, 0]: 
        tdt_probe_task__waker__clone+31
        tdt_substitute_clone+67
        read_poll.part.0+22
        tdt_select+72
        serve_poll+155
        tdt__observed_poll+168
        tdt__traced_poll+399
@waits[7, 1]: 
        tdt_probe_task__waker__clone+31
        tdt_substitute_clone+67
        write_poll+22
        serve_poll+300
        tdt__observed_poll+168
END
cat >late.txt <<'END'
task 7 polled for 62.390 ms on thread 9, spawned at s.c:88; in task 7:
        fsync+11
        serve_poll+77
        tdt__traced_poll+195

task 9 polled for 10.001 ms on thread 9, spawned at s.c:90; in task 9:
        fsync+11

task 7 polled for 30.000 ms on thread 9, spawned at s.c:88; in task 8:
        turn+5
        tdt__traced_poll+195
        serve_poll+77
        tdt__traced_poll+195
END
cat >expected <<'END'
task 7 "serve" pending, 2 leaves, spawned at s.c:88, waited ×2, long poll ×1
╼ serve_poll at s.c:18
 ├╼ tdt_select
 │  ├╼ read_poll at s.c:30  waiting, waited ×1
 │  └╼ timer_poll (s+0x30)  waiting
 ├╼ write_poll  waited ×1
 └╼ fsync  long poll ×1
task 8 pending, 2 leaves, long poll ×1
╼ turn  long poll ×1
 └╼ ns::leaf  waiting
╼ turn
 └╼ krate::leaf  waiting
tdt-join-ustack: stacks left out: 1, of tasks that have no trace (task 9, for one)
END
"$join" --utf8 tasks.json waits.txt late.txt >out 2>err
cat err >>out
same 'several files; waits and long polls; what has no trace is told' expected out

# Functions that were inlined: read_poll into serve_poll, and of tdt_join, which is shown as its
# innermost part, a part that was split off.
cat >inlined.json <<'END'
{"tdt":1,"task":{"id":5,"state":"waiting","leaves":2},"nodes":[
{"id":0,"kind":"task"},
{"id":1,"parent":0,"kind":"frame","function":"serve_poll","pc":"0x10","symbol":"serve_poll","symbol_offset":"0x9b"},
{"id":2,"parent":1,"kind":"frame","function":"read_poll","pc":"0x10","inlined":true},
{"id":3,"parent":2,"kind":"frame","function":"tdt_waker_clone","pc":"0x10","inlined":true,"leaves":1},
{"id":4,"parent":0,"kind":"frame","function":"order_poll","pc":"0x20","symbol":"order_poll","symbol_offset":"0x48"},
{"id":5,"parent":4,"kind":"frame","function":"tdt_join","line":74,"pc":"0x30","symbol":"tdt_join",
"symbol_offset":"0x63"},
{"id":6,"parent":5,"kind":"frame","function":"tdt_join","line":86,"pc":"0x30","inlined":true},
{"id":7,"parent":6,"kind":"frame","function":"tdt_waker_clone","pc":"0x30","inlined":true,"leaves":1}]}
END
cat >inlined.txt <<'END'
@waits[5, 0]: 
        tdt_substitute_clone+67
        serve_poll+155
        tdt__observed_poll+168
@waits[5, 1]: 
        tdt_substitute_clone+67
        tdt_join+99
        order_poll+72
        tdt__observed_poll+168
@oncpu[5, 
    serve_poll+80
    tdt__traced_poll+195
]: 3
@oncpu[5, 
    tdt_join+12
    order_poll+72
    tdt__traced_poll+195
]: 2
END
cat >expected <<'END'
task 5 pending, 2 leaves, on CPU x5, waited x2
- serve_poll  on CPU x3
 `- read_poll  waiting, waited x1
- order_poll
 `- tdt_join  waiting, on CPU x2, waited x1
END
"$join" inlined.json inlined.txt >out 2>&1
same 'an address tells the inlined function; a name, that function' expected out

# --- perf ---
cat >perf.txt <<'END'
# a comment
my server 21346 [000] 14097.385722:  sdt_tdt:task__poll__start: (7ff5b3baa1ff) arg1=7 arg2=94582500433941 arg3=88 arg4=0
	           111ff tdt_probe_task__poll__start+0x1f (/usr/lib/libtdt.so.0.0.0)

my server 21346 14097.385872:     250000                  cpu-clock: 
	ffffffff8b0adc7a do_idle+0xa ([kernel.kallsyms])
	            1f03 parse+0x63 (/b/s)
	            1f33 read_poll+0x63 (/b/s)
	            2b2b serve_poll+0x6c (/b/s)
	            a573 tdt__traced_poll+0xc3 (/usr/lib/libtdt.so.0.0.0)

my server 21346 [000] 14097.385900: sdt_tdt:task__poll__start: (7ff5b3baa1ff) arg1=0x8 arg2=94582500433941 arg3=88 arg4=0
	           111ff tdt_probe_task__poll__start+0x1f (/usr/lib/libtdt.so.0.0.0)

my server 21346/21347 [001] 14097.385910:     250000 cycles:ppp: 
	            1f03 elsewhere+0x63 (/b/s)

my server 21346 [000] 14097.385922: cpu-clock:ppp: 
	            1f03 [unknown] (/b/s)
	            1f03 turn+0x20 (/b/s)
	            a573 tdt__traced_poll+0xc3 (/usr/lib/libtdt.so.0.0.0)

my server 21346 [000] 14097.385930: sdt_tdt:task__waker__clone: (7ff5b3baa2bf) arg1=8 arg2=94582500433941 arg3=480 arg4=0
	           112bf tdt_probe_task__waker__clone+0x1f (/usr/lib/libtdt.so.0.0.0)
	            b463 tdt_substitute_clone+0x43 (/usr/lib/libtdt.so.0.0.0)
	            1b26 ns::leaf(int)+0x16 (/b/s)
	            2a7b turn+0x10 (/b/s)
	            a418 tdt__observed_poll+0xa8 (/usr/lib/libtdt.so.0.0.0)

my server 21346 [000] 14097.385940: sdt_tdt:task__poll__end: (7ff5b3baa22f) arg1=8 arg2=94582500433941 arg3=480 arg4=0
	           1122f tdt_probe_task__poll__end+0x1f (/usr/lib/libtdt.so.0.0.0)

my server 21346 [000] 14097.385950: sdt_tdt:task__poll__end: (7ff5b3baa22f) arg1=7 arg2=94582500433941 arg3=480 arg4=0
	           1122f tdt_probe_task__poll__end+0x1f (/usr/lib/libtdt.so.0.0.0)

my server 21346 14097.385872:     250000                  cpu-clock: 
	            1f03 outside+0x63 (/b/s)

my server 21346 [000] 14097.385950: sdt_tdt:worker__thread__park: (7ff5b3baa22f)
	           1122f tdt_probe_worker__thread__park+0x1f (/usr/lib/libtdt.so.0.0.0)
END
cat >expected <<'END'
task 7 "serve" pending, 2 leaves, spawned at s.c:88, on CPU x1
- serve_poll at s.c:18
 `- tdt_select
    |- read_poll at s.c:30  waiting
    |  `- parse  on CPU x1
    `- timer_poll (s+0x30)  waiting
task 8 pending, 2 leaves, on CPU x1, waited x1
- turn
 `- ns::leaf  waiting, waited x1
- turn
 |- krate::leaf  waiting
 `- [unknown]  on CPU x1
END
"$join" tasks.json perf.txt >out 2>&1
same "perf's samples belong to the task its thread polls" expected out

# --- DTrace, and a dump of tdt bt --json ---
# Parts of what DTrace 2.0.1 and tdt printed of tests/outside/busy.c, in November 2026.
cat >dtrace.txt <<'END'

task 4, spawned at tests/outside/busy.c:500
libtdt.so.0`tdt_probe_task__waker__clone+0x2c
libtdt.so.0`tdt_substitute_clone+0x13a
busy`ping_poll+0x5a
libtdt.so.0`tdt_select.poll+0x48
busy`ponger_poll+0x184
libtdt.so.0`tdt__observed_poll+0x323
libtdt.so.0`tdt__traced_poll+0x1ae
busy`work+0xb9
libc.so.6`0x7f9a106e91f5
3
task 1, spawned at :0
2

task 2
busy`burn+0x60
busy`laggard_poll+0x6c
libtdt.so.0`tdt__observed_poll+0x323
libtdt.so.0`tdt__traced_poll+0x1ae
busy`work+0xb9
libc.so.6`0x7f9a106e91f5
11
task 2
libc.so.6`write
1

task 2 polled for 64392 us on thread 24299, spawned at tests/outside/busy.c:498
task 2 has been polled for 45 ms on thread 24299; in task 2:

              busy`0x55d9bbcc8e71
              busy`laggard_poll+0x6c
              libtdt.so.0`tdt__observed_poll+0x323
              libtdt.so.0`tdt__traced_poll+0x1ae
task 2 polled for 60016 us on thread 24299, spawned at tests/outside/busy.c:498
END
cat >dump.json <<'END'
{"tdt":1,"dump":{"took_ns":3991819,"tasks":3,"fresh":0,"running":1,"last":0,"none":2,"lost":0,
"outside":true},"deadlocks":[],"unproven":[],"rings":[],"groups":[
{"answer":"running","tasks":[{"id":2,"name":"laggard","file":"busy.c","line":498,"state":"running",
"leaves":1},{"id":6,"state":"running","leaves":1}],"nodes":[{"id":0,"kind":"task"},
{"id":1,"parent":0,"kind":"frame","pc":"0x55d9bbcc97ac","function":"laggard_poll","line":349,
"symbol":"laggard_poll","symbol_offset":"0x6c"},
{"id":2,"parent":1,"kind":"frame","pc":"0x55d9bbcc8e71","function":"burn","line":322,
"symbol":"burn","symbol_offset":"0x61","leaves":1}]},
{"answer":"none","tasks":[{"id":1,"name":"burner","state":"waiting","polls":9,"leaves":0},
{"id":4,"name":"ponger","state":"waiting","polls":9,"leaves":0}]}]}
END
cat >expected <<'END'
task 1 "burner" pending less than 10 ms, no leaves (the poll cloned no waker), waited x2
- ... cut: a frame without unwind information  waited x2
task 2 "laggard" running, 1 leaf, spawned at busy.c:498, on CPU x12, long poll x1
- laggard_poll
 `- burn  running, on CPU x11, long poll x1
- ... cut: a frame without unwind information
 `- write  on CPU x1
task 4 "ponger" pending less than 10 ms, no leaves (the poll cloned no waker), waited x3
- ponger_poll
 `- ping_poll  waited x3
task 6 running, 1 leaf, not seen by the tracer
- laggard_poll
 `- burn  running
END
"$join" dump.json dtrace.txt >out 2>&1
same "DTrace's stacks are laid over the trees of a dump" expected out
cat dump.json tasks.json >both.json
counted()
{
	"$join" both.json dtrace.txt >out 2>&1 && [ "$(grep -c ^task out)" = 6 ]
}
claim 'dumps and traces may stand in one file' counted

# --- Forms ---
: >nothing.txt
cat >expected <<'END'
task 7 "serve" pending, 2 leaves, spawned at s.c:88, not seen by the tracer
- serve_poll at s.c:18
 `- tdt_select
    |- read_poll at s.c:30  waiting
    `- timer_poll (s+0x30)  waiting
END
head -10 tasks.json >seven.json
"$join" seven.json nothing.txt >out 2>&1
same 'a task that no stack is of is printed, and told' expected out

sed 's/"id":7,"name":"serve"/"id":7,"name":"older"/' seven.json | cat - seven.json >twice.json
echo 'tdt-join-ustack: traces left out: 1, of tasks that have a later one' >>expected
"$join" twice.json nothing.txt >out 2>err
cat err >>out
same 'of two traces of a task the later one counts' expected out

"$join" --format=json tasks.json oncpu.txt >out.json 2>err
head -1 out.json | grep -o '"on_cpu":[0-9]*' | tr '\n' ' ' >out
echo '"on_cpu":52 "on_cpu":5 "on_cpu":40 "on_cpu":2 "on_cpu":1 "on_cpu":4 ' | sed 's/ $//; s/$/ /' |
	tr -d '\n' >expected
same 'JSON has the same numbers' expected out
claim 'and is a trace still, for tdt print' "$top_builddir/tdt" print --plumbing out.json

has_colors()
{
	"$join" "$@" tasks.json oncpu.txt | grep -q "$(printf '\033')"
}
no_colors()
{
	! has_colors "$@"
}
claim 'colours can be asked for' has_colors --color=always
claim 'and are not there in a file' no_colors --color=auto

help_and_version()
{
	"$join" --help | grep -q '^Usage: tdt-join-ustack' &&
		"$join" --version | grep -q '^tdt-join-ustack (tdt [0-9.]*)$'
}
claim '--help and --version print to standard output' help_and_version

# --- Very many ---

# many_stacks FORMAT: a stack for each of 60,000 functions, whose names awk formats.
many_stacks()
{
	awk -v format="$1" 'BEGIN {
		for (i = 0; i < 60000; i++) {
			printf "@oncpu[7, \n    "
			printf format "\n", i
			print "    tdt_select+72\n    serve_poll+155"
			print "    tdt__traced_poll+195\n]: 1"
		}
	}'
}

# A wait tree in which 60,000 futures wait side by side.
many_waits()
{
	head -n 6 tasks.json | sed 's/"leaves":2/"leaves":60000/; $s/,$//'
	awk 'BEGIN {
		for (i = 0; i < 60000; i++)
			printf ",{\"id\":%d,\"parent\":3,\"kind\":\"frame\"," \
				"\"function\":\"ns::leaf_%d\",\"pc\":\"0x%x\",\"leaves\":1}\n",
				i + 4, i, 65536 + i
		print "]}"
	}'
}

# joins TRACES STACKS N: it ends, and 60,000 rows were seen N times each.
joins()
{
	timeout 300 "$join" "$1" "$2" >out 2>&1 || return
	rows=$(grep -c " on CPU x$3\$" out)
	echo "$rows rows"
	[ "$rows" = 60000 ]
}

many_stacks 'int ns::leaf_%d(int, char const*)+1' >many.txt
cat many.txt many.txt >twice.txt
many_waits >wide.json
claim '60,000 different stacks are joined' joins tasks.json many.txt 1
claim 'and found again when they come again' joins tasks.json twice.txt 2
claim 'and laid over 60,000 futures that wait side by side' joins wide.json many.txt 1

# --- What is wrong is told, and where ---

# fails STATUS MESSAGE COMMAND...: it ends with that status, prints nothing, and tells MESSAGE, a
# pattern.
fails()
{
	status=$1 message=$2
	shift 2
	"$@" >out 2>err </dev/null
	actual=$?
	cat out err
	[ $actual = "$status" ] && [ ! -s out ] && grep -q -e "$message" err
}
claim 'one file is wrong usage' fails 2 'Try .tdt-join-ustack --help' "$join" tasks.json
claim 'so is an unknown form' fails 2 'text or json, not xml' \
	"$join" --format=xml tasks.json oncpu.txt
claim 'a missing file is told' fails 1 'nowhere: No such file' "$join" tasks.json nowhere
printf '{"tdt":1,\n  "task":' >cut.json
claim 'damaged traces are told' fails 1 '^tdt-join-ustack: cut.json:2:' "$join" cut.json oncpu.txt

# bad_line LINE TEXT MESSAGE: stacks of that text are refused at that line.
bad_line()
{
	printf '%b' "$2" >bad.txt
	claim "refused: $3" fails 1 "^tdt-join-ustack: bad.txt:$1: $3" "$join" tasks.json bad.txt
}
bad_line 1 'Hello, world\n' 'no output of bpftrace, DTrace or perf script'
bad_line 3 'task 7\nbusy`f+0x1\ntask 8\n' 'not a frame'
bad_line 3 'task 7, spawned at x.c:1\nbusy`f\n' 'a stack must end with'
bad_line 2 '@oncpu[7, \n    parse-99\n]: 1\n' 'not a frame'
bad_line 3 '@oncpu[7, \n    parse+99\n]: many\n' 'a stack must end with'
bad_line 3 '@oncpu[7, \n    parse+99\n' 'a stack must end with'
bad_line 1 '@oncpu[x.c, \n    parse+99\n]: 1\n' "a map that doesn't begin with the id"
bad_line 1 '@oncpu[99999999999999999999, \n' "a map that doesn't begin with the id"
bad_line 1 '@oncpu[7 \n' 'neither a map nor a stack'
bad_line 1 'task 7 polled for 3 ms\n' 'a long poll must end'
bad_line 1 'x 1 1.2: sdt_tdt:task__poll__start: (1)\n' 'an event without the id'
bad_line 2 'x 1 1.2: cpu-clock:\n\t1f03 parse+0x63\n' 'a frame without a module'
bad_line 1 'x 1 1.2: \n' 'an event without a name'
bad_line 2 '\nx\000y\n' 'a NUL byte'
awk 'BEGIN { for (i = 0; i < 70000; i++) printf "a" }' >bad.txt
claim 'a line without end is refused' fails 1 'bad.txt:1: a line without end' "$join" tasks.json \
	bad.txt
awk 'BEGIN { print "@oncpu[7, "; for (i = 0; i < 2000; i++) print "  f+1" }' >bad.txt
claim 'and a stack without end' fails 1 'bad.txt:1026: a stack without end' "$join" tasks.json \
	bad.txt
head -c 20000 "$join" >bad.txt
claim 'and what is no text at all' fails 1 'bad.txt:' "$join" tasks.json bad.txt

# Cut anywhere, it either reads what is there or says where it is cut.
seed=${TDT_TEST_SEED:-$(date +%s)}
step=71
echo "# TDT_TEST_SEED=$seed"
test "${TDT_TEST_FULL-}" != 1 || step=7
cut_anywhere()
{
	cat oncpu.txt late.txt waits.txt dtrace.txt perf.txt >all.txt
	size=$(wc -c <all.txt)
	i=$((seed % step))
	while [ $i -lt "$size" ]; do
		head -c $i all.txt | "$join" tasks.json - >out 2>err
		status=$?
		if [ $status -gt 1 ] || { [ $status = 1 ] &&
			! grep -q '^tdt-join-ustack: standard input:' err; }; then
			echo "cut at $i: status $status"
			cat out err
			return 1
		fi
		i=$((i + step))
	done
}
claim 'cut anywhere, it says so or reads what is there' cut_anywhere

if [ -c /dev/full ]; then
	full()
	{
		"$join" tasks.json oncpu.txt >/dev/full 2>err
		[ $? = 1 ] && grep -q 'standard output: No space' err
	}
	claim 'a full disk is told' full
else
	skip 'a full disk is told' 'no /dev/full here'
fi
plan
