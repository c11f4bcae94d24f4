#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Tasks as a program sees them that is not in the process and knows only <tdt/registry.h>: of a
# process that runs, and of a core file; with libtdt shared, and in the program.
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
	"$top_builddir/libtool" --mode=execute "$top_builddir/tests/outside/$program" "$@" \
		<"$tmp/input" >"$tmp/said" &
	exec 3>"$tmp/input"
	until grep -q ready "$tmp/said"; do
		kill -0 $! || return 1
		sleep 0.1
	done
	# libtool execs the program, or its wrapper does.
	pid=$!
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
		timeout 120 "$reader" "$tmp/image" >"$tmp/listed" 2>"$tmp/why"
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
END
lists none
same "an image is read" "$tmp/expected" "$tmp/listed"
xs=$(printf '%064d' 0 | tr 0 x)
cat >"$tmp/expected" <<END
1 idle 0 0 - 0 \\x1b[2Jfile.c \\x1b]0;me\\x07\\x0a\\\\\\xe2\\x80\\xae\\x7f
2 idle 0 0 - 0  $xs
3 idle 0 0 - 0  task 3
4 idle 0 0 - 0  task 4
END
lists escapes
same "bytes that could harm a terminal are escaped" "$tmp/expected" "$tmp/listed"
claim "a slab that comes after itself is told" refuses slab-again 'slabs lead back'
claim "so are two that come after each other" refuses slabs-again 'slabs lead back'
claim "and a slab with more records than it has room for" refuses used 'more records than room'
claim "and one with more than there is memory" refuses room 'a record'
claim "and records that lie on each other" refuses stride 'another layout'
claim "and an address at the end of all memory" refuses address 'a record'
claim "and a list of files that is too long" refuses files 'no tdt_registry'
claim "and a path without an end" refuses path 'no tdt_registry'

# --- Processes, and their core files ---

for program in registry_tasks registry_tasks_static; do
	claim "$program starts" start "$program"
	if ! read_tasks "$pid" 2>"$tmp/why" && grep -q 'not permitted' "$tmp/why"; then
		skip "tasks of a process that runs" "reading another process is not permitted here"
	else
		same "tasks of a process that runs ($program)" "$tmp/expected" "$tmp/tasks"
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
