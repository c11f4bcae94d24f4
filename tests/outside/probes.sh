#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The probes as the built library's ELF notes tell of them, against the table of tdt-probes(7); and
# the library built without them, and with its own name for their provider and link-time
# optimization.
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

# On x86-64 8@%rax, on aarch64 8@x0: no (%rsp), no $7.
claim_registers()
{
	notes "$2" | cut -d' ' -f5- | tr ' ' '\n' | grep . >"$tmp/arguments" ||
		echo none >"$tmp/arguments"
	grep -Evx '[48]@%?[a-z][a-z0-9]*' "$tmp/arguments" >"$tmp/elsewhere"
	same "the arguments of $1 are in registers" /dev/null "$tmp/elsewhere"
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
	if ! grep -q TDT_NOP5 "$(dirname "$(dirname "$2")")/Makefile"; then
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
	test "$(notes "$1")" = "" && ! readelf -SW "$1" | grep -E 'stapsdt|[.]probes'
}

provider=$(sed -n 's/^#define TDT_USDT_PROVIDER //p' "$top_builddir/config.h")
if grep -q '^#define TDT_PROBES 1' "$top_builddir/config.h"; then
	claim_probes "the library" "$lib" "$provider"
	readelf -SW "$lib" | grep -q ' \.probes  *PROGBITS .* WA ' && writable=true ||
		writable=false
	claim "the semaphores' section can be written to" "$writable"
else
	claim "the library has no probes" has_none "$lib"
fi

# The rest is built anew.  A source tree that is configured can't serve another build, so from a
# copy then.
if test "$SANITIZERS" != no; then
	skip "other configurations" "the build without sanitizers tries them"
	plan
	exit
fi
unset MAKEFLAGS MFLAGS MAKELEVEL
source=$top_srcdir
if test -e "$top_srcdir/config.status"; then
	source=$tmp/source
	"$MAKE" -s -C "$top_builddir" -f Makefile distdir distdir="$source" >/dev/null
fi

# configured NAME ARGUMENT...: a build directory $tmp/NAME.
configured()
{
	mkdir "$tmp/$1"
	cd "$tmp/$1" || return
	shift
	"$source/configure" -q --disable-static "$@" >"$tmp/log" 2>&1 && return
	cat "$tmp/log"
	return 1
}

# built NAME TARGET...
built()
{
	name=$1
	shift
	"$MAKE" -s -C "$tmp/$name" -f Makefile "$@" >"$tmp/log" 2>&1 && return
	cat "$tmp/log"
	return 1
}

passes()
{
	CK_TAP_LOG_FILE_NAME=/dev/null CK_VERBOSITY=normal "$1"
}

claim "configure takes --disable-probes" configured none --disable-probes CC="$CC" CFLAGS=-O0
claim "so the library is built" built none libtdt.la
claim "and has no probes" has_none "$tmp/none/.libs/libtdt.so"
if grep -q '^tests_unit' "$tmp/none/Makefile"; then
	claim "its tests are built" built none tests/unit/probes/check_probes \
		tests/unit/task/check_traced
	claim "and traces all the same" passes "$tmp/none/tests/unit/task/check_traced"
else
	skip "and traces all the same" "there is no Check"
fi

if test -n "$TEST_GCC"; then
	claim "configure takes a provider's name" configured tokio --with-usdt-provider=tokio \
		CC="$TEST_GCC" \
		CFLAGS='-O2 -flto=auto -ffat-lto-objects'
	claim "so the library is built, with -flto" built tokio libtdt.la
	claim_probes "that library" "$tmp/tokio/.libs/libtdt.so" tokio
else
	skip "another provider, with -flto" "there is no gcc"
fi

# Another compiler puts arguments elsewhere if it may.
if test -n "$TEST_CLANG"; then
	claim "configure takes clang" configured clang CC="$TEST_CLANG"
	claim "so the probes are built" built clang src/probes/libtdt_probes_la-probes.lo
	claim_registers "clang's probes" "$tmp/clang/src/probes/.libs/libtdt_probes_la-probes.o"
	claim "and linked" \
		"$TEST_CLANG" -shared "$tmp/clang/src/probes/.libs/libtdt_probes_la-probes.o" \
		-o "$tmp/clang/src/probes.so"
	claim_nops "clang's probes" "$tmp/clang/src/probes.so"
else
	skip "the probes by clang" "there is no clang"
fi

refused()
{
	! configured "$@" && grep -q 'not a name' "$tmp/log"
}
claim "a provider's name that can't be one is refused" refused odd --with-usdt-provider=a-b
plan
