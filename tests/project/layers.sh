#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The folders of the sources lie on top of each other, and no file includes one of a folder above
# its own.  Each source is in a local.mk.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

# From the bottom up.  What lies in src/ itself, above all of them, is fork.c.
folders='base symbolize tree facts recording tree-printer host unwind registry probes capture'
folders="$folders watch recorder task future dump door runtime"

# What the reader may use: nothing that runs in the process that it reads.
reader='base symbolize tree facts recording tree-printer'

# upward_includes ROOT: each include that points upwards, or that names no folder, with file and
# line.
upward_includes()
{
	(cd "$1" && grep -ns '^#include "' src/*.[ch] src/*/*.[ch] src/*/*/*.[ch] \
		tree-printer/*.[ch]) |
		awk -v folders="$folders" '
		BEGIN {
			n = split(folders, name, " ")
			for (i = 1; i <= n; i++)
				level[name[i]] = i
		}
		function folder_of(path,    part, n) {
			sub(/\/(x86_64|aarch64)\//, "/", path) # the part of one machine
			n = split(path, part, "/")
			return n > 1 ? part[n - 1] : ""
		}
		{
			split($0, field, ":")
			from = folder_of(field[1])
			match($0, /"[^"]*"/)
			to = folder_of(substr($0, RSTART + 1, RLENGTH - 2))
			if (to == "src" || (to == "" && from == "tree-printer"))
				next # what is generated; and its own
			if (to == "")
				print $0 ": names no folder"
			else if (!(to in level) || (from != "src" && !(from in level)))
				print $0 ": what is the place of this folder?"
			else if (from != "src" && level[to] > level[from])
				print $0 ": points upwards"
		}'
}

none_upward()
{
	upward_includes "$1" >"$tmp/upward"
	cat "$tmp/upward" >&2
	test ! -s "$tmp/upward"
}

# beyond_reader ROOT: each include of reader/ of something else.
beyond_reader()
{
	(cd "$1" && grep -Hn '^#include "' reader/*.[ch]) |
		awk -v folders="reader $reader" '
		BEGIN {
			n = split(folders, name, " ")
			for (i = 1; i <= n; i++)
				may[name[i]] = 1
		}
		{
			match($0, /"[^"]*"/)
			to = substr($0, RSTART + 1, RLENGTH - 2)
			sub(/\/[^\/]*$/, "", to)
			if (!(to in may))
				print $0 ": is not for readers"
		}'
}

none_beyond_reader()
{
	beyond_reader "$1" >"$tmp/beyond"
	cat "$tmp/beyond" >&2
	test ! -s "$tmp/beyond"
}

# unlisted ROOT: each source that no local.mk has: the tarball would lack it.
unlisted()
{
	(
		cd "$1" || exit
		cat ./*/local.mk src/*/local.mk 2>/dev/null |
			grep -oE '[a-z-]+/[A-Za-z0-9_/-]+[.][chS]' | sort -u >"$tmp/listed"
		find src include reader cli tree-printer -name '*.[chS]' 2>/dev/null | sort |
			comm -23 - "$tmp/listed"
	)
}

all_listed()
{
	unlisted "$1" >"$tmp/missing"
	cat "$tmp/missing" >&2
	test ! -s "$tmp/missing"
}

claim "the sources are where they are looked for" test -f "$top_srcdir/src/capture/seal.h"
claim "no include points upwards" none_upward "$top_srcdir"
claim "the reader uses nothing that runs in its target" none_beyond_reader "$top_srcdir"
claim "each source is listed, for the tarball" all_listed "$top_srcdir"

# The check can fail.
mkdir -p "$tmp/wrong/src/tree" "$tmp/wrong/src/attic" "$tmp/wrong/tree-printer"
echo '#include "base/index.h"' >"$tmp/wrong/src/fork.c"
printf '#include "base/index.h"\n\n#include "capture/seal.h"\n' >"$tmp/wrong/src/tree/trace.c"
echo '#include "stacks.h"' >"$tmp/wrong/src/tree/trace.h"
echo '#include "base/index.h"' >"$tmp/wrong/src/attic/chest.h"
echo '#include "printer.h"' >"$tmp/wrong/tree-printer/text.c"
echo '#include "tree/trace.h"' >"$tmp/wrong/tree-printer/printer.h"
printf 'a_SOURCES = \\\n\tsrc/tree/trace.c \\\n\tsrc/fork.c\n' >"$tmp/wrong/src/local.mk"
unlisted "$tmp/wrong" >"$tmp/got"
printf '%s\n' src/attic/chest.h src/tree/trace.h tree-printer/printer.h tree-printer/text.c \
	>"$tmp/want"
same "a source that is not listed is found" "$tmp/want" "$tmp/got"
upward_includes "$tmp/wrong" >"$tmp/got"
cat >"$tmp/want" <<'END'
src/attic/chest.h:1:#include "base/index.h": what is the place of this folder?
src/tree/trace.c:3:#include "capture/seal.h": points upwards
src/tree/trace.h:1:#include "stacks.h": names no folder
END
same "an include that points upwards is found, with its line" "$tmp/want" "$tmp/got"
mkdir -p "$tmp/wrong/reader"
printf '#include "reader/find.h"\n#include "registry/registry.h"\n' >"$tmp/wrong/reader/find.c"
beyond_reader "$tmp/wrong" >"$tmp/got"
echo 'reader/find.c:2:#include "registry/registry.h": is not for readers' >"$tmp/want"
same "so is one of the reader that is not for it" "$tmp/want" "$tmp/got"
plan
