#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The summary of a program with planted facts names exactly these: as text and as JSON, by the
# program itself, and by tdt print after the program was killed.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

LC_ALL=C
LD_LIBRARY_PATH=${top_builddir:?}/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LC_ALL LD_LIBRARY_PATH
unset TDT_RECORD TDT_RECORD_DIR
planted=$top_builddir/tests/outside/planted
tdt=$top_builddir/tdt

# even FILE: without what is not the same each time.
even()
{
	sed -E 's/[0-9.]+ [mnu]?s /N /; s/[0-9]+:[0-9]+:[0-9.]+/T/; s/on thread [0-9]+/on thread X/
		s/0x[0-9a-f]+/0x/g' "$1"
}

# what_was_planted FILE: without what a busy machine adds: other polls that were slow, and waits for
# a worker.
what_was_planted()
{
	awk -v RS= -v ORS='\n\n' '!/^longest waits for a worker/' "$1" | awk '
		/^$/ { slow = 0 }
		/^slowest polls/ { slow = 1; print; next }
		slow && /^ *[0-9.]+ [mnu]?s / { shown = /"spinner"/ }
		!slow || shown'
}

# The sections up to the waits that are nobody's fault, each part of a line on its own, without
# frames.
facts()
{
	what_was_planted "$1" | sed '1,/^$/d; /^longest other/,$d' >"$tmp/sections"
	even "$tmp/sections" | tr -s ' \n' ' ' |
		sed 's/ (in [^(]* from [^(]*)//; s/ in [^ ]* from .* longest waits/ longest waits/'
}

cat >"$tmp/facts" <<'END'
panicked T task 7 "rash" on thread X slowest polls N T task 6 "spinner" on thread X longest waits for locks N T task 5 "reader" for a mutex "table" (0x) held by task 4 "holder" tasks that waited for one busy worker while another worker was parked N T task 2 "pinned" on thread X behind task 6 "spinner" (2 polls, none by another worker) 
END

# prints CHECK COMMAND...: the command's output in $tmp/out passes.
prints()
{
	check=$1
	shift
	"$@" >"$tmp/out" 2>"$tmp/err" && $check && return
	cat "$tmp/out" "$tmp/err"
	return 1
}

has_facts()
{
	facts "$tmp/out" >"$tmp/got"
	echo >>"$tmp/got"
	diff -u "$tmp/facts" "$tmp/got"
}

# member KEY NEXT: the value of a member of the JSON, of which NEXT is the next one.
member()
{
	sed -n "s/.*\"$1\":\\(.*\\),\"$2\":.*/\\1/p" "$tmp/out"
}

# has_one LIST NEXT PATTERN...: the list has one entry, which fits the patterns.
has_one()
{
	member "$1" "$2" >"$tmp/list"
	shift 2
	test "$(grep -o '{"task":' "$tmp/list" | wc -l)" = 1 || return
	for pattern in "$@"; do
		grep -q -e "$pattern" "$tmp/list" || return
	done
}

# at_least KEY NS: the first number of that key in the list is so large.
at_least()
{
	test "$(sed "s/.*\"$1\":\\([0-9]*\\).*/\\1/" "$tmp/list")" -ge "$2"
}

has_facts_in_json()
{
	has_one panics slow_polls '"name":"rash"' &&
		has_one locks starved '"name":"reader"' '"kind":"mutex"' '"name":"table"' \
			'"owner":{"id":4,"name":"holder"' '"waits":1' &&
		at_least total_ns 80000000 &&
		has_one starved delays '"name":"pinned"' '"behind":{"id":6,"name":"spinner"' \
			'"polls":2' &&
		at_least total_ns 1000000 &&
		member slow_polls locks | sed 's/},{/\n/g' | grep '"name":"spinner"' \
			>"$tmp/list" &&
		at_least ns 50000000
}

claim "the program's own summary names what was planted" prints has_facts "$planted"
claim "the slowest poll has its place" grep -q 'tests/outside/planted.c:' "$tmp/out"
claim "no line is wider than 80 columns" test -z "$(awk 'length > 80' "$tmp/out")"
claim "it fits on a screen" test "$(what_was_planted "$tmp/out" | wc -l)" -le 45
claim "JSON names it, too" prints has_facts_in_json "$planted" json

# ---- After the end of the program ----

dir=$tmp/recordings
mkdir "$dir"

# begin: start a program that records, and wait until it has done so.  $victim is its id.
begin()
{
	rm -f "$tmp/ready"
	TDT_RECORD=1M TDT_RECORD_DIR=$dir "$planted" stay >"$tmp/ready" 2>/dev/null &
	child=$!
	wait_until grep -qs '^ready ' "$tmp/ready"
	victim=$(sed -n 's/^ready //p' "$tmp/ready")
	test -n "$victim" || victim=$child
}

# record: run the program, and kill it.  It may be a child of libtool's wrapper.
record()
{
	begin
	kill -KILL "$victim"
	wait $child 2>/dev/null
	:
}

# killed COMMAND...: kill a program, and run the command on its recording alone.
killed()
{
	rm -f "$dir"/*
	record
	"$@"
}

claim "the directory of a killed program is read" \
	prints has_facts killed "$tdt" print --summary "$dir"
claim "with the names of functions" grep -q 'from.* at tests/outside/planted.c:' "$tmp/out"
"$tdt" print --summary --full "$dir" >"$tmp/full"
claim "the long form has whole stacks" grep -q '^- spinner_poll at tests/outside/planted.c:' \
	"$tmp/full"
claim "and the rings" grep -q '^rings ' "$tmp/full"
claim "a file is read" "$tdt" print --summary "$dir"/tdt-*.rec
"$tdt" print --summary --format=json "$dir" >"$tmp/out"
claim "as JSON, too" has_facts_in_json
"$tdt" print --summary --since=0.000001 "$dir" >"$tmp/none"
claim "nothing happened in the last microsecond" grep -q '^0 polls, ' "$tmp/none"

# Two that have ended, and one that runs: the newer one of those that have ended is read.
old=$(cd "$dir" && ls)
record
new=$(cd "$dir" && ls | grep -vFx "$old")
begin
"$tdt" print --summary "$dir" >"$tmp/out"
"$tdt" print --summary --format=json "$dir" >"$tmp/json"
"$tdt" print --perfetto=- "$dir" >"$tmp/piped" 2>"$tmp/err"
kill -KILL "$victim"
wait $child 2>/dev/null
claim "of several, the newest that was killed is read" \
	grep -q "^-> .* has ended, not by exit(): $new\$" "$tmp/out"
claim "an older one is listed" grep -q "^   .* has ended, not by exit(): $old\$" "$tmp/out"
claim "so is one that runs" grep -q '^   .* planted\[.*\], which runs: tdt-' "$tmp/out"
claim "JSON has the list, too" grep -q "/$new\".*\"chosen\":true" "$tmp/json"

# ---- Perfetto ----

# fails MESSAGE ARGUMENT...: tdt print ends with status 2 and this message, and prints nothing.
fails()
{
	message=$1
	shift
	"$tdt" print "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	got=$?
	cat "$tmp/out" "$tmp/err"
	test $got = 2 && test ! -s "$tmp/out" && grep -q -e "$message" "$tmp/err"
}

# The trace is protobuf: packets with the tag 0x0a.  What is in it is checked by perfetto.sh.
is_trace()
{
	test "$(head -c 1 "$1" | od -An -tx1 | tr -d ' ')" = 0a && grep -q -a spinner "$1" &&
		grep -q -a spinner_poll "$1"
}

"$tdt" print --perfetto="$tmp/trace" "$dir/$new"
claim "a trace for Perfetto is written" is_trace "$tmp/trace"
"$tdt" print --perfetto="$tmp/trace.gz" "$dir/$new"
gzip -dc "$tmp/trace.gz" >"$tmp/unzipped"
claim "also compressed" cmp "$tmp/trace" "$tmp/unzipped"
claim "also to standard output" cmp "$tmp/trace" "$tmp/piped"
claim "it is said which recording was read" grep -q "3 recordings, this one is read: .*/$new" \
	"$tmp/err"

ln -s target "$tmp/link"
claim "no symbolic link is followed" fails 'link: Too many levels of symbolic links' \
	--perfetto="$tmp/link" "$dir/$new"
claim "the trace is for its owner only" test "$(stat -c %a "$tmp/trace")" = 600

# ---- After a rolling restart ----

mkdir "$tmp/rolling"
cp "$dir/$old" "$dir/$new" "$tmp/rolling"
printf '\001' | dd of="$tmp/rolling/$new" bs=1 seek=224 conv=notrunc 2>/dev/null
"$tdt" print --summary "$tmp/rolling" >"$tmp/out"
claim "one that was killed is read rather than a newer one that has exited" \
	grep -q "^-> .* has ended, not by exit(): $old\$" "$tmp/out"
claim "which is listed as such" grep -q "^   .* has exited: $new\$" "$tmp/out"
"$tdt" print --summary --format=json "$tmp/rolling" >"$tmp/json"
claim "in JSON, too" grep -q '"exited":true' "$tmp/json"

# ---- Files of other users ----

if test "$(id -u)" = 0; then
	mkdir -m 1777 "$tmp/sticky"
	cp "$dir/$new" "$dir/$old" "$tmp/sticky"
	cp "$dir/$new" "$tmp/sticky/tdt-0-1.rec" # newer by its name
	chown 65534 "$tmp/sticky/tdt-0-1.rec"
	"$tdt" print --summary "$tmp/sticky" >"$tmp/out"
	claim "the recording of another user is passed over" \
		grep -q "^-> .* exit(): $new\$" "$tmp/out"
	claim "which is said, with the user" grep -q \
		'^   .* of user [a-z0-9]*, passed over: tdt-0-1.rec$' "$tmp/out"
	"$tdt" print --summary --format=json "$tmp/sticky" >"$tmp/json"
	claim "JSON says it, too" grep -q '"uid":65534,"passed_over":true' "$tmp/json"
	ln -s "$dir/$new" "$tmp/sticky/tdt-0-2.rec"
	"$tdt" print --summary "$tmp/sticky" >"$tmp/out"
	claim "a link is no recording, wherever it leads" \
		eval '! grep tdt-0-2.rec "$tmp/out" && grep -q "exit(): $new\$" "$tmp/out"'
	rm "$tmp/sticky/$new" "$tmp/sticky/$old"
	claim "it is not read, even if it is the only one" fails \
		'sticky: there are recordings of other users only: name one of the files' \
		--summary "$tmp/sticky"
	"$tdt" print --summary "$tmp/sticky/tdt-0-1.rec" >"$tmp/out"
	claim "but it is if it is named" grep -q spinner "$tmp/out"
	chown 65534 "$tmp/sticky"
	"$tdt" print --summary "$tmp/sticky" >"$tmp/out"
	claim "or if the directory is that user's" grep -q spinner "$tmp/out"
else
	skip "files of other users" "only root can make one"
fi

# ---- Errors ----

mkdir "$tmp/empty"
mkfifo "$tmp/fifo"
echo text >"$tmp/text"
head -c 300 "$dir/$new" >"$tmp/cut"
claim "a directory without recordings" fails 'empty: there is no recording' --summary "$tmp/empty"
claim "no file" fails 'missing: No such file' --summary "$tmp/missing"
claim "a file that is none" fails 'text: not a recording' --summary "$tmp/text"
claim "a recording that is taken for a dump" fails 'are read with --summary, .*tdt-' "$dir/$new"
claim "a directory that is, too" fails 'are read with --summary' "$dir"
claim "a FIFO" fails 'fifo: not a recording' --summary "$tmp/fifo"
claim "a file that is cut" fails 'cut: not a recording' --summary "$tmp/cut"
claim "no file at all" fails 'no recording is named' --summary
claim "a trace that cannot be written" fails 'absent/x: No such file' \
	--perfetto="$tmp/absent/x" "$dir"
claim "an option of the summary with a trace" fails 'needs --summary' --perfetto=- --full "$dir"
claim "a wrong number of rows" fails 'a number from 1 to 100000, not 0' --summary --rows=0 "$dir"
claim "a wrong number of seconds" fails 'is a time.*, not x' --summary --since=x "$dir"
claim "an option without --summary" fails 'needs --summary' --rows=1 "$tmp/text"
claim "no folded stacks" fails 'no form folded' --summary --format=folded "$dir"
full_disk()
{
	"$tdt" print --summary "$dir" >/dev/full 2>"$tmp/err"
	test $? = 2 && grep -q 'No space left' "$tmp/err"
}
claim "a full disk" full_disk
plan
