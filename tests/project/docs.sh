#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# README.md, CONTRIBUTING.md and docs/: links lead somewhere, README.md is short, and its tutorial
# prints what it says.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
tab=$(printf '\t')

# --- Links, and length ---

# anchors FILE: what links to its headings are called.
anchors()
{
	sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

# links FILE...: file, line and target of each link that is not of another site.
links()
{
	awk -v OFS='\t' 'FNR == 1 { inside = 0 }
		/^ *```/ { inside = !inside }
		inside { next }
		{
			while (match($0, /\]\([^)]*\)/)) {
				target = substr($0, RSTART + 2, RLENGTH - 3)
				$0 = substr($0, RSTART + RLENGTH)
				if (target !~ /^[a-z]+:/)
					print FILENAME, FNR, target
			}
		}' "$@"
}

# broken FILE...: print the links that lead to no file, or to no heading.
broken()
{
	links "$@" | while IFS=$tab read -r file line target; do
		to=${target%%#*}
		to=${to:+$(dirname "$file")/$to}
		to=${to:-$file}
		heading=${target#*#}
		if ! test -e "$to"; then
			echo "$file:$line: there is no $target"
		elif test "$target" != "$heading" && ! anchors "$to" | grep -qxF -e "$heading"; then
			echo "$file:$line: there is no heading $target"
		fi
	done
}

# all_lead_somewhere FILE...
all_lead_somewhere()
{
	broken "$@" >"$tmp/broken"
	cat "$tmp/broken"
	test ! -s "$tmp/broken"
}

# is_short FILE
is_short()
{
	test "$(wc -l <"$1")" -le 200 || {
		echo "$1:201: more than 200 lines"
		return 1
	}
}

cat >"$tmp/page.md" <<'END'
# A page, and its headings

[here](page.md), [its heading](#a-page-and-its-headings) and [elsewhere](https://example.com/)
```
not[a](link)
```
[gone](gone.md), and [another](page.md#no-such-heading)
END
cat >"$tmp/expected" <<END
$tmp/page.md:7: there is no gone.md
$tmp/page.md:7: there is no heading page.md#no-such-heading
END
broken "$tmp/page.md" >"$tmp/got"
same "a broken link is told with its file and line" "$tmp/expected" "$tmp/got"
yes '' | head -n 201 >"$tmp/long.md"
is_long()
{
	! is_short "$1"
}
claim "a README of 201 lines is too long" is_long "$tmp/long.md"

links "$top_srcdir/README.md" >"$tmp/links"
claim "README.md has links" test "$(wc -l <"$tmp/links")" -ge 20
claim "all links lead somewhere" all_lead_somewhere "$top_srcdir/README.md" \
	"$top_srcdir/CONTRIBUTING.md" "$top_srcdir/tools/README.md" "$top_srcdir"/docs/*.md
claim "README.md has 200 lines at most" is_short "$top_srcdir/README.md"

# --- The size of a record ---

# states_size: the manual has the size that the source asserts, and no other document has one.
states_size()
{
	size=$(sed -n 's/^_Static_assert(sizeof(struct tdt_handle) == \([0-9]*\),.*/\1/p' \
		"$top_srcdir/src/registry/registry.c")
	grep -qx "A record takes $size bytes\." "$top_srcdir/man/tdt.3" || {
		echo "a record takes $size bytes, but man/tdt.3 does not say that"
		return 1
	}
	! grep -n "\<$size bytes" "$top_srcdir"/README.md "$top_srcdir"/docs/*.md
}
claim "the manual, and only the manual, says how large a record is" states_size

# --- The server ---

# shows_server: docs/runtimes.md has all of demo/server.c.
shows_server()
{
	awk '/^```/ { inside = 0 } inside; /^```c$/ && server { inside = 1 }
		/^#/ { server = $0 == "### A server" }' "$top_srcdir/docs/runtimes.md" \
		>"$tmp/shown"
	sed 1d "$top_srcdir/demo/server.c" | expand >"$tmp/server"
	diff -u "$tmp/server" "$tmp/shown"
}
claim "docs/runtimes.md shows the server" shows_server

# compiles_server: it needs the installed headers, and nothing else of the sources.
compiles_server()
{
	"${TEST_GCC:-cc}" -x c -fsyntax-only -Wall -Wextra -Werror -isystem "$top_srcdir/include" \
		"$tmp/shown"
}
claim "the server compiles as it is shown" compiles_server

# --- The picture ---

printf '1 < \033[1mtwo\033[0m \303\227\n' |
	LC_ALL=C awk -f "$top_srcdir/docs/picture.awk" >"$tmp/svg"
sed -n 's/ lengthAdjust="[a-zA-Z]*"//g; s/^<text y="30">//p' "$tmp/svg" |
	sed 's/<tspan/\n&/g' >"$tmp/got"
cat >"$tmp/expected" <<'END'

<tspan x="16.0" textLength="33.6">1 &lt; </tspan>
<tspan x="49.6" textLength="25.2" class="b">two</tspan>
<tspan x="83.2" textLength="8.4">×</tspan></text>
END
same "a line of a terminal is drawn with its colours" "$tmp/expected" "$tmp/got"

# --- The tutorial ---

# block NTH LANGUAGE: that block of code of README.md.
block()
{
	awk -v nth="$1" -v start="\`\`\`$2" '
		!inside && /^```/ { inside = 1; wanted = $0 == start && ++n == nth; next }
		/^```/ { inside = 0 }
		inside && wanted' "$top_srcdir/README.md"
}

# even FILE: without what differs from run to run, from machine to machine, and when the library's
# sources change.  Groups that have waited for nearly the same time may come in any order.
even()
{
	sed -E 's/ \(took .*//; s/0x[0-9a-f]+/ADDRESS/g; s/pending [0-9.]+ [mun]?s/pending/
		s/ at ([^ ]*\/)?src\/.*//; s/(kitchen\.c:[0-9]+):[0-9]+/\1/; /^$/d' "$1" | sort
}

kitchen=
trap 'test -z "$kitchen" || kill "$kitchen"; rm -rf "$tmp"' EXIT

# catches_usr1: whether the program does.  (Before it is executed its process is a shell, which may
# catch that signal, too.)
catches_usr1()
{
	grep -qx kitchen "/proc/$kitchen/comm" &&
		grep -q '^SigCgt:.*[2367abef][0-9a-f][0-9a-f]$' "/proc/$kitchen/status"
}

# start_kitchen [VARIABLE=VALUE]: until it catches SIGUSR1, which would end it before.
start_kitchen()
{
	LC_ALL=C env "$@" "$tmp/kitchen" 2>>"$tmp/dumps" &
	kitchen=$!
	until catches_usr1; do
		kill -0 "$kitchen" || return
		sleep 0.1
	done
}
stop_kitchen()
{
	kill "$kitchen"
	wait "$kitchen" 2>/dev/null
	kitchen=
}

# The cook comes to its mutex a while after the start, and names may come too late for a dump.  Each
# dump is given more time than the one before.
dumps_as_told()
{
	asked=0
	until test $asked = 50; do
		asked=$((asked + 1))
		: >"$tmp/dumps"
		kill -USR1 "$kitchen" || return
		sleep $((asked / 10)).$((asked % 10))
		even "$tmp/dumps" >"$tmp/got"
		cmp -s "$tmp/expected" "$tmp/got" && return
	done
	diff -u "$tmp/expected" "$tmp/got"
}

# gdb prints the last trees: of the waiter and of the cook.
prints_last_trees()
{
	awk '/^task / { task = $3 }
		/<tdt_join[.]poll\+/ && task == "\"waiter\"" { joins = 1 }
		joins && /<serve_poll\+/ { waiter = 1 }
		/<tdt_mutex_lock[.]poll\+/ && task == "\"cook\"" { locks = 1 }
		locks && /<fry_poll\+/ { cook = 1 }
		END { exit !(waiter && cook) }' "$tmp/gdb" || { cat "$tmp/gdb"; false; }
}

build_kitchen()
{
	block 1 c >"$tmp/kitchen.c"
	# shellcheck disable=SC2086 # the compiler may be a list of words
	(cd "$tmp" && $CC -g -Wall -Werror -I"$top_srcdir/include" kitchen.c -o kitchen \
		-L"$libs" -Wl,--enable-new-dtags,-rpath,"$libs" -ltdt-rt -ltdt)
}

libs=${top_builddir:?}/.libs
if test "$SANITIZERS" != no; then
	skip "the tutorial" "a sanitized library needs a sanitized program"
elif ! test -e "$libs/libtdt-rt.so"; then
	skip "the tutorial" "built without a shared library"
else
	claim "the tutorial's program is compiled" build_kitchen
	block 4 '' >"$tmp/told"
	even "$tmp/told" >"$tmp/expected"
	claim "it starts" start_kitchen
	claim "it prints the dump that the tutorial shows" dumps_as_told
	stop_kitchen
	start_kitchen TDT_WATCH=10ms
	until grep -q '^3 tasks.* 3 as last watched' "$tmp/dumps"; do
		kill -USR1 "$kitchen" || break
		sleep 0.1
	done
	DEBUGINFOD_URLS='' gdb -nx -batch -x "$top_srcdir/docs/last-trees.gdb" -p "$kitchen" \
		>"$tmp/gdb" 2>&1 </dev/null
	if ! command -v gdb >/dev/null; then
		skip "last-trees.gdb prints the last trees" "there is no gdb"
	elif grep 'not permitted\|No struct type' "$tmp/gdb" >"$tmp/why"; then
		skip "last-trees.gdb prints the last trees" "$(head -n 1 "$tmp/why")"
	else
		claim "last-trees.gdb prints the last trees" prints_last_trees
	fi
	stop_kitchen
fi
plan
