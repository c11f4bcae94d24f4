#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# C++ coroutines of a program's own types (tdt/coro.hpp), and of Asio (tdt/asio.hpp): ten thousand
# on four threads, which know where they wait, are asked for from inside, from outside and in a core
# file; and the trees of small programs, by each compiler.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
here=$top_srcdir/tests/outside
programs=${top_builddir:?}/tests/outside
fixtures=$here/fixtures

# --- Many coroutines ---

# compare TEXT ANSWER: all tasks of the answer are right.
compare()
{
	claim "$1" python3 -B "$here/callbacks.py" "$tmp/said" "$tmp/$2" trees
}

prints()
{
	grep -q "$1" "$tmp/said"
}

# ask WHAT: of the program that was started.
ask()
{
	echo "dump $tmp/dump" >&3
	wait_until prints dumped
	compare "$1: a dump has the truth of each" dump
	if ! may_read; then
		skip "$1, from outside" "not permitted here: $(cat "$tmp/why")"
		return
	fi
	"$tdt" bt --json "$pid" >"$tmp/bt" 2>"$tmp/warned"
	compare "$1: tdt bt, too" bt
	if ! command -v gdb >/dev/null; then
		skip "$1: the core file has the truth of each" "there is no gdb"
	elif test "${SANITIZERS:?}" != no; then
		skip "$1: the core file has the truth of each" "sanitizers map terabytes"
	else
		make_core
		"$tdt" bt --json --core "$tmp/core" >"$tmp/of_core"
		compare "$1: the core file has the truth of each" of_core
	fi
}

# many WHAT PROGRAM: the program, if it was built.
many()
{
	if ! test -x "$programs/$2"; then
		skip "10,000 coroutines of $1" "configure has not found what it needs"
	elif ! command -v python3 >/dev/null; then
		skip "10,000 coroutines of $1" "there is no python3"
	else
		TDT_OUTSIDE=0 start "$programs/$2" 10000 4 && ask "10,000 coroutines of $1"
		stop 2>/dev/null
	fi
}

many "the program's own types" coro
many "Asio" coro_asio
many "Boost.Asio" coro_boost

# --- The trees of small programs ---

if test "$SANITIZERS" != no || ! test -e "$top_builddir/.libs/libtdt.so"; then
	skip "small programs" "they need an installed library"
	plan
	exit
fi
shared="-I$top_srcdir/include -L$top_builddir/.libs -Wl,-rpath,$top_builddir/.libs -ltdt"
warnings='-Wall -Wextra -Wpedantic -Wundef -Wcast-qual -Wconversion -Werror'
cd "$tmp" || exit

# build COMPILER FLAGS... SOURCE: leaves ./program.
# shellcheck disable=SC2086 # lists of flags
build()
{
	"$@" -g $warnings -lpthread $shared -o program
}

# can COMPILER FLAG HEADER: compile a program that includes the header.
can()
{
	printf '#include <utility>\n#include <%s>\nint main() {}\n' "$3" >can.cc
	"$1" "$2" -fsyntax-only can.cc >/dev/null 2>&1
}

# claims FLAGS...: what a program claims, one line for each.
claims()
{
	claim "$* builds $(basename "$source")" build "$@" "$source"
	./program >results 2>errors || echo "not ok - and it ends well" >>results
	sed 's/^/# /' errors
	while IFS= read -r result; do
		tests=$((tests + 1))
		echo "$result ($*)" | sed "s/ok - /ok $tests - /"
	done <results
	rm -f program
}

years=c++20
test "${TDT_TEST_FULL-}" != 1 || years="c++20 c++2b"
for compiler in "$TEST_GXX" "$TEST_CLANGXX"; do
	for year in $years; do
		if test -z "$compiler" || ! can "$compiler" -std=$year coroutine; then
			skip "coroutines with $compiler -std=$year" "it can't"
			continue
		fi
		source=$fixtures/coro_types.cc
		claims "$compiler" -std=$year -O2
		test "${TDT_TEST_FULL-}$year" != 1c++20 || claims "$compiler" -std=c++20 -O0
		source=$fixtures/coro_asio.cc
		if test $year = c++2b; then
			: # the same headers of Asio: it takes ten seconds
		elif test "${TDT_TEST_FULL-}" != 1 && test "$compiler" != "$TEST_GXX"; then
			skip "Asio with $compiler" "it takes long (TDT_TEST_FULL=1 has it)"
		elif can "$compiler" -std=$year asio.hpp; then
			# Asio 1.22 does not know that Clang has coroutines.
			claims "$compiler" -std=$year -O2 -DASIO_HAS_CO_AWAIT \
				-DASIO_HAS_STD_COROUTINE
		else
			skip "Asio with $compiler -std=$year" "there is no asio.hpp"
		fi
		if test "$compiler" != "$TEST_GXX" || test $year = c++2b; then
			: # Boost 1.74 has coroutines with gcc only
		elif test "${TDT_TEST_FULL-}" != 1; then
			skip "Boost.Asio with $compiler" "it takes long (TDT_TEST_FULL=1 has it)"
		elif can "$compiler" -std=$year boost/asio.hpp; then
			claims "$compiler" -std=$year -O2 -DASIO_BOOST
		else
			skip "Boost.Asio with $compiler -std=$year" "there is no boost/asio.hpp"
		fi
	done
done

# A coroutine in a shared library finds what its thread has without a call.
# shellcheck disable=SC2086 # lists of flags
reaches_its_thread()
{
	"$compiler" -std=c++20 -O2 -fPIC -c $shared "$fixtures/coro_types.cc" -o pic.o 2>pic.err &&
		! nm -u pic.o | grep -q __tls_get_addr
}

for compiler in "$TEST_GXX" "$TEST_CLANGXX"; do
	if test -n "$compiler" && can "$compiler" -std=c++20 coroutine; then
		claim "a shared library calls no function for what a thread has ($compiler)" \
			reaches_its_thread
	fi
done

# --- Files without the header ---

# A coroutine is defined in a file that lacks tdt/asio.hpp, and called in one that has it.
cat >with.cc <<'end'
#include <utility>
#include <tdt/asio.hpp>
#include <asio/awaitable.hpp>
asio::awaitable<int> session();
int main() { (void)session(); }
end
cat >without.cc <<'end'
#include <utility>
#include <asio/awaitable.hpp>
asio::awaitable<int> session() { co_return 1; }
end
printf '#include <asio/awaitable.hpp>\n#include <tdt/asio.hpp>\n' >behind.cc

# refused REASON SOURCE...: the program is not built.
refused()
{
	reason=$1
	shift
	! build "$compiler" -std=c++20 -DASIO_HAS_CO_AWAIT -DASIO_HAS_STD_COROUTINE "$@" \
		>refused 2>&1 && grep -q "$reason" refused
}

for compiler in "$TEST_GXX" "$TEST_CLANGXX"; do
	if test -z "$compiler" || ! can "$compiler" -std=c++20 asio.hpp; then
		skip "Asio in files without the header with $compiler" "there is no asio.hpp"
		continue
	fi
	claim "the linker names what a file without the header defines ($compiler)" \
		refused 'undefined reference to .*session' with.cc without.cc
	claim "the header says that it comes before Asio ($compiler)" \
		refused 'include tdt/asio.hpp before Asio' behind.cc
done
plan
