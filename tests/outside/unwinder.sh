#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Linking libtdt leaves a C program the C++ unwinder it had: a plugin throws by libgcc's, not by
# libunwind's.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

test "$SANITIZERS" = no || skip_all "a sanitized library needs a sanitized program"
test -e "${top_builddir:?}/.libs/libtdt.so" || skip_all "built without a shared library"
cd "$tmp" || exit

cat >plugin.cc <<'END'
extern "C" int plugin()
{
	try {
		throw 42;
	} catch (int thrown) {
		return thrown;
	}
}
END

cat >host.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <tdt/tdt.h>

int main(void)
{
	void *plugin = dlopen("./plugin.so", RTLD_NOW);
	int (*call)(void) = (int (*)(void))dlsym(plugin, "plugin");
	Dl_info info = { 0 };

	dladdr(dlsym(RTLD_DEFAULT, "_Unwind_RaiseException"), &info);
	printf("%s\n", info.dli_fname);
	return tdt_current_task_id() == 0 && call() == 42 ? 0 : 1;
}
END

# $CC and $CXX may hold options.
# shellcheck disable=SC2086
build()
{
	$CXX -shared -fPIC plugin.cc -o plugin.so &&
		$CC -I"$top_srcdir/include" host.c -L"$top_builddir/.libs" -ltdt -ldl -o host
}

run()
{
	LD_LIBRARY_PATH=$top_builddir/.libs ./host >unwinder
}

claim "a C program with a C++ plugin is built" build
claim "the plugin's exception is caught" run
claim "by libgcc_s" grep libgcc_s unwinder
plan
