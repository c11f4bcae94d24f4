#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The library as the dynamic linker sees it.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?}/tests/tap.sh"

lib=${top_builddir:?}/.libs/libtdt.so
test -e "$lib" || skip_all "built without a shared library"
command -v readelf >/dev/null || skip_all "there is no readelf (Debian: binutils)"

# The functions the public headers declare and do not define: bodies are taken out from the inside.
declared()
{
	echo '#include <tdt/tdt.h>' | $CC -I"$top_srcdir/include" -E -P - | tr '\n' ' ' |
		awk '{ while (gsub(/[{][^{}]*[}]/, ";")); print }' | tr ';' '\n' |
		grep -v '^ *\(static\|typedef\)' | grep -o '\<tdt_[a-z0-9_]* *(' | tr -d ' (' | sort
}

mapped()
{
	sed -n 's/^\t\(tdt_.*\);$/\1/p' "$top_srcdir/src/libtdt.map" | sort
}

exported()
{
	readelf --dyn-syms -W "$lib" | awk '$5 != "LOCAL" && $7 != "UND" && $1 ~ /^[0-9]+:/ { print $8 }' | sort
}

fails()
{
	! "$@"
}

declared >"$tmp/declared"
mapped >"$tmp/mapped"
exported >"$tmp/exported"
sed 's/$/@@TDT_0.1/' "$tmp/mapped" >"$tmp/versioned"
echo TDT_0.1 >>"$tmp/versioned"
sort -o "$tmp/versioned" "$tmp/versioned"
readelf -dlW "$lib" >"$tmp/dynamic"
sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' "$tmp/dynamic" >"$tmp/needed"

same "the map lists what the headers declare" "$tmp/declared" "$tmp/mapped"
same "the library exports what the map lists, at its version, and nothing else" "$tmp/versioned" "$tmp/exported"
claim "all of it is public: no tdt__ name" fails grep '^tdt__' "$tmp/exported"
claim "the soname is libtdt.so.0" grep -q 'SONAME.*\[libtdt.so.0\]' "$tmp/dynamic"
claim "the library is never unloaded" grep -q 'FLAGS_1.*NODELETE' "$tmp/dynamic"
claim "no text relocation" fails grep TEXTREL "$tmp/dynamic"
claim "no executable stack" fails grep 'GNU_STACK.*E ' "$tmp/dynamic"

# libunwind exports the C++ unwinder too, and must not get in its way.
grep -E '^lib(gcc_s|unwind)' "$tmp/needed" | sed 's/[-.].*//' | uniq >"$tmp/unwinders"
printf 'libgcc_s\nlibunwind\n' >"$tmp/expected"
same "libgcc_s is needed before libunwind" "$tmp/expected" "$tmp/unwinders"

plan
