# SPDX-License-Identifier: Apache-2.0 OR MIT
# shellcheck shell=sh
# Processes for the program tdt to look at: source this behind tap.sh.

tdt=${top_builddir:?}/tdt
mkfifo "$tmp/input"

# start COMMAND...: leaves $pid when the program says that it is ready.  The wrapper of a program
# that was built with shared libraries execs it, so it has the same id.
start()
{
	: >"$tmp/said" # the program before was ready, too
	"$@" <"$tmp/input" >"$tmp/said" 2>"$tmp/dumped" 3>&- &
	exec 3>"$tmp/input"
	until grep -q '^ready' "$tmp/said"; do
		kill -0 $! || {
			exec 3>&- # else the next program would wait for the end of its own input
			return 1
		}
		sleep 0.05
	done
	pid=$!
}

# give_line ANSWER: give the program a line, and wait until it has given that answer once more;
# $told is how often it had before.
give_line()
{
	told=$(grep -cx "$1" "$tmp/said")
	echo >&3
	wait_until has_answered "$1"
}

has_answered()
{
	test "$(grep -cx "$1" "$tmp/said")" -gt "$told"
}

stop()
{
	exec 3>&-
	wait "$pid"
}

# serve TARGET|--all [OPTION...]: a server of metrics; leaves $server, and the URL in $url.
serve()
{
	: >"$tmp/url"
	"$tdt" metrics --listen=0 "$@" >"$tmp/url" 2>"$tmp/why" 3>&- &
	server=$!
	until grep -q '^serving http://127.0.0.1:[1-9][0-9]*/metrics$' "$tmp/url"; do
		kill -0 "$server" || return 1
		sleep 0.1
	done
	url=$(sed 's/^serving //' "$tmp/url")
}

make_core()
{
	gdb -nx -batch -ex "generate-core-file $tmp/core" -p "$pid" </dev/null >"$tmp/gdb" 2>&1
	test -s "$tmp/core"
}

# Whether tdt may read a process: if not, why.
may_read()
{
	"$tdt" ps "$pid" >/dev/null 2>"$tmp/why"
}
