#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The sources are kept compiling for aarch64.  Compile, not link: the libraries for it are rarely at hand.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?}/tests/tap.sh"

sysroot=/usr/aarch64-linux-gnu
test -n "$TEST_CLANG" || skip_all "there is no clang"
test -e $sysroot/include/stdio.h || skip_all "there are no headers for aarch64 (Debian: libc6-dev-arm64-cross)"

compile()
{
	"$TEST_CLANG" --target=aarch64-linux-gnu -isystem $sysroot/include -I"${top_builddir:?}" \
		-I"$top_srcdir/include" -Wall -Wextra -Werror -c "$1" -o "$tmp/object.o"
}

echo '#include <libunwind.h>' >"$tmp/libunwind.c"
if compile "$tmp/libunwind.c" 2>/dev/null; then
	with_libunwind=yes
else
	with_libunwind=no
fi

for source in "$top_srcdir"/src/*.c "$top_srcdir"/tree-printer/*.c; do
	test -e "$source" || continue
	case $source in
	*/rules.c) continue ;; # for x86-64 alone
	esac
	name=${source#"$top_srcdir/"}
	if [ $with_libunwind = no ] && grep -qE '<libunwind\.h>|"(unwinder|walk_step)\.h"' "$source"; then
		skip "$name" "there is no libunwind.h for aarch64"
	else
		claim "$name" compile "$source"
	fi
done
plan
