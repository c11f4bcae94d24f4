#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# tdt print, by its old name tdt-tree, as a user runs it: forms, options, damaged input, broken
# output.

tdt_tree=$top_builddir/tdt-tree
LC_ALL=C
export LC_ALL
unset NO_COLOR

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99

echo 1..29
n=0
failed=0

# claim STATUS TEXT: one test point, with the reason in $why if it failed.
claim()
{
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		failed=1
		echo "not ok $n - $2"
		echo "$why" | sed 's/^/# /'
	fi
}

# same TEXT EXPECTED ACTUAL: two files are the same.
same()
{
	why=$(diff -u "$2" "$3" 2>&1)
	claim $? "$1"
}

# fails TEXT STATUS MESSAGE COMMAND...: it ends with that status, prints nothing, and tells MESSAGE,
# a pattern.
fails()
{
	text=$1 status=$2 message=$3
	shift 3
	"$@" >out 2>err </dev/null
	actual=$?
	why="status $actual, $(cat out err)"
	[ $actual = "$status" ] && [ ! -s out ] && grep -q -e "$message" err
	claim $? "$text"
}

cat >two.json <<'END'
{"tdt":1,"task":{"id":7,"name":"bar","file":"d.c","line":88,"state":"waiting","leaves":2},"nodes":[
{"id":0,"kind":"task"},
{"id":1,"parent":0,"kind":"frame","function":"foo","file":"/b/d.c","directory":"/b","line":18,"pc":"0x10",
"symbol":"foo","symbol_offset":"0x1f"},
{"id":2,"parent":1,"kind":"frame","function":"tdt_traced_poll","leaves":0},
{"id":3,"parent":2,"kind":"frame","function":"a","leaves":1,"pc":"0x20"},
{"id":4,"parent":2,"kind":"frame","function":"a","leaves":1,"pc":"0x30"}]}
{"tdt":1,"task":{"id":8,"state":"ready"},"nodes":[{"id":0,"kind":"task"}]}
END

cat >expected <<'END'
task 7 "bar" pending, 2 leaves, spawned at d.c:88
- foo at d.c:18
 `- tdt_traced_poll
    `- a x2
task 8 ready, no leaves
END
"$tdt_tree" two.json >out 2>&1
same 'text is the default' expected out
"$tdt_tree" - <two.json >out 2>&1
same 'standard input is the default, and -' expected out

cat >also.json <<'END'
{"tdt":1,"task":{"id":7,"state":"waiting","leaves":1},"nodes":[{"id":0,"kind":"task"},
{"id":1,"parent":0,"kind":"frame","function":"a","file":"/b/d.c","line":18,"pc":"0x10","leaves":1,
"also":["b","c","d","e","f"]}]}
END
cat >expected <<'END'
task 7 pending, 1 leaf
- a at /b/d.c:18 (also b, c, d, e)
END
"$tdt_tree" --format=json also.json | "$tdt_tree" - >out 2>&1
same 'other names of a folded function are kept, four at most' expected out
sed 's/"b","c"/"b",1/' also.json >bad.json
fails 'and are strings' 1 'nodes\[1\].also: not an array of strings' "$tdt_tree" bad.json

cat >unsure.json <<'END'
{"tdt":1,"task":{"id":7,"state":"waiting","leaves":3,"leaves_unsure":2},"nodes":[{"id":0,"kind":"task"}]}
END
cat >expected <<'END'
task 7 pending, 3 leaves
   some of these 2 may be over: the task may have gone on in the same poll
END
"$tdt_tree" unsure.json >out 2>&1
same 'leaves that may be over are marked in text' expected out
"$tdt_tree" --format=json unsure.json | "$tdt_tree" - >out 2>&1
same 'and in JSON' expected out

cat >expected <<'END'
task 7 "bar" pending, 2 leaves, spawned at d.c:88
╼ foo at /b/d.c:18
 └╼ ... 3 frames and 2 leaves below
task 8 ready, no leaves
END
"$tdt_tree" --utf8 --full-paths --depth=1 two.json >out 2>&1
same 'lines, paths and depth can be chosen' expected out

cat >expected <<'END'
task 7 "bar" pending, 2 leaves, spawned at d.c:88
- foo+0x1f
 `- tdt_traced_poll
    |- 0x20
    `- 0x30
task 8 ready, no leaves
END
"$tdt_tree" --ascii --addresses --format=text two.json >out 2>&1
same 'addresses can be chosen' expected out

sed '/"id":4/d; s/"0x20"}/&]}/; s/}]},$/}]}/' two.json >one.json
printf 'bar;foo;a 1\n' >expected
"$tdt_tree" --format=folded one.json >out 2>&1
same 'folded stacks have no plumbing' expected out
printf 'bar;foo;tdt_traced_poll;a 1\n' >expected
"$tdt_tree" --format=folded --plumbing one.json >out 2>&1
same 'plumbing can be asked for' expected out

"$tdt_tree" --format=json two.json >json1 2>&1
"$tdt_tree" --format=json <json1 >json2 2>&1
same 'JSON reads back to the same JSON' json1 json2

# A dump, among traces.
{
	tail -n 1 two.json
	cat <<'END'
{"tdt":1,"dump":{"took_ns":5,"tasks":4,"fresh":3,"none":1,"panicked":7},"deadlocks":[[1,2]],"rings":[],"groups":[
{"answer":"fresh","tasks":[
{"id":1,"name":"a","state":"waiting","state_ns":2000000000,"leaves":1,"waits":[{"kind":"mutex","object":"0x10","owner":2,"name":"m"}]},
{"id":2,"state":"waiting","state_ns":1000000000,"leaves":1,"waits":[{"kind":"task","owner":1}]}],
"nodes":[{"id":0,"kind":"task"},{"id":1,"parent":0,"kind":"frame","function":"f","pc":"0x1","leaves":1}]},
{"answer":"fresh","tasks":[{"id":3,"state":"ready"}],"nodes":[{"id":0,"kind":"task"}]},
{"answer":"none","tasks":[{"id":4,"state":"running","thread":5}]}],
"panics":[{"answer":"fresh","tasks":[{"id":9,"name":"p","state":"panicked","state_ns":2000000000,"leaves":1,"polls_since":2}],
"nodes":[{"id":0,"kind":"task"},{"id":1,"parent":0,"kind":"frame","function":"g","pc":"0x2","leaves":1}]}]}
END
	tail -n 1 two.json
} >mixed.json
cat >expected <<'END'
task 8 ready, no leaves
4 tasks, 1 deadlock: 3 answered, 1 without a tree, 7 panicked since the start (took 5 ns)

deadlock: task 1 "a" waits for a mutex "m" (0x10) held by task 2, which waits for task 1 "a"

2 tasks pending 1.000 s to 2.000 s: 1 "a" and 2
   1 waits for task 1 "a"
   1 waits for a mutex "m" (0x10) held by task 2
- f

task 3 ready, no leaves

task 4 running on thread 5, no stack could be read

task 9 "p" panicked 2.000 s ago, 1 leaf, as seen 2 polls ago
- g

task 8 ready, no leaves
END
"$tdt_tree" mixed.json >out 2>&1
same 'dumps are printed among traces' expected out
"$tdt_tree" --format=json mixed.json >json1 2>&1
"$tdt_tree" --format=json <json1 >json2 2>&1
same 'their JSON reads back to the same JSON' json1 json2
printf 'tasks;f 2\n' >expected
"$tdt_tree" --format=folded mixed.json >out 2>&1
same 'and their stacks are counted for every task' expected out

why=$("$tdt_tree" --color=always two.json | head -1 | od -c)
"$tdt_tree" --color=always two.json | grep -q "$(printf '\033')"
claim $? 'colours can be asked for'
if (script -qec true /dev/null) >/dev/null 2>&1; then
	TERM=xterm script -qec "'$tdt_tree' two.json" /dev/null </dev/null >colored
	TERM=xterm NO_COLOR=1 script -qec "'$tdt_tree' two.json" /dev/null </dev/null >plain
	why=$(cat colored plain)
	grep -q "$(printf '\033')" colored && ! grep -q "$(printf '\033')" plain
	claim $? 'NO_COLOR is heeded on a terminal'
else
	n=$((n + 1))
	echo "ok $n - NO_COLOR is heeded on a terminal # SKIP script(1) can't make a terminal here"
fi

"$tdt_tree" /dev/null >out 2>&1
status=$?
why="status $status: $(cat out)"
[ $status = 0 ] && [ ! -s out ]
claim $? 'no trace at all is fine'

"$tdt_tree" --help >out 2>err && grep -q '^Usage: tdt-tree' out && [ ! -s err ] &&
	"$tdt_tree" --version >out 2>err && grep -q '^tdt-tree (tdt [0-9.]*)$' out && [ ! -s err ]
why=$(cat out err)
claim $? '--help and --version print to standard output'

fails 'an unknown option is wrong usage' 2 'Try .tdt-tree --help' "$tdt_tree" --nonsense
for option in --format=xml --color=maybe --depth=0 --depth=-1 --depth=1x --depth= \
	--depth=4294967296 --depth; do
	"$tdt_tree" $option two.json >out 2>err
	status=$?
	why="$option: status $status"
	[ $status = 2 ] && [ ! -s out ] && [ -s err ] && why= || break
done
[ -z "$why" ]
claim $? 'so are wrong values'
fails 'a file that is not there is told' 1 'nowhere.json: No such file' "$tdt_tree" nowhere.json
fails 'a directory is told' 2 'recordings are read with --summary' "$tdt_tree" .

"$tdt_tree" two.json >whole
cp two.json cut.json
printf '{"tdt":1,\n  "task":' >>cut.json
"$tdt_tree" cut.json >out 2>err
why="status $?: $(cat out err)"
cmp -s whole out && grep -q '^tdt-tree: cut.json:10:9: .* near end of file$' err
claim $? 'what stands before the damage is printed, and where it is told'

"$top_builddir/tdt" print cut.json >out2 2>err2
why="status $?: $(cat out2 err2)"
[ "${why%%:*}" = "status 2" ] && cmp -s out out2 && sed 's/^tdt-tree/tdt/' err | cmp -s - err2
claim $? 'tdt print says the same by its own name, and ends with 2'
"$tdt_tree" --format=json two.json >out 2>&1
"$top_builddir/tdt" print --json two.json >out2 2>&1
same 'tdt print has --json' out out2

printf '{"tdt":1, "\033]0;evil\007"' | "$tdt_tree" >out 2>err
why=$(od -c err)
[ ! -s out ] && [ -s err ] && ! grep -q "$(printf '[\033\007]')" err
claim $? 'nothing of a damaged file reaches the terminal as it is'

# In `make check`, at some of the bytes.
seed=${TDT_TEST_SEED:-$(date +%s)}
step=11
echo "# TDT_TEST_SEED=$seed"
test "${TDT_TEST_FULL-}" != 1 || step=1
size=$(wc -c <two.json)
i=$((seed % step))
why=
while [ $i -lt "$size" ]; do
	head -c $i two.json | "$tdt_tree" >out 2>err
	status=$?
	if [ $status -gt 1 ] || { [ $status = 1 ] && [ ! -s err ]; } ||
		! head -c "$(wc -c <out)" whole | cmp -s - out; then
		why="cut at $i: status $status, $(cat out err)"
		break
	fi
	i=$((i + step))
done
[ -z "$why" ] && [ "$i" -gt 500 ]
claim $? 'cut anywhere, it prints the whole traces and an error'

if [ -c /dev/full ]; then
	"$tdt_tree" two.json >/dev/full 2>err
	status=$?
	"$tdt_tree" --help >/dev/full 2>err2
	why="status $status, $?: $(cat err err2)"
	[ $status = 1 ] && grep -q 'standard output: No space' err &&
		grep -q 'standard output: No space' err2
	claim $? 'a full disk is told'
else
	n=$((n + 1))
	echo "ok $n - a full disk is told # SKIP no /dev/full here"
fi

# Far more than a pipe holds; once with SIGPIPE as usual, once ignored.
cp two.json many.json
for _ in 1 2 3 4 5 6 7 8 9 10 11; do
	cat many.json many.json >more.json
	mv more.json many.json
done
{ "$tdt_tree" many.json; echo $? >status; } 2>err | head -n 1 >out
(trap '' PIPE; { "$tdt_tree" many.json; echo $? >status2; } 2>err2 | head -n 1 >out)
why="status $(cat status status2): $(cat out err err2)"
[ "$(cat status2)" = 1 ] && [ "$(cat status)" != 0 ] && [ ! -s err ] && [ ! -s err2 ]
claim $? 'a reader that went away needs no message'

exit $failed
