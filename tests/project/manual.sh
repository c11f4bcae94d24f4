#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The manual pages of functions, which man/functions.awk makes from the headers.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

# --- From comments ---

mkdir -p "$tmp/pages" "$tmp/include/tdt/rt"
cat >"$tmp/include/tdt/rt/net.h" <<'END'
/* A header. */

/* A kind of thing.  It is no function. */
struct tdt_thing {
	int n;
};

/*
 * Make `n` things -- or none.  See tdt_thing_free() for
 * their end.
 *
 *	tdt_things(3, "\n");
 *
 * Returns 0, or:
 *   EINVAL  `n` is 0,
 *           or less.
 *   ENOMEM  There is no memory.
 *
 * Any thread.
 */
int tdt_things(int n,
	       const char *end);
void tdt_thing_free(struct tdt_thing *thing); /* NULL is fine */

/* Add one. */
static inline __attribute__((always_inline)) const struct tdt_thing *
tdt_thing_more(struct tdt_thing *thing)
{
	return tdt_nothing(thing);
}

void tdt_not_told(void);

/* TDT__ONE() is internal. */
#define TDT__ONE() 1

/* TDT_MANY(n) is a macro. */
#define TDT_MANY(n) \
	tdt_things(n)
END
awk -v out="$tmp/pages" -v version=1 -f "$top_srcdir/man/functions.awk" "$tmp/include/tdt/rt/net.h"

cat >"$tmp/expected" <<'END'
.\" SPDX-License-Identifier: Apache-2.0 OR MIT
.\" Made from <tdt/rt/net.h>.
.TH tdt_things 3 "" "tdt 1" "Library Functions Manual"
.SH NAME
tdt_things \- make n things \-\- or none
.SH SYNOPSIS
.nf
.B #include <tdt/rt/net.h>
.PP
.BR "int tdt_things(int n, const char *end);"
.BR "void tdt_thing_free(struct tdt_thing *thing);"
.fi
.SH DESCRIPTION
\&Make \fIn\fR things \-\- or none.  See \fBtdt_thing_free\fR() for
\&their end.
.PP
.EX
\&	tdt_things(3, "\en");

.EE
\&Returns 0, or:
.TP
\&EINVAL
\&\fIn\fR is 0,
\&or less.
.TP
\&ENOMEM
\&There is no memory.
.PP
\&Any thread.
.SH SEE ALSO
.BR tdt-rt (3),
.BR tdt_thing_free (3)
END
same "a comment becomes a page" "$tmp/expected" "$tmp/pages/tdt_things.3"

(cd "$tmp/pages" && ls) >"$tmp/got"
cat >"$tmp/expected" <<'END'
TDT_MANY.3
tdt_thing_free.3
tdt_thing_more.3
tdt_things.3
END
LC_ALL=C sort "$tmp/got" >"$tmp/sorted"
same "functions and macros that have a comment have a page, types have none" \
	"$tmp/expected" "$tmp/sorted"

cat >"$tmp/expected" <<'END'
.BR "const struct tdt_thing *tdt_thing_more(struct tdt_thing *thing);"
.BR "TDT_MANY(n)"
END
grep -h '^\.BR "' "$tmp/pages/tdt_thing_more.3" "$tmp/pages/TDT_MANY.3" >"$tmp/got"
same "an inline function is shown without its body and attributes" "$tmp/expected" "$tmp/got"

# --- The pages that are installed ---

pages=${top_builddir:?}/man/man3

# have_pages: the names on standard input.
have_pages()
{
	status=0
	while read -r name; do
		test -s "$pages/$name.3" || { echo "$name has no page"; status=1; }
	done
	return $status
}

exported()
{
	sed -n 's/^\t\(tdt_[a-z0-9_]*\);$/\1/p' "$top_srcdir"/src/libtdt.map \
		"$top_srcdir"/src/runtime/libtdt-rt.map | grep -v '^tdt__'
}
exported >"$tmp/exported"
claim "there are exported functions" test "$(wc -l <"$tmp/exported")" -ge 60
claim "each exported function has a page" have_pages <"$tmp/exported"

# Inline functions, and macros with arguments, that are not internal (tdt__..., TDT__...).
in_headers()
{
	cat "$top_srcdir"/include/tdt/*.h "$top_srcdir"/include/tdt/*/*.h | awk '
		/^static inline/ { inline = 1; text = "" }
		inline { text = text " " $0 }
		/^}/ { inline = 0 }
		inline && match(text, /tdt_[a-z0-9][a-z0-9_]*\(/) {
			print substr(text, RSTART, RLENGTH - 1)
			inline = 0
		}'
	sed -n 's/^#define \(\(tdt\|TDT\)_[A-Za-z0-9][A-Za-z0-9_]*\)(.*/\1/p' \
		"$top_srcdir"/include/tdt/*.h "$top_srcdir"/include/tdt/*/*.h
}
in_headers >"$tmp/inline"
claim "there are inline functions and macros" test "$(wc -l <"$tmp/inline")" -ge 15
claim "each of them has a page" have_pages <"$tmp/inline"

# renders PAGE...: on 80 columns, without a warning.
renders()
{
	for page; do
		groff -k -t -man -ww -z -Tutf8 -rLL=78n "$page" 2>&1 | sed "s|^|$page: |"
	done >"$tmp/warnings"
	cat "$tmp/warnings"
	test ! -s "$tmp/warnings"
}
if command -v groff >/dev/null; then
	claim "groff finds no fault with them" renders "$pages"/*.3
	cd "$top_srcdir/man" || exit # tdt-tree.1 includes man1/tdt-print.1
	claim "nor with the written pages" renders $(ls | grep '^tdt.*[.][1-9]$' | grep -v tdt-tree)
else
	skip "groff finds no fault with them" "there is no groff"
	skip "groff finds no fault with the written pages" "there is no groff"
fi

plan
