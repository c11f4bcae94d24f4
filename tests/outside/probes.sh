#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The probes as the built library's ELF notes tell of them, against the table of tdt-probes(7); and
# what other compilers, flags and options make of them.  Their file and its callers are enough for
# that; TDT_TEST_FULL=1 configures and builds the whole library so.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

lib=${top_builddir:?}/.libs/libtdt.so
test -e "$lib" || skip_all "built without a shared library"
command -v readelf >/dev/null || skip_all "there is no readelf (Debian: binutils)"

# notes FILE: a line a probe: provider, name, site, semaphore, arguments.
notes()
{
	readelf -n "$1" | awk '
		/ Provider: / { provider = $2 }
		/ Name: / { name = $2 }
		/ Location: / { gsub(",", ""); site = $2; semaphore = $6 }
		/ Arguments:/ {
			sub(/.*Arguments: */, "")
			print provider, name, site, semaphore, $0
		}'
}

# expected PROVIDER: what the table says there is, as PROVIDER NAME SIZE-OF-ARGUMENT...
expected()
{
	awk -F '\t' -v provider="$1" '
		/^\.TS/ { table = 1 }
		/^\.TE/ { table = 0 }
		table && /^(task|worker)-/ {
			gsub("-", "__", $1)
			sub("id, file, line, column", " 8 8 4 4", $2)
			sub("none", "", $2)
			print provider " " $1 $2
		}' "$top_srcdir/man/tdt-probes.7" | sort
}

# claim_probes WHICH FILE PROVIDER
claim_probes()
{
	notes "$2" | sort >"$tmp/notes"
	expected "$3" >"$tmp/expected"
	sed 's/0x[0-9a-f]* 0x[0-9a-f]*//; s/@[^ ]*//g; s/  */ /g; s/ *$//' "$tmp/notes" >"$tmp/got"
	same "$1 has the probes of the table, each once, with these arguments" "$tmp/expected" \
		"$tmp/got"
	cut -d' ' -f3 "$tmp/notes" | sort -u | wc -l >"$tmp/sites"
	cut -d' ' -f4 "$tmp/notes" | grep -v '^0x0*$' | sort -u | wc -l >"$tmp/semaphores"
	wc -l <"$tmp/notes" >"$tmp/count"
	same "each of $1 has a site of its own" "$tmp/count" "$tmp/sites"
	same "and a semaphore of its own" "$tmp/count" "$tmp/semaphores"
	claim_registers "$1" "$2"
	claim_nops "$1" "$2"
}

# Where the ABI passes the arguments of a call: DTrace looks there and not at the note.
claim_registers()
{
	if readelf -h "$2" | grep -q AArch64; then
		echo '8@x0 8@x1 4@x2 4@x3'
	else
		echo '8@%rdi 8@%rsi 4@%edx 4@%ecx'
	fi >"$tmp/abi"
	notes "$2" | cut -d' ' -f5- | grep . | sort -u >"$tmp/arguments"
	same "the arguments of $1 are in the registers of the ABI" "$tmp/abi" "$tmp/arguments"
}

# disassembled FILE SYMBOL: the function's instructions, as ADDRESS:	BYTES	TEXT.
disassembled()
{
	objdump -d "$1" | sed -n "/^[0-9a-f]* <$2>:/,/^\$/p"
}

# Where configure chose nops of five bytes each site is one, as kernels that patch it know it,
# within eight aligned bytes; and the function that has it keeps nothing below the stack pointer.
claim_nops()
{
	if test -z "$nop5"; then
		skip "the sites of $1 are 5-byte nops" "plain nops were chosen"
		return
	fi
	notes "$2" | while read -r _ name site _; do
		objdump -d --start-address="$site" --stop-address=$((site + 5)) "$2" |
			grep -q '0f 1f 44 00 00' ||
			echo "$name: no such nop"
		test $((site % 8)) -le 3 || echo "$name: crosses"
		disassembled "$2" "tdt_probe_$name" >"$tmp/code"
		grep -q '0f 1f 44 00 00' "$tmp/code" || echo "$name: is elsewhere"
		grep -E -- '-0x[0-9a-f]+\(%rsp' "$tmp/code"
		# A stack pointer that was not moved is where the frame pointer is.
		grep -q 'sub .*,%rsp' "$tmp/code" || grep -E -- '-0x[0-9a-f]+\(%rbp' "$tmp/code"
	done >"$tmp/wrong"
	same "the sites of $1 are 5-byte nops to be patched, in functions without a red zone" \
		/dev/null "$tmp/wrong"
}

has_none()
{
	test -e "$1" && test "$(notes "$1")" = "" &&
		! readelf -SW "$1" | grep -E 'stapsdt|[.]probes'
}

# The flags for such nops, if configure chose them.
nop5=$(sed -n 's/^NOP5_CFLAGS = *//p' "$top_builddir/Makefile")
provider=$(sed -n 's/^#define TDT_USDT_PROVIDER //p' "$top_builddir/config.h")
if grep -q '^#define TDT_PROBES 1' "$top_builddir/config.h"; then
	claim_probes "the library" "$lib" "$provider"
	readelf -SW "$lib" | grep -q ' \.probes  *PROGBITS .* WA ' && writable=true ||
		writable=false
	claim "the semaphores' section can be written to" "$writable"
else
	claim "the library has no probes" has_none "$lib"
fi

if test "$SANITIZERS" != no; then
	skip "other compilers, flags and options" "the build without sanitizers tries them"
	plan
	exit
fi

# defined NAME=VALUE...: the build's configuration, but for those, is $tmp/config.h.
defined()
{
	cp "$top_builddir/config.h" "$tmp/config.h"
	for define; do
		sed -i "s/^\(#define ${define%=*}\) .*/\1 ${define#*=}/" "$tmp/config.h"
	done
}

# linked PROGRAM FILES COMPILER FLAG...: of files of src/ alone, whatever else these need.
# shellcheck disable=SC2086 # lists
linked()
{
	program=$1
	files=$2
	shift 2
	(cd "$top_srcdir/src" && "$@" -w -fvisibility=hidden -fexceptions -fno-omit-frame-pointer \
		$nop5 -D_GNU_SOURCE \
		-I"$tmp" -I"$top_builddir" -I../include -I. $files -o "$program" \
		-no-pie -nostdlib -Wl,--unresolved-symbols=ignore-all)
}
callers=$(cd "$top_srcdir/src" && grep -l 'TDT__PROBE\|tdt__probes_forked' ./*.c task/*.c)

defined TDT_PROBES=0
# shellcheck disable=SC2086 # $CC may hold options
claim "without probes, what fires them is compiled" linked "$tmp/none" "$callers" $CC -O0 -r
claim "and has none" has_none "$tmp/none"

defined TDT_PROBES=1 TDT_USDT_PROVIDER=tokio
if test -n "$TEST_GCC"; then
	claim "with -flto, and another provider, the probes and what fires them are compiled" \
		linked "$tmp/tokio" "probes/probes.c $callers" "$TEST_GCC" -O2 -flto
	claim_probes "what gcc made by -flto" "$tmp/tokio" tokio
else
	skip "another provider, with -flto" "there is no gcc"
fi

# Another compiler puts arguments elsewhere if it may.
if test -n "$TEST_CLANG"; then
	claim "clang compiles the probes" linked "$tmp/clang" probes/probes.c "$TEST_CLANG" -O2
	claim_probes "what clang made" "$tmp/clang" tokio
else
	skip "the probes by clang" "there is no clang"
fi

# --- The whole library, configured so ---

if test "${TDT_TEST_FULL-}" != 1; then
	skip "the library, configured so" "it takes long (TDT_TEST_FULL=1 has it done)"
	plan
	exit
fi
# A source tree that is configured can't serve another build, so from a copy then.
unset MAKEFLAGS MFLAGS MAKELEVEL
source=$top_srcdir
if test -e "$top_srcdir/config.status"; then
	source=$tmp/source
	"$MAKE" -s -C "$top_builddir" -f Makefile distdir distdir="$source" >/dev/null
fi

# built NAME "TARGETS" ARGUMENT...: in a build directory $tmp/build-NAME, configured so.  What
# configure has found with the same compiler, it need not try again (tests/sanitizers.mk).
built()
{
	mkdir "$tmp/build-$1" && cd "$tmp/build-$1" || return
	goals=$2
	shift 2
	sed -n '/^ac_cv_env_/d; /^[a-z]*_cv_[a-zA-Z0-9_]*=/p' "$top_builddir/config.log" \
		>config.cache
	# shellcheck disable=SC2086 # a list
	"$source/configure" -q -C --disable-static "$@" >log 2>&1 &&
		"$MAKE" -s -f Makefile $goals >>log 2>&1 && return
	cat log
	return 1
}

passes()
{
	CK_TAP_LOG_FILE_NAME=/dev/null CK_VERBOSITY=normal "$1"
}

claim "the library is built with --disable-probes" built none \
	"libtdt.la tests/unit/task/check_traced" --disable-probes CC="$CC" CFLAGS=-O0
claim "and has no probes" has_none .libs/libtdt.so
claim "and traces all the same" passes tests/unit/task/check_traced
claim "it is built for another provider, by -flto" built tokio libtdt.la \
	--with-usdt-provider=tokio ${nop5:+--with-probe-nop=5} CC="$CC" \
	CFLAGS='-O2 -flto=auto -ffat-lto-objects'
claim_probes "that library" .libs/libtdt.so tokio
plan
