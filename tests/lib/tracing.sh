# SPDX-License-Identifier: Apache-2.0 OR MIT
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # variables are shared with who sources this, and with tap.sh
# What the tests with real tracers share: source this after tap.sh.  They run tests/outside/probed
# with a tracer, wait for what they can see (a line, a semaphore), and never just for a while.

# shellcheck source=tests/lib/tracers.sh
. "${top_srcdir:?}/tests/lib/tracers.sh"
lib=${top_builddir:?}/.libs/libtdt.so.0
provider=$(sed -n 's/^#define TDT_USDT_PROVIDER //p' "$top_builddir/config.h")
grep -q '^#define TDT_PROBES 1' "$top_builddir/config.h" || skip_all "built without probes"
test -e "$lib" || skip_all "built without a shared library"
test "$SANITIZERS" = no || skip_all "a plain build is traced"
command -v readelf >/dev/null || skip_all "there is no readelf (Debian: binutils)"
# A copy: a tracer that is attached to a file is so in all programs that use it, and other tests run
# at the same time.
cp "$lib" "$tmp/libtdt.so.0"
lib=$(readlink -f "$tmp/libtdt.so.0")
LD_LIBRARY_PATH=$tmp:$top_builddir/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

clean_up()
{
	kill_started
	rm -rf "$tmp"
}
trap clean_up EXIT

# start_probed MODE: it runs; what it says is in $tmp/said, and go_on gives it its line of input.
start_probed()
{
	rm -f "$tmp/input"
	mkfifo "$tmp/input"
	"$top_builddir/tests/outside/.libs/probed" "$1" <"$tmp/input" >"$tmp/said" &
	probed=$!
	started="$started $probed"
	exec 3>"$tmp/input"
	wait_until grep -q "$lib" "/proc/$probed/maps"
}

go_on()
{
	echo >&3
	exec 3>&-
	wait "$probed"
}

# What it said last is this.
last_said()
{
	test "$(tail -n 1 "$tmp/said")" = "$1"
}

# semaphore NAME: its value in the running program.  (It ends with the program's first mapping of
# the library, which is where the library begins.)
semaphore()
{
	base=0x$(grep -m 1 "$lib" "/proc/$probed/maps" | cut -d- -f1)
	offset=$(readelf -n "$lib" | sed -n "/Name: $1\$/{n;s/.*Semaphore: //p}")
	dd if="/proc/$probed/mem" bs=1 skip=$((base + offset)) count=2 status=none | od -An -tu2 |
		tr -d ' '
}

# semaphores VALUE NAME...: all have it.
semaphores()
{
	value=$1
	shift
	for name; do
		test "$(semaphore "$name")" = "$value" || return 1
	done
}

task_probes='task__spawn task__poll__start task__poll__end task__terminate task__wake
	task__waker__clone'
worker_probes='worker__thread__start worker__thread__stop worker__thread__park
	worker__thread__unpark'

# dashed NAME: the probe's name as it is written outside of C.
dashed()
{
	echo "$1" | sed 's/__/-/g'
}

# attaches VALUE NAME...: the tracer ($tracer) does attach, and the semaphores have this value then.
attaches()
{
	wait_until ended_or semaphores "$@" && semaphores "$@"
}

# by_thread FILE...: lines of events, those of each thread together, in the order they are in.
by_thread()
{
	sort -s -n -k1,1 "$@"
}

# pairs FILE ONE OTHER: events of the two probes are equally many, and there are some.
pairs()
{
	one=$(grep -c " $2\\>" "$1")
	other=$(grep -c " $3\\>" "$1")
	test "$one" = "$other" && test "$one" != 0
}

# claim_events WHO GOT: the events in the file GOT, in order, are what probed said it did.
claim_events()
{
	by_thread "$tmp/said" >"$tmp/done"
	by_thread "$2" >"$tmp/seen"
	same "$1 sees every event, with its arguments, in order on each thread" "$tmp/done" \
		"$tmp/seen"
	claim "as many tasks spawn as terminate" pairs "$tmp/seen" task-spawn task-terminate
	claim "as many polls start as end" pairs "$tmp/seen" task-poll-start task-poll-end
}
