#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The script for gdb prints what the program tdt prints: of processes, of core files, and of memory
# that is damaged.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
DEBUGINFOD_URLS=
LC_ALL=C
export DEBUGINFOD_URLS LC_ALL

command -v gdb >/dev/null || skip_all "there is no gdb"
test "$(gdb -nx -batch -ex 'python print(7)' 2>/dev/null)" = 7 || skip_all "gdb has no Python"

# run_gdb ARGUMENTS...: with the script, which may write nothing and call nothing.
run_gdb()
{
	timeout 100 gdb -nx -batch -iex "set may-write-memory off" \
		-iex "set may-write-registers off" -iex "set may-call-functions off" \
		-ex "source $top_srcdir/tools/gdb/tdt.py" "$@" </dev/null
}

# in_gdb COMMAND ARGUMENTS...: what the command prints is in $tmp/got, messages are in $tmp/why.
in_gdb()
{
	command=$1
	shift
	run_gdb -ex "echo begin\n" -ex "$command" "$@" >"$tmp/log" 2>"$tmp/why"
	sed -n '/^begin$/,$p' "$tmp/log" | sed '1d; /^\[Inferior .* detached\]$/d' >"$tmp/got"
	cat "$tmp/why" >&2
}

# says LINE COMMAND ARGUMENTS...: gdb prints the line, or the message.
says()
{
	line=$1
	shift
	in_gdb "$@"
	cat "$tmp/got" >&2
	grep -q -- "$line" "$tmp/got" "$tmp/why"
}

claim "help says what there is" says "^tdt bt -- Print where async tasks wait" "help tdt" \
	-ex "tdt ps" -ex "tdt ps 7" -ex "tdt bt" -ex "tdt bt 1 seven" -ex "tdt nonsense"
claim "a process is needed" grep -q "there is no process and no core file" "$tmp/why"
claim "ps has no arguments" grep -q "tdt ps takes no arguments" "$tmp/why"
claim "bt has some" grep -q 'which tasks?  Say "tdt bt all"' "$tmp/why"
claim "which are numbers" grep -q "not the id of a task: seven" "$tmp/why"
claim "no other command is known" grep -q 'see "help tdt"' "$tmp/why"

# --- Damaged images, which the program refuses or reads as far as they go ---

# list_images NAME...: what gdb prints of each is in $tmp/NAME.got, with the messages.
list_images()
{
	set -- "$@" end
	while test "$1" != end; do
		"$top_builddir/tests/outside/registry_image" "$1" >"$tmp/$1.image"
		set -- "$@" -ex "core-file $tmp/$1.image" -ex "echo begin $1\n" -ex "tdt ps" \
			-ex "echo end\n"
		shift
	done
	shift
	run_gdb "$@" 2>&1 | awk -v folder="$tmp" '/^end$/ { name = "" }
		name != "" { print >name }
		/^begin / { name = folder "/" $2 ".got" }'
}

# as_program IMAGE
as_program()
{
	"$tdt" ps --core="$tmp/$1.image" >"$tmp/expected" 2>/dev/null
	diff -u "$tmp/expected" "$tmp/$1.got"
}

# damaged IMAGE: no more than the sound part is printed, and a message.
damaged()
{
	cat "$tmp/$1.got"
	grep -q "memory that has them is damaged" "$tmp/$1.got" &&
		grep -q "^process 1, libtdt 0:" "$tmp/$1.got" &&
		test "$(wc -l <"$tmp/$1.got")" -le 9
}

# refused IMAGE MESSAGE
refused()
{
	cat "$tmp/$1.got"
	grep -q "$2" "$tmp/$1.got" && test "$(wc -l <"$tmp/$1.got")" = 1
}

list_images none escapes files path slab-again slabs-again used room address copy version stride
for image in none escapes files path; do
	claim "an image is listed as the program lists it ($image)" as_program $image
done
for image in slab-again slabs-again used room address; do
	claim "a list of tasks that cannot be right is read as far as it is ($image)" damaged $image
done
claim "a copy of a registry is none" refused copy "no libtdt was found"
claim "another version is named" refused version "layout 2, and this script reads layout 1"
claim "so is another layout" refused stride "use the one that belongs to the library"

# --- A process, and its core file ---

# without_times FILE: the program runs on until it looks.
without_times()
{
	# gdb and the program shorten the paths of a sanitizer's functions in ways of their own.
	sed '/__interceptor_/d; s/[0-9.]* [num]*s\([ ,]\|$\)/\1/g; s/  */ /g' "$1"
}

# lists_as_program WHAT PROGRAM-ARGUMENT GDB-ARGUMENTS...
lists_as_program()
{
	"$tdt" ps "$1" >"$tmp/listed"
	shift
	in_gdb "tdt ps" "$@"
	without_times "$tmp/listed" >"$tmp/expected"
	without_times "$tmp/got" >"$tmp/listed"
	diff -u "$tmp/expected" "$tmp/listed"
}

# plain FILE: a dump without what one of the two does not print: how long it took, columns of source
# lines, system calls, and frames of libc.
plain()
{
	sed 's/ (took .*//; s/\(\.c:[0-9]*\):[0-9]*/\1/; s/, in [a-z]*()//; /libc_\|(libc/d' "$1"
}

# dumps_as_program TASKS PROGRAM-ARGUMENT GDB-ARGUMENTS...
dumps_as_program()
{
	ids=$1
	test "$ids" != all || ids=
	# shellcheck disable=SC2086 # ids are words
	"$tdt" bt "$2" $ids >"$tmp/listed"
	command="tdt bt $1"
	shift 2
	in_gdb "$command" "$@"
	plain "$tmp/listed" >"$tmp/expected"
	plain "$tmp/got" >"$tmp/listed"
	diff -u "$tmp/expected" "$tmp/listed"
}

# attaches: whether gdb may.
attaches()
{
	gdb -nx -batch -ex "info threads" -p "$pid" </dev/null 2>&1 | grep -q "^[* ] *1 "
}

bank=$top_builddir/tests/outside/outside_bank
TDT_WATCH=10ms
export TDT_WATCH
if test "${WITH_RUNTIME:?}" != yes; then
	skip "the tasks of a process" "there is no runtime"
elif ! start_built "$bank" 3; then
	cat "$tmp/said" "$tmp/dumped" >&2
	claim "the bank starts" false
elif ! may_read || ! attaches; then
	skip "the tasks of a process" "reading another process is not permitted here"
	stop
else
	claim "a process is listed as the program lists it" lists_as_program "$pid" -p "$pid"
	claim "its deadlock is named" \
		says '^deadlock (from records): task 2 "alice to bob" waits for a mutex "bob"' \
		"tdt bt all" -p "$pid"
	claim "a task that is polled has its stack" says '^- report_poll at .*outside_bank.c:' \
		"tdt bt 5" -p "$pid"
	claim "the frame of the user stays selected" says '^#1 ' "frame 1" -ex "tdt bt all" \
		-ex "frame" -p "$pid"
	claim "twice" test "$(grep -c '^#1 ' "$tmp/got")" = 2
	if test "${SANITIZERS:?}" != no; then
		skip "the tasks of a core file" "sanitizers map terabytes"
	elif ! make_core; then
		skip "the tasks of a core file" "gdb made none: $(tail -n 1 "$tmp/gdb")"
	else
		program=$(readlink "/proc/$pid/exe")
		"$tdt" ps "--core=$tmp/core" >"$tmp/expected"
		in_gdb "tdt ps" "$program" "$tmp/core"
		same "a core file is listed as the program lists it" "$tmp/expected" "$tmp/got"
		claim "its trees are those that the program prints" \
			dumps_as_program all "--core=$tmp/core" "$program" "$tmp/core"
		claim "so are those of some tasks" \
			dumps_as_program "6 4" "--core=$tmp/core" "$program" "$tmp/core"
		rm -f "$tmp/core"
	fi
	stop
fi

# --- Fibers, lists and panics ---

# dumps_alike: the trees of a process that runs on meanwhile.
dumps_alike()
{
	"$tdt" bt --no-request "$pid" >"$tmp/dumped"
	plain "$tmp/dumped" >"$tmp/listed"
	without_times "$tmp/listed" >"$tmp/expected"
	in_gdb "tdt bt all" -p "$pid"
	plain "$tmp/got" >"$tmp/dumped"
	without_times "$tmp/dumped" >"$tmp/listed"
	diff -u "$tmp/expected" "$tmp/listed"
}

start_fibers()
{
	"$top_builddir/libtool" --mode=execute "$top_builddir/tests/outside/fiber_core" \
		<"$tmp/input" >"$tmp/records" &
	pid=$!
	exec 3>"$tmp/input"
	for _ in $(seq 600); do
		test "$(wc -l <"$tmp/records")" = 2 && return
		sleep 0.1
	done
	return 1
}

if start_fibers && may_read && attaches; then
	claim "the stacks of suspended fibers are those that the program prints" dumps_alike
else
	skip "the stacks of suspended fibers" "reading another process is not permitted here"
fi
claim "the process goes on and ends well" stop

if start_built "$top_builddir/tests/outside/registry_tasks" && may_read && attaches; then
	claim "lists of frames and panics are those that the program prints" dumps_alike
	claim "there are some" sh -c 'grep -q "^- serve at a.c:1$" "$1" &&
		grep -q "^task 1506 \"fallen 1506\" panicked .* ago" "$1"' - "$tmp/got"
else
	skip "lists of frames and panics" "reading another process is not permitted here"
fi
stop
# --- A poll on stacks that its thread has entered ---

# breaks_in_coroutines: gdb runs a program until a poll is blocked in a coroutine in a coroutine.
breaks_in_coroutines()
{
	CK_FORK=no CK_RUN_CASE=polls timeout 100 "$top_builddir/libtool" --mode=execute gdb -nx \
		-batch -ex "source $top_srcdir/tools/gdb/tdt.py" -ex "break expect_own_path" \
		-ex run -ex "tdt bt all" "$top_builddir/tests/unit/reader/check_entered" \
		</dev/null >"$tmp/log" 2>&1
	cat "$tmp/log" >&2
	sed -n 's/^[-` ]* \([a-z_]*\) at .*check_entered.c:[0-9]*$/\1/p' "$tmp/log" >"$tmp/got"
	diff -u "$tmp/expected" "$tmp/got"
}

cat >"$tmp/expected" <<'END'
poll_coroutine
outer_coroutine
inner_coroutine
block_here
END
if test "${SANITIZERS:?}" != no; then
	skip "the stack of a poll in coroutines" "a sanitizer's functions stand between them"
elif ! gdb -nx -batch -ex run /bin/true </dev/null 2>&1 | grep -q "exited normally"; then
	skip "the stack of a poll in coroutines" "gdb cannot run a program here"
else
	claim "the stack of a poll in coroutines goes on to where the task is polled" \
		breaks_in_coroutines
fi
plan
