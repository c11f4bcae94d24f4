#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The shells complete each option that tdt has, and no other; the help and the manual have it, too.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
from=$top_srcdir/cli/completions
PATH=$(cd "${top_builddir:?}" && pwd):$PATH
export PATH

# options COMMAND: those in its help.
options()
{
	tdt "$1" --help | sed -n 's/^  \(-., \)\{0,1\}\(--[a-z0-9-]*=\{0,1\}\).*/\2/p'
}

# completes WORDS...: the last of them, in bash.
completes()
{
	bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }
		_tdt; printf "%s\n" "${COMPREPLY[@]}"' - "$from/tdt.bash" "$@" 2>&1
}

tdt complete | cut -f1 >"$tmp/commands"
tdt --help | sed -n 's/^  tdt \([a-z]*\).*/\1/p' >"$tmp/expected"
same "the commands are those of the help" "$tmp/expected" "$tmp/commands"
while read -r command; do
	options "$command" >"$tmp/expected"
	tdt complete "$command" | cut -f1 >"$tmp/got"
	same "$command: the options are those of the help" "$tmp/expected" "$tmp/got"
	claim "$command: there are some" test "$(wc -l <"$tmp/got")" -gt 5
	claim "$command: all lines of the help fit 80 columns" \
		test -z "$(tdt "$command" --help | awk 'length > 79')"
	page=$top_builddir/man/tdt.1
	[ -e "$top_builddir/man/tdt-$command.1" ] && page=$top_builddir/man/tdt-$command.1
	sed -n '/^\\fB/{s/\\-/-/g;s/\\f[BIR]//g;p}' "$page" | grep -o -e '--[a-z0-9-]*=\{0,1\}' |
		LC_ALL=C sort -u >"$tmp/page"
	LC_ALL=C sort -u "$tmp/got" | LC_ALL=C comm -23 - "$tmp/page" >"$tmp/lacks"
	claim "$command: the manual has each of them" test ! -s "$tmp/lacks"
done <"$tmp/commands"

if command -v bash >/dev/null; then
	completes tdt b >"$tmp/got"
	echo bt >"$tmp/expected"
	same "bash completes a command" "$tmp/expected" "$tmp/got"
	completes tdt ps --so >"$tmp/got"
	echo --sort= >"$tmp/expected"
	same "bash completes an option" "$tmp/expected" "$tmp/got"
	completes tdt ps --sort = na >"$tmp/got"
	echo name >"$tmp/expected"
	same "bash completes its value" "$tmp/expected" "$tmp/got"
	options bt >"$tmp/expected"
	completes tdt bt -- >"$tmp/got"
	same "bash completes all options" "$tmp/expected" "$tmp/got"
else
	skip "bash completes a command" "there is no bash"
fi
for shell in zsh fish; do
	file=$from/tdt.fish
	[ $shell = zsh ] && file=$from/_tdt
	if command -v $shell >/dev/null; then
		claim "$shell can read its file" $shell -n "$file"
	else
		skip "$shell can read its file" "there is no $shell"
	fi
done
plan
