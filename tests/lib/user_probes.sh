# SPDX-License-Identifier: Apache-2.0 OR MIT
# shellcheck shell=sh
# shellcheck disable=SC2154 # set by tap.sh
# A program with probes of its own (tests/outside/fixtures/user_probes.h), and what tracers should
# see of it, in the file `events`.  Source this after tap.sh; it goes to $tmp.

fixtures=$top_srcdir/tests/outside/fixtures
include="-I$top_srcdir/include"
libs="-L$top_builddir/.libs -Wl,-rpath,$top_builddir/.libs"
warnings='-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wcast-qual -Werror
	-Wno-unused-command-line-argument'
cd "$tmp" || exit

# A line an event: the probe, the task, the arguments.
cat >events <<'END'
order 0 0
none 4711
integers 4711 -1 -2 -3 -4 -5 200 60000 4000000000 18446744073709551615 18446744073709551614 1
others 4711 -1 5 0x10 4612811918334230528 4612811918334230528 4612811918334230528 99
texts 4711 text array literal 0
order 4711 1
cxx 4711 xxx -5 1 array literal 0 4612811918334230528 1 -1
opened 4711 -4 4
opened 4711 4 8
lambda 4711 3 inside 9 5
order 4711 2
order 4711 3
packed 4711 bread 1
packed 4711 milk 1
END

# build C CXX C-FLAGS CXX-FLAGS FLAGS: the program, and its library.
# shellcheck disable=SC2086 # lists of flags
build()
{
	rm -f shop libshop.so
	$1 $5 $3 $warnings $include -fPIC -shared "$fixtures/user_probes_library.c" \
		-o libshop.so &&
		$1 $5 $3 $warnings $include -c "$fixtures/user_probes.c" -o c.o &&
		"$2" $5 $4 $warnings $include -c "$fixtures/user_probes.cc" -o cxx.o &&
		"$2" $5 c.o cxx.o -o shop -L. -Wl,-rpath,"$tmp" -lshop $libs -ltdt
}
