#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The poll of a traced future as the built library has it: nothing in it, taken or not, locks the
# bus, fences, or enters the kernel.  (What is executed, in it and in what it calls:
# tests/unit/check_hot_paths.c.)
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

libs=${top_builddir:?}/.libs
test -e "$libs/libtdt.so" || skip_all "built without a shared library"
test "$SANITIZERS" = no || skip_all "sanitizers have code of their own everywhere"
command -v objdump >/dev/null || skip_all "there is no objdump (Debian: binutils)"
objdump -f "$libs/libtdt.so" | grep -q x86-64 || skip_all "only instructions of x86-64 are known"

objdump -d --no-show-raw-insn "$libs/libtdt.so" >"$tmp/code"

# code FUNCTION: its instructions, and those of the part that the compiler has put aside.
code()
{
	sed -n "/^[0-9a-f]* <$1\([.]cold\)\{0,1\}>:/,/^\$/p" "$tmp/code" |
		sed -n 's/^ *[0-9a-f]*:[[:space:]]*//p'
}

slow='^(lock|xchg .*[(]|[lms]fence|cpuid|serialize|syscall|sysenter|int |rdtsc)'

# has_none FUNCTION: it is there, and there is nothing slow in it.
has_none()
{
	code "$1" >"$tmp/function"
	grep -q '^ret' "$tmp/function" || { echo "there is no $1"; return 1; }
	! grep -E "$slow" "$tmp/function"
}

has_some()
{
	code "$1" | grep -Eq "$slow"
}

claim "a fence is found where there is one" has_some tdt__barrier_fence
claim "there is none in the poll of a traced future, nor a system call" has_none tdt__traced_poll
plan
