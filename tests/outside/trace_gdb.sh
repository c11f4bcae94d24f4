#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The probes in gdb: breakpoints at all of them, and their arguments.  Any user.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/tracing.sh
. "$top_srcdir/tests/lib/tracing.sh"
DEBUGINFOD_URLS=
export DEBUGINFOD_URLS
command -v gdb >/dev/null || skip_all "there is no gdb"
gdb -nx -batch -ex run -ex 'info inferiors' --args true 2>/dev/null | grep -q 'exited normally' ||
	skip_all "gdb may not run a program here"

# at PROBE FORMAT ARGUMENTS: print an event there and go on.
# shellcheck disable=SC2016 # gdb expands them
at()
{
	printf 'break -probe-stap %s:%s\ncommands\nsilent\n' "$provider" "$1"
	printf 'printf "EVENT %%d %s%s\\n", $_thread%s\ncontinue\nend\n' "$(dashed "$1")" "$2" "$3"
}

echo >"$tmp/line"
# shellcheck disable=SC2016
arguments='$_probe_arg0, (char *)$_probe_arg1, (unsigned)$_probe_arg2, (unsigned)$_probe_arg3'
# shellcheck disable=SC2016
{
	echo "set pagination off"
	echo "tbreak main"
	echo "run work <$tmp/line >$tmp/said"
	echo "info probes stap $provider"
	for probe in $task_probes; do
		at "$probe" ' %lu %s %u %u' ", $arguments"
	done
	for probe in $worker_probes; do
		at "$probe" '' ''
	done
	echo "continue"
} >"$tmp/commands"
gdb -nx -batch -x "$tmp/commands" "$top_builddir/tests/outside/.libs/probed" >"$tmp/log" \
	2>"$tmp/log.err"

# shellcheck disable=SC2086 # lists of names
printf '%s\n' $task_probes $worker_probes | sort >"$tmp/names"
awk -v provider="$provider" '$1 == "stap" && $2 == provider { print $3 }' "$tmp/log" |
	sort >"$tmp/listed"
same "gdb lists the ten probes" "$tmp/names" "$tmp/listed"

# gdb has numbers of its own for threads: call each by its first task.
by_first_task()
{
	by_thread "$@" | awk '
		$1 != thread { thread = $1; name = ""; held = "" }
		name == "" && NF > 2 { name = $3; printf "%s", held }
		name == "" { $1 = "?"; held = held $0 "\n"; next }
		{ $1 = name; print }'
}
by_first_task "$tmp/said" >"$tmp/named"
mv "$tmp/named" "$tmp/said"
sed -n 's/^EVENT //p' "$tmp/log" | by_first_task >"$tmp/events"
claim_events gdb "$tmp/events"
plan
