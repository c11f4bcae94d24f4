#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What the linker is told of the code that switches stacks: it does not switch shadow stacks
# (SHSTK), and indirect branches are tracked in it (IBT), with whatever flags all else is compiled.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

command -v readelf >/dev/null || skip_all "there is no readelf (Debian: binutils)"

# compile COMPILER FLAG...: both parts of the switch to $tmp/switch.so, as the library has them
compile()
{
	"$@" -O2 -fPIC -shared -nostdlib -I"${top_builddir:?}" -I"$top_srcdir/include" \
		-I"$top_srcdir/src" -o "$tmp/switch.so" \
		"$top_srcdir/src/future/switch.c" "$top_srcdir/src/unwind/x86_64/switch.S"
}

properties()
{
	readelf -nW "$1" | sed -n 's/.*x86 feature: *//p'
}

# has_properties PROPERTIES COMPILER FLAG...
has_properties()
{
	wanted=$1
	shift
	compile "$@" || return
	properties "$tmp/switch.so"
	[ "$(properties "$tmp/switch.so")" = "$wanted" ]
}

# Of what was built here, with the flags that were wanted.
no_shadow_stacks()
{
	! properties "$1" | grep SHSTK
}

case $($CC -dumpmachine) in
x86_64-*) ;;
*) skip_all "only x86-64 has these marks" ;;
esac
for compiler in "$TEST_GCC" "$TEST_CLANG"; do
	for protection in full branch return; do
		if [ $protection = return ]; then properties=; else properties=IBT; fi
		if [ -z "$compiler" ]; then
			skip "-fcf-protection=$protection" "there is one compiler less"
		else
			option=-fcf-protection=$protection
			claim "$compiler $option: marked for ${properties:-nothing}" \
				has_properties "$properties" "$compiler" $option
		fi
	done
done
if [ -e "$top_builddir/.libs/libtdt.so" ]; then
	claim "libtdt.so is not marked for shadow stacks" no_shadow_stacks \
		"$top_builddir/.libs/libtdt.so"
else
	skip "libtdt.so is not marked for shadow stacks" "built without a shared library"
fi
plan
