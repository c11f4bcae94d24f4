#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# A server that hangs, and a dump that shows where.  `make demo` runs this with the directory of the
# programs as its argument.
set -u
programs=${1:?the directory of echo-server and echo-client}
# shellcheck source=demo/wait.sh
. "$(dirname "$0")/wait.sh"

tmp=$(mktemp -d) || exit
server=
watchdog=
finish()
{
	test -z "$server" || kill -KILL "$server" 2>/dev/null
	test -z "$watchdog" || kill "$watchdog" 2>/dev/null
	rm -rf "$tmp"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

watch()
{
	trap 'kill $sleep; exit' TERM
	sleep 60 >/dev/null 2>&1 &
	sleep=$!
	wait $sleep
	kill -KILL $server
}

fail()
{
	echo "echo-demo.sh: $*" >&2
	cat "$tmp/out" "$tmp/err" >&2
	exit 1
}

echo 'A server of many tasks, and a client that drives it (demo/echo.c, demo/echo-client.c):'
"$programs/echo-server" --port=0 --report=200 --wedge >"$tmp/out" 2>"$tmp/err" &
server=$!
watch & # in case anything else hangs
watchdog=$!
wait_for '^listening' "$tmp/out"
port=$(sed -n 's/^listening at .* port //p' "$tmp/out")

"$programs/echo-client" --port="$port" --connections=2 --timeout=10000 || fail 'the client failed'

printf '\nWith a third connection a handler wedges itself (--wedge), '
printf 'and soon nobody gets an answer:\n'
"$programs/echo-client" --port="$port" --connections=3 --timeout=1000 2>&1 &&
	fail 'the server does not hang'

printf '\nWho waits where?  kill -USR1 asks all tasks:\n'
kill -USR1 $server
wait_for_dump "$tmp/err"
cat "$tmp/err"
printf 'Connection 3 is in count_poll behind its lock, so it holds the mutex; '
echo 'and in report_poll, which waits for that mutex.'
echo 'So it waits for itself, and the ticker and all other connections wait behind it.'

kill -TERM $server
wait $server || fail 'the server did not end well'
server=
