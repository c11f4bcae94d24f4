#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Tasks as a program sees them that is not in the process and knows only <tdt/layout/registry.h>: of
# a process that runs, and of a core file; with libtdt shared, and in the program.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
DEBUGINFOD_URLS=
export DEBUGINFOD_URLS

reader=${top_builddir:?}/tests/outside/registry_reader
mkfifo "$tmp/input"

# start PROGRAM ARGUMENTS...: leaves $pid, and what it has in $tmp/expected.
start()
{
	program=$1
	shift
	: >"$tmp/said" # the program before was ready, too
	"$top_builddir/tests/outside/$program" "$@" \
		<"$tmp/input" >"$tmp/said" &
	exec 3>"$tmp/input"
	until grep -q ready "$tmp/said"; do
		kill -0 $! || return 1
		sleep 0.1
	done
	pid=$! # a wrapper execs the program
	grep -v ready "$tmp/said" | sort >"$tmp/expected"
}

stop()
{
	exec 3>&-
	wait "$pid"
}

read_tasks()
{
	"$reader" "$1" >"$tmp/tasks" && sort -o "$tmp/tasks" "$tmp/tasks"
}

make_core()
{
	gdb -nx -batch -ex "generate-core-file $tmp/core" -p "$pid" </dev/null >"$tmp/gdb" 2>&1
	test -s "$tmp/core"
}

# Lines of tasks that come and go: are they what their ids say?
true_of_their_ids()
{
	awk '$1 >= 1000000 {
			n++
			if ($(NF - 1) != "churned" || $NF != $1 ||
			    $6 != $1 % 1000 || $3 != 0 || $4 > 10 ||
			    ($5 != "-" && $5 != "2,1234,99") || ($4 == 0 && $5 != "-")) {
				print
				bad = 1
			}
		}
		END { exit bad || n == 0 }' "$1" >&2
}

claim "the reader has no code of ours" sh -c "! ldd '$reader' | grep tdt"

# --- An image that is damaged, or made to do harm ---

# lists DAMAGE: the reader comes to an end; what it prints is in $tmp/listed and $tmp/why.
lists()
{
	"$top_builddir/tests/outside/registry_image" "$1" >"$tmp/image" &&
		timeout 120 "$reader" -a "$tmp/image" >"$tmp/listed" 2>"$tmp/why"
}

# refuses DAMAGE MESSAGE: it comes to an end with that message.
refuses()
{
	lists "$1"
	status=$?
	tail -n 5 "$tmp/listed" "$tmp/why"
	[ $status = 1 ] && grep -q "$2" "$tmp/why"
}

cat >"$tmp/expected" <<'END'
1 idle 0 0 - 0 file.c task 1
2 idle 0 0 - 0  task 2
3 idle 0 0 - 0  task 3
4 idle 0 0 - 0  task 4
libtdt 0 in process 1
6 spawned 2 ended 1 panicked 7 polls 0 captures 0 dumps
thread 1 worker parked
panic 1 task 5 fell
END
lists none
same "an image is read" "$tmp/expected" "$tmp/listed"
xs=$(printf '%064d' 0 | tr 0 x)
bells=$(echo "$xs" | sed 's/x/\\x07/g')
cat >"$tmp/expected" <<END
1 idle 0 0 - 0 \\x1b[2Jfile.c \\x1b]0;me\\x07\\x0a\\\\\\xe2\\x80\\xae\\x7f
2 idle 0 0 - 0  $xs
3 idle 0 0 0,0,0,\\x1b[2Jfile.c 0  task 3
4 idle 0 0 - 0  task 4
libtdt \\x1b[2J in process 1
6 spawned 2 ended 1 panicked 7 polls 0 captures 0 dumps
thread 1 worker parked
panic 1 task 5 $bells
END
lists escapes
same "bytes that could harm a terminal are escaped" "$tmp/expected" "$tmp/listed"
claim "a list of slabs without an end is refused" refuses slab-again 'too many slabs'
claim "so is a list that turns in a circle" refuses slabs-again 'too many slabs'
claim "and a slab with more records than it has room for" refuses used 'more records than room'
claim "and a slab with more records than there is memory" refuses room 'a record'
claim "and records that lie on each other" refuses stride 'no registry'
claim "and an address at the end of all memory" refuses address 'a record'
claim "and a copy of a registry" refuses copy 'no registry'
claim "and another version" refuses version 'another layout'
claim "and too many counters" refuses counters 'too many counters'
claim "and too many threads" refuses threads 'too many threads'
claim "and too many panics" refuses panics 'another layout'
claim "and shorter panics" refuses panic-size 'another layout'
claim "and shorter records" refuses shorter 'another layout'

# reads DAMAGE: the tasks are listed all the same.
reads()
{
	lists "$1" && grep -q '^4 idle 0 0 - 0  task 4$' "$tmp/listed"
}

claim "a list of files that is too long does no harm" reads files
claim "nor does a path without an end" reads path

# --- The specification ---

# Each `@N` of the header must be the offset of its field.
layout=tdt/layout/registry.h
offsets_are_true()
{
	awk '
		/^struct tdt_[a-z_]* \{$/ { name = $2 }
		/^}/ { name = "" }
		name != "" && match($0, /\/\* @[0-9]+/) {
			offset = substr($0, RSTART + 4, RLENGTH - 4)
			sub(/;.*/, "")
			sub(/\[.*/, "")
			printf "_Static_assert(__builtin_offsetof(struct %s, %s) == %s, \"%s\");\n",
				name, $NF, offset, $NF
			n++
		}
		END { exit n < 90 }' "$top_srcdir/include/$layout" >"$tmp/asserts" &&
		{ echo "#include <$layout>"; cat "$tmp/asserts"; } >"$tmp/offsets.c" &&
		${CC:-cc} -fsyntax-only -I"$top_srcdir/include" "$tmp/offsets.c"
}

compiler=${CC:-cc}
if command -v "${compiler%% *}" >/dev/null; then
	claim "the offsets that the header states are true" offsets_are_true
else
	skip "the offsets that the header states are true" "there is no C compiler"
fi

# --- Processes, and their core files ---

# says_true TARGET: of the process; it has 8 tasks besides the 1500, and made 8 polls.
says_true()
{
	"$reader" -a "$1" >"$tmp/said_of_process" &&
		grep -qx "libtdt [0-9.]* in process $pid" "$tmp/said_of_process" &&
		grep -qx '1508 spawned 2 ended 1 panicked 8 polls 0 captures 0 dumps' \
			"$tmp/said_of_process" &&
		grep -qx "panic 1 task 1506 fallen 1506" "$tmp/said_of_process" &&
		grep -qx "thread $pid worker parked" "$tmp/said_of_process"
}

for program in registry_tasks registry_tasks_static; do
	claim "$program starts" start "$program"
	if ! read_tasks "$pid" 2>"$tmp/why" && grep -q 'not permitted' "$tmp/why"; then
		skip "tasks of a process that runs" "reading another process is not permitted here"
	else
		same "tasks of a process that runs ($program)" "$tmp/expected" "$tmp/tasks"
		claim "and what its registry says of it" says_true "$pid"
	fi
	if ! command -v gdb >/dev/null; then
		skip "tasks of a core file" "there is no gdb"
	elif test "$SANITIZERS" != no; then
		skip "tasks of a core file" "sanitizers map terabytes"
	elif ! make_core; then
		skip "tasks of a core file" "gdb made none: $(tail -n 1 "$tmp/gdb")"
	else
		stop
		claim "the core file is read" read_tasks "$tmp/core"
		same "tasks of a core file ($program)" "$tmp/expected" "$tmp/tasks"
		claim "and what its registry says of it" says_true "$tmp/core"
		rm -f "$tmp/core"
		continue
	fi
	stop
done

claim "tasks come and go" start registry_tasks churn
if read_tasks "$pid" 2>"$tmp/why"; then
	# Ten times at least, and until some were there just then.
	readings=0
	: >"$tmp/all"
	until test $readings -ge 10 && grep -q churned "$tmp/all" || test $readings = 1000; do
		"$reader" "$pid" >>"$tmp/all"
		readings=$((readings + 1))
	done
	claim "what is read of tasks that come and go is true of each" true_of_their_ids "$tmp/all"
	awk '$1 < 1000000' "$tmp/all" | sort | uniq -c |
		awk -v n=$readings '$1 == n { $1 = ""; sub(/^ /, ""); print }' | sort >"$tmp/steady"
	same "those that stay are met once each time" "$tmp/expected" "$tmp/steady"
elif grep -q 'not permitted' "$tmp/why"; then
	skip "tasks that come and go" "reading another process is not permitted here"
else
	cat "$tmp/why"
	claim "tasks that come and go are read" false
fi
stop
plan
