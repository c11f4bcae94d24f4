#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The examples of tdt(1) and of docs/outside.md do what they say.  Programs that they pipe to are
# made up here; so are the names of the process and of its files.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
LC_ALL=C
DEBUGINFOD_URLS=
TDT_WATCH=10ms
TDT_RECORD=1M
TDT_RECORD_DIR=$tmp/rings
LD_LIBRARY_PATH=${top_builddir:?}/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LC_ALL DEBUGINFOD_URLS TDT_WATCH TDT_RECORD TDT_RECORD_DIR LD_LIBRARY_PATH

test "${WITH_RUNTIME:?}" = yes || skip_all "there is no runtime"

# --- What the examples name ---

name=tdt_ex_$$ # the same test may run elsewhere on the machine
bank=$top_builddir/tests/outside/.libs/outside_bank
test -x "$bank" || bank=$top_builddir/tests/outside/outside_bank
mkdir "$tmp/bin" "$tmp/rings"
cp "$bank" "$tmp/$name"

# stub NAME COMMANDS
stub()
{
	printf '#!/bin/sh\n%s\n' "$2" >"$tmp/bin/$1"
	chmod +x "$tmp/bin/$1"
}

ln -s "$tdt" "$tmp/bin/tdt"
stub dot 'test "$*" = -Tsvg && grep -q "^digraph tasks"'
stub flamegraph.pl 'grep -q "^tasks;session_poll;.* 3$"'
stub alert 'echo >alerted'
PATH=$tmp/bin:$PATH
export PATH

# Lines of commands, without their comments; \- is a minus sign, and ten seconds would be long.
examples()
{
	sed 's/\\-/-/g; s/ *#.*//; s/-d 10s/-d 1s/; s/=5s app/=1s app/' |
		sed "s|\./app|./$name|g; s|/dev/shm/app|$tmp/rings|; s|\<4711\>|$pid|
			s|core\.$pid|core|; s| app\>\([^.]\)| $name\1|g; s| app\$| $name|"
}

of_manual()
{
	sed -n '/^\.SH EXAMPLES/,/^\.RE/p' "$top_srcdir/man/tdt.1.in" | grep '^tdt ' | examples
}

of_page()
{
	# shellcheck disable=SC2016
	sed -n '/^```$/,/^```$/p' "$top_srcdir/docs/outside.md" | grep '^tdt ' | examples
}

# --- Running them ---

# does COMMANDS
does()
{
	wait_until does_in_time "$1"
	test "$status" = 0 && ! test -s "$tmp/why"
}

# The process may be held up for longer than tdt waits for its answer.
does_in_time()
{
	(cd "$tmp" && eval "$1") >"$tmp/printed" 2>"$tmp/why"
	status=$?
	cat "$tmp/why"
	! grep -q 'did not answer in time' "$tmp/why"
}

# run WHICH FILE: the examples that match the pattern.
run()
{
	while IFS= read -r example; do
		claim "$(echo "$example" | sed "s|$tmp|DIR|; s/$name/app/; s/\<$pid\>/PID/")" \
			does "$example"
	done <<END
$(grep -e "$1" "$2")
END
}

if ! start "$tmp/$name" 3 rests; then
	cat "$tmp/dumped" >&2
	claim "the process starts" false
	plan
	exit
fi
if ! may_read; then
	stop
	skip_all "reading another process is not permitted here: $(cat "$tmp/why")"
fi
of_manual >"$tmp/manual"
of_page >"$tmp/page"
sort -u "$tmp/manual" "$tmp/page" | grep -v -e --core -e --dir >"$tmp/live"
claim "the manual has examples" test "$(wc -l <"$tmp/manual")" -gt 7
claim "docs/outside.md has some" test "$(wc -l <"$tmp/page")" -gt 3
"$tdt" bt "$pid" 5 >/dev/null 2>"$tmp/why"
if grep -q perf_event_open "$tmp/why"; then
	grep -v -e 'tdt bt' -e 'tdt diff' -e 'tdt profile' "$tmp/live" >"$tmp/allowed"
	mv "$tmp/allowed" "$tmp/live"
	skip "examples of tdt bt" "perf_event_open is not permitted here"
fi
run . "$tmp/live"
claim "the alarm was given" test -e "$tmp/alerted"
claim "and the deadlock was listed nevertheless" sh -c \
	"'$tdt' ps --check $pid | grep '^deadlock: task 2 .* task 3 '"
claim "with all tasks" test "$("$tdt" ps --check "$pid" | grep -c '^ *[0-9]')" = 8
if command -v gdb >/dev/null && test "${SANITIZERS:?}" = no && make_core; then
	grep -h -e --core "$tmp/manual" "$tmp/page" >"$tmp/dead"
	run . "$tmp/dead"
	rm "$tmp/core"
else
	skip "examples of core files" "no core file can be made"
fi
stop
run --dir "$tmp/manual"
plan
