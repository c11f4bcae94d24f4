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

for program in "$top_srcdir"/tests/truth/corpus/*; do
	name=$(basename "${program%.*}")
	if test "$name" = ms_abi && ! grep -q 'TDT_WALK_RULES 1' "${top_builddir:?}/config.h"; then
		skip "$name" "libunwind's cursor doesn't know the registers"
		continue
	fi
	sh "$run" programs "$program" >log
	status=$?
	cat log >&2
	if test "$status" = 77; then
		skip "$name" "$(sed -n 's/^check-truth: skipped: //p' log)"
	else
		claim "the trees of $name are true" test "$status" = 0
	fi
done
plan
