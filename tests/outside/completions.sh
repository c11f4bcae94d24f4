#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The shells complete each option that tdt has, and no other.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
from=$top_srcdir/cli/completions

# The options in the help of all commands.
for command in ps top bt diff metrics profile record print set; do
	"${top_builddir:?}/tdt" $command --help
done | grep -o -e '--[a-z][a-z0-9-]*' | LC_ALL=C sort -u >"$tmp/options"
claim "there are options" test "$(wc -l <"$tmp/options")" -gt 20

# completed FILE: the options in a file that completes by their names.
completed()
{
	grep -v '^#' "$1" | grep -o -e '--[a-z][a-z0-9-]*' | LC_ALL=C sort -u
}

completed "$from/tdt.bash" | grep -v -x -e '--' >"$tmp/bash"
same "bash completes them" "$tmp/options" "$tmp/bash"
completed "$from/_tdt" >"$tmp/zsh"
same "zsh completes them" "$tmp/options" "$tmp/zsh"
grep '^complete' "$from/tdt.fish" | grep -o -e ' -l [a-z0-9-]*' |
	sed 's/ -l /--/' | LC_ALL=C sort -u >"$tmp/fish"
same "fish completes them" "$tmp/options" "$tmp/fish"

# completes WORDS...: the last of them.
completes()
{
	bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }
		_tdt; printf "%s\n" "${COMPREPLY[@]}"' - "$from/tdt.bash" "$@" 2>&1
}

if command -v bash >/dev/null; then
	completes tdt b >"$tmp/got"
	echo bt >"$tmp/expected"
	same "bash completes a command" "$tmp/expected" "$tmp/got"
	completes tdt ps --so >"$tmp/got"
	echo --sort= >"$tmp/expected"
	same "bash completes an option" "$tmp/expected" "$tmp/got"
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
