#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Packages of libtdt have no debug information: without it, the library's leaves have the same
# names, inside the program and outside.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
LC_ALL=C
DEBUGINFOD_URLS=
export LC_ALL DEBUGINFOD_URLS

test "${WITH_RUNTIME:?}" = yes || skip_all "there is no runtime"
test "${SANITIZERS:?}" = no || skip_all "a sanitizer's functions stand between"
program=${top_builddir:?}/tests/outside/.libs/leaves
test -x "$program" || skip_all "built without a shared library"
command -v strip >/dev/null || skip_all "there is no strip (Debian: binutils)"

# shows_all: of the 11 tasks, all stacks; a task that is held up does not answer in time.
shows_all()
{
	env -u LD_LIBRARY_PATH "$tdt" bt --format=folded "$pid" >"$tmp/folded" 2>"$tmp/why"
	cat "$tmp/why"
	grep -q 'not permitted' "$tmp/why" || # what is outside is skipped
		test "$(awk '{ n += $NF } END { print n }' "$tmp/folded")" = 14
}

# look LIBRARIES: what the program prints is in $tmp/inside, what tdt prints of it in $tmp/outside.
look()
{
	LD_LIBRARY_PATH=$1
	export LD_LIBRARY_PATH
	start "$program" || return
	wait_until shows_all
	result=$?
	stop
	unset LD_LIBRARY_PATH
	sed 1d "$tmp/said" | sort >"$tmp/inside"
	sort "$tmp/folded" >"$tmp/outside"
	test $result = 0
}

claim "the library has debug information" look "$top_builddir/.libs"
for leaf in sleep_ms mutex_lock oneshot_receive timeout_ms join join_all select tcp_accept \
	tcp_read tcp_write; do
	claim "tdt_$leaf has a name inside" grep -Eq ";tdt_$leaf( |;)" "$tmp/inside"
done
cp "$tmp/inside" "$tmp/inside.whole"
cp "$tmp/outside" "$tmp/outside.whole"

# trees DEMO LIBRARIES: what the demo prints, without where in the library, how long, and addresses.
# On a busy machine an answer may be missing.
trees()
{
	for _ in $(seq 20); do
		LD_LIBRARY_PATH=$2 "$top_builddir/demo/.libs/$1" >"$tmp/printed" 2>&1
		grep -q -e 'timed out' -e 'in time' -e 'no breakfast' "$tmp/printed" || break
	done
	sed -E 's/ at src\/[^ ]*//; s/ \(libtdt[^)]*\)//; s/, last woken [^,]*//; s/ \(took .*//
		s/(pending|running for|runnable for) [^,]*/\1/; s/0x[0-9a-f]+/0x/g
		s/ on thread [0-9]+//' "$tmp/printed"
}
demos='taskdump coroutines foreign-runtime fibers'
for demo in $demos; do
	trees "$demo" "$top_builddir/.libs" >"$tmp/$demo.whole"
	claim "the demo $demo prints trees" grep -q '^ *`- ' "$tmp/$demo.whole"
done

mkdir "$tmp/libs"
cp -P "$top_builddir"/.libs/lib*.so* "$tmp/libs/"
for library in "$tmp"/libs/lib*.so*; do
	test -L "$library" || strip "$library"
done
claim "the library is stripped" look "$tmp/libs"
same "the leaves have the same names inside" "$tmp/inside.whole" "$tmp/inside"
if grep -q 'not permitted' "$tmp/why"; then
	skip "and outside" "reading another process is not permitted here"
else
	same "and outside" "$tmp/outside.whole" "$tmp/outside"
fi
for demo in $demos; do
	trees "$demo" "$tmp/libs" >"$tmp/$demo.stripped"
	same "and in the trees of the demo $demo" "$tmp/$demo.whole" "$tmp/$demo.stripped"
done

# The debug file of a program is where a server of debuginfod has it, and nowhere else.
bank=$top_builddir/tests/outside/.libs/outside_bank
id=$(readelf -n "$bank" | sed -n 's/.*Build ID: //p')
served=$tmp/server/buildid/$id
mkdir -p "$served"
objcopy --only-keep-debug "$bank" "$served/debuginfo"
strip -o "$tmp/bank" "$bank"
DEBUGINFOD_URLS=file://$tmp/server
DEBUGINFOD_CACHE_PATH=$tmp/cache
export DEBUGINFOD_CACHE_PATH

# both_wait OPTION...: both tasks wait for a mutex, and none is held up in a poll.
both_wait()
{
	env -u LD_LIBRARY_PATH "$tdt" bt --format=folded "$@" "$pid" 2>"$tmp/why" |
		grep tdt_mutex_lock >"$tmp/got"
	cat "$tmp/got" "$tmp/why"
	grep -q ';tdt_mutex_lock 2$' "$tmp/got"
}

LD_LIBRARY_PATH=$top_builddir/.libs
export LD_LIBRARY_PATH
start "$tmp/bank" 2 rests
if ! may_read; then
	skip "debug files of a server" "reading another process is not permitted here"
elif ! find /usr/lib* -name libdebuginfod.so.1 | grep -q .; then
	skip "debug files of a server" "there is no libdebuginfod"
else
	wait_until both_wait >&2
	claim "without its debug file a program has no names" \
		grep -qx 'tasks;bank+0x[0-9a-f]*;tdt_mutex_lock 2' "$tmp/got"
	claim "and no server was asked" test ! -e "$tmp/cache"
	wait_until both_wait --debuginfod >&2
	echo 'tasks;transfer_poll;tdt_mutex_lock 2' >"$tmp/expected"
	same "with --debuginfod the server has them" "$tmp/expected" "$tmp/got"
	unset DEBUGINFOD_URLS
	claim "without a server that is refused" sh -c \
		"'$tdt' bt --debuginfod 1 2>&1 | grep -q 'needs the servers'"
	claim "and so is an empty list of them" sh -c \
		"DEBUGINFOD_URLS= '$tdt' bt --debuginfod 1 2>&1 | grep -q 'needs the servers'"
fi
stop
plan
