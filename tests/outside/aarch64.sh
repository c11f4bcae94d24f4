#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The sources are kept compiling for aarch64.  Compile, not link: the libraries for it are rarely at
# hand.  These are the sources that mention a processor or its registers; TDT_TEST_FULL=1 compiles
# all.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

sysroot=/usr/aarch64-linux-gnu
test -n "$TEST_CLANG" || skip_all "there is no clang"
test -e $sysroot/include/stdio.h ||
	skip_all "there are no headers for aarch64 (Debian: libc6-dev-arm64-cross)"

# As configure would have it there.
sed 's/^#define TDT_WALK_RULES .*/#define TDT_WALK_RULES 0/' "${top_builddir:?}/config.h" \
	>"$tmp/config.h"

# compile SOURCE [FLAG...]
compile()
{
	source=$1
	shift
	"$TEST_CLANG" --target=aarch64-linux-gnu -isystem $sysroot/include -isystem "$tmp/shared" \
		"$@" \
		-D_GNU_SOURCE -I"$tmp" -I"$top_srcdir" -I"$top_srcdir/include" -I"$top_srcdir/src" \
		-Wall -Wextra -Werror -c "$source" -o "$tmp/object.o"
}

# Headers that are the same for all machines, and nothing else from where this one's are.
mkdir -p "$tmp/shared/sys"
for header in sys/sdt.h sys/sdt-config.h; do
	for found in /usr/include/$header /usr/include/*-linux-gnu/$header; do
		test ! -e "$found" || cp -r "$found" "$tmp/shared/$header"
	done
done

# Libunwind's own header for aarch64 if it is there (by CPATH, say), else what we declare of it.
echo '#include <libunwind.h>' >"$tmp/libunwind.c"
declared=
compile "$tmp/libunwind.c" 2>/dev/null || declared=-I$top_srcdir/tests/outside/aarch64

# The system calls there are there, as the makefiles have them made.
mkdir -p "$tmp/src"
echo '#include <sys/syscall.h>' >"$tmp/calls.c"
"$TEST_CLANG" --target=aarch64-linux-gnu -isystem $sysroot/include -E -dM "$tmp/calls.c" |
	"${AWK:-awk}" -f "$top_srcdir/src/base/syscall_names.awk" >"$tmp/src/syscall_names.inc"

mention='x86|aarch64|__asm__|ucontext|user_regs'
test "${TDT_TEST_FULL-}" != 1 || mention=.
for source in $(grep -lE "$mention" "$top_srcdir"/src/*.c "$top_srcdir"/src/*/*.c \
	"$top_srcdir"/tree-printer/*.c "$top_srcdir"/reader/*.c "$top_srcdir"/cli/*.c); do
	case $source in
	*/follow.c | */rules.c) continue ;; # for x86-64 alone
	*/probes.c)
		if ! grep -q 'TDT_PROBES 1' "$tmp/config.h"; then
			skip "${source#"$top_srcdir/"}" "built without probes"
			continue
		fi
		;;
	esac
	# shellcheck disable=SC2086 # a flag or nothing
	claim "${source#"$top_srcdir/"}" compile "$source" $declared
done

# A poll may return on another thread.  Compilers for aarch64 keep the thread pointer in a register.
# shellcheck disable=SC2317 # called by claim
anew()
{
	compile "$top_srcdir/src/task/wrapper.c" ${declared:+"$declared"} -O2 -fPIC -S &&
		"${AWK:-awk}" '/^tdt__[a-z]*_poll:/ { inside = !/abort/ }
			/\.size/ { inside = 0 }
			inside && /[^_]blr\t/ { polls++; left = 12 }
			left > 0 && --left > 0 && /tpidr_el0|TPIDR_EL0/ { anew++; left = 0 }
			END { exit polls != 3 || anew != 3 }' "$tmp/object.o"
}
claim "behind a poll the record of the thread is looked for anew" anew
plan
