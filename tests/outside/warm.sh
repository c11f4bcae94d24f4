#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Once all is known, a poll that is captured makes no system call.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

grep -q 'TDT_WALK_RULES 1' "${top_builddir:?}/config.h" || skip_all "walks are not by rules"
test "$SANITIZERS" = no || skip_all "sanitizers make system calls"
strace -o /dev/null true 2>/dev/null || skip_all "there is no strace, or it may not trace"

capture()
{
	CK_FORK=no CK_RUN_CASE=warm CK_TAP_LOG_FILE_NAME=/dev/null strace -f -o "$tmp/calls" \
		"$top_builddir/tests/unit/capture/check_capture"
}

# Print the calls between the last two marks, of the thread that makes the marks.
between()
{
	awk '/ sched_yield\(/ { if (marks++ % 2 == 0) calls = ""; thread = $1; next }
		$1 != thread || /<[.][.][.] sched_yield resumed>/ { next }
		marks % 2 == 1 { calls = calls $0 "\n" }
		END { if (marks != 6) print marks " marks"; printf "%s", calls }' "$tmp/calls"
}

claim "a task is captured under strace" capture
between >"$tmp/between"
same "no system call is made in the poll" /dev/null "$tmp/between"
plan
