#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The scripts in tools/ on the echo server, while its client drives it: what they print is what the
# server does.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
test "$WITH_RUNTIME" != no || skip_all "configured without the runtime"
# shellcheck source=tests/lib/tracing.sh
. "$top_srcdir/tests/lib/tracing.sh"
may_trace bpftrace bpftrace
has_tracefs || skip_all "there is no tracefs"

demo=${top_builddir:?}/demo
echo_c=$top_srcdir/demo/echo.c
tools=$(cd "$top_srcdir/tools" && pwd)
scripts='count-spawns oncpu-by-task long-polls poll-stats print-all worker-util'
export BPFTRACE_STRLEN=200

"$demo/.libs/echo-server" --port=0 --report=200 --idle=3600000 >"$tmp/server.out" \
	2>"$tmp/server.err" &
server=$!
started=$server
wait_until grep -q '^listening' "$tmp/server.out"
port=$(sed -n 's/^listening at .* port //p' "$tmp/server.out")

# start SCRIPT [ARGUMENT]: on the server; its output is in $tmp/SCRIPT.out.
start()
{
	script=$1
	shift
	bpftrace -B line -p "$server" "$tools/$script.bt" "$@" >"$tmp/$script.out" \
		2>"$tmp/$script.err" &
	started="$started $!"
	echo $! >"$tmp/$script.pid"
}

all_attached()
{
	for script; do
		tracer=$(cat "$tmp/$script.pid")
		attached "$tmp/$script.out" "$tmp/$script.err" || return
	done
}

# client CONNECTIONS MESSAGES [OPTION]
client()
{
	"$demo/echo-client" --port="$port" --connections="$1" --messages="$2" --timeout=30000 \
		${3+"$3"}
}

# line_of FUNCTION: where in echo.c it spawns.
line_of()
{
	awk -v name="$1(" \
		'index($0, name) && !/;/ { on = 1 } on && /TDT_TASK_ATTR/ { print NR; exit }' \
		"$echo_c"
}
connection=$(line_of spawn_connection)
claim 'the place where connections are spawned is found' test "$connection" -gt 0

for script in $scripts; do
	case $script in
	long-polls) start $script 3600000 ;;
	# With room for all that it will print (about 16 MB): nothing is lost, however late it is.
	print-all) BPFTRACE_PERF_RB_PAGES=4096 start $script ;;
	*) start $script ;;
	esac
done
# shellcheck disable=SC2086 # a list
claim 'all scripts attach to the running server' all_attached $scripts
claim 'it serves its clients all the same' client 3 3000

# What is printed as it happens: the last events of connections must be there before the scripts are
# stopped.
ended()
{
	test "$(grep -c "task-terminate.*echo.c:$connection" "$tmp/print-all.out")" = 3
}
# events NAME: those of connections that print-all has printed.
events()
{
	grep -c " $1 .*echo.c:$connection\$" "$tmp/print-all.out"
}
lost()
{
	grep -q '^Lost' "$tmp/print-all.out" "$tmp/print-all.err"
}
balanced()
{
	lost || test "$(events task-poll-start)" = "$(events task-poll-end)"
}
claim 'print-all: three connections end' wait_until ended
wait_until balanced
two_seconds()
{
	test "$(grep -c '^[0-9][0-9]:' "$tmp/worker-util.out")" -ge 2
}
wait_until two_seconds
for script in $scripts; do
	detach "$(cat "$tmp/$script.pid")"
done

counted()
{
	grep "$connection" "$tmp/count-spawns.out"
	grep -q "^@spawned\[.*echo.c, $connection\]: 3\$" "$tmp/count-spawns.out" &&
		grep -q "^@ended\[.*echo.c, $connection\]: 3\$" "$tmp/count-spawns.out"
}
claim 'count-spawns: three connections were spawned, and ended' counted

all_told()
{
	for event in spawn terminate poll-start poll-end wake; do
		echo "$event: $(events task-$event)"
	done
	test "$(events task-spawn)" = 3 && test "$(events task-terminate)" = 3 &&
		test "$(events task-poll-start)" = "$(events task-poll-end)" &&
		test "$(events task-poll-start)" -ge 100 &&
		test "$(events task-wake)" -ge 100 &&
		grep -q worker-thread-unpark "$tmp/print-all.out"
}
if lost; then
	skip 'print-all: each poll that starts ends' \
		'bpftrace was too slow, and says that it lost events'
else
	claim 'print-all: each poll that starts ends' all_told
fi

# histogram MAP: the number of values in that of connections.
histogram()
{
	awk -v key="^@$1\\\\[.*echo.c, $connection\\\\]:" \
		'$0 ~ key { on = 1; next } /^@|^$/ { on = 0 }
		on { n += $2 ~ /\)$/ ? $3 : $2 } END { print n + 0 }' "$tmp/poll-stats.out"
}
timed()
{
	cat "$tmp/poll-stats.out"
	polls=$(histogram poll_us)
	wakes=$(histogram wake_to_poll_us)
	echo "$polls polls, $wakes wakes"
	test "$polls" -ge 100 && test "$wakes" -ge 100 && test "$wakes" -le "$polls"
}
claim 'poll-stats: all polls of connections, and how long woken ones waited' timed

sampled()
{
	grep -q 'connection_poll+' "$tmp/oncpu-by-task.out"
}
# It is little time: there may have been no sample just then.
for messages in 10000 30000 100000; do
	sampled && break
	start oncpu-by-task
	all_attached oncpu-by-task && client 3 "$messages" >&2
	detach "$(cat "$tmp/oncpu-by-task.pid")"
done
claim 'oncpu-by-task: connections burn time in their polls' sampled

claim 'long-polls: none took an hour' test -z "$(grep '^task ' "$tmp/long-polls.out")"

# The threads that worker-util tells of are workers.
workers()
{
	cat "$tmp/worker-util.out"
	sed -n 's/^@busy\[\([0-9]*\)\]: .*/\1/p' "$tmp/worker-util.out" | sort -u >"$tmp/threads"
	test -s "$tmp/threads" || return 1
	while read -r thread; do
		grep -q '^tdt-worker-' "/proc/$server/task/$thread/comm" || return 1
	done <"$tmp/threads"
}
claim 'worker-util: the workers, and how busy they were' workers

# Where they wait, with connections that are open and silent: a dump has all tasks polled once.
client 2 1 --hold=3600000 >"$tmp/client.out" 2>&1 &
started="$started $!"
claim 'two connections are silent' wait_until grep -q '^holding' "$tmp/client.out"
# run_wait_stacks SECONDS: which it counts from when it begins to attach.
dumped_till_its_end()
{
	has_ended "$(cat "$tmp/wait-stacks.pid")" || { kill -USR1 "$server"; false; }
}
run_wait_stacks()
{
	start wait-stacks "$1"
	all_attached wait-stacks && wait_until dumped_till_its_end
}
waits()
{
	cat "$tmp/wait-stacks.out"
	for functions in 'tdt_tcp_accept accept_poll' 'tdt_sleep_ms ticker_poll' \
		'tdt_tcp_read echo_poll tdt_timeout_ms connection_poll' \
		'tdt_sleep_ms tdt_timeout_ms connection_poll'; do
		awk '/^@waits/ { printf "\n"; next }
			/^@/ { on = 0 }
			{ sub(/([.]poll)?\+.*/, "", $1); printf "%s ", $1 }' \
			"$tmp/wait-stacks.out" | grep -q "$functions" ||
			{ echo "not there: $functions"; return 1; }
	done
}
claim 'wait-stacks attaches, and ends by itself' run_wait_stacks 3
for seconds in 6 12 24 48; do
	waits >&2 && break
	run_wait_stacks $seconds >&2
done
claim 'wait-stacks: each task, at the call it waits in' waits

kill -TERM "$server"
claim 'the server ends well' wait "$server"
plan
