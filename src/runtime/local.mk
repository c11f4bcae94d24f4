# SPDX-License-Identifier: Apache-2.0 OR MIT
# libtdt-rt: the runtime.  It uses libtdt's public headers.

EXTRA_DIST += src/runtime/libtdt-rt.map
if RUNTIME

# Like libtdt-core.la, this is for tests that use internal functions.
noinst_LTLIBRARIES += libtdt-rt-core.la
libtdt_rt_core_la_SOURCES = \
	src/runtime/block_on.c \
	src/runtime/blocking.c \
	src/runtime/blocking.h \
	src/runtime/channel.c \
	src/runtime/driver.c \
	src/runtime/driver.h \
	src/runtime/gate.c \
	src/runtime/gate.h \
	src/runtime/idle.c \
	src/runtime/idle.h \
	src/runtime/inject.c \
	src/runtime/inject.h \
	src/runtime/join_set.c \
	src/runtime/lookup.c \
	src/runtime/mutex.c \
	src/runtime/name.h \
	src/runtime/net.c \
	src/runtime/ready.c \
	src/runtime/run_queue.c \
	src/runtime/run_queue.h \
	src/runtime/rt.c \
	src/runtime/rt.h \
	src/runtime/semaphore.c \
	src/runtime/slot.h \
	src/runtime/socket.c \
	src/runtime/socket.h \
	src/runtime/task.c \
	src/runtime/task.h \
	src/runtime/tcp.c \
	src/runtime/tcp.h \
	src/runtime/timeout.c \
	src/runtime/timer.c \
	src/runtime/timer.h \
	src/runtime/worker.c \
	src/runtime/worker.h \
	src/runtime/yield.c
libtdt_rt_core_la_CFLAGS = $(AM_CFLAGS) $(LIB_CFLAGS) $(ONCE_CFLAGS)
libtdt_rt_core_la_LIBADD = -lpthread

lib_LTLIBRARIES += libtdt-rt.la
libtdt_rt_la_SOURCES =
libtdt_rt_la_LIBADD = libtdt-rt-core.la libtdt.la
libtdt_rt_la_LDFLAGS = -version-info 0:0:0 -no-undefined $(NOW_LDFLAGS) \
	-Wl,--version-script=$(srcdir)/src/runtime/libtdt-rt.map -Wl,-z,nodelete
if !SANITIZED
libtdt_rt_la_LDFLAGS += -Wl,-z,defs
endif
EXTRA_libtdt_rt_la_DEPENDENCIES = $(srcdir)/src/runtime/libtdt-rt.map

pkgconfig_DATA += src/runtime/tdt-rt.pc

endif # RUNTIME
