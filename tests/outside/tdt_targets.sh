#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What tdt makes of processes in unusual states and places: in namespaces of their own, hidden,
# stopped, traced, ending, with another build of their file, of other kinds; and how it finds
# processes by name.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
LC_ALL=C
DEBUGINFOD_URLS=
export LC_ALL DEBUGINFOD_URLS
chmod 755 "$tmp" # other users run what lies in it

# No other run of this test has processes of these names.
name=target_$$
long_name=name_$$-of-more-than-15-bytes
program=$tmp/$name
cp "${top_builddir:?}/tests/outside/registry_tasks_static" "$program"
without_call=$top_builddir/tests/outside/without_call
as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"

# lists ARGUMENTS...: tdt lists the tasks of the program.
lists()
{
	"$tdt" ps "$@" >"$tmp/listed" 2>"$tmp/why"
	status=$?
	head -n 3 "$tmp/listed"
	cat "$tmp/why"
	[ $status = 0 ] && test "$(grep -c '  steady [0-9]*  *waiting ' "$tmp/listed")" = 1500
}

# A sanitizer's function may stand between the poll and pause().
function=be_stuck
test "${SANITIZERS:?}" = no || function='running .* on thread'

# shows ARGUMENTS...: tdt prints the stack of the task that blocks its thread, once that is blocked.
shows()
{
	wait_until finds_stack "$@"
}

finds_stack()
{
	"$tdt" bt "$@" 1505 >"$tmp/listed" 2>"$tmp/why"
	cat "$tmp/listed" "$tmp/why"
	grep -q "$function" "$tmp/listed"
}

# refuses MESSAGE COMMAND...: status 2, and the message.
refuses()
{
	message=$1
	shift
	"$@" >"$tmp/listed" 2>"$tmp/why"
	status=$?
	cat "$tmp/why"
	[ $status = 2 ] && grep -q "^tdt: .*$message" "$tmp/why"
}

start "$program"
may_read || skip_all "reading another process is not permitted here: $(cat "$tmp/why")"

# --- Names ---

claim "a process is found by its name" lists "$name"
rm "$program"
claim "its file may be gone" lists "$name"
stop
cp "$top_builddir/tests/outside/registry_tasks_static" "$program"

ln "$program" "$tmp/$long_name"
start "$tmp/$long_name"
claim "a name may be longer than the kernel's" lists "$long_name"
claim "which is a name, too" lists "$(printf %.15s "$long_name")"
stop

printf '#!/bin/sh\nexec -a "other: name" %s\n' "$program" >"$tmp/renames"
if command -v bash >/dev/null; then
	start bash "$tmp/renames"
	claim "a process that calls itself otherwise has the name of its file" lists "$name"
	stop
else
	skip "a process that calls itself otherwise" "there is no bash"
fi

printf '#!/bin/sh\necho ready; read line\n' >"$tmp/script_$$"
cp "$tmp/script_$$" "$tmp/script_$$-with-a-longer-name"
chmod +x "$tmp"/script_*
for script in script_$$ script_$$-with-a-longer-name; do
	start "$tmp/$script"
	claim "a script is found by its name, of ${#script} bytes" refuses "no libtdt was found" \
		"$tdt" ps "$script"
	stop
done

"$program" <"$tmp/input" >"$tmp/other" &
other=$!
start "$program"
until grep -q ready "$tmp/other"; do
	sleep 0.1
done
claim "of several processes with a name none is chosen" refuses \
	"2 processes have that name; choose one of: [0-9]* [0-9]*$" "$tdt" ps "$name"
claim "all of them are named" grep -q " $pid\>.*" "$tmp/why"
claim "each" grep -q " $other\>" "$tmp/why"
stop
wait $other

# --- Namespaces ---

# in_a WHAT OPTION...: a process in a new namespace, below unshare.
in_a()
{
	what=$1
	shift
	if ! unshare "$@" --fork true 2>"$tmp/why"; then
		skip "a process in $what" "$(head -n 1 "$tmp/why")"
		return
	fi
	start unshare "$@" --fork "$program"
	target=$(cat /proc/[0-9]*/stat 2>/dev/null |
		awk -v parent="$pid" '$4 == parent { print $1 }')
	claim "a process in $what is listed" lists "$target"
	claim "by the number that it has here" grep -q "^process $target, libtdt" "$tmp/listed"
	claim "and its stacks are read" shows "$target"
	"$tdt" ps --json "$target" >"$tmp/json"
	claim "its times are right" sh -c \
		"tr '{,' '\n\n' <'$tmp/json' | grep -q '\"spawned_ns\":[0-9]\{3,12\}$'"
	claim "all of them" sh -c \
		"! tr '{,}' '\n\n\n' <'$tmp/json' | grep '\"spawned_ns\":[0-9]\{13\}'"
	stop
}

# The debugger numbers threads as they are numbered here.
dumped_from_outside()
{
	if ! command -v gdb >/dev/null || test "$SANITIZERS" != no; then
		skip "a core file that was made outside" "there is no gdb, or a sanitizer"
		return
	fi
	start unshare --pid --fork "$program"
	unshare=$pid
	pid=$(awk -v parent="$pid" '$4 == parent { print $1 }' /proc/[0-9]*/stat 2>/dev/null)
	if make_core; then
		claim "a core file that was made outside has stacks" shows "--core=$tmp/core"
		rm "$tmp/core"
	else
		skip "a core file that was made outside" "gdb made none"
	fi
	pid=$unshare
	stop
}

in_a "another mount namespace" --mount
in_a "another PID namespace" --pid
! unshare --pid --fork true 2>/dev/null || dumped_from_outside
in_a "another user namespace" --user
in_a "another user namespace, as its root" --user --map-root-user
in_a "a time namespace that is ahead" --time --monotonic 100000
in_a "one that is behind" --time --monotonic -1000
in_a "a container" --mount --pid --net --ipc --uts --user --map-root-user --mount-proc

# --- /proc ---

# hidden OPTION: run a command where processes of other users are hidden.
hidden()
{
	option=$1
	shift
	# shellcheck disable=SC2016,SC2086
	unshare --mount sh -c 'mount -t proc -o "$0" proc /proc && exec "$@"' "$option" \
		$as_nobody "$@"
}

start "$program"
if ! hidden hidepid=2 true 2>/dev/null; then
	skip "processes that are hidden" "/proc cannot be mounted here"
elif ! $as_nobody "$tdt" --version >/dev/null 2>&1; then
	skip "processes that are hidden" "another user cannot run tdt here"
else
	for option in hidepid=1 hidepid=2; do
		claim "a process that is hidden ($option)" refuses "is hidden here" \
			hidden $option "$tdt" ps "$pid"
		claim "one that there is not" refuses "no process 999999999 here" \
			hidden $option "$tdt" ps 999999999
		claim "the name of one that is hidden" refuses "are hidden here" \
			hidden $option "$tdt" ps "$name"
	done
	if test "$SANITIZERS" = no; then
		claim "without /proc nothing is read" refuses "/proc is not mounted" \
			unshare --mount sh -c "umount -l /proc && exec '$tdt' ps $pid"
	else
		skip "without /proc nothing is read" "a sanitizer reads /proc itself"
	fi
fi

# --- What the reader may not do ---

# without CALL COMMAND...
without()
{
	call=$1
	shift
	"$without_call" "$call" "$@"
}

if test "$(without process_vm_readv /bin/true; echo $?)" = 77; then
	skip "a reader in a sandbox" "no filter of system calls can be set here"
else
	claim "memory may be forbidden" refuses "process_vm_readv(2) is not allowed here" \
		without process_vm_readv "$tdt" ps "$pid"
	without openat2 "$tdt" bt "$pid" 1505 >"$tmp/listed"
	claim "files may be: the stack is there" grep -q '^.* at \|+0x' "$tmp/listed"
fi
stop

start "$program" churn
shows_rest()
{
	without perf_event_open "$tdt" bt "$pid" >"$tmp/listed" 2>"$tmp/why"
	status=$?
	test $status != 0 || grep -q ' "stuck 1505" running .* in pause()' "$tmp/listed"
}
wait_until shows_rest
if test $status = 77; then
	skip "a reader that may not sample" "no filter of system calls can be set here"
else
	claim "stacks of running threads may be: the rest is shown" test $status = 0
	claim "the rest" grep -q ' "stuck 1505" running .* in pause()' "$tmp/listed"
fi
stop

# --- States ---

start "$program"
kill -STOP "$pid"
claim "a process that was stopped is listed" lists "$pid"
claim "and its stacks are read" shows "$pid"
kill -CONT "$pid"
if command -v gdb >/dev/null && test "$SANITIZERS" = no; then
	mkfifo "$tmp/commands"
	gdb -nx -q -p "$pid" <"$tmp/commands" >"$tmp/gdb" 2>&1 &
	gdb=$!
	exec 4>"$tmp/commands"
	until grep -q '^State:.*tracing stop' "/proc/$pid/status"; do
		kill -0 $gdb 2>/dev/null || break
		sleep 0.1
	done
	claim "a process that gdb has stopped is listed" lists "$pid"
	claim "and its stacks are read" shows "$pid"
	exec 4>&-
	wait $gdb
else
	skip "a process that gdb has stopped" "there is no gdb, or sanitizers make it slow"
fi
stop

# shellcheck disable=SC2016 # the inner shell's
sh -c '"$0" </dev/null >/dev/null & echo $! >"$1"; exec sleep 1000' "$program" "$tmp/zombie" &
parent=$!
until grep -q '^State:.Z' "/proc/$(cat "$tmp/zombie" 2>/dev/null)/status" 2>/dev/null; do
	sleep 0.1
done
claim "a zombie is named as such" refuses "has ended and is a zombie" \
	"$tdt" ps "$(cat "$tmp/zombie")"
kill $parent
wait $parent

# --- Processes that die ---

seed=${TDT_TEST_SEED:-$(date +%s)}
echo "# TDT_TEST_SEED=$seed"

# Whether tdt, with status $1, says nothing but that the process has ended.
ended_well()
{
	! grep -v 'has ended\|there is no process\|no memory of its own' "$tmp/why" &&
		case $1 in
		0) test ! -s "$tmp/why" ;;
		2) test -s "$tmp/why" ;;
		*) false ;;
		esac
}

# Each process dies within the first 16 ms of a reading.
reads_the_dying()
{
	awk -v seed="$seed" 'BEGIN {
		srand(seed)
		for (i = 0; i < 30; i++)
			printf "%.4f %s\n", rand() * 0.016, i % 2 ? "ps" : "bt --no-request"
	}' >"$tmp/delays"
	while read -r delay verb; do
		start "$program" churn
		(sleep "$delay"; kill -9 "$pid") &
		# shellcheck disable=SC2086 # two words
		"$tdt" $verb "$pid" >"$tmp/listed" 2>"$tmp/why"
		status=$?
		exec 3>&-
		wait
		if ! ended_well $status; then
			echo "after $delay s: tdt $verb ended with status $status"
			tail -n 5 "$tmp/listed" "$tmp/why"
			return 1
		fi
		echo "$verb $status $(head -n 1 "$tmp/why")" >>"$tmp/ends"
	done <"$tmp/delays" 2>"$tmp/noise"
	sort "$tmp/ends" | uniq -c
}

claim "a process may die at any moment" reads_the_dying

# --- Several copies of the library ---

# has_copy NAME
has_copy()
{
	grep -q "^process $pid, libtdt .* (the copy at 0x[0-9a-f]*): 1 task" "$tmp/listed" &&
		grep -q "^ *1  $1 .* waiting" "$tmp/listed"
}

if test "$SANITIZERS" != no; then
	skip "several copies of the library" "sanitizers allow no other namespace of the loader"
elif ! start "$top_builddir/tests/outside/copies" "$top_builddir/.libs/libtdt.so"; then
	skip "several copies of the library" "$(cat "$tmp/dumped")"
else
	"$tdt" ps "$pid" >"$tmp/listed"
	for copy in linked loaded apart; do
		claim "the tasks of each copy are listed ($copy)" has_copy $copy
	done
	"$tdt" bt "$pid" >"$tmp/listed"
	claim "bt prints each, too" test "$(grep -c '^1 task' "$tmp/listed")" = 3
	stop
fi

# --- Core files of the kernel ---

# Leave a core file, $core.
make_kernel_core()
{
	core=
	mkdir -p "$tmp/dumped_in"
	case $(cat /proc/sys/kernel/core_pattern) in
	*[/\|]*) return 1 ;;
	esac
	# shellcheck disable=SC2016,SC3045
	start sh -c 'ulimit -c unlimited && cd "$1" && exec "$0"' "$program" "$tmp/dumped_in" ||
		return 1
	kill -ABRT "$pid"
	stop
	core=$(find "$tmp/dumped_in" -type f -size +0)
	test -n "$core"
}

if test "$SANITIZERS" != no; then
	skip "a core file of the kernel" "sanitizers map terabytes"
elif ! make_kernel_core 2>/dev/null; then
	skip "a core file of the kernel" "the kernel writes none to the working directory here"
else
	claim "a core file of the kernel is listed" lists "--core=$core"
	claim "and its stacks are read" shows "--core=$core"
	rm "$core"
fi

# --- Other kinds of programs ---

start "$program"
# A 32-bit program that waits for a byte, if it can be built and run here.
cat >"$tmp/small.s" <<'END'
	.globl _start
_start:	mov $3, %eax
	xor %ebx, %ebx
	mov %esp, %ecx
	mov $1, %edx
	int $0x80
	mov $1, %eax
	int $0x80
	.section .note.GNU-stack,"",@progbits
END
if ! ${TEST_GCC:-gcc} -m32 -nostdlib -static -o "$tmp/small" "$tmp/small.s" 2>"$tmp/why" ||
	! "$tmp/small" </dev/null; then
	skip "a 32-bit process" "none can be built or run here"
else
	"$tmp/small" <"$tmp/input" &
	small=$!
	until grep -q small "/proc/$small/maps"; do
		sleep 0.1
	done
	claim "a 32-bit process is refused" refuses "process $small is a 32-bit program" \
		"$tdt" ps $small
	kill $small
	wait $small
fi
stop
plan
