#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The first comment of each suite in tests/unit begins with the modules that the suite covers, as in
# `Covers task/join, task/tasks.`  Each of them exists, and no module is left out.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

# covered SUITE: the modules, one a line; nothing if the comment does not begin so.
covered()
{
	sed '1d; /^$/q; s/^ *\/*\** *//' "$1" | tr '\n' ' ' |
		sed -n 's/^ *Covers \([a-z0-9_./, -]*\)[.] .*/\1/p' |
		tr -d ' ' | tr ',' '\n' | grep .
}

# wrong ROOT: what is wrong with the suites there.
wrong()
{
	(
		cd "$1" || exit
		for suite in $(find tests/unit -name 'check_*.c' | LC_ALL=C sort); do
			covered "$suite" >"$tmp/modules"
			test -s "$tmp/modules" || echo "$suite: does not begin with what it covers"
			while read -r module; do
				ls "src/$module".[ch] "$module.c" "include/$module" 2>/dev/null |
					grep -q . || echo "$suite: there is no $module"
			done <"$tmp/modules"
			cat "$tmp/modules" >>"$tmp/all"
		done
		ls src/*.c src/*/*.c tree-printer/*.c reader/*.c | sed 's/^src\///; s/[.]c$//' |
			grep -Fvx -f "$tmp/all" | sed 's/$/: no suite covers it/'
	)
}

none_wrong()
{
	: >"$tmp/all"
	wrong "$1" >"$tmp/wrong"
	cat "$tmp/wrong" >&2
	test ! -s "$tmp/wrong"
}

claim "the suites are where they are looked for" test -f "$top_srcdir/tests/unit/task/check_join.c"
claim "each suite names modules, and each module is named" none_wrong "$top_srcdir"

# The check can fail.
fake=$tmp/fake
mkdir -p "$fake/tests/unit/task" "$fake/src/task" "$fake/tree-printer" \
	"$fake/reader" "$fake/include/tdt"
touch "$fake/src/fork.c" "$fake/src/task/join.c" "$fake/src/task/saved_waker.h" \
	"$fake/src/task/wrapper.c" "$fake/tree-printer/text.c" "$fake/tree-printer/view.c" \
	"$fake/reader/find.c" "$fake/include/tdt/async.h"
cat >"$fake/tests/unit/task/check_a.c" <<'END'
// The licence.
/*
 * Covers task/join, task/saved_waker,
 * tree-printer/text, tdt/async.h.  It
 * names them.
 */
END
printf '// The licence.\n/* Covers task/jion.  It errs. */\n' >"$fake/tests/unit/task/check_b.c"
printf '// The licence.\n/* It covers fork. */\n' >"$fake/tests/unit/task/check_c.c"
printf '// The licence.\n/* Covers fork. */\n' >"$fake/tests/unit/check_d.c"
cat >"$tmp/want" <<'END'
tests/unit/task/check_b.c: there is no task/jion
tests/unit/task/check_c.c: does not begin with what it covers
reader/find: no suite covers it
task/wrapper: no suite covers it
tree-printer/view: no suite covers it
END
none_wrong "$fake" 2>/dev/null
same "what is wrong is found" "$tmp/want" "$tmp/wrong"
plan
