#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The demos print true trees, of their own sources; the lines that were added to a foreign runtime
# are all there is to it; and the echo server serves, tells where its tasks wait, and ends well
# whatever they do.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
test "$WITH_RUNTIME" != no || skip_all "configured without the runtime"
# shellcheck source=tests/lib/tracers.sh
. "$top_srcdir/tests/lib/tracers.sh"

LC_ALL=C
export LC_ALL
demo=$top_srcdir/demo
libs=${top_builddir:?}/.libs

# at FILE FUNCTION TEXT: `FUNCTION at demo/FILE:LINE`, of the first line from the start of the
# function that has TEXT.
at()
{
	awk -v start="^static (tdt_poll_t|int|void) $2[(]" -v text="$3" '
		$0 ~ start { inside = 1 }
		inside && index($0, text) { print NR; exit }' "$demo/$1" | sed "s|^|$2 at demo/$1:|"
}

# Leave out what is not the same each time, or in each build: how long, and columns; and whether a
# task was woken again while it was polled.
even()
{
	sed -E 's/ pending (less than )?[0-9.]+ [mnu]?s/ pending/; s/, last woken [^,]*//
		s/(:[0-9]+):[0-9]+/\1/' "$@"
}

spawned_at()
{
	grep -nF "$2" "$demo/$1" | sed "s|:.*||; s|^|spawned at demo/$1:|"
}

# run_demo PROGRAM: what it prints is in $tmp/out.  On a busy machine it may have no answer in the
# second it waits for one, or find the poll still going on.
run_demo()
{
	for _ in $(seq 20); do
		"$1" >"$tmp/out" 2>&1
		grep -q -e 'timed out' -e ' running ' -e 'no breakfast' "$tmp/out" || break
	done
}

join="tdt_join_all at src/future/combine.c:$(
	grep -nF 'result = tdt_future_poll(child, cx);' "$top_srcdir/src/future/combine.c" |
		cut -d: -f1)"

cat >"$tmp/taskdump" <<END
task 1 "foo" pending, 2 leaves, $(spawned_at taskdump.c '.name = "foo"')
- $(at taskdump.c foo_poll 'TDT_AWAIT(bar())')
 \`- $(at taskdump.c bar_poll 'TDT_AWAIT(fiz_and_buz())')
    \`- $join
       |- $(at taskdump.c fiz_poll 'TDT_AWAIT(pending())')
       |  \`- $(at taskdump.c pending_poll 'tdt_waker_clone(')
       \`- $(at taskdump.c buz_poll 'TDT_AWAIT(baz())')
          \`- $(at taskdump.c baz_poll 'TDT_AWAIT(pending())')
             \`- $(at taskdump.c pending_poll 'tdt_waker_clone(')
END
run_demo "$top_builddir/demo/taskdump"
even "$tmp/out" >"$tmp/got"
same "taskdump prints where foo waits" "$tmp/taskdump" "$tmp/got"

cat >"$tmp/coroutines" <<END
task "breakfast" pending, 2 leaves, $(spawned_at coroutines.c 'tdt_rt_spawn(') by task 1
   waits for a mutex held by task 1 "block_on" (2 leaves)
- $(at coroutines.c make_breakfast 'err = make_both(')
 \`- $(at coroutines.c make_both 'tdt_co_await(joined)')
    \`- $join
       |- $(at coroutines.c boil_eggs 'use_stove(arg')
       |  \`- $(at coroutines.c use_stove 'tdt_co_await(tdt_mutex_lock(')
       |     \`- tdt_mutex_lock
       \`- $(at coroutines.c toast_bread 'use_stove(arg')
          \`- $(at coroutines.c use_stove 'tdt_co_await(tdt_mutex_lock(')
             \`- tdt_mutex_lock
The eggs are boiled.
Slice 1 is toasted.
Slice 2 is toasted.
Breakfast is ready.
END
run_demo "$top_builddir/demo/coroutines"
even "$tmp/out" | sed 's/^task [0-9]* /task /; s| at src/runtime/.*||; s/ (0x[0-9a-f]*)//' \
	>"$tmp/got"
same "coroutines prints where breakfast waits, and makes it" "$tmp/coroutines" "$tmp/got"

quietly()
{
	"$@" >/dev/null 2>&1
}

# stuck COMMAND: dump the bank that stands still, to $tmp/trees, until the command succeeds.  On a
# busy machine some of it may not stand still yet, or names may come too late.
stuck_once()
{
	"$top_builddir/demo/stuck" >"$tmp/out" || echo "status $?" >>"$tmp/failed"
	even "$tmp/out" | sed 's/ (0x[0-9a-f]*)//g; s| at src/runtime/.*||
		s/ (callers may be missing)//' >"$tmp/trees"
	quietly "$1"
}
stuck()
{
	try_till $(($(date +%s) + 60)) stuck_once "$1" || "$1" && return
	cat "$tmp/out"
	return 1
}

# below HEAD TREE: the dump has a line HEAD, a pattern, and below it these lines, the first of a
# tree.
below()
{
	echo "$2" >"$tmp/wanted"
	lines=$(wc -l <"$tmp/wanted")
	awk -v head="$1" -v lines="$lines" 'left-- > 0; $0 ~ head { left = lines }' "$tmp/trees" \
		>"$tmp/got"
	diff -u "$tmp/wanted" "$tmp/got"
}

running='running for [0-9.]+ [mun]?s on thread [0-9]+'
transfer1='task [0-9]* "alice to bob" waits for a mutex held by task [0-9]* "bob to alice"'
transfer2='task [0-9]* "bob to alice" waits for a mutex held by task [0-9]* "alice to bob"'
all_are_counted()
{
	grep -q '^1,004 tasks, 1 deadlock: 1,002 answered, 2 running (took ' "$tmp/trees"
}
deadlock_is_named()
{
	grep -q -e "^deadlock: $transfer1, which ${transfer2#*\" }\$" \
		-e "^deadlock: $transfer2, which ${transfer1#*\" }\$" "$tmp/trees"
}
report="^task [0-9]+ \"report\" $running, $(spawned_at stuck.c '.name = "report"')\$"
computing="- $(at stuck.c report_poll 'sum_up()')
 \`- $(at stuck.c sum_up 'while (')"
reloading="^task [0-9]+ \"reload\" $running, in read[(][)], $(
	spawned_at stuck.c '.name = "reload"')\$"
reading="- $(at stuck.c reload_poll 'read_config(')
 \`- $(at stuck.c read_config 'read(')"
sessions="^1,000 tasks pending .*, e.g. .* and 992 more, $(spawned_at stuck.c '(.name = name)')\$"
waiting="- $(at stuck.c session_poll 'TDT_AWAIT(')
 \`- $(at stuck.c next_order_poll 'TDT_AWAIT(')
    \`- tdt_sleep_ms"
# The deadlock is on top, with the trees of its tasks directly below, and all fits a screen.
deadlock_is_on_top()
{
	sed -n 3p "$tmp/trees" | grep -q '^deadlock: ' &&
		sed -n 4p "$tmp/trees" | grep -q '^2 tasks pending.*"alice to bob"' &&
		test "$(wc -l <"$tmp/trees")" -le 50
}
stands_still()
{
	all_are_counted && deadlock_is_named && deadlock_is_on_top &&
		below "$report" "$computing" &&
		grep -Eq "$reloading" "$tmp/trees" &&
		{ test "$SANITIZERS" != no || below "$reloading" "$reading"; } &&
		below "$sessions" "$waiting"
}
# A sanitized program on a busy machine may not find all names in the quarter of a second that the
# dump has for them, nor have all its tasks answer in the rest of its second.
counts_all()
{
	grep -q '^1,004 tasks, 1 deadlock: ' "$tmp/trees" && deadlock_is_named
}
if test "$SANITIZERS" != no && ! quietly stuck stands_still &&
	grep -q 'not named in time' "$tmp/out"; then
	claim "stuck counts all tasks" stuck counts_all
	claim "the deadlock is named" deadlock_is_named
	skip "where its tasks wait" "names come too late on this machine"
else
	claim "stuck dumps a bank that stands still" stuck stands_still
	claim "all its tasks are counted" all_are_counted
	claim "the deadlock is named" deadlock_is_named
	claim "the task that computes is told with its thread and stack" below "$report" \
		"$computing"
	if test "$SANITIZERS" = no; then
		claim "and the one that sits in read()" below "$reloading" "$reading"
	else
		skip "where the one that sits in read() is" \
			"gcc splits reload_poll, and tells of two of them"
		claim "the one that sits in read() is told" grep -Eq "$reloading" "$tmp/trees"
	fi
	claim "a thousand sessions are one group" below "$sessions" "$waiting"
fi
claim "stuck ended well each time" test ! -e "$tmp/failed"

order="task 1 \"order 1\" pending, N, $(spawned_at foreign-runtime.c '.name = "order 1"')
- $(at foreign-runtime.c order_poll 'TDT_AWAIT(')"
pack=$(at foreign-runtime.c pack_poll 'TDT_AWAIT(')
bill=$(at foreign-runtime.c bill_poll 'TDT_AWAIT(')
event=$(at foreign-runtime.c event_poll 'tdt_waker_clone(')
cat >"$tmp/foreign" <<END
Nothing has come yet:
$(echo "$order" | sed 's/ N,/ 2 leaves,/')
 \`- $join
    |- $pack
    |  \`- $event
    \`- $bill
       \`- $event
The goods have come:
$(echo "$order" | sed 's/ N,/ 1 leaf,/')
 \`- $bill
    \`- $event
And the payment: shipped.
END
run_demo "$top_builddir/demo/foreign-runtime"
even "$tmp/out" >"$tmp/got"
if test "$SANITIZERS" = no; then
	same "foreign-runtime prints where an order waits, before and after a part of it has come" \
		"$tmp/foreign" "$tmp/got"
else
	skip "foreign-runtime prints where an order waits" \
		"gcc splits event_poll, and tells of two of them"
	claim "foreign-runtime ships the order" grep -qx "And the payment: shipped." "$tmp/got"
fi

# shellcheck disable=SC2086 # the compiler may be a list of words
build_without_hooks()
{
	mkdir -p "$tmp/without" &&
		grep -v 'added for tdt' "$demo/their_runtime.c" >"$tmp/without/their_runtime.c" &&
		test "$(grep -c 'tdt_worker_\|tdt_task_' "$tmp/without/their_runtime.c")" = 0 &&
		test "$(grep -c 'added for tdt' "$demo/their_runtime.c")" = 7 &&
		(cd "$top_srcdir" &&
		$CC -g -D_GNU_SOURCE -I"include" -Idemo demo/foreign-runtime.c \
			"$tmp/without/their_runtime.c" -L"$libs" \
			-Wl,--enable-new-dtags,-rpath,"$libs" -ltdt -lpthread \
			-o "$tmp/without/foreign-runtime")
}

# run PROGRAM: with the copy of the library that is traced.  Sets $pid.
run()
{
	LD_LIBRARY_PATH=$tmp/traced "$1" >/dev/null &
	pid=$!
	wait $pid
}

# fired: which probes have fired, in any process or in $1.
fired()
{
	sed -En "s/^${1-[0-9]+} .*:([a-z_]+)\$/\1/p" "$tmp/bpftrace" | sort -u
}

# have_fired N [PROCESS]: so many probes have.  It is printed some time later.
have_fired()
{
	number=$1
	shift
	test "$(fired "$@" | wc -l)" -ge "$number"
}

# trace: write which probes fire with the lines, $tmp/all, and without, $tmp/without/probes.  Of a
# copy of the library: other tests run at the same time.
trace()
{
	mkdir "$tmp/traced"
	cp "$libs/libtdt.so.0" "$tmp/traced"
	bpftrace -B line \
		-e "usdt:$tmp/traced/libtdt.so.0:$provider:* { printf(\"%d %s\n\", pid, probe); }
		interval:s:600 { exit(); }" >"$tmp/bpftrace" 2>"$tmp/bpftrace.err" &
	tracer=$!
	attached "$tmp/bpftrace" "$tmp/bpftrace.err"
	run "$top_builddir/demo/.libs/foreign-runtime"
	wait_until have_fired 10 "$pid"
	fired "$pid" >"$tmp/all"
	run "$tmp/without/foreign-runtime"
	wait_until have_fired 5 "$pid"
	detach $tracer
	tracer=
	fired "$pid" >"$tmp/without/probes"
}

provider=$(sed -n 's/^#define TDT_USDT_PROVIDER //p' "$top_builddir/config.h")
if test "$SANITIZERS" != no; then
	skip "without the lines that were added" "a sanitized library needs a sanitized program"
elif ! test -e "$libs/libtdt.so"; then
	skip "without the lines that were added" "built without a shared library"
else
	claim "without the lines that were added the runtime can be built" build_without_hooks
	run_demo "$tmp/without/foreign-runtime"
	even "$tmp/out" >"$tmp/got"
	same "and the same trees come" "$tmp/foreign" "$tmp/got"
	why=
	grep -q 'TDT_PROBES 1' "$top_builddir/config.h" || why="built without probes"
	test "$(id -u)" = 0 || why="only root may trace"
	bpftrace -e 'BEGIN { exit(); }' >/dev/null 2>&1 ||
		why="there is no bpftrace, or it may not trace"
	if test -n "$why"; then
		skip "then five probes fire" "$why"
		skip "and all of them with those lines" "$why"
	else
		trace
		printf 'task__%s\n' poll__end poll__start spawn terminate waker__clone >"$tmp/five"
		same "then five probes fire" "$tmp/five" "$tmp/without/probes"
		{ cat "$tmp/five" && printf '%s\n' task__wake worker__thread__park \
			worker__thread__start \
			worker__thread__stop worker__thread__unpark; } | sort >"$tmp/ten"
		same "and all of them with those lines" "$tmp/ten" "$tmp/all"
	fi
fi

# --- The echo server ---

server=
client=
trap 'test -z "$server$client$tracer" || kill -KILL $server $client $tracer; rm -rf "$tmp"' EXIT

# within TEXT FILE [LINES]: wait until the file has so many lines with that text.
has_lines()
{
	test "$(grep -c -e "$1" "$2")" -ge "${3-1}"
}
within()
{
	wait_until has_lines "$@" && return
	cat "$2"
	return 1
}

# start OPTIONS...: a server, with $descriptors if that is set; sets $server and $port.
start()
{
	asked=0
	: >"$tmp/out"
	: >"$tmp/err"
	(
		# shellcheck disable=SC3045 # dash has it, too
		test -z "${descriptors-}" || ulimit -n "$descriptors"
		exec "$top_builddir/demo/echo-server" --port=0 --idle=3600000 "$@" >"$tmp/out" \
			2>"$tmp/err"
	) &
	server=$!
	within '^listening at' "$tmp/out" && port=$(sed -n 's/^listening at .* port //p' "$tmp/out")
}

# stop [SIGNAL]: the server ends, with status 0 (another, under a sanitizer, if there is a leak).
stop()
{
	kill "-${1-TERM}" "$server"
	status=0
	wait "$server" || status=$?
	server=
	test $status = 0 || { cat "$tmp/err"; false; }
}

client()
{
	timeout 300 "$top_builddir/demo/echo-client" --port="$port" --timeout=120000 "$@"
}

# hold OPTIONS...: a client keeps its connections, in the background; sets $client.
hold()
{
	: >"$tmp/held"
	"$top_builddir/demo/echo-client" --port="$port" --timeout=120000 --hold=3600000 "$@" \
		>"$tmp/held" 2>&1 &
	client=$!
	within '^holding' "$tmp/held"
}

# client_ends STATUS: the client in the background does.
client_ends()
{
	status=0
	wait "$client" || status=$?
	client=
	test $status = "$1"
}

# fails STATUS TEXT COMMAND...: the command ends with that status, and tells TEXT.
fails()
{
	expected=$1
	told=$2
	shift 2
	status=0
	"$@" >"$tmp/failed" 2>&1 || status=$?
	cat "$tmp/failed"
	test $status = "$expected" && grep -q -e "$told" "$tmp/failed"
}

# whole N FILE: whether there is an Nth dump, with all the tasks that its first line counts, and an
# empty line behind the last of them.
whole()
{
	awk -v nth="$1" '
		/^([0-9]+ tasks?|no tasks)[,: (]/ && !/^[0-9]+ tasks? [a-z]/ {
			dump++
			n = 0
			all = $1
		}
		/^task / { n++ } /^[0-9]+ tasks [a-z]/ { n += $1 } { last = $0 }
		END { exit !(dump == nth && n == all && last == "") }' "$2"
}

# ask: have the server print where its tasks wait, to $tmp/trees.  Ids are left out, and where in
# libtdt-rt a task waits, and what no two dumps have in common.
asked=0
ask()
{
	asked=$((asked + 1))
	kill -USR1 "$server"
	wait_until whole $asked "$tmp/err" || { cat "$tmp/err"; return 1; }
	awk -v nth=$asked '/^[0-9]+ tasks?[,:]/ { dump++ } dump == nth' "$tmp/err" | even |
		sed 's/(took .*//
		s/^task [0-9]* /task /; s| at src/runtime/.*||; s/ (0x[0-9a-f]*)//' >"$tmp/trees"
}

# waits NAME TREE: the task NAME waits there, alone or with others; what for is another matter.
waits()
{
	echo "$2" >"$tmp/wanted"
	awk -v name="\"$1\"" '/^$/ { inside = 0 } inside && !/^   (waits|[0-9]+ wait|and for)/
		/^task |^[0-9]+ tasks [a-z]/ { inside = index($0, name) }' "$tmp/trees" >"$tmp/got"
	diff -u "$tmp/wanted" "$tmp/got"
}

# tells LINE: a line of the dump.
tells()
{
	grep -q -e "$1" "$tmp/trees" || { cat "$tmp/trees"; false; }
}

# settles COMMAND...: ask until it succeeds.  Connections that a client has closed end a while
# later, those that it keeps may still count what they have echoed, the ticker comes to its mutex
# after a while, and an answer may be late.
asked_and()
{
	quietly ask && quietly "$@"
}
settles()
{
	wait_until asked_and "$@" || "$@"
}

at_rest()
{
	tells "^4 tasks: 4 answered" && waits accept "$accepting" && waits ticker "$ticking" &&
		waits "connection 11" "$reading"
}

# The ticker and connections 3 to 5 wait for the wedged mutex.
at_the_lock()
{
	tells '^5 tasks.*: 5 answered' && waits ticker "$stuck" && waits "connection 3" "$wedged" &&
		waits "connection 4" "$counting" && waits "connection 5" "$counting"
}

# tell_json N: a line a task, which tdt print reads.  If a task was late, all are asked again.
told_json()
{
	grep '^{' "$tmp/out" | tail -n "$1" | "$top_builddir/tdt" print - | grep -c '^task ' |
		grep -qx "$1"
}
late_for_json()
{
	grep -c '^echo-server: task .* does not answer' "$tmp/err"
}
all_were_asked()
{
	test $(($(grep -c '^{' "$tmp/out") + $(late_for_json))) = "$1"
}
tell_json()
{
	asks=0
	until test $asks != 0 && test "$(late_for_json)" = "$late"; do
		late=$(late_for_json)
		asks=$((asks + 1))
		kill -USR2 $server
		wait_until all_were_asked $((asks * $1)) || return
	done
	wait_until quietly told_json "$1"
}

# Where tasks wait.
accepting="- $(at echo.c accept_poll 'TDT_AWAIT(')
 \`- tdt_tcp_accept"
ticking="- $(at echo.c ticker_poll 'TDT_AWAIT(tdt_sleep_ms(')
 \`- tdt_sleep_ms"
reading="- $(at echo.c connection_poll 'TDT_AWAIT(echo_unless_idle(')
 \`- tdt_timeout_ms
    |- $(at echo.c echo_poll 'TDT_AWAIT(tdt_tcp_read(')
    |  \`- tdt_tcp_read
    \`- tdt_sleep_ms"
counting="- $(at echo.c connection_poll 'TDT_AWAIT(count(')
 \`- $(at echo.c count_poll 'TDT_AWAIT(tdt_mutex_lock(')
    \`- tdt_mutex_lock"
wedged="- $(at echo.c connection_poll 'TDT_AWAIT(count(')
 \`- $(at echo.c count_poll 'TDT_AWAIT(report(')
    \`- $(at echo.c report_poll 'TDT_AWAIT(tdt_mutex_lock(')
       \`- tdt_mutex_lock"
stuck="- $(at echo.c ticker_poll 'TDT_AWAIT(report(')
 \`- $(at echo.c report_poll 'TDT_AWAIT(tdt_mutex_lock(')
    \`- tdt_mutex_lock"

for workers in 1 3; do
	claim "a server with $workers workers starts" start --workers=$workers --report=3600000
	claim "it echoes" client --connections=8 --messages=200
	claim "and messages that sockets have no room for" client --connections=2 --messages=2 \
		--size=9000000
	claim "a client may keep its connections" hold --connections=2 --messages=1
	claim "all tasks tell" settles at_rest
	claim "accept waits for a connection" waits accept "$accepting"
	claim "the ticker sleeps" waits ticker "$ticking"
	claim "connections that are open wait for something to read" waits "connection 11" \
		"$reading"
	claim "those that were closed are gone" tells "^4 tasks: 4 answered"
	claim "they tell again" settles at_rest
	claim "the same" waits "connection 11" "$reading"
	claim "and as JSON" tell_json 4
	claim "the server ends well while connections are open" stop
	claim "and closes them" client_ends 1
done

# metrics_say LINE: a line of the page, as soon as the polls in which tasks answered are over.
has_metrics()
{
	curl -s "http://127.0.0.1:$metrics/metrics" >"$tmp/metrics" && grep -qx "$1" "$tmp/metrics"
}
metrics_say()
{
	wait_until has_metrics "$1"
}

metrics=$((20000 + $$ % 10000))
claim "a server with a bug starts" start --wedge --report=100 --workers=2 --metrics=$metrics
claim "nothing is wrong as long as two connect" client --connections=2 --messages=50
claim "then nothing comes back" fails 1 "3 of 3 connections: nothing came back" \
	client --connections=3 --messages=1000000 --timeout=5000
claim "the ticker and the other connections are at the lock" settles at_the_lock
claim "the wedged connection is behind it, and at it again" waits "connection 3" "$wedged"
claim "that is a deadlock, and told" tells \
	'^deadlock: task [0-9]* "connection 3" waits for a mutex held by itself$'
claim "accept still waits for connections" waits accept "$accepting"
if command -v curl >/dev/null; then
	claim "the page of metrics counts its tasks" metrics_say 'tdt_tasks{state="waiting"} 5'
	claim "and has numbers of what happened" metrics_say 'tdt_dumps_total [1-9][0-9]*'
else
	skip "the page of metrics" "there is no curl"
fi
claim "the server ends well all the same" stop INT

claim "a server with little patience starts" start --idle=100
claim "and is the only one at its port" fails 1 "127.0.0.1: Address already in use" \
	"$top_builddir/demo/echo-server" --port="$port"
claim "it closes a connection that is idle" fails 1 "closed by the server" client --messages=1 \
	--hold=60000
claim "and ends well" stop

descriptors=24
claim "a server with few descriptors starts" start
claim "it has more connections wait, and serves them later" client --connections=60 --messages=5
claim "and has told" grep -q "^echo-server: accept: Too many open files" "$tmp/err"
claim "it ends well" stop
descriptors=

# A client that finds nothing wrong has shown nothing.
if $CC -o "$tmp/wrong_echo" "$top_srcdir/tests/outside/fixtures/wrong_echo.c" >&2; then
	# start_wrong MISTAKE: sets $server and $port.
	start_wrong()
	{
		: >"$tmp/out"
		"$tmp/wrong_echo" "$1" >"$tmp/out" &
		server=$!
		within '^listening at' "$tmp/out" && port=$(sed -n 's/.* port //p' "$tmp/out")
	}
	for mistake in "flip byte 50 came back as 0x" "more more came back than was sent" \
		"close closed by the server" \
		"hush 1 of 1 connections: nothing came back for 2000 ms"; do
		start_wrong "${mistake%% *}"
		limit=60000
		test "${mistake%% *}" != hush || limit=2000
		claim "the client finds out about '${mistake%% *}'" fails 1 "${mistake#* }" \
			client --connections=1 --messages=10 --size=100 --timeout=$limit
		wait $server
		server=
	done
	# Nobody else may get the port meanwhile.
	start_wrong refuse
	claim "and that nobody is there" fails 1 "connection 1: Connection refused" client \
		--connections=1
	kill $server
	wait $server
	server=
else
	skip "the client finds out" "the fixture can't be compiled"
fi

for program in echo-server echo-client; do
	claim "$program: --help" \
		sh -c "'$top_builddir/demo/$program' --help | grep -q '^Usage: $program'"
	claim "$program: --version" \
		sh \
		-c "'$top_builddir/demo/$program' --version | grep -Eqx '$program \(tdt [0-9.]+\)'"
	for option in --port=65536 --port=x --port= --port=-1 --nonsense argument; do
		claim "$program: wrong option $option" fails 2 "Try '$program --help'" \
			"$top_builddir/demo/$program" $option
	done
done
claim "echo-server: no address" fails 1 "example.com: Invalid argument" \
	"$top_builddir/demo/echo-server" --host=example.com
# --- The server of docs/runtimes.md ---

# start_server MS: how long it gives its connections to end.
start_server()
{
	: >"$tmp/err"
	"$top_builddir/demo/server" 0 "$1" 2>"$tmp/err" &
	server=$!
	within '^listening at' "$tmp/err" && port=$(sed -n 's/^listening at port //p' "$tmp/err")
}

# port_in_use: a second server names the reason, and ends.
port_in_use()
{
	fails 1 "server: Address already in use" "$top_builddir/demo/server" "$port" &&
		! grep listening "$tmp/failed"
}

# with_connection COMMANDS: bash obeys them with a connection at descriptor 3, that was served.
with_connection()
{
	# shellcheck disable=SC2016 # bash expands it
	timeout 300 bash -c 'say() { echo "$1" >&3; read -r said <&3 && test "$said" = "$1"; }
		refused() { ! (exec 4<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }
		port=$0 server=$1
		exec 3<>"/dev/tcp/127.0.0.1/$port" && say hello && '"$1" "$port" "$server"
}

# ends_what_it_began: a connection goes on after SIGTERM, and then the server ends.
ends_what_it_began()
{
	# shellcheck disable=SC2016 # bash expands it
	with_connection 'kill -TERM "$server" && until refused; do sleep .1; done && say again' &&
		ended
}

# aborts_at_the_deadline: a connection that does not end is closed.
aborts_at_the_deadline()
{
	# shellcheck disable=SC2016 # bash expands it
	start_server 0 && with_connection 'kill -TERM "$server" && ! read -r said <&3' && ended
}

ended()
{
	status=0
	wait "$server" || status=$?
	server=
	test $status = 0
}

claim "the server of the manual starts" start_server 600000
claim "a second one at its port says why it does not" port_in_use
if command -v bash >/dev/null; then
	claim "it serves, and at SIGTERM ends what it has begun, and then itself" ends_what_it_began
	claim "at its deadline it aborts what has not ended" aborts_at_the_deadline
else
	skip "it serves" "there is no bash"
	claim "it ends" stop
fi

plan
