#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Mistakes that would show only at run time, or never, do not compile, or give a warning that says
# what is wrong.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

headers=$top_srcdir/include
fixture=$top_srcdir/tests/outside/fixtures/wrong_code.c

# compile COMPILER FLAG...: compile the fixture; what the compiler says goes to $tmp/said.
compile()
{
	LC_ALL=C "$@" -c -o /dev/null "$fixture" >"$tmp/said" 2>&1
}

# says TEXT: the compiler said it.
says()
{
	grep -q -e "$1" "$tmp/said" || {
		cat "$tmp/said"
		return 1
	}
}

# silent COMMAND...: it compiles, and nothing is said.
silent()
{
	compile "$@" -Wall -Wextra -Wpedantic -I"$headers" && ! says .
}

# warned TEXT COMMAND...: it compiles, with that warning.
warned()
{
	text=$1
	shift
	compile "$@" && says "warning: .*$text"
}

# named COMMAND...: it compiles, and a note names the variable that is lost.
named()
{
	compile "$@" && says "note: 'lost' declared here"
}

# refused TEXT COMMAND...: it does not compile, and the compiler says that.
refused()
{
	text=$1
	shift
	! compile "$@" && says "$text"
}

ignored='ignoring return value\|ignoring returned value\|unused result'
twice='duplicate case value\|narrow'
in_switch='CANNOT_BE_INSIDE_YOUR_SWITCH\|cannot_be_inside_a_switch_of_your_own'
not_first="the first member of an async function.*s state must be .struct tdt_async async"

# common NAME COMMAND...: mistakes that are found in C and in C++.
common()
{
	name=$1
	shift
	claim "the program without a mistake gives no warning ($name)" silent "$@"
	for include in -I -isystem; do
		for mistake in FUTURE LOCK HANDLE; do
			claim "an ignored $mistake gives a warning ($name, $include)" \
				warned "$ignored" "$@" $include "$headers" -DIGNORED_$mistake
		done
		claim "async that is not first is refused ($name, $include)" \
			refused "$not_first" "$@" $include "$headers" -DASYNC_NOT_FIRST
		for mistake in AWAIT_IN_SWITCH AWAIT_IN_WIDE_SWITCH; do
			claim "$mistake is refused ($name, $include)" \
				refused "$twice" "$@" $include "$headers" -D$mistake
		done
	done
	for mistake in AWAIT_IN_SWITCH AWAIT_IN_WIDE_SWITCH; do
		claim "$mistake is refused with a sentence ($name)" \
			refused "$in_switch" "$@" -I"$headers" -D$mistake
	done
}

for compiler in "$TEST_GCC" "$TEST_CLANG"; do
	if test -z "$compiler"; then
		skip "wrong code in C" "no such compiler"
		continue
	fi
	common "$compiler" "$compiler" -std=gnu11
	claim "an unnamed field of TDT_TASK_ATTR is refused ($compiler)" \
		refused "name the fields of TDT_TASK_ATTR()" "$compiler" -w -isystem "$headers" \
		-DUNNAMED_FIELD
done
if test -n "$TEST_GCC"; then
	lost="$TEST_GCC -DLOST_VARIABLE"
	# shellcheck disable=SC2086 # a command and a flag
	claim "a variable whose initializer is jumped over gives a warning" \
		warned "switch jumps over variable initialization" $lost -I"$headers" \
		-Wjump-misses-init
	# shellcheck disable=SC2086
	claim "that variable is named even where gcc prints only notes" \
		named $lost -isystem "$headers" -Wjump-misses-init
	# shellcheck disable=SC2086
	claim "gcc warns of a variable that is used behind an await" \
		warned "may be used uninitialized" $lost -isystem "$headers" \
		-Wall -O1
fi
if test -n "$TEST_GCC"; then
	for include in -I -isystem; do
		claim "a field that every poll sets is refused with a sentence ($include)" \
			refused "what_is_before_TDT_BEGIN_runs_at_every_poll\|mixed declarations" \
			"$TEST_GCC" -DSET_AT_EVERY_POLL $include "$headers"
	done
fi
if test -n "$TEST_CLANG"; then
	claim "clang refuses that field if it is told to" refused "mixing declarations" \
		"$TEST_CLANG" -DSET_AT_EVERY_POLL -isystem "$headers" \
		-Wdeclaration-after-statement
	claim "clang warns of a variable that is used behind an await" \
		warned "may be uninitialized when used here" "$TEST_CLANG" -DLOST_VARIABLE \
		-isystem "$headers" -Wconditional-uninitialized
	claim "clang warns of an ignored future of the user's own function" \
		warned "$ignored" "$TEST_CLANG" -DIGNORED_OWN -isystem "$headers"
fi

for compiler in "$TEST_GXX" "$TEST_CLANGXX"; do
	if test -z "$compiler"; then
		skip "wrong code in C++" "no such compiler"
		continue
	fi
	common "$compiler" "$compiler" -x c++ -std=c++17
	set -- "$compiler" -x c++ -std=c++17 -isystem "$headers"
	claim "an ignored future of the user's own function gives a warning ($compiler)" \
		warned "$ignored" "$@" -DIGNORED_OWN
	claim "a variable whose initializer is jumped over is refused ($compiler)" \
		refused "jump to case label\|cannot jump from switch" "$@" -DLOST_VARIABLE
done
plan
