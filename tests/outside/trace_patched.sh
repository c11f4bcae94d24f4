#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What a probe must leave alone while a tracer is attached to it, though newer kernels make its nop
# a call: registers, flags, the stack, and children of fork().
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/tracing.sh
. "$top_srcdir/tests/lib/tracing.sh"
may_trace bpftrace bpftrace
$CC -dM -E -x c /dev/null | grep -q __x86_64__ || skip_all "no site is patched here"

# A copy: see tracing.sh.
cp "$top_builddir/tests/outside/patched" "$tmp/patched"
mkfifo "$tmp/input"
"$tmp/patched" <"$tmp/input" >"$tmp/said" &
patched=$!
started="$started $patched"
exec 3>"$tmp/input"
cat >"$tmp/count.bt" <<END
usdt:$tmp/patched:$provider:worker__thread__park { @park[pid] = count(); }
usdt:$tmp/patched:tdt_test:leaf { @leaf = count(); }
END
bpftrace "$tmp/count.bt" >"$tmp/got" 2>"$tmp/got.err" 3>&- &
tracer=$!
started="$started $tracer"

says()
{
	grep -q "^$1" "$tmp/said"
}

has_said()
{
	grep -qx "$1" "$tmp/said"
}

claim "a tracer attaches" attached "$tmp/got" "$tmp/got.err"
echo >&3
claim "the probe is hit with it attached" wait_until ended_or says child
detach "$tracer"
claim "all hits are counted" grep -q "^@park\[$patched\]: 100001\$" "$tmp/got"
claim "registers survive" has_said "registers 0"
claim "and flags" has_said "flags 0"
claim "and the stack" has_said "stack 0"
claim "a child of fork() comes upon the same probe and lives" has_said "child 0"
wait "$patched"
claim "when the tracer leaves the semaphore is down" has_said "semaphore 0"
claim "and the site is as it was" test "$(tail -n 1 "$tmp/said")" = "site 0"

# What the kernel does is its own affair.
sed -n 's/^site e8$/# the kernel made the site a call/p
	s/^site cc$/# the kernel put a breakpoint there/p
	s/^leaf \(.*\)/# \1 of 100000 hits spoiled what a function kept in its red zone/p' \
	"$tmp/said"
sed 's/^/# /' "$tmp/got"
plan
