#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Damaged debug information (fixtures/damaged.S) costs names, and nothing else: each look-up comes
# to an end.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

cc=${TEST_GCC:-$TEST_CLANG}
helper=${top_builddir:?}/tests/outside/symbolize_pcs
[ -n "$cc" ] || skip_all "no compiler for the fixture"
unset DEBUGINFOD_URLS

# assemble DAMAGE: to $tmp/fixture
assemble()
{
	"$cc" -DDAMAGE="$1" -nostdlib -shared -Wl,--build-id -o "$tmp/fixture" \
		"$top_srcdir/tests/outside/fixtures/damaged.S"
}

# Look up an address inside the fixture's function, by a program that an alarm would end.
look_up()
{
	id=$(readelf -n "$tmp/fixture" | sed -n 's/.*Build ID: //p')
	start=$(nm "$tmp/fixture" | sed -n 's/ T wanted$//p')
	printf '0x%x\n' $((0x$start + 4)) | timeout 120 "$helper" "$tmp/fixture" "$id" >"$tmp/got"
}

# names DAMAGE PATTERN: the look-up ends, and its answer matches.
names()
{
	assemble "$1" && look_up && cat "$tmp/got" && grep -q "$2" "$tmp/got"
}

assemble SOUND 2>"$tmp/why" || skip_all "$cc can't assemble the fixture: $(head -n 1 "$tmp/why")"
claim "what is sound is named by its debug information" names SOUND ' in_dwarf@.*\[wanted\]$'
claim "siblings that lie inside of their brothers are read once" names SIBLING_INSIDE '\[wanted\]$'
claim "a DIE that is its own sibling is read once" names SIBLING_ITSELF '\[wanted\]$'
claim "siblings that lead back are read once" names SIBLING_BEFORE '\[wanted\]$'
claim "so are blocks in a function" names BLOCKS_INSIDE ' in_dwarf@.*\[wanted\]$'
claim "a name that is part of itself is put together once" \
	names DECLARED_INSIDE 'in_dwarf@.*\[wanted\]$'
claim "a declaration is searched for in no more than 256 levels" \
	names DEEP ' in_dwarf@.*\[wanted\]$'
claim "a unit that comes after itself is read once" names UNITS_AGAIN ' in_dwarf@.*\[wanted\]$'
plan
