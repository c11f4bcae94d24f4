#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# No two files of the sources define a static function or variable, a struct tag or a macro of the
# same name.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

# definitions ROOT: each definition, as "KIND NAME FILE:LINE", in the order of the files.
definitions()
{
	(cd "$1" && find src tree-printer reader cli -name '*.[ch]' | LC_ALL=C sort | xargs awk '
		function define(kind, name)
		{
			print kind, name, FILENAME ":" FNR
		}
		function define_variables(text,    part, n, i)
		{
			sub(/_Alignas\([^()]*\)/, "", text)
			sub(/[;=[{].*/, "", text)
			n = text ~ /\(/ ? 0 : split(text, part, ",")
			for (i = 1; i <= n; i++)
				if (match(part[i], /[A-Za-z0-9_]+ *$/)) {
					sub(/ *$/, "", part[i])
					match(part[i], /[A-Za-z0-9_]+$/)
					if (substr(part[i], RSTART) != "struct")
						define("variable", substr(part[i], RSTART))
				}
		}
		FNR == 1 {
			head = ""
		}
		/^#[ \t]*define[ \t]/ {
			sub(/^#[ \t]*define[ \t]+/, "")
			match($0, /^[A-Za-z0-9_]+/)
			define("macro", substr($0, 1, RLENGTH))
			next
		}
		/^(static |typedef |const )*(struct|union|enum) [A-Za-z0-9_]+ \{/ {
			match($0, /(struct|union|enum) [A-Za-z0-9_]+ \{/)
			split(substr($0, RSTART, RLENGTH), word, " ")
			define("tag", word[2])
			next
		}
		# The head of a function may take several lines.  A variable or a declaration has a
		# semicolon or an equals sign before the brace.
		/^static / {
			head = " "
			at = FNR
		}
		head != "" {
			head = head $0 " "
			while (match(head, /__attribute__ *\(\([^()]*(\([^()]*\)[^()]*)*\)\)/))
				head = substr(head, 1, RSTART - 1) substr(head, RSTART + RLENGTH)
			if (head ~ /[;=]|^[^(]*\{/) {
				define_variables(head)
				head = ""
			}
			else if (head ~ /\{/) {
				sub(/\(.*/, "", head)
				match(head, /[A-Za-z0-9_]+ *$/)
				head = substr(head, RSTART)
				sub(/ +$/, "", head)
				print "function", head, FILENAME ":" at
				head = ""
			}
		}')
}

# doubles ROOT: each name that a second file defines, with both places.
doubles()
{
	definitions "$1" | awk '
		{
			split($3, place, ":")
			# One of the machines is chosen.
			sub(/(x86_64|aarch64)\//, "", place[1])
			key = $1 " " $2
			if (!(key in first)) {
				first[key] = $3
				file[key] = place[1]
			} else if (place[1] != file[key])
				print $3 ": " key ": also at " first[key]
		}'
}

no_doubles()
{
	doubles "$1" >"$tmp/doubles"
	cat "$tmp/doubles" >&2
	test ! -s "$tmp/doubles"
}

claim "the sources are where they are looked for" test -f "$top_srcdir/src/capture/seal.h"
claim "no name is defined in two files" no_doubles "$top_srcdir"

# The check can fail.
mkdir -p "$tmp/wrong/src/tree" "$tmp/wrong/src/unwind/x86_64" "$tmp/wrong/src/unwind/aarch64" \
	"$tmp/wrong/tree-printer" "$tmp/wrong/reader" "$tmp/wrong/cli"
cat >"$tmp/wrong/cli/join.c" <<'END'
#define TRIES 3
struct entry {
	int key;
};
static int count;
static void grow(void);

static void grow(void)
{
}
static __attribute__((no_sanitize("address"))) struct entry *
find(const struct entry *entries,
     int key)
{
}
END
cat >"$tmp/wrong/src/tree/tree.c" <<'END'
#if 1
#define TRIES 4
#else
#define TRIES 5
#endif
enum entry { NONE };
static int table[] = { 1 };
static int last_count, count;
static struct {
	int key;
} first;
static inline void grow(int n)
{
}
static int find(int key) __attribute__((unused));
static int find(int key)
{
}
END
echo 'static inline void tdt__walk_same(void) {' >"$tmp/wrong/src/unwind/x86_64/step.h"
echo 'static inline void tdt__walk_same(void) {' >"$tmp/wrong/src/unwind/aarch64/step.h"
doubles "$tmp/wrong" >"$tmp/got"
cat >"$tmp/want" <<'END'
src/tree/tree.c:2: macro TRIES: also at cli/join.c:1
src/tree/tree.c:4: macro TRIES: also at cli/join.c:1
src/tree/tree.c:6: tag entry: also at cli/join.c:2
src/tree/tree.c:8: variable count: also at cli/join.c:5
src/tree/tree.c:12: function grow: also at cli/join.c:8
src/tree/tree.c:16: function find: also at cli/join.c:11
END
same "a second definition is found, with both places" "$tmp/want" "$tmp/got"
plan
