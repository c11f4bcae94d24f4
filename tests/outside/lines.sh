#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The line a backtrace shows is the line of the await, and a combinator's frame
# bears the name of the call that made it, whatever compiler and level: builds
# and runs lines.c, and has the PCs it prints looked up.  TDT_TEST_FULL=1 has
# more levels.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: "${top_builddir:?is set by make check}"
combine=${top_srcdir:?is set by make check}/src/future/combine.c

line_of() {
	grep -nF "$1" "$combine" | cut -d: -f1
}
join_line=$(line_of 'result = tdt_future_poll(child, cx);')
select_line=$(line_of 'result = tdt_future_poll(&combined->children[i], cx);')

# Print what lines.c wanted and what it got, each stack on a line.
stacks() {
	grep '^want ' "$work/out" | cut -d' ' -f2- >"$work/want"
	grep '^pcs ' "$work/out" | cut -d' ' -f2- | while read -r pcs; do
		# shellcheck disable=SC2086 # a list of addresses
		addr2line -i -f -s -e "$work/lines" $pcs | awk '
			NR % 2 == 1 { function_name = $1; sub(/[.]poll$/, "", function_name); next }
			function_name == "main" { exit }
			function_name ~ /^tdt_/ &&
				function_name !~ /^tdt_(join_all|select)$/ { next }
			{
				split($1, place, ":")
				stack = stack (stack == "" ? "" : " ") function_name ":" place[2]
			}
			END { print stack }'
	done >"$work/got"
}

number=0
try() {
	number=$((number + 1))
	claim="$number - every frame has its name and line with $*"
	if ! "$@" -g -std=gnu11 -no-pie -DJOIN_LINE="$join_line" -DSELECT_LINE="$select_line" \
		-I"$top_builddir" -I"$top_srcdir/include" -I"$top_srcdir/src" -o "$work/lines" \
		"$top_srcdir/tests/outside/lines.c" "$combine" >"$work/log" 2>&1; then
		echo "not ok $claim"
		sed 's/^/# /' "$work/log"
		return
	fi
	"$work/lines" >"$work/out" || echo "# lines ended with $?" >>"$work/out"
	stacks
	if [ -s "$work/got" ] && diff -u "$work/want" "$work/got" >"$work/log"; then
		echo "ok $claim"
	else
		echo "not ok $claim"
		sed 's/^/# /' "$work/log"
	fi
}

set -- -O0 '-O2 -flto'
test "${TDT_TEST_FULL-}" != 1 || set -- "$@" -O1 -O2 -O3 -Os
echo 1..$(($# * 2))
for compiler in "${TEST_GCC:-}" "${TEST_CLANG:-}"; do
	for level; do
		if [ -z "$compiler" ]; then
			number=$((number + 1))
			echo "ok $number - lines with $level # SKIP no such compiler"
			continue
		fi
		# shellcheck disable=SC2086 # two flags
		try "$compiler" $level
	done
done
