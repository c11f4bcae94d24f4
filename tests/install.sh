#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Install below a directory, build a user's program against what is there, run it, uninstall.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?}/tests/tap.sh"

test "$SANITIZERS" = no || skip_all "a sanitized library needs a sanitized program"
for lib in libtdt.so libtdt.a; do
	test -e "${top_builddir:?}/.libs/$lib" || skip_all "not built both shared and static"
done
unset MAKEFLAGS MFLAGS MAKELEVEL
root=$tmp/root

make_root()
{
	"$MAKE" -s -C "$top_builddir" -f Makefile "$1" DESTDIR="$root"
}

# pc OPTIONS...: ask pkg-config about the installed library.
pc()
{
	PKG_CONFIG_PATH=$(dirname "$pc_file") PKG_CONFIG_SYSROOT_DIR=$root $PKG_CONFIG "$@" tdt
}

claim "make install obeys DESTDIR" make_root install
pc_file=$(find "$root" -name tdt.pc)
libdir=$(dirname "$(find "$root" -name libtdt.so)")

cat >"$tmp/user.c" <<'END'
#include <tdt/tdt.h>

static tdt_poll_t poll_never(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PENDING;
}

static void drop_nothing(void *state)
{
	(void)state;
}

int main(void)
{
	struct tdt_future never = { 0, poll_never, drop_nothing };
	struct tdt_traced traced = tdt_traced(never);
	int known = traced.handle == tdt_future_handle(&traced.future) && tdt_handle_id(traced.handle) == 1;

	tdt_future_drop(&traced.future);
	tdt_handle_unref(traced.handle);
	return known ? 0 : 1;
}
END
cp "$tmp/user.c" "$tmp/user.cc"

# build COMPILER SOURCE [--static]: the compiler and pkg-config give lists of words.
# shellcheck disable=SC2046,SC2086
build()
{
	$1 -Wall -Werror "$tmp/$2" $(pc --cflags --libs ${3-} | sed "${3:+s/-ltdt/-l:libtdt.a/}") -o "$tmp/user"
}

run_shared()
{
	LD_LIBRARY_PATH=$libdir "$tmp/user"
}

claim "a C11 program is built with tdt.pc" build "$CC -std=c11" user.c
claim "and runs" run_shared
claim "a C11 program is built with the static library" build "$CC -std=c11" user.c --static
claim "and runs on its own" "$tmp/user"
claim "a C++17 program is built with tdt.pc" build "$CXX -std=c++17" user.cc
claim "and runs" run_shared
claim "a C++17 program is built with the static library" build "$CXX -std=c++17" user.cc --static
claim "and runs on its own" "$tmp/user"

claim "make uninstall obeys DESTDIR" make_root uninstall
find "$root" ! -type d >"$tmp/left"
same "and leaves nothing" /dev/null "$tmp/left"
plan
