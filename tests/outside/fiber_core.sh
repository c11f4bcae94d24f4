#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The stacks of suspended fibers in a core file: gdb continues them from the registers in the
# records.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
DEBUGINFOD_URLS=
export DEBUGINFOD_URLS

test "$SANITIZERS" = no || skip_all "sanitizers map terabytes"
command -v gdb >/dev/null || skip_all "there is no gdb"
gdb -nx -batch -ex 'py import gdb.unwinder' 2>&1 | grep -q . && skip_all "gdb has no Python"

program=${top_builddir:?}/tests/outside/fiber_core
test -e "$top_builddir/tests/outside/.libs/fiber_core" &&
	program=$top_builddir/tests/outside/.libs/fiber_core
mkfifo "$tmp/in"
"$program" <"$tmp/in" >"$tmp/records" &
pid=$!
exec 3>"$tmp/in"
has_records()
{
	test "$(wc -l <"$tmp/records")" = 2
}
wait_until has_records
gdb -nx -batch -ex "generate-core-file $tmp/core" -p "$pid" </dev/null >"$tmp/gdb" 2>&1
exec 3>&-
wait "$pid"
claim "the program ends well after that" test $? = 0
if ! test -s "$tmp/core"; then
	skip "the stacks in a core file" "gdb made none: $(tail -n 1 "$tmp/gdb")"
	plan
	exit
fi

addresses=$(paste -s -d , "$tmp/records")
gdb -nx -batch -ex "py addresses = [$addresses]" \
	-x "$top_srcdir/tests/outside/fixtures/fiber_core.py" "$program" "$tmp/core" \
	>"$tmp/log" 2>&1
grep '^fiber' "$tmp/log" >"$tmp/got"
cat >"$tmp/expected" <<'END'
fiber fibered_yield first shallow fibered_entry
fiber fibered_yield first second second second deep fibered_entry
END
same "gdb shows where each fiber stands" "$tmp/expected" "$tmp/got"
grep -q . "$tmp/got" || cat "$tmp/log" >&2
plan
