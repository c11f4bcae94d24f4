#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# No line of the sources has over 100 columns, with tabs of 8.  These may be wider: what stands
# indented in a comment (a table, a diagram, a sample of output), what a script holds in a here
# document, and formats of bpftrace, which can't join strings.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

# wide_lines FILE...: each such line, with its file and number.
wide_lines()
{
	# In the locale C a character of UTF-8 is several bytes: all but the first are left out.
	LC_ALL=C awk '
		FNR == 1 { here = "" }
		here != "" {
			if ($1 == here)
				here = ""
			next
		}
		FILENAME ~ /[.]sh$/ && match($0, /<<-? *.?[A-Z]+/) {
			here = substr($0, RSTART, RLENGTH)
			gsub(/[^A-Z]/, "", here)
		}
		length > 30 {
			gsub(/[\200-\277]/, "")
			while (at = index($0, "\t"))
				$0 = substr($0, 1, at - 1) substr("        ", 1, 8 - (at - 1) % 8) \
					substr($0, at + 1)
		}
		length > 100 && !/^ *[*#]  / && !(FILENAME ~ /[.]bt$/ && /^ *printf\("[^"]*",$/) {
			print FILENAME ":" FNR ": " length " columns"
		}' "$@"
}

# split.c is left out: one of its functions has a single line, so that its frames have one, too.
sources()
{
	find include src tree-printer reader cli tests bench demo tools docs man rust -type f \
		! -name split.c |
		grep '[.]\([chdS]\|cc\|hpp\|rs\|sh\|awk\|bt\|gdb\|mk\)$'
	ls .ci/check-skips .ci/list-failures .ci/list-skips .ci/run
	ls bootstrap configure.ac GNUmakefile Makefile.am
}

none_wide()
{
	# shellcheck disable=SC2046 # names without spaces
	wide_lines $(sources) >"$tmp/wide"
	cat "$tmp/wide" >&2
	test ! -s "$tmp/wide"
}

cd "$top_srcdir" || exit
claim "the sources are found" test "$(sources | wc -l)" -gt 500
claim "no line is too wide" none_wide

# The check can fail, and knows what may be wide.
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
cat >"$tmp/lines.sh" <<END
# $x80$x20
#   a table: $x80$x20
cat <<'HERE'; echo $x80$x20
$x80$x80
HERE
echo $x80$x20
END
cat >"$tmp/lines.bt" <<END
	printf("$x80$x20",
	       $x80$x20);
END
wide_lines "$tmp/lines.c" "$tmp/lines.sh" "$tmp/lines.bt" | sed 's/.*lines[.]//' >"$tmp/got"
cat >"$tmp/want" <<'END'
c:1: 106 columns
c:4: 103 columns
c:6: 116 columns
c:8: 101 columns
sh:1: 102 columns
sh:3: 119 columns
sh:6: 105 columns
bt:2: 117 columns
END
same "a line that is too wide is found" "$tmp/want" "$tmp/got"
plan
