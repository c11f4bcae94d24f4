# SPDX-License-Identifier: Apache-2.0 OR MIT
# libtdt: wrapper, requests, capture, unwind, tree, symbolize.

tdtincludedir = $(includedir)/tdt
tdtinclude_HEADERS = \
	include/tdt/async.h \
	include/tdt/combine.h \
	include/tdt/coroutine.h \
	include/tdt/dump.h \
	include/tdt/future.h \
	include/tdt/hooks.h \
	include/tdt/join.h \
	include/tdt/net.h \
	include/tdt/print.h \
	include/tdt/registry.h \
	include/tdt/runtime.h \
	include/tdt/sync.h \
	include/tdt/tasks.h \
	include/tdt/tdt.h \
	include/tdt/trace.h \
	include/tdt/tree.h \
	include/tdt/watch.h

# The probes: link-time optimization would copy and inline them.
if PROBES
noinst_LTLIBRARIES += libtdt-probes.la
libtdt_probes_la_SOURCES = \
	src/probes.c \
	src/probes.h
libtdt_probes_la_CFLAGS = $(AM_CFLAGS) $(LIB_CFLAGS) $(NO_LTO_CFLAGS)
PROBES_LA = libtdt-probes.la
endif

# Everything, with the internal names visible, for the library and for tests
# that look inside.
noinst_LTLIBRARIES += libtdt-core.la
libtdt_core_la_SOURCES = \
	src/backtrace.c \
	src/barrier.c \
	src/barrier.h \
	src/call_tree.c \
	src/call_tree.h \
	src/capture.c \
	src/capture.h \
	src/clock.h \
	src/combine.c \
	src/combine.h \
	src/combine_new.c \
	src/coroutine.c \
	src/debuginfo.c \
	src/debuginfo.h \
	src/demangle.c \
	src/demangle.h \
	src/diename.c \
	src/diename.h \
	src/elfsym.c \
	src/elfsym.h \
	src/fiber.h \
	src/fork.c \
	src/fork.h \
	src/inlines.c \
	src/inlines.h \
	src/intern.c \
	src/intern.h \
	src/join.c \
	src/join.h \
	src/join_new.c \
	src/kept.h \
	src/modules.c \
	src/modules.h \
	src/options.h \
	src/poll.c \
	src/poll.h \
	src/probes.h \
	src/ranges.c \
	src/ranges.h \
	src/registers.h \
	src/registry.c \
	src/registry.h \
	src/request.c \
	src/request.h \
	src/stack.c \
	src/stack.h \
	src/substitute.c \
	src/substitute.h \
	src/switch.c \
	src/switch.h \
	src/symbolize.c \
	src/symbolize.h \
	src/task.c \
	src/task.h \
	src/tasks.c \
	src/tasks.h \
	src/thread.c \
	src/thread.h \
	src/trace.c \
	src/trace.h \
	src/tree.c \
	src/tree.h \
	src/unwinder.c \
	src/unwinder.h \
	src/walk.h \
	src/walk_rules.h \
	src/walk_step.c \
	src/walk_step.h
if WALK_RULES
libtdt_core_la_SOURCES += \
	src/rules.c \
	src/rules.h
endif
libtdt_core_la_CFLAGS = $(AM_CFLAGS) $(LIB_CFLAGS) $(LIBUNWIND_CFLAGS) $(LIBDW_CFLAGS) $(JANSSON_CFLAGS)
libtdt_core_la_LIBADD = $(PROBES_LA) $(UNWIND_LIBS) $(LIBDW_LIBS) -lelf $(JANSSON_LIBS) $(IBERTY_LIBS) -lpthread

# current:revision:age: see libtool's manual, "Updating version info".
lib_LTLIBRARIES += libtdt.la
libtdt_la_SOURCES =
libtdt_la_LIBADD = libtdt-core.la
libtdt_la_LDFLAGS = -version-info 0:0:0 -no-undefined \
	-Wl,--version-script=$(srcdir)/src/libtdt.map \
	-Wl,--exclude-libs,libiberty.a -Wl,-z,nodelete
if !SANITIZED # Clang leaves a sanitizer's symbols to the program.
libtdt_la_LDFLAGS += -Wl,-z,defs
endif
EXTRA_libtdt_la_DEPENDENCIES = $(srcdir)/src/libtdt.map
EXTRA_DIST += src/libtdt.map

pkgconfig_DATA = src/tdt.pc
