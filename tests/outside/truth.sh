#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The trees of the programs that tests/truth/ keeps are true.  `make check-truth` has random ones,
# too.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

run=$top_srcdir/tests/truth/run.sh
why=$(sh "$run" impossible)
test -z "$why" || skip_all "$why"
cd "$tmp" || exit

sh "$run" programs "$top_srcdir"/tests/truth/corpus/* >log
cat log >&2
for program in "$top_srcdir"/tests/truth/corpus/*; do
	name=$(basename "$program")
	status=$(sed -n "s/^truth: \([0-9]*\) of $name\$/\1/p" log)
	if test "$name" = ms_abi.c &&
		! grep -q 'TDT_WALK_RULES 1' "${top_builddir:?}/config.h"; then
		skip "$name" "libunwind's cursor doesn't know the registers"
	elif test "$status" = 77; then
		skip "$name" "$(sed -n "/^check-truth: skipped: /h
			/^truth: 77 of $name\$/{x; s/.*skipped: //p}" log)"
	else
		claim "the trees of $name are true" test "$status" = 0
	fi
done
plan
