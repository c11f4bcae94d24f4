#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# TDT_PROBE() of tdt/probe.h under bpftrace and perf, which list the probes of a program and of a
# library, and see their arguments.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/tracers.sh
. "$top_srcdir/tests/lib/tracers.sh"
test "$SANITIZERS" = no || skip_all "a sanitized library needs a sanitized program"
test -e "${top_builddir:?}/.libs/libtdt.so" || skip_all "built without a shared library"
may_trace bpftrace bpftrace
# shellcheck source=tests/lib/user_probes.sh
. "$top_srcdir/tests/lib/user_probes.sh"
# Texts that the tracer reads.
BPFTRACE_STRLEN=64
export BPFTRACE_STRLEN

# The names of events that perf makes are the kernel's, for all.
perf_here()
{
	perf --buildid-dir "$tmp/buildids" "$@"
}

clean_up()
{
	kill_started
	wait
	! command -v perf >/dev/null || perf_here probe -q --del 'sdt_shop:*' >/dev/null 2>&1
	rm -rf "$tmp"
}
trap clean_up EXIT

start_shop()
{
	rm -f input
	mkfifo input
	./shop <input >said &
	shop=$!
	started="$started $shop"
	exec 3>input
	wait_until grep -q libshop "/proc/$shop/maps"
}

go_on()
{
	echo >&3
	exec 3>&-
	wait "$shop"
}

claim "the program is built" build "$CC" "${TEST_GXX:-$TEST_CLANGXX}" -std=gnu11 -std=c++11 \
	'-O2 -fno-omit-frame-pointer'

# at FILE PROBE FORMAT ARGUMENTS: the clause of a script.
at()
{
	printf 'usdt:%s:shop:%s { printf("%s %%d%s\\n", arg0%s); }\n' "$tmp/$1" "$2" "$2" "$3" \
		"${4:+, $4}"
}
{
	at shop order ' %d' arg1
	at libshop.so order ' %d' arg1
	at shop none '' ''
	at shop texts ' %s %s %s %d' 'str(arg1), str(arg2), str(arg3), arg4'
	at shop lambda ' %d %s %d %d' 'arg1, str(arg2), arg3, arg4'
	at shop opened ' %d %d' 'arg1, arg2'
	at libshop.so packed ' %s %d' 'str(arg1), arg2'
} >shop.bt
# The others have more arguments than that version of bpftrace can print, or need.
grep -Ev '^(integers|others|cxx)' events | sort >expected

lists_them()
{
	for file in shop libshop.so; do
		bpftrace -l "usdt:$tmp/$file:shop:*"
	done | sed "s|usdt:$tmp/||" | grep -Ev 'stap|uncalled' | sort >listed
	sort >expected_list <<'END'
libshop.so:shop:order
libshop.so:shop:packed
shop:shop:cxx
shop:shop:integers
shop:shop:lambda
shop:shop:none
shop:shop:opened
shop:shop:order
shop:shop:others
shop:shop:texts
END
	diff expected_list listed
}

printed_all()
{
	grep -aE '^[a-z]+ [0-9]' got | sort >events.got
	cmp -s expected events.got
}

claim "bpftrace lists the probes" lists_them
start_shop
# (With -p, version 0.17 mixes up the probe that is in the program and in the library.)
bpftrace -B line shop.bt >got 2>got.err 3>&- &
tracer=$!
started="$started $tracer"
claim "it attaches to a running program" attached got got.err
go_on
claim "it sees every event with its arguments" wait_until printed_all
printed_all || diff expected events.got >&2
detach "$tracer"
claim "while it was attached, arguments were evaluated" grep -qvx '0 arguments' said

if ! perf --version >/dev/null 2>&1 || ! has_tracefs; then
	skip "perf sees the arguments" "there is no perf for this kernel, or no tracefs"
	plan
	exit
elif ! perf_names_are_free sdt_shop; then
	skip "perf sees the arguments" "somebody has events named sdt_shop"
	plan
	exit
fi

# Sites of one probe are events of their own: order, order_1 and so on.
perf_sees_all()
{
	perf_here script -i data -F event,trace 2>/dev/null |
		sed 's/.*sdt_shop:\([a-z]*\)[_0-9]*: *([0-9a-f]*)/\1/; s/arg[0-9]*=//g; s/  */ /g
			s/ $//' | sort >perf.got
	# It has addresses for texts.
	grep -E '^(none|order|opened)' events | sort >perf.expected
	grep -E '^(none|order|opened)' perf.got | diff perf.expected - &&
		grep -q '^integers 4711 -1 -2 -3 -4 -5 200 60000 4000000000' perf.got && return
	cat perf.got
	return 1
}
perf_here probe -q --del 'sdt_shop:*' >/dev/null 2>&1
claim "perf finds the probes" perf_here buildid-cache --add shop,libshop.so
claim "and makes events of them" perf_here probe -q --add 'sdt_shop:*'
start_shop
rm -f control ack
mkfifo control ack
exec 4<>control 5<>ack
perf --buildid-dir "$tmp/buildids" record -q -o data -p "$shop" --delay=-1 \
	--control="fifo:control,ack" -e 'sdt_shop:*' >record.err 2>&1 3>&- 4>&- 5>&- &
tracer=$!
started="$started $tracer"
echo enable >&4
claim "perf records" timeout 180 head -n 1 <&5
go_on
wait "$tracer"
claim "perf sees the events, with their arguments" perf_sees_all
plan
