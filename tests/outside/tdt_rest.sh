#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# On a program at rest, tdt bt prints what the program's own dump has, task by task and frame by
# frame: coroutines of C++ and with stacks of their own, by each compiler.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
DEBUGINFOD_URLS=
TDT_WATCH=10ms
export DEBUGINFOD_URLS TDT_WATCH

test "${SANITIZERS:?}" = no || skip_all "a sanitized library needs a sanitized program"
test "${WITH_RUNTIME:?}" = yes || skip_all "configured without the runtime"
test -e "${top_builddir:?}/.libs/libtdt.so" || skip_all "built without a shared library"

# build COMPILER FLAGS...
build()
{
	"$@" -std=c++20 -g "$top_srcdir/tests/outside/fixtures/cafe.cc" -I"$top_srcdir/include" \
		-I"$top_srcdir/tests" \
		-L"$top_builddir/.libs" -Wl,-rpath,"$top_builddir/.libs" -ltdt-rt -ltdt \
		-o "$tmp/cafe"
}

folded()
{
	"$tdt" print --format=folded --plumbing "$@" | sort
}

# The program prints its own dump, of which each task has answered.
has_dumped()
{
	echo >&3
	wait_until grep -q '"groups".*}$' "$tmp/dumped"
	folded "$tmp/dumped" >"$tmp/own"
	cat "$tmp/own"
	test "$(awk '{ n += $NF } END { print n }' "$tmp/own")" = 9
}

# at_rest WHAT: the stacks are the same from outside.
at_rest()
{
	claim "$1: no request is needed" has_dumped
	"$tdt" bt --json --no-request "$pid" | folded >"$tmp/outside"
	same "$1: the stacks are those that the program itself prints" "$tmp/own" "$tmp/outside"
	if ! command -v gdb >/dev/null || ! make_core; then
		skip "$1: a core file" "gdb makes none here"
		return
	fi
	"$tdt" bt --json --core="$tmp/core" | folded >"$tmp/outside"
	same "$1: so are those of a core file" "$tmp/own" "$tmp/outside"
	rm -f "$tmp/core"
}

# Without a watch, there are the stacks of the cooks.
unwatched()
{
	"$tdt" bt --json --no-request "$pid" | folded >"$tmp/outside"
	claim "$1: the stacks of suspended coroutines are read without a watch" \
		test "$(grep -c '^cook;.*;cafe::cook::stir;.*tdt_co_await;' "$tmp/outside")" = 3
	if ! command -v gdb >/dev/null || ! make_core; then
		skip "$1: in a core file, too" "gdb makes none here"
		return
	fi
	"$tdt" bt --json --core="$tmp/core" | folded >"$tmp/dead"
	same "$1: in a core file, too" "$tmp/outside" "$tmp/dead"
	rm -f "$tmp/core"
}

tried=0
for compiler in "${TEST_GXX-}" "${TEST_CLANGXX-}"; do
	test -n "$compiler" || continue
	levels=-O2
	test "${TDT_TEST_FULL-}" != 1 || levels="-O0 -O2"
	for level in $levels; do
		if ! build "$compiler" $level 2>"$tmp/why"; then
			head -n 5 "$tmp/why" >&2
			skip "$compiler $level" "it has no coroutines"
			continue
		fi
		start "$tmp/cafe"
		if may_read; then
			at_rest "$compiler $level"
		else
			skip "$compiler $level" "reading another process is not permitted here"
		fi
		stop
		start env -u TDT_WATCH "$tmp/cafe"
		may_read && unwatched "$compiler $level"
		stop
		tried=1
	done
done
test $tried = 1 || skip "a program at rest" "there is no C++ compiler"
plan
