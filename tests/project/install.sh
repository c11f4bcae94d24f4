#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Install below a directory, build a user's program against what is there, run it, uninstall.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

test "$SANITIZERS" = no || skip_all "a sanitized library needs a sanitized program"
libraries="libtdt.so libtdt.a"
test "$WITH_RUNTIME" = no || libraries="$libraries libtdt-rt.so libtdt-rt.a"
for lib in $libraries; do
	test -e "${top_builddir:?}/.libs/$lib" || skip_all "not built both shared and static"
done
unset MAKEFLAGS MFLAGS MAKELEVEL
root=$tmp/root

make_root()
{
	"$MAKE" -s -C "$top_builddir" -f Makefile "$1" DESTDIR="$root"
}

# pc MODULE OPTIONS...: ask pkg-config about an installed library.
pc()
{
	PKG_CONFIG_PATH=$(dirname "$pc_file") PKG_CONFIG_SYSROOT_DIR=$root $PKG_CONFIG "$@"
}

claim "make install obeys DESTDIR" make_root install
pc_file=$(find "$root" -name tdt.pc)
libdir=$(dirname "$(find "$root" -name libtdt.so)")

# installed FOLDER FILE...: below it.
installed()
{
	folder=$1
	shift
	for file; do
		test -s "$(find "$root" -path "*/$folder/$file")" ||
			{ echo "there is no $file"; return 1; }
	done
}
claim "the licences and the news are installed" installed doc/tdt \
	LICENSE-APACHE LICENSE-MIT NOTICE NEWS README.md SECURITY.md
old_name()
{
	program=$(find "$root" -name tdt-tree)
	test -L "$program" && "$program" --version | grep -q '^tdt-tree ' &&
		"$(dirname "$program")/tdt" print --version | grep -q '^tdt '
}
claim "tdt print is also tdt-tree" old_name
claim "pkg-config knows where the scripts for tracers are" \
	test -x "$(pc --variable=toolsdir tdt)/long-polls.bt"
man_folder=$(find "$root" -type d -name man)
if command -v man >/dev/null; then
	claim "man finds the page of a function" man -M "$man_folder" -w tdt_backtrace tdt_rt_spawn
else
	skip "man finds the page of a function" "there is no man"
fi

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
	int known = traced.handle == tdt_future_handle(&traced.future) &&
		    tdt_handle_id(traced.handle) == 1;

	tdt_future_drop(&traced.future);
	tdt_handle_unref(traced.handle);
	return known ? 0 : 1;
}
END
cp "$tmp/user.c" "$tmp/user.cc"

# One with the runtime: its workers, and its driver.
cat >"$tmp/user-rt.c" <<'END'
#include <tdt/rt/runtime.h>

int main(void)
{
	struct tdt_rt *rt = tdt_rt_new(0);
	int error = rt != 0 ? tdt_rt_block_on(rt, tdt_sleep_ms(1)) : -1;

	tdt_rt_free(rt);
	return error == 0 ? 0 : 1;
}
END
cp "$tmp/user-rt.c" "$tmp/user-rt.cc"

# build COMPILER SOURCE MODULE [--static]: the compiler and pkg-config give lists of words.
# shellcheck disable=SC2046,SC2086
build()
{
	$1 -Wall -Werror "$tmp/$2" $(pc --cflags --libs ${4-} "$3" | linked ${4-}) -o "$tmp/user"
}

# linked [--static]: with the static libraries of ours.
linked()
{
	if test "${1-}" = --static; then
		sed 's/-ltdt-rt /-l:libtdt-rt.a /; s/-ltdt /-l:libtdt.a /'
	else
		cat
	fi
}

run_shared()
{
	LD_LIBRARY_PATH=$libdir "$tmp/user"
}

runs_alone()
{
	! ldd "$tmp/user" | grep libtdt && "$tmp/user"
}

# try LANGUAGE COMPILER SOURCE MODULE
try()
{
	claim "a $1 program is built with $4.pc" build "$2" "$3" "$4"
	claim "and runs" run_shared
	claim "a $1 program is built with the static libraries of $4.pc" build "$2" "$3" "$4" \
		--static
	claim "and runs on its own" runs_alone
}

try C11 "$CC -std=c11" user.c tdt
try C++17 "$CXX -std=c++17" user.cc tdt
if test "$WITH_RUNTIME" != no; then
	try C11 "$CC -std=c11" user-rt.c tdt-rt
	try C++17 "$CXX -std=c++17" user-rt.cc tdt-rt
else
	skip "programs are built with tdt-rt.pc" "configured without the runtime"
fi

# --- Other build systems ---

with_cmake()
{
	cmake -S "$tmp/cmake" -B "$tmp/cmake/build" -DCMAKE_PREFIX_PATH="$(dirname "$libdir")" &&
		cmake --build "$tmp/cmake/build" &&
		LD_LIBRARY_PATH=$libdir "$tmp/cmake/build/user"
}
mkdir "$tmp/cmake" "$tmp/meson"
cp "$tmp/user-rt.cc" "$tmp/cmake"
cat >"$tmp/cmake/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.16)
project(user CXX)
find_package(tdt 0.1 REQUIRED COMPONENTS rt)
add_executable(user user-rt.cc)
target_link_libraries(user tdt::rt)
END
refuses_version()
{
	sed -i 's/tdt 0.1/tdt 99/' "$tmp/cmake/CMakeLists.txt"
	! cmake -S "$tmp/cmake" -B "$tmp/cmake/other" -DCMAKE_PREFIX_PATH="$(dirname "$libdir")" \
		>"$tmp/said" 2>&1 && grep 'requested version "99"' "$tmp/said"
}
if test "$WITH_RUNTIME" = no; then
	skip "CMake finds the libraries" "configured without the runtime"
elif command -v cmake >/dev/null; then
	claim "a program is built with CMake's find_package(tdt), and runs" with_cmake
	claim "which knows the version" refuses_version
else
	skip "CMake finds the libraries" "there is no cmake"
fi

# The lines of docs/install.md.
with_meson()
{
	sed -n '/^```meson/,/^```$/{/^```/!p;}' "$top_srcdir/docs/install.md" \
		>>"$tmp/meson/meson.build" &&
		PKG_CONFIG_PATH=$(dirname "$pc_file") PKG_CONFIG_SYSROOT_DIR=$root \
			meson setup "$tmp/meson/build" "$tmp/meson" &&
		ninja -C "$tmp/meson/build" &&
		LD_LIBRARY_PATH=$libdir "$tmp/meson/build/shared" &&
		cp "$tmp/meson/build/static" "$tmp/user" && runs_alone
}
cp "$tmp/user-rt.c" "$tmp/meson/app.c"
echo "project('user', 'c')" >"$tmp/meson/meson.build"
if test "$WITH_RUNTIME" = no; then
	skip "Meson finds the libraries" "configured without the runtime"
elif command -v meson >/dev/null && command -v ninja >/dev/null; then
	claim "programs are built with Meson, shared and static, and run" with_meson
else
	skip "Meson finds the libraries" "there is no meson"
fi

# races COMPILER: that a host with ThreadSanitizer sees.
# shellcheck disable=SC2046
races()
{
	"$1" -fsanitize=thread -g -O1 "$top_srcdir/tests/project/tsan_host.c" \
		$(pc --cflags --libs tdt) -o "$tmp/user" && run_shared
}
echo 'int main(void) { return 0; }' >"$tmp/empty.c"
for compiler in "$TEST_GCC" "$TEST_CLANG"; do
	name="a host with the ThreadSanitizer of ${compiler:-another compiler} sees no races"
	if test -n "$compiler" && "$compiler" -fsanitize=thread "$tmp/empty.c" -o "$tmp/empty" &&
		"$tmp/empty"; then
		claim "$name" races "$compiler"
	else
		skip "$name" "such programs cannot be built, or do not run here"
	fi
done

# gdb looks for the script below auto-load/ where the library lies below /.
load_script()
{
	root=$(cd "$root" && pwd -P)
	below=$(find "$root" -type d -path '*/gdb/auto-load')
	mkdir -p "$tmp/auto-load$root" && cp -R "$below/." "$tmp/auto-load$root" &&
		gdb -nx -batch -iex "set auto-load scripts-directory $tmp/auto-load" \
			-iex "set auto-load safe-path $tmp/auto-load" -ex "help tdt ps" \
			"$libdir/libtdt.so" </dev/null >"$tmp/gdb" 2>&1
	cat "$tmp/gdb"
	grep "^List the async tasks" "$tmp/gdb"
}
if test "$(gdb -nx -batch -ex 'python print(7)' 2>/dev/null)" = 7; then
	claim "gdb loads its script with the library" load_script
else
	skip "gdb loads its script with the library" "there is no gdb with Python"
fi

claim "make uninstall obeys DESTDIR" make_root uninstall
find "$root" ! -type d >"$tmp/left"
same "and leaves nothing" /dev/null "$tmp/left"
plan
