#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The libraries as the dynamic linker sees them.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

libs=${top_builddir:?}/.libs
test -e "$libs/libtdt.so" || skip_all "built without a shared library"
command -v readelf >/dev/null || skip_all "there is no readelf (Debian: binutils)"

# headers LIBRARY: its public headers.
headers()
{
	case $1 in
	libtdt) set -- tdt/*.h tdt/integrate/*.h tdt/layout/*.h ;;
	*) set -- tdt/rt/*.h ;;
	esac
	printf '%s\n' "$@"
}

# declared LIBRARY: the functions and variables its headers declare and do not define: bodies are
# taken out from the inside.
declared()
{
	(cd "$top_srcdir/include" && headers "$1") >"$tmp/headers"
	sed 's/.*/#include <&>/' "$tmp/headers" | $CC -I"$top_srcdir/include" -E - | awk '
		FNR == NR { wanted[$1]; next }
		/^# [0-9]+ "/ {
			file = $3
			gsub("\"", "", file)
			sub(".*/tdt/", "tdt/", file)
			next
		}
		/^#/ { next }
		file in wanted' "$tmp/headers" - | tr '\n' ' ' |
		awk '{ while (gsub(/[{][^{}]*[}]/, ";")); print }' | tr ';' '\n' |
		grep -v '^ *\(static\|typedef\)' |
		sed 's/^ *extern .* \(tdt_[a-z0-9_]*\) *$/\1(/' | grep -o '\<tdt_[a-z0-9_]* *(' |
		tr -d ' (' | sort
}

# mapped MAP: with the names that trees need (src/base/leaf_poll.h), and that of OpenTelemetry.
mapped()
{
	sed -n 's/^\t\(tdt[._].*\|otel_.*\);$/\1/p' "$top_srcdir/$1" | sort
}

# exported LIBRARY
exported()
{
	readelf --dyn-syms -W "$libs/$1.so" |
		awk '$5 != "LOCAL" && $7 != "UND" && $1 ~ /^[0-9]+:/ { print $8 }' | sort
}

# on_page PAGE: all that is mapped has a line on that manual page, or stands in its synopsis.
on_page()
{
	while read -r name; do
		grep -q "^$name|\|[ *]$name(" "$top_srcdir/man/$1" ||
			{ echo "$1 does not tell of $name"; return 1; }
	done <"$tmp/told"
}

fails()
{
	! "$@"
}

# claim_exports LIBRARY MAP VERSION PAGE: leaves what it needs in $tmp/needed.
claim_exports()
{
	declared "$1" >"$tmp/declared"
	mapped "$2" >"$tmp/all"
	grep -v '[.]\|^otel_' "$tmp/all" >"$tmp/mapped"
	exported "$1" >"$tmp/exported"
	sed "s/\$/@@$3/" "$tmp/all" >"$tmp/versioned"
	echo "$3" >>"$tmp/versioned"
	sort -o "$tmp/versioned" "$tmp/versioned"
	readelf -dlW "$libs/$1.so" >"$tmp/dynamic"
	sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' "$tmp/dynamic" >"$tmp/needed"

	claim "$1 has headers" test -s "$tmp/declared"
	same "the map of $1 lists what its headers declare" "$tmp/declared" "$tmp/mapped"
	same "$1 exports what the map lists, at its version, and nothing else" "$tmp/versioned" \
		"$tmp/exported"
	grep -v '^tdt__' "$tmp/mapped" >"$tmp/told"
	claim "$4 tells of all of it" on_page "$4"
	# Inline functions of the headers read these two.
	grep '^tdt__' "$tmp/exported" | sort >"$tmp/private"
	claim "all else is public: no tdt__ name" fails \
		grep -v -e '^tdt__await_ready@' -e '^tdt__recorder_on@' "$tmp/private"
	claim "the soname is $1.so.0" grep -q "SONAME.*\\[$1.so.0\\]" "$tmp/dynamic"
	claim "$1 is never unloaded" grep -q 'FLAGS_1.*NODELETE' "$tmp/dynamic"
	claim "$1 is bound when it is loaded" grep -q 'FLAGS_1.*NOW' "$tmp/dynamic"
	claim "what is bound in $1 is read-only then" grep -q GNU_RELRO "$tmp/dynamic"
	readelf -W -p .debug_str -p .debug_line_str -p .rodata "$libs/$1.so" >"$tmp/strings"
	claim "no path of the machine that built it is in $1" fails grep -F \
		"$(cd "$top_builddir" && pwd -P)" "$tmp/strings"
	claim "no text relocation in $1" fails grep TEXTREL "$tmp/dynamic"
	claim "no executable stack" fails grep 'GNU_STACK.*E ' "$tmp/dynamic"
}

claim_exports libtdt src/libtdt.map TDT_0.1 tdt.3

# The readers of OTEP 4947 look for the symbol, and for one of these relocations.
readelf -W --dyn-syms "$libs/libtdt.so" | grep otel_thread_ctx_v1 >"$tmp/label"
claim "the label of a thread is thread-local" grep -q ' TLS .* DEFAULT ' "$tmp/label"
claim "and an SDK may define it in the same program" grep -q ' WEAK ' "$tmp/label"
readelf -W -r "$libs/libtdt.so" | grep otel_thread_ctx_v1 >"$tmp/label"
cat "$tmp/label"
claim "and dynamic" grep -q 'TLSDESC\|DTPMOD' "$tmp/label"

# libunwind exports the C++ unwinder too, and must not get in its way.
grep -E "^lib(gcc_s|unwind)[.-]" "$tmp/needed" | sed "s/[.-].*//" | uniq >"$tmp/unwinders"
printf 'libgcc_s\nlibunwind\n' >"$tmp/expected"
same "libgcc_s is needed before libunwind" "$tmp/expected" "$tmp/unwinders"
claim "libtdt needs no runtime" fails grep -E 'libtdt-rt' "$tmp/needed"
claim "libtdt needs no library for JSON" fails grep jansson "$tmp/needed"

if test "$WITH_RUNTIME" = no; then
	skip "what libtdt-rt exports" "configured without the runtime"
	plan
	exit
fi
claim_exports libtdt-rt src/runtime/libtdt-rt.map TDT_RT_0.1 tdt-rt.3

# All else comes with libtdt; the C library may be in several, and a sanitizer its own.
grep -Ev '^(libc|libpthread|libgcc_s|lib[a-z]*san|libm|ld-linux.*)[.]so' "$tmp/needed" |
	sort >"$tmp/others"
echo libtdt.so.0 >"$tmp/expected"
same "libtdt-rt needs libtdt" "$tmp/expected" "$tmp/others"
plan
