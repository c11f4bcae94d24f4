#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# No line of the sources has over 100 columns, with tabs of 8.  What stands indented in a comment, a
# table, a diagram or a sample of output, may be wider.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

# wide_lines FILE...: each such line, with its file and number.
wide_lines()
{
	for file; do
		# A character of UTF-8 is one column: all but its first byte is left out.
		LC_ALL=C sed 's/[\x80-\xbf]//g' "$file" | expand -t 8 |
			LC_ALL=C awk -v file="$file" '
			length > 100 && !/^ *\*  / { print file ":" FNR ": " length " columns" }'
	done
}

none_wide()
{
	wide_lines "$@" >"$tmp/wide"
	cat "$tmp/wide" >&2
	test ! -s "$tmp/wide"
}

cd "$top_srcdir" || exit
claim "no line is too wide" none_wide include/tdt/*.h* src/*.[ch] src/*/*.[ch] src/*/*.S \
	tree-printer/*.[ch] \
	cli/*.[ch]

# The check can fail, and knows tables and UTF-8.
x20=xxxxxxxxxxxxxxxxxxxx
x80=$x20$x20$x20$x20
cat >"$tmp/lines.c" <<END
/* $x80$x20 */
/*
 *	a table: $x80$x20
 * $x80$x20
 */
		$x80$x20
x${x80}xxxxxxxxxxxxxxxxxx─
xx${x80}xxxxxxxxxxxxxxxxxx─
END
wide_lines "$tmp/lines.c" | sed 's/.*lines.c://' >"$tmp/got"
cat >"$tmp/want" <<'END'
1: 106 columns
4: 103 columns
6: 116 columns
8: 101 columns
END
same "a line that is too wide is found" "$tmp/want" "$tmp/got"
plan
