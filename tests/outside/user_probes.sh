#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# TDT_PROBE() of tdt/probe.h in programs of all kinds: what their ELF notes tell, and what gdb sees
# in them.  TDT_TEST_FULL=1 has more kinds.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
test "$SANITIZERS" = no || skip_all "a sanitized library needs a sanitized program"
test -e "${top_builddir:?}/.libs/libtdt.so" || skip_all "built without a shared library"
command -v readelf >/dev/null || skip_all "there is no readelf (Debian: binutils)"

DEBUGINFOD_URLS=
export DEBUGINFOD_URLS

# shellcheck source=tests/lib/user_probes.sh
. "$top_srcdir/tests/lib/user_probes.sh"
printf '%s\n' cxx integers lambda none opened order others texts >names.shop
printf '%s\n' order packed >names.library

# at PROBE FORMAT ARGUMENT...: a breakpoint that prints an event.
# shellcheck disable=SC2016 # gdb expands them
at()
{
	probe=$1
	shift
	format=$1
	shift
	printf 'break -probe-stap shop:%s\ncommands\nsilent\n' "$probe"
	printf 'printf "EVENT %s %%d%s\\n", $_probe_arg0' "$probe" "$format"
	printf ', %s' "$@" | sed 's/\([0-9]\{1,\}\)/$_probe_arg\1/g; s/, *$//'
	printf '\ncontinue\nend\n'
}

echo >line
{
	printf 'set pagination off\nset breakpoint pending on\ntbreak main\nrun <line >said\n'
	at none ''
	at order ' %d' 1
	at integers ' %ld %ld %ld %ld %ld %lu %lu %lu %lu %lu %lu' 1 2 3 4 5 6 7 8 9 10 11
	at others ' %ld %lu %p %lu %lu %lu %ld' 1 2 3 4 5 6 7
	at texts ' %s %s %s %lu' '(char *)1' '(char *)2' '(char *)3' 4
	at cxx ' %s %ld %ld %s %s %lu %lu %lu %ld' '(char *)1' 2 3 '(char *)4' '(char *)5' 6 7 8 9
	at opened ' %ld %lu' 1 2
	at lambda ' %ld %s %ld %lu' 1 '(char *)2' 3 4
	at packed ' %s %ld' '(char *)1' 2
	echo continue
} >commands

has_gdb=true
command -v gdb >/dev/null &&
	gdb -nx -batch -ex run -ex 'info inferiors' --args true 2>/dev/null |
	grep -q 'exited normally' || has_gdb=false

# notes FILE: a line a site: name, address, semaphore.
notes()
{
	readelf -nW "$1" | awk '
		/ Name: / { name = $2 }
		/ Location: / { gsub(",", ""); site = $2; semaphore = $6 }
		/ Arguments:/ && name != "stap" { print name, site, semaphore }'
}

# has_probes FILE NAMES
has_probes()
{
	notes "$1" >sites
	cut -d' ' -f1 sites | grep -v uncalled | sort -u | diff "$2" - || return
	cut -d' ' -f1,3 sites | grep -v ' 0x0*$' | sort -u | cut -d' ' -f1 | grep -v uncalled |
		diff "$2" - || return
	grep -v ' 0x0* ' sites | while read -r name site _; do
		objdump -d --start-address="$site" --stop-address=$((site + 1)) "$1" |
			grep -q 'nop' || echo "no nop at $name"
	done | diff /dev/null -
}

# The semaphores are nobody else's.
exports_nothing()
{
	! readelf --dyn-syms -W "$1" | grep semaphore
}

gdb_sees_all()
{
	gdb -nx -batch -x commands ./shop >log 2>&1
	sed -n 's/^EVENT //p' log >got
	diff events got && return
	cat log
	return 1
}

# try COMPILER CXX C-FLAGS CXX-FLAGS FLAGS
try()
{
	what="$1 $3 $4 $5"
	if test -z "$1" || test -z "$2"; then
		skip "$what" "no such compiler"
		return
	fi
	echo 'int main(void) { return 0; }' >able.c
	# shellcheck disable=SC2086 # lists of flags
	if ! "$1" $5 able.c -o able >/dev/null 2>&1; then
		skip "$what" "it can't"
		return
	fi
	claim "it builds a program: $what" build "$@"
	claim "which has the probes, with one semaphore for each: $what" has_probes shop names.shop
	claim "and so has the library: $what" has_probes libshop.so names.library
	claim "no semaphore is exported: $what" exports_nothing libshop.so
	./shop <line >said
	claim "no argument is evaluated without a tracer: $what" grep -qx '0 arguments' said
	TDT_RECORD=1M ./shop <line >said
	claim "but each of them once while it is recorded: $what" grep -qx '8 arguments' said
	if $has_gdb; then
		claim "gdb sees all that happens: $what" gdb_sees_all
		claim "and arguments are evaluated once: $what" grep -qx '8 arguments' said
	else
		skip "gdb sees all that happens: $what" "gdb may not run a program here"
	fi
}

set -- '-O2 -flto'
test "${TDT_TEST_FULL-}" != 1 || set -- "$@" -O0 '-O1 -fno-pie -no-pie' \
	'-O3 -fomit-frame-pointer' '-Os -ffunction-sections -Wl,--gc-sections'
for flags; do
	try "$TEST_GCC" "$TEST_GXX" -std=c11 -std=c++11 "$flags"
	try "$TEST_CLANG" "$TEST_CLANGXX" -std=c11 -std=c++11 "$flags"
done
if test "${TDT_TEST_FULL-}" != 1; then
	skip "other kinds of programs" "they take long (TDT_TEST_FULL=1 has them)"
	plan
	exit
fi
try "$TEST_GCC" "$TEST_GXX" -std=gnu11 -std=c++20 '-O2 -flto -flto-partition=max'
try "$TEST_GCC" "$TEST_GXX" -std=gnu17 -std=gnu++17 '-O2 -masm=intel -mstackrealign'
try "$TEST_CLANG" "$TEST_CLANGXX" -std=gnu11 -std=c++20 '-O2 -flto=thin -fuse-ld=lld'
try "$TEST_GCC" "$TEST_GXX" -std=gnu17 -std=c++2b '-O2 -fuse-ld=gold'
plan
