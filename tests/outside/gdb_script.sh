#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The commands for gdb print what the program tdt prints of a process that gdb has stopped, and of a
# core file; and where that cannot be, they say why, and what helps.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
DEBUGINFOD_URLS=
LC_ALL=C
TMPDIR=$tmp/temporary
export DEBUGINFOD_URLS LC_ALL TMPDIR
mkdir "$TMPDIR"

command -v gdb >/dev/null || skip_all "there is no gdb"
test "$(gdb -nx -batch -ex 'python print(7)' 2>/dev/null)" = 7 || skip_all "gdb has no Python"

# in_gdb COMMAND ARGUMENTS...: what the command prints is in $tmp/got, messages are in $tmp/why.
# gdb may write nothing and call nothing.
in_gdb()
{
	command=$1
	shift
	timeout 100 ${user-} gdb -nx -batch -iex "set remotetimeout 100" \
		-iex "set may-write-memory off" \
		-iex "set may-write-registers off" -iex "set may-call-functions off" \
		-ex "source $top_srcdir/tools/gdb/tdt.py" \
		-ex "set tdt-program ${program:-$tdt}" -ex "echo begin\n" -ex "$command" "$@" \
		</dev/null >"$tmp/log" 2>"$tmp/why"
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

# without_times FILE: the clock goes on, also that of a process that is stopped.
without_times()
{
	sed -E 's/[0-9.]+ [num]?s( to [0-9.]+ [num]?s)?([ ,)]|$)/\2/g; s/  */ /g' "$1"
}

# as_program PROGRAM-ARGUMENTS -- COMMAND GDB-ARGUMENTS...: gdb prints what the program prints.
as_program()
{
	arguments=
	while test "$1" != --; do
		arguments="$arguments $1"
		shift
	done
	shift
	# shellcheck disable=SC2086 # they are words
	"$tdt" $arguments >"$tmp/listed"
	in_gdb "$@"
	without_times "$tmp/listed" >"$tmp/expected"
	without_times "$tmp/got" >"$tmp/listed"
	test -s "$tmp/got" && diff -u "$tmp/expected" "$tmp/listed"
}

# A program in place of tdt.
stand_in()
{
	program=$tmp/stand-in
	{
		echo "#!/bin/sh"
		cat
	} >"$program"
	chmod +x "$program"
}

# --- What is wrong is said ---

claim "help says what there is" says "^tdt bt -- Print where async tasks wait" "help tdt" \
	-ex "tdt ps" -ex "tdt nonsense"
claim "a process is needed" grep -q "there is no process and no core file" "$tmp/why"
claim "no other command is known" grep -q 'see "help tdt"' "$tmp/why"

stub=$top_srcdir/tests/outside/fixtures/remote_stub.py
claim "a remote process needs a core file" \
	says 'save a core file ("generate-core-file FILE").* tdt bt --core=FILE' \
	"target remote | gdb -nx -batch -x $stub" -ex "tdt bt all"
claim "tdt is not asked about it" test "$(grep -c "" "$tmp/got")" = 1

# --- A process ---

# attaches: whether gdb may.
attaches()
{
	gdb -nx -batch -ex "info threads" -p "$pid" </dev/null 2>&1 | grep -q "^[* ] *1 "
}

# passes COMMAND ARGUMENTS: with that command gdb runs tdt with these arguments.
passes()
{
	in_gdb "$1" -p "$pid"
	echo "$2" | diff -u - "$tmp/got"
}

# asks_saved_core: a tdt that may not read the process gets a core file, which is gone afterwards.
asks_saved_core()
{
	stand_in <<-END
		case "\$*" in
		*--core=$TMPDIR/*) exec "$tdt" "\$@" ;;
		esac
		echo "tdt: process $pid may not be read, for a test" >&2
		exit 2
	END
	says "^task 4 \"reload\" running" "tdt bt 4" -p "$pid" &&
		grep "process $pid may not be read, for a test" "$tmp/why" &&
		grep "gdb saves a core file of the process for this command" "$tmp/why" &&
		test -z "$(ls "$TMPDIR")"
}

# unprivileged COMMAND...: without the privilege to read others, which root can give up.
unprivileged()
{
	setpriv --inh-caps=-sys_ptrace --bounding-set=-sys_ptrace "$@" 2>"$tmp/why"
}

bank=$top_builddir/tests/outside/outside_bank
if test "${WITH_RUNTIME:?}" != yes; then
	skip "the tasks of a process" "there is no runtime"
	plan
	exit
fi

# lists_what_it_runs: where kernel.yama.ptrace_scope is 1, by way of a core file.
lists_what_it_runs()
{
	exe=$top_builddir/tests/outside/.libs/outside_bank
	test -e "$exe" || exe=$bank
	# A breakpoint is written to memory.
	says '^ *4 *reload *polling' "set may-write-memory on" \
		-ex "set may-write-registers on" -ex "break reload_poll" \
		-ex "set environment LD_LIBRARY_PATH $top_builddir/.libs" -ex "run 3 rests" \
		-ex "tdt ps" "$exe" && test -z "$(ls "$TMPDIR")"
}

# reads_what_yama_forbids: as a user whose tdt may not read what gdb has started.
reads_what_yama_forbids()
{
	stand_in <<-END
		exec "$without_call" YAMA "$tdt" "\$@"
	END
	lists_what_it_runs && grep "process [0-9]* may not be read" "$tmp/why" &&
		grep "gdb saves a core file of the process for this command" "$tmp/why"
	result=$?
	program=
	return $result
}

what="the tasks of a process that gdb has started are listed"
denied="also where tdt may not read it, by way of a core file"
without_call=$top_builddir/tests/outside/without_call
as_nobody=
test "$(id -u)" != 0 || as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
if test "${SANITIZERS:?}" != no; then
	skip "$what" "sanitizers map terabytes"
elif ! gdb -nx -batch -ex run /bin/true </dev/null 2>&1 | grep -q "exited normally"; then
	skip "$what" "gdb cannot run a program here"
else
	claim "$what" lists_what_it_runs
	chmod 755 "$tmp"
	chmod 777 "$TMPDIR" # the user's gdb writes to it
	if ! $as_nobody "$without_call" YAMA "$tdt" --version >/dev/null 2>&1; then
		skip "$denied" "no user without the right to trace can run tdt here"
	else
		user=$as_nobody
		claim "$denied" reads_what_yama_forbids
		user=
	fi
fi

if ! TDT_WATCH=10ms start "$bank" 3 rests; then
	cat "$tmp/said" "$tmp/dumped" >&2
	claim "the bank starts" false
	plan
	exit
elif ! may_read || ! attaches; then
	skip "the tasks of a process" "reading another process is not permitted here"
	stop
	plan
	exit
fi

claim "a process is listed as the program lists it" as_program ps "$pid" -- "tdt ps" -p "$pid"
claim "its trees are those that the program prints" \
	as_program bt --no-request "$pid" -- "tdt bt all" -p "$pid"
claim "no tasks means all of them" as_program bt --no-request "$pid" -- "tdt bt" -p "$pid"
claim "a task that is polled has its stack" says '^- report_poll at .*outside_bank.c:' \
	"tdt bt 5" -p "$pid"
claim "what the program does not understand, it says itself" \
	says "^tdt: not the id of a task: seven" "tdt bt 1 seven" -p "$pid"

stand_in <<'END'
echo "$@"
END
claim "options are those of the program" passes "tdt ps --name='a b' --sort age" \
	"ps $pid --name=a b --sort age"
claim "no request is made" passes "tdt bt 7 8" "bt $pid --no-request 7 8"
for status in 1 3; do
	stand_in <<-END
		echo an answer
		echo a message >&2
		exit $status
	END
	claim "status $status is an answer" says "^an answer" "tdt bt --check" -p "$pid"
	claim "with its messages" grep -q "^a message" "$tmp/why"
done
stand_in <<'END'
exit 9
END
claim "a program that fails in silence is noticed" says "tdt failed with status 9" "tdt ps" \
	-p "$pid"
program=$tmp/nowhere/tdt
claim "so is one that is missing" \
	says "\"$program\" does not start: No such .*set tdt-program FILE" "tdt ps" -p "$pid"

# --- A core file ---

if test "${SANITIZERS:?}" != no; then
	skip "the tasks of a core file" "sanitizers map terabytes"
elif ! make_core; then
	skip "the tasks of a core file" "gdb made none: $(tail -n 1 "$tmp/gdb")"
else
	program=
	exe=$(readlink "/proc/$pid/exe")
	claim "a core file is listed as the program lists it" \
		as_program ps "--core=$tmp/core" -- "tdt ps" "$exe" "$tmp/core"
	claim "its trees are those that the program prints" \
		as_program bt "--core=$tmp/core" -- "tdt bt all" -c "$tmp/core"
	claim "so are those of some tasks" \
		as_program bt "--core=$tmp/core" 6 4 -- "tdt bt 6 4" "$exe" "$tmp/core"
	rm -f "$tmp/core"
	claim "a process that tdt may not read is asked by way of a core file" asks_saved_core
	if ! unprivileged true || unprivileged "$tdt" ps "$pid" >/dev/null; then
		skip "tdt refuses in these words" "no privileges can be given up"
	else
		claim "tdt refuses in these words" grep "process $pid may not be read" "$tmp/why"
	fi
fi
stop
plan
