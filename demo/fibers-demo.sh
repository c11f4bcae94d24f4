#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Coroutines of libraries that know nothing of tdt, and where they wait.  `make demo` runs this with
# the directory of the programs as its argument.
set -u
programs=${1:?the directory of fibers}
# shellcheck source=demo/wait.sh
. "$(dirname "$0")/wait.sh"

tmp=$(mktemp -d) || exit
bakery=
finish()
{
	test -z "$bakery" || kill -KILL "$bakery" 2>/dev/null
	rm -rf "$tmp"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

fail()
{
	echo "fibers-demo.sh: $*" >&2
	cat "$tmp/out" "$tmp/err" >&2
	exit 1
}

# One more dump of the bakery.  On a busy machine trees or names may come too late for it; the next
# one has them.
dumped()
{
	: >"$tmp/err"
	kill -USR1 $bakery
	wait_for_dump "$tmp/err"
	! grep -q -e '[0-9] running' -e 'without a tree' -e 'not named in time' "$tmp/err"
}

# The library's signal prints the dump: the program itself has no code for tdt.  The descriptor 3 is
# the end of the pipe that brings the flour.
bake()
{
	mkfifo "$tmp/flour"
	TDT_DUMP=USR1 "$programs/fibers-pth" <"$tmp/flour" >"$tmp/out" 2>>"$tmp/err" &
	bakery=$!
	exec 3>"$tmp/flour"
	wait_for 'open' "$tmp/out"
	until dumped; do :; done
	echo flour >&3
	wait $bakery || fail 'the bakery did not end well'
	bakery=
	exec 3>&-
	cat "$tmp/err" "$tmp/out"
}

echo 'A scheduler of its own switches from coroutine to coroutine; where they wait (demo/fibers.c):'
"$programs/fibers" || exit

printf '\nCoroutines of Boost (demo/fibers-boost.cc):\n'
if test -x "$programs/fibers-boost"; then
	"$programs/fibers-boost" || exit
else
	echo 'left out: there is no Boost (Debian: libboost-context-dev).'
fi

printf '\nThreads of GNU Pth, in a program that is not changed (demo/fibers-pth.c):\n'
if test -x "$programs/fibers-pth"; then
	bake
else
	echo 'left out: there is no Pth (Debian: libpth-dev).'
fi
