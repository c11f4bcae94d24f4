#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The scripts in tools/: each against a program that runs (busy.c, which tells what its tasks do),
# with bpftrace, as root; and what can be known of them, and of their D twins, without.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/tracers.sh
. "$top_srcdir/tests/lib/tracers.sh"

: "${top_builddir:?}"
top_builddir=$(cd "$top_builddir" && pwd)
tools=$(cd "$top_srcdir/tools" && pwd)
names='count-spawns long-polls oncpu-by-task poll-stats print-all wait-stacks worker-util'

# --- Without a tracer ------------------------------------------------------

# The probes a script names, as the manual writes them.
probes_of()
{
	sed -n 's/^usdt:\*:tdt:\([a-z_]*\),\{0,1\}$/\1/p
		s/^tdt\$target:::\([a-z-]*\),\{0,1\}$/\1/p' "$1" |
		sed 's/__/-/g' | sort -u
}
# A D script's aggregations forget nothing, so wait-stacks.d has no use for where a wait ends.  And
# it prints its tables also if they are empty, so count-spawns.d does not look for polls.
probes_of_twin()
{
	case $1 in
	wait-stacks) echo task-waker-clone ;;
	count-spawns) printf '%s\n' task-spawn task-terminate ;;
	*) probes_of "$tools/$1.bt" ;;
	esac
}
known()
{
	probes_of "$1" | sed 's/-/__/g' >"$tmp/probes"
	[ -s "$tmp/probes" ] || return 1
	while read -r probe; do
		grep -q "X($probe)" "$top_srcdir/src/probes/probes.h" ||
			{ echo "$1: $probe"; return 1; }
	done <"$tmp/probes"
}
for name in $names; do
	probes_of_twin "$name" >"$tmp/expected"
	probes_of "$tools/$name.d" >"$tmp/twin"
	same "$name.d listens to what $name.bt does" "$tmp/expected" "$tmp/twin"
	claim "and they are probes of ours" known "$tools/$name.bt"
done
all_documented()
{
	for name in $names; do
		grep -q "$name" "$tools/README.md" || { echo "$name"; return 1; }
	done
	found=$(cd "$tools" && for file in *.bt *.d; do echo "${file%.*}"; done | sort -u |
		tr '\n' ' ')
	[ "$found" = "$names " ]
}
claim 'each script is in the README, and here' all_documented

# SystemTap has a program of this name, too.
dtrace=/usr/sbin/dtrace
if "$dtrace" -V 2>/dev/null | grep -q ' D [0-9]'; then
	sleep 60 &
	for name in $names; do
		claim "$name.d compiles" "$dtrace" -e -Z -p $! -s "$tools/$name.d"
	done
	kill $!
else
	skip 'the D scripts compile' 'no DTrace here'
fi

# --- With bpftrace ---------------------------------------------------------

target=$top_builddir/tests/outside/.libs/busy
[ -x "$target" ] || target=$top_builddir/tests/outside/busy
source=$top_srcdir/tests/outside/busy.c

why_not()
{
	if [ "${SANITIZERS:-no}" != no ]; then
		echo 'a sanitized program is too slow to be traced'
	elif ! grep -q '^#define TDT_PROBES 1' "$top_builddir/config.h"; then
		echo 'built without probes'
	elif ! command -v bpftrace >/dev/null; then
		echo 'no bpftrace here'
	elif [ "$(id -u)" != 0 ]; then
		echo 'tracers need root'
	elif ! timeout 120 bpftrace -e 'BEGIN { printf("works\n"); exit(); }' 2>"$tmp/err" |
		grep -q works; then
		echo "bpftrace does not work here: $(tail -1 "$tmp/err")"
	elif ! has_tracefs; then
		echo 'there is no tracefs'
	fi
}
why=$(why_not)
if [ -n "$why" ]; then
	skip 'the scripts, run by bpftrace' "$why"
	plan
	exit
fi

cd "$tmp" || exit 99
LD_LIBRARY_PATH=$top_builddir/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
trap 'kill_started; rm -rf "$tmp"' EXIT

mkfifo in
"$target" <in >traces 2>target.err &
target_pid=$!
started=$target_pid
exec 3>in

# One more dump of all tasks, in `dump`; an empty line ends it.
dumped()
{
	[ "$(grep -c '^$' traces)" -gt "$dumps" ]
}
dump()
{
	dumps=$(grep -c '^$' traces)
	echo >&3
	wait_until dumped || return 1
	awk 'NF == 0 { last = now; now = ""; next }
		{ now = now $0 "\n" }
		END { printf "%s", last }' traces >dump
}
# Of each task: not so if one was held up for longer than a trace is waited for.
whole_dump()
{
	dump && [ "$(wc -l <dump)" = 5 ]
}

# start NAME [ARGUMENT]: the script's output will be in NAME.out, its pid is $pid_of_NAME.
start()
{
	script=$1
	shift
	bpftrace -p $target_pid "$tools/$script.bt" "$@" >"$script.out" 2>"$script.err" 3>&- &
	started="$started $!"
	eval "pid_of_$(echo "$script" | tr - _)=$!"
}
pid_of()
{
	eval "echo \$pid_of_$(echo "$1" | tr - _)"
}
has_started()
{
	tracer=$(pid_of "$1")
	attached "$1.out" "$1.err"
}
# stop NAME: as Ctrl-C does.
stop()
{
	detach "$(pid_of "$1")"
}

claim 'the program runs, and tells where its tasks wait' wait_until whole_dump

start count-spawns
start long-polls 30
start oncpu-by-task
start poll-stats
start print-all
start wait-stacks 2
start worker-util
for name in $names; do
	claim "$name is attached" has_started "$name"
done

# The line of busy.c that has that text: where a task is spawned.
line_of()
{
	grep -nF "$1" "$source" | head -1 | cut -d: -f1
}
three=$(line_of 'TRIFLE("one of three")')
single=$(line_of 'TRIFLE("single")')
laggard=$(line_of 'TASK(laggard)')
pinger=$(line_of 'TASK(pinger)')

long_poll_is_told()
{
	cat long-polls.out
	# Its head, and the frames up to an empty line.
	awk -v line="busy.c:$laggard; in task 2:" '
		/^task 2 / && index($0, line) { on = 1; if ($5 >= 60) long = 1; next }
		/^$/ { on = 0 }
		on && / burn\+/ { burn = 1 }
		on && / laggard_poll\+/ { laggard = 1 }
		END { exit !(long && burn && laggard) }' long-polls.out
}
workers_are_measured()
{
	cat worker-util.out
	sed -n 's/^@busy\[\([0-9]*\)\]: .*/\1/p' worker-util.out | sort -u >threads
	# Two that work; the third was parked all the time.
	[ "$(wc -l <threads)" = 2 ] && grep -Eq '^@parks\[[0-9]+\]: [1-9]' worker-util.out &&
		awk '/^@busy/ && $2 >= 10 { good = 1 } END { exit !good }' worker-util.out
}
# The functions of a task's stacks, one line for each, without what tracers add.
waits_of()
{
	awk -v key="^@waits\\\\[$1, " \
		'$0 ~ key { on = 1; printf "\n"; next } /^[@ ]*$|^@/ { on = 0 }
		on { sub(/([.]poll)?\+.*/, "", $1); printf "%s ", $1 }' wait-stacks.out |
		grep -o '[^ ]* \(tdt_select \)\{0,1\}[a-z]*_poll tdt__' | sort
}
cat >expected_waits <<'END'
nap_poll pinger_poll tdt__
never_poll tdt_select ponger_poll tdt__
ping_poll tdt_select ponger_poll tdt__
END
all_wait()
{
	{
		waits_of 3
		waits_of 4
	} >waits
	cmp -s expected_waits waits
}

# --- Until enough has happened ---

quietly()
{
	"$@" >/dev/null 2>&1
}
# The slowest has been late so often;
late_polls()
{
	[ "$(grep -c '^task 2 ' long-polls.out)" -ge 15 ]
}
claim 'the program goes on' wait_until late_polls
# what prints as it goes has printed what is looked for below;
wait_until quietly long_poll_is_told
wait_until quietly workers_are_measured
# and for the one that samples the program has burned two seconds of processor time.
burned()
{
	sed 's/.*) //' /proc/$target_pid/stat | awk '{ print $12 + $13 }'
}
burned_more()
{
	[ "$(burned)" -ge $((before + 2 * $(getconf CLK_TCK))) ]
}
before=$(burned)
wait_until burned_more

# wait-stacks counts its seconds from when it begins to attach, and may find a task in the middle of
# a poll.
claim 'wait-stacks ends by itself' wait "$(pid_of wait-stacks)"
for seconds in 4 8 16 32; do
	all_wait && break
	start wait-stacks $seconds
	wait "$(pid_of wait-stacks)"
done
for name in count-spawns long-polls oncpu-by-task poll-stats worker-util; do
	claim "$name ends by Ctrl-C" stop "$name"
done

# --- What they tell ---

# A file of bpftrace's maps: the value of @$2[$3]
value()
{
	sed -n "s/^@$2\\[$3\\]: //p" "$1"
}
# Probes are attached one after the other, and detached so: the numbers of one probe may differ by
# some rounds, and those of two by any time.
spawns_counted()
{
	cat count-spawns.out
	a=$(value count-spawns.out spawned ".*busy.c, $three")
	b=$(value count-spawns.out spawned ".*busy.c, $single")
	c=$(value count-spawns.out ended ".*busy.c, $three")
	[ "$b" -gt 10 ] && [ $((a - 3 * b)) -le 3 ] && [ $((3 * b - a)) -le 3 ] && [ "$c" -gt 10 ]
}
claim 'count-spawns: one place spawns three times as many as the other, and they end' spawns_counted

# histogram MAP LINE: its lines
histogram()
{
	awk -v key="^@$1\\\\[.*busy.c, $2\\\\]:" '$0 ~ key { on = 1; next } /^@|^$/ { on = 0 } on' \
		poll-stats.out
}
polls_are_long()
{
	cat poll-stats.out
	# It burns 60 ms, or is held up longer, in each poll but those that only answer a dump.
	histogram poll_us "$laggard" |
		awk '{ n = $2 ~ /\)$/ ? $3 : $2 }
			/^\[((32|64|128|256|512)K|[0-9]+M),/ { long += n; next }
			{ short += n }
			END { exit long < 10 || long < short }'
}
claim 'poll-stats: how long polls are, by the place of the spawn' polls_are_long
wakes_are_timed()
{
	histogram wake_to_poll_us "$pinger" | grep -Eq ' [1-9][0-9]* \|'
}
claim 'poll-stats: and how long after the wake-up they come' wakes_are_timed

claim 'long-polls: which task, for how long, and where' long_poll_is_told

all_wait
cat wait-stacks.out >&2
same 'wait-stacks: where each task waits now, leaf by leaf' expected_waits waits
waits_now()
{
	# Of the tasks that end at once none is left; one that is spawned again and again may be
	# there, just now.
	[ "$(grep -c '^@spawned' wait-stacks.out)" -le 6 ]
}
claim 'wait-stacks: and ended tasks are forgotten' waits_now

# samples TASK [FUNCTION]: how many, all or of stacks with that function.
samples()
{
	awk -v key="^@oncpu\\\\[$1, " -v name=" ${2-}" '
		$0 ~ key { on = 1; seen = 0 }
		on && index($0, name) { seen = 1 }
		on && /^\]: / { if (seen) n += $2; on = 0 }
		END { print n + 0 }' oncpu-by-task.out
}
burning_is_seen()
{
	cat oncpu-by-task.out
	[ "$(samples 2 'burn+')" -gt 20 ] && [ "$(samples 2 'laggard_poll+')" -gt 20 ] &&
		[ "$(samples 1 'burner_poll+')" -gt 0 ] && [ "$(samples 3)" -lt "$(samples 2)" ]
}
claim 'oncpu-by-task: samples where a task burns, by its id' burning_is_seen

claim 'worker-util: how busy each worker is, in percent' workers_are_measured

# --- What tdt-join-ustack makes of them --------------------------------------

join=$top_builddir/.libs/tdt-join-ustack
[ -x "$join" ] || join=$top_builddir/tdt-join-ustack
joined()
{
	wait_until whole_dump || return
	LC_ALL=C "$join" dump oncpu-by-task.out wait-stacks.out long-polls.out >tree || return 1
	cat tree
	awk '/^task/ { name = $3 }
		name == "\"pinger\"" && /- nap_poll at .*  waiting, .*waited x1/ { waits = 1 }
		name == "\"laggard\"" && /- burn .*on CPU x[0-9]*, long poll x/ { burns = 1 }
		name == "\"ponger\"" && /- never_poll at .*  waiting, .*waited x1/ { never = 1 }
		END { exit !(waits && burns && never) }' tree
}
claim 'tdt-join-ustack: the wait tree with the samples in it' joined

# --- The end of the program --------------------------------------------------

exec 3>&-
claim 'the program ends' wait $target_pid
claim 'and so does print-all' wait "$(pid_of print-all)"
all_events()
{
	for event in task-spawn task-poll-start task-poll-end task-terminate task-wake \
		task-waker-clone \
		worker-thread-stop worker-thread-park worker-thread-unpark; do
		grep -q " $event" print-all.out || { echo "no $event"; return 1; }
	done
}
claim 'print-all: all events there were' all_events
# A task that ends in its first poll: spawned, woken never, polled, ended before the end of the
# poll.
in_order()
{
	sort -n print-all.out | awk -v place="busy.c:$single" '
		index($0, place) { events[$4] = events[$4] " " $3 }
		END {
			for (task in events) {
				if (events[task] == " task-spawn task-poll-start" \
						    " task-terminate task-poll-end")
					good++
				else
					print task ":" events[task]
			}
			exit good < 20
		}'
}
claim 'print-all: in their order' in_order

# --- A program that polls no task --------------------------------------------

# A script that prints no event looked for a Ctrl-C once only, when bpftrace went to sleep.  So here
# it comes as soon as bpftrace catches it, while bpftrace is still busy with attaching.
idle=$top_builddir/tests/outside/.libs/registry_tasks
[ -x "$idle" ] || idle=$top_builddir/tests/outside/registry_tasks
mkfifo idle_in
"$idle" <idle_in >idle.out &
idle_pid=$!
started="$started $idle_pid"
exec 4>idle_in
# Bit 1 of the last digit is that of SIGINT.  Before bpftrace is executed its process is this shell,
# which catches SIGINT, too.
catches_int()
{
	! cmp -s "/proc/$1/comm" "/proc/$$/comm" &&
		grep -q '^SigCgt:.*[2367abef]$' "/proc/$1/status"
}
interrupt()
{
	bpftrace -p $idle_pid "$tools/$1.bt" >"idle-$1.out" 2>"idle-$1.err" 4>&- &
	tracer=$!
	started="$started $tracer"
	wait_until catches_int $tracer && kill -INT $tracer && wait_until has_ended $tracer
}
# A bpftrace that is interrupted before it has attached END may print nothing: it is run again.
explains_itself()
{
	for _ in 1 2 3; do
		cat "idle-$1.out" "idle-$1.err"
		grep -qx 'no task was polled meanwhile; a dump (kill -USR1) polls them all' \
			"idle-$1.out" && return
		interrupt "$1"
	done
	return 1
}
silent()
{
	! grep -l 'no task was polled' ./*.out
}
claim 'no script has said that no task was polled' silent
claim 'a program that polls no task starts' wait_until grep -q '^ready$' idle.out
for name in $names; do
	claim "$name ends by a Ctrl-C that comes early" interrupt "$name"
	claim "$name says that no task was polled" explains_itself "$name"
done
exec 4>&-
plan
