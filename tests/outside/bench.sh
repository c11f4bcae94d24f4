#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Every benchmark works: it measures something, and says so in JSON.  Not what: times depend on the
# machine.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

test "$SANITIZERS" = no || skip_all "of benchmarks, sanitizers make long runs and no figures"
cd "${top_builddir:?}" || exit

measure()
{
	rm -f "$tmp/why"
	timeout 600 "$1" --quick --json >"$tmp/line" 2>"$tmp/said" &&
		tests/outside/bench_line <"$tmp/line" >"$tmp/why"
	measured=$?
	cat "$tmp/said" >&2
	if grep -q 'may not be read\|opening the process' "$tmp/said"; then
		echo "reading another process is not permitted here" >"$tmp/why"
		measured=77
	fi
}

has_measured()
{
	test "$measured" = 0 && return
	cat "$tmp/why"
	head -20 "$tmp/line"
	return 1
}

helps()
{
	timeout 100 "$1" --help >"$tmp/help" && grep -q '^Usage:.*--json' "$tmp/help"
}

refuses()
{
	! timeout 100 "$1" --nonsense >/dev/null
}

for bench in ${BENCHES:?}; do
	measure "$bench"
	if test "$measured" = 77; then
		skip "$bench measures something" "$(cat "$tmp/why")"
	else
		claim "$bench measures something" has_measured
	fi
	claim "$bench --help tells how it is used" helps "$bench"
	claim "and another option is refused" refuses "$bench"
done

plan
