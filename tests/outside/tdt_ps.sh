#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# tdt ps: the tasks of processes and of core files, in all forms; and what it says of targets that
# it cannot read.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
LC_ALL=C
export LC_ALL

# fields: of lists, the tasks without times, polls and addresses, with | between the fields.
fields()
{
	sed -n '/^ *[0-9]/{ s/^ *//; s/   */|/g; s/0x[0-9a-f]*/ADDRESS/g; p; }' |
		awk -F'|' -v OFS='|' '{ print $1, $2, $3, $7, $8, $9 }'
}

# ps ARGUMENTS...: the fields are in $tmp/tasks.
ps()
{
	"$tdt" ps "$@" >"$tmp/listed" && fields <"$tmp/listed" >"$tmp/tasks"
}

# fails MESSAGE ARGUMENTS...: status 2, and the message alone, which begins with the name.
fails()
{
	message=$1
	shift
	timeout 60 "$tdt" "$@" >"$tmp/listed" 2>"$tmp/why"
	status=$?
	cat "$tmp/why"
	[ $status = 2 ] && grep -q "^tdt: .*$message" "$tmp/why"
}

# --- Usage and troubles ---

claim "a command is needed" fails "a command is missing"
claim "and one that there is" fails "no such command: nonsense" nonsense
claim "a process or a core file" fails "either" ps -p 1 --core=x
claim "there may be no such process" fails "no process 999999999 here" ps 999999999
claim "or none of that name" fails "no process of the name no-such-program" ps no-such-program
claim "a file that is no core file is refused" fails "no core file" ps --core="$tdt"
claim "a key that is none" fails "not size" ps --sort=size 1
claim "a state that is none" fails "not waiting,asleep" ps --state=waiting,asleep 1
claim "a time that is none" fails "not a time" ps --longer=soon 1
claim "a process without libtdt" fails "no libtdt was found\|not permitted" ps $$

# --- Images that are damaged, or made to do harm ---

# image DAMAGE: a core file that nobody dumped.
image()
{
	"$top_builddir/tests/outside/registry_image" "$1" >"$tmp/image"
}

lists_image()
{
	image "$1" && timeout 120 "$tdt" ps --core="$tmp/image" >"$tmp/listed" 2>"$tmp/why"
}

# lists DAMAGE LINE: the line is in the list.
lists()
{
	lists_image "$1"
	status=$?
	head -n 20 "$tmp/listed" "$tmp/why" # a slab may be in the list many thousand times
	[ $status = 0 ] && grep -q "$2" "$tmp/listed"
}

# damaged DAMAGE: it comes to an end, and says that not everything was read.
damaged()
{
	lists "$1" "^process 1, libtdt" && grep -q "memory that has them is damaged" "$tmp/why"
}

# refused DAMAGE MESSAGE
refused()
{
	image "$1" && fails "$2" ps --core="$tmp/image"
}

harmless()
{
	! tr -d '\n -~' <"$tmp/listed" | grep -q . && ! tr -d '\n -~' <"$tmp/why" | grep -q .
}

claim "an image is read" lists none '^ 4  task 4  waiting'
claim "bytes that could harm a terminal are escaped" lists escapes '\\x1b\[2J'
claim "all of them" harmless
for damage in slab-again slabs-again used room address; do
	claim "a list of tasks that cannot be right is read as far as it is ($damage)" \
		damaged $damage
done
for damage in copy stride; do
	claim "what is no registry is none ($damage)" refused $damage "no libtdt\|layout"
done
claim "another version is named" refused version "layout 2, and this tdt reads layout 1"
claim "a list of files that is too long does no harm" lists files '^ 4  task 4  waiting'
claim "nor does a path without an end" lists path '^ 4  task 4  waiting'

# --- A process, and its core file ---

cat >"$tmp/bank" <<'END'
1|desk|waiting|-|a timer|tests/outside/outside_bank.c
2|alice to bob|waiting|-|a mutex "bob" (ADDRESS) held by task 3|tests/outside/outside_bank.c
3|bob to alice|waiting|-|a mutex "alice" (ADDRESS) held by task 2|tests/outside/outside_bank.c
4|reload|polling|-|-|tests/outside/outside_bank.c
5|report|polling|-|-|tests/outside/outside_bank.c
6|session 1|waiting|-|a timer|tests/outside/outside_bank.c
7|session 2|waiting|-|a timer|tests/outside/outside_bank.c
END

# is_bank ARGUMENTS...
is_bank()
{
	ps "$@" && sed 's/:[0-9]*$//; s/|[^|]*\(tests[^|]*\)$/|\1/' "$tmp/tasks" |
		sed 's/|[0-9]*|a mutex/|-|a mutex/' | diff -u "$tmp/bank" -
}

# says LINE ARGUMENTS...: tdt ps prints the line.
says()
{
	line=$1
	shift
	"$tdt" ps "$@" >"$tmp/listed"
	status=$?
	cat "$tmp/listed"
	grep -q "$line" "$tmp/listed"
}

# exits STATUS ARGUMENTS...
exits()
{
	expected=$1
	shift
	"$tdt" ps "$@" >/dev/null
	test $? = "$expected"
}

all_forms()
{
	deadlock='^deadlock: task 2 "alice to bob" waits for task 3 "bob to alice", which waits'
	claim "$1: all tasks are listed" is_bank "$2"
	claim "$1: the deadlock is named" says "$deadlock for task 2" "$2"
	claim "$1: --check finds it" exits 1 --check "$2"
	claim "$1: --tree has children below their parents" \
		says '^ `- 7 "session 2" waiting' --tree "$2"
	claim "$1: --dot has the edges" says '"2" -> "3" \[label="mutex bob", color=red\]' \
		--dot "$2"
	claim "$1: the heading counts what happened" \
		says '^since the start: 7 tasks spawned, [1-9][0-9]* polls' "$2"
	claim "$1: --threads has what they poll" says ' polling .* 4 "reload"$' --threads "$2"
	claim "$1: so has JSON" says '"threads":\[.*"worker":true,"task":4}.*\],"tasks"' \
		--threads --json "$2"
	claim "$1: --json has the deadlock" \
		says '"deadlocks":\[\[2,3\]\],"unproven":\[\],"rings":\[\]' --json "$2"
	claim "$1: and the tasks" says '"name":"session 2".*"parent":1.*"spawned_ns":[1-9]' \
		--json "$2"
}

bank=$top_builddir/tests/outside/outside_bank
if test "${WITH_RUNTIME:?}" != yes; then
	skip "the tasks of a process" "there is no runtime"
elif ! TDT_WATCH=10ms start "$bank" 2 rests; then
	cat "$tmp/said" "$tmp/dumped" >&2
	claim "the bank starts" false
elif ! may_read; then
	cat "$tmp/why" >&2
	skip "the tasks of a process" "reading another process is not permitted here"
	stop
else
	all_forms "a process" "$pid"
	claim "--state chooses" says '^process.*, 2 polling' --state=polling "$pid"
	claim "only those" test "$(grep -c '^ *[0-9]' "$tmp/listed")" = 2
	ps --sort=name --reverse --name='session *' "$pid"
	claim "--name and --sort choose and order" \
		test "$(cut -d'|' -f1 "$tmp/tasks" | tr '\n' ' ')" = "7 6 "
	claim "--longer leaves tasks out" says '^process' --longer=1h "$pid"
	claim "all of them" test "$(grep -c '^ *[0-9]' "$tmp/listed")" = 0
	claim "--polling-longer finds long polls" exits 1 --polling-longer=1ms "$pid"
	claim "--waiting-longer finds long waits" exits 1 --waiting-longer=1ms "$pid"
	claim "threads have their names" says ' tdt-worker-[0-3]  *polling' --threads "$pid"
	claim "--verbose says how long it took" says '^process' --verbose "$pid"
	if ! command -v gdb >/dev/null; then
		skip "the tasks of a core file" "there is no gdb"
	elif test "${SANITIZERS:?}" != no; then
		skip "the tasks of a core file" "sanitizers map terabytes"
	elif ! make_core; then
		skip "the tasks of a core file" "gdb made none: $(tail -n 1 "$tmp/gdb")"
	else
		all_forms "a core file" "--core=$tmp/core"
		claim "a core file: the heading says what its times are" \
			says '^all times are at least these' "--core=$tmp/core"
		claim "a core file: so does JSON" says '"at_least":true' --json "--core=$tmp/core"
		rm -f "$tmp/core"
	fi
	stop
fi

# --- Rings that are no deadlocks, or may be none ---

# verdict STATUS RING JSON MODE...: what of the bank in that mode, by its records and its trees?
verdict()
{
	want=$1 ring=$2 json=$3
	shift 3
	start "$bank" 2 rests "$@" || return
	exits "$want" --check "$pid" 2>"$tmp/why" &&
		says "^$ring: task 2 \"alice to bob\"" "$pid" &&
		says "\"$json\":\\[\\[2,3\\]\\]" --json "$pid" &&
		"$tdt" metrics "$pid" >"$tmp/page" &&
		grep -q "^tdt_deadlocks $((want == 1))$" "$tmp/page" &&
		grep -q "^tdt_rings_unproven $((want == 3))$" "$tmp/page"
	ok=$?
	stop
	return $ok
}

# with_watch COMMAND...: the tasks are watched, so it is known how many leaves they have.
with_watch()
{
	TDT_WATCH=10ms "$@"
}

# may_read_bank: whether the bank may be read.
may_read_bank()
{
	start "$bank" 2 rests || return
	may_read
	ok=$?
	stop
	return $ok
}

if test "$WITH_RUNTIME" = yes && may_read_bank; then
	claim "without trees a deadlock is unproven" verdict 3 "unproven ring of waits" unproven
	claim "and --check says so" grep -q '^tdt: a ring of waits is unproven' "$tmp/why"
	claim "so is a ring with a leaf that reports nothing" \
		verdict 3 "unproven ring of waits" unproven heals
	claim "the watch proves the deadlock" with_watch verdict 1 deadlock deadlocks
	claim "and finds the leaf that reports nothing" \
		with_watch verdict 0 "ring of waits" rings heals
else
	skip "rings that are no deadlocks" "there is no runtime, or reading is not permitted here"
fi

# --- A lock that was handed over and is not taken ---

if test "$WITH_RUNTIME" = yes &&
	start "$top_builddir/tests/outside/outside_futurelock"; then
	if may_read; then
		lock='a mutex "accounts" (0x[0-9a-f]*)'
		claim "a task that waits says to whom the lock was handed" \
			says "2  waiter .*$lock handed .* ago to task 1, which has not taken it" \
			"$pid"
		# It is one after a tenth of a second.
		claim "--check finds the futurelock" wait_until exits 1 --check "$pid"
		lock="futurelock: task 1 \"forgetful\" was handed $lock .*: 1 wait for it hangs"
		claim "and tdt ps names it" says "^$lock" "$pid"
		"$tdt" bt --no-request "$pid" >"$tmp/listed"
		claim "so does tdt bt, without a request" grep -q "^$lock" "$tmp/listed"
		"$tdt" top -n1 --no-request "$pid" >"$tmp/listed"
		claim "and tdt top" grep -q "$lock" "$tmp/listed"
		"$tdt" metrics "$pid" >"$tmp/listed"
		claim "tdt metrics counts it" grep -q "^tdt_futurelocks 1$" "$tmp/listed"
	else
		skip "the tasks of a futurelock" "reading another process is not permitted here"
	fi
	stop
else
	skip "the tasks of a futurelock" "there is no runtime"
fi

# --- Tasks that are polled again and again ---

# asked COMMAND...: it has said that a task is in a busy loop.  That it does not, once, is no
# defect: the program or its observer may stand still meanwhile.  What the looks decide is
# check_busy's.
asked()
{
	"$@" >"$tmp/listed" && grep -q '^ *busy loop: ' "$tmp/listed"
}

# names_spin COMMAND...: it says of the first task that it is in a busy loop, and of no other.
names_spin()
{
	wait_until asked "$@"
	grep -q 'busy loop: task 1 "spin" woke itself [0-9,]* times in ' "$tmp/listed" &&
		test "$(grep -c '^ *busy loop: ' "$tmp/listed")" = 1
}

from_json()
{
	"$tdt" bt --json --no-request "$pid" | "$tdt" print -
}

own_dump()
{
	give_line dumped
	awk -v n="$told" '/^dumped/ { seen++ } seen == n' "$tmp/said"
}

if test "$WITH_RUNTIME" = yes && start "$top_builddir/tests/outside/outside_busy"; then
	if may_read; then
		claim "tdt ps names the task that wakes itself, and no healthy one" \
			names_spin "$tdt" ps "$pid"
		claim "so does tdt bt" names_spin "$tdt" bt --no-request "$pid"
		claim "and its JSON" names_spin from_json
		claim "and tdt top" names_spin "$tdt" top -n1 --no-request "$pid"
	else
		skip "busy loops" "reading another process is not permitted here"
	fi
	claim "and a dump" names_spin own_dump
	stop
else
	skip "busy loops" "there is no runtime"
fi

# --- Programs that are not where they were ---

# lists_steady ARGUMENTS...: the tasks of registry_tasks, with the file where they were spawned.
lists_steady()
{
	ps "$@" && grep -q '^1500|steady 1500|.*|.*registry_tasks.c:500$' "$tmp/tasks" &&
		test "$(grep -c '|steady' "$tmp/tasks")" = 1500
}

static=$top_builddir/tests/outside/registry_tasks_static

# try WHAT COMMAND...: start a program, read it, and its core file.
try()
{
	what=$1
	shift
	if ! start "$@"; then
		skip "$what" "it does not start here"
		return
	fi
	if may_read; then
		claim "$what" lists_steady "$pid"
		"$tdt" bt "$pid" >"$tmp/listed" 2>"$tmp/why"
		claim "and the task that panicked" \
			grep '^task 1506 "fallen 1506" panicked .* ago' "$tmp/listed"
	else
		skip "$what" "reading another process is not permitted here"
	fi
	stop
}

try "a program with libtdt in it" "$static"
cp "$static" "$tmp/gone"
strip "$tmp/gone"
try "a stripped program" "$tmp/gone"
start "$tmp/gone"
rm "$tmp/gone"
if may_read; then
	claim "a program that was deleted" lists_steady "$pid"
else
	skip "a program that was deleted" "reading another process is not permitted here"
fi
stop

# A root with all that the program needs.
make_root()
{
	mkdir -p "$tmp/root" && cp "$static" "$tmp/root/program" &&
		ldd "$static" | awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^\//) print $i }' |
		while read -r library; do
			mkdir -p "$tmp/root${library%/*}" && cp "$library" "$tmp/root$library"
		done
}

if test "$(id -u)" = 0 && make_root; then
	try "a program in another root" chroot "$tmp/root" /program
else
	skip "a program in another root" "only root may change the root"
fi

# --- Other users ---

as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
if ! test "$(id -u)" = 0; then
	skip "a process of another user" "only root can be another user"
elif ! $as_nobody "$tdt" --version >/dev/null 2>&1; then
	skip "a process of another user" "another user cannot run tdt here"
else
	start "$static"
	$as_nobody "$tdt" ps "$pid" >"$tmp/listed" 2>"$tmp/why"
	status=$?
	claim "a process of another user is refused" test $status = 2
	claim "with what helps" grep -q "belongs to the user with the id 0: run tdt as that user" \
		"$tmp/why"
	stop
	# shellcheck disable=SC2086
	start $as_nobody "$static"
	$as_nobody "$tdt" ps "$pid" >"$tmp/listed" 2>"$tmp/why"
	status=$?
	cat "$tmp/why" >&2
	claim "one of the same user is read without privileges" test $status = 0
	stop
fi

# --- Tasks that come and go ---

true_of_their_ids()
{
	awk -F'|' '$1 >= 1000000 {
			n++
			line = $1 % 1000 != 0 ? ":" $1 % 1000 : ""
			if ($2 != "churned " $1 || $6 !~ ("registry_tasks.c" line "$") ||
			    ($5 != "-" && $5 != "a mutex (ADDRESS) held by task 99")) {
				print
				bad = 1
			}
		}
		$1 < 1000000 { steady++ }
		END { print n, "that came and went,", steady, "that stayed"
		      exit bad || n == 0 || steady != stay * readings }' readings="$1" \
		stay="$(grep -vc ready "$tmp/said")" "$tmp/all"
}

looks=40
test "${TDT_TEST_FULL-}" != 1 || looks=300

# look_often: so many times, and until some tasks were there that come and go.
look_often()
{
	readings=0
	: >"$tmp/all"
	until test $readings -ge $looks && grep -q '|churned ' "$tmp/all"; do
		"$tdt" ps "$pid" >"$tmp/list" || return
		fields <"$tmp/list" >>"$tmp/all"
		readings=$((readings + 1))
		test $readings -lt 1000 || return 0
	done
}

if start "$static" churn && may_read; then
	claim "many looks at tasks that come and go" look_often
	claim "what they say is true of each task" true_of_their_ids $readings
else
	skip "tasks that come and go" "reading another process is not permitted here"
fi
stop
plan
