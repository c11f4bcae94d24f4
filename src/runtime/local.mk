# SPDX-License-Identifier: Apache-2.0 OR MIT
# libtdt-rt: the runtime.  It uses libtdt's public headers, and libuv.

# As libtdt-core.la: for tests that look inside.
noinst_LTLIBRARIES += libtdt-rt-core.la
libtdt_rt_core_la_SOURCES = \
	src/runtime/current.h \
	src/runtime/driver.c \
	src/runtime/driver.h \
	src/runtime/futures.c \
	src/runtime/loop.h \
	src/runtime/net.c \
	src/runtime/rt.c \
	src/runtime/sleep.c \
	src/runtime/sleep.h \
	src/runtime/slot.h \
	src/runtime/socket.c \
	src/runtime/socket.h \
	src/runtime/sync.c \
	src/runtime/tcp.c \
	src/runtime/tcp.h \
	src/runtime/timeout.c \
	src/runtime/timeout.h \
	src/runtime/timer.c \
	src/runtime/timer.h
libtdt_rt_core_la_CFLAGS = $(AM_CFLAGS) $(LIB_CFLAGS) $(LIBUV_CFLAGS)
libtdt_rt_core_la_LIBADD = $(LIBUV_LIBS) -lpthread

lib_LTLIBRARIES += libtdt-rt.la
libtdt_rt_la_SOURCES =
libtdt_rt_la_LIBADD = libtdt-rt-core.la libtdt.la
libtdt_rt_la_LDFLAGS = -version-info 0:0:0 -no-undefined \
	-Wl,--version-script=$(srcdir)/src/runtime/libtdt-rt.map -Wl,-z,nodelete
if !SANITIZED
libtdt_rt_la_LDFLAGS += -Wl,-z,defs
endif
EXTRA_libtdt_rt_la_DEPENDENCIES = $(srcdir)/src/runtime/libtdt-rt.map
EXTRA_DIST += src/runtime/libtdt-rt.map

pkgconfig_DATA += src/runtime/tdt-rt.pc
