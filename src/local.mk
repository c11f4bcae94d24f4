# SPDX-License-Identifier: Apache-2.0 OR MIT
# libtdt: wrapper, requests, capture, unwind, tree, symbolize.

tdtincludedir = $(includedir)/tdt
tdtinclude_HEADERS = \
	include/tdt/async.h \
	include/tdt/combine.h \
	include/tdt/coroutine.h \
	include/tdt/coroutine.hpp \
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

# The probes: link-time optimization would copy and inline them; and they need flags of their own (see there).
if PROBES
noinst_LTLIBRARIES += libtdt-probes.la
libtdt_probes_la_SOURCES = \
	src/probes.c \
	src/probes.h
libtdt_probes_la_CFLAGS = $(AM_CFLAGS) $(LIB_CFLAGS) $(NO_LTO_CFLAGS) $(NOP5_CFLAGS)
PROBES_LA = libtdt-probes.la
endif

# Everything, with the internal names visible, for the library and for tests
# that look inside.
noinst_LTLIBRARIES += libtdt-core.la
libtdt_core_la_SOURCES = \
	src/arena.c \
	src/arena.h \
	src/ask_all.c \
	src/ask_all.h \
	src/backtrace.c \
	src/barrier.c \
	src/barrier.h \
	src/call_tree.c \
	src/call_tree.h \
	src/capture.c \
	src/capture.h \
	src/capture_trace.c \
	src/capture_trace.h \
	src/cfi.c \
	src/cfi.h \
	src/clock.h \
	src/code.c \
	src/code.h \
	src/combine.c \
	src/combine.h \
	src/combine_new.c \
	src/coroutine.c \
	src/counted.c \
	src/counted.h \
	src/cycles.c \
	src/cycles.h \
	src/debugfile.c \
	src/debugfile.h \
	src/debuginfo.c \
	src/debuginfo.h \
	src/demangle.c \
	src/demangle.h \
	src/diename.c \
	src/diename.h \
	src/dump_signal.c \
	src/dump_signal.h \
	src/elfsym.c \
	src/elfsym.h \
	src/fiber.h \
	src/facts.h \
	src/find_fp.c \
	src/find_fp.h \
	src/follow.h \
	src/fork.c \
	src/groups.c \
	src/groups.h \
	src/handle.c \
	src/handle.h \
	src/handshake.h \
	src/hooks.c \
	src/index.c \
	src/index.h \
	src/inlines.c \
	src/inlines.h \
	src/instruction.c \
	src/instruction.h \
	src/intern.c \
	src/intern.h \
	src/interrupt.c \
	src/interrupt.h \
	src/join.c \
	src/join.h \
	src/join_new.c \
	src/judge.c \
	src/judge.h \
	src/kept.h \
	src/lasting.c \
	src/lasting.h \
	src/loaded.c \
	src/loaded.h \
	src/maps.c \
	src/maps.h \
	src/modules.c \
	src/modules.h \
	src/namer.c \
	src/namer.h \
	src/options.h \
	src/over.c \
	src/over.h \
	src/pages.c \
	src/pages.h \
	src/peek.c \
	src/peek.h \
	src/pieces.c \
	src/pieces.h \
	src/plt.c \
	src/plt.h \
	src/poll.c \
	src/poll.h \
	src/pool.c \
	src/pool.h \
	src/probes.h \
	src/proc_thread.c \
	src/proc_thread.h \
	src/ranges.c \
	src/ranges.h \
	src/ready.c \
	src/ready.h \
	src/registers.h \
	src/registry.c \
	src/registry.h \
	src/request.c \
	src/request.h \
	src/running.c \
	src/running.h \
	src/seal.c \
	src/seal.h \
	src/service.c \
	src/service.h \
	src/snapshot.c \
	src/stack.c \
	src/stack.h \
	src/stack_copy.c \
	src/stack_copy.h \
	src/stacks.c \
	src/stacks.h \
	src/start.c \
	src/start.h \
	src/substitute.c \
	src/substitute.h \
	src/switch.c \
	src/switch.h \
	src/symbolize.c \
	src/symbolize.h \
	src/syscall_name.c \
	src/syscall_name.h \
	src/task.c \
	src/task_info.c \
	src/task_info.h \
	src/tasks.c \
	src/thread.c \
	src/thread.h \
	src/trace.c \
	src/trace.h \
	src/tree.c \
	src/tree.h \
	src/unloads.c \
	src/unloads.h \
	src/unwinder.c \
	src/unwinder.h \
	src/walk.h \
	src/walk_rules.h \
	src/walk_step.c \
	src/walk_step.h \
	src/watch.c \
	src/watch.h \
	src/watch_last.c \
	src/watched.c \
	src/watched.h \
	src/wrapper.h
if WALK_RULES
libtdt_core_la_SOURCES += \
	src/follow.c \
	src/rules.c \
	src/rules.h
endif
if SWITCH_X86_64
libtdt_core_la_SOURCES += \
	src/switch_x86_64.S
endif
libtdt_core_la_CFLAGS = $(AM_CFLAGS) $(LIB_CFLAGS) $(LIBUNWIND_CFLAGS) $(LIBDW_CFLAGS) $(ZLIB_CFLAGS) $(JANSSON_CFLAGS)
libtdt_core_la_LIBADD = $(PROBES_LA) $(UNWIND_LIBS) $(LIBDW_LIBS) -lelf $(ZLIB_LIBS) $(JANSSON_LIBS) $(IBERTY_LIBS) -lpthread

# The names of system calls, of the system it is built for.
$(libtdt_core_la_OBJECTS): src/syscall_names.inc
src/syscall_names.inc: $(srcdir)/src/syscall_names.awk
	$(AM_V_GEN)$(MKDIR_P) src && $(CC) $(CPPFLAGS) $(CFLAGS) -E -dM -include sys/syscall.h -x c /dev/null >$@.macros && \
		$(AWK) -f $(srcdir)/src/syscall_names.awk $@.macros >$@.new && \
		grep -q __NR_exit_group $@.new && mv $@.new $@ && rm $@.macros
CLEANFILES += src/syscall_names.inc src/syscall_names.inc.macros src/syscall_names.inc.new
EXTRA_DIST += src/syscall_names.awk

# current:revision:age: see libtool's manual, "Updating version info".
lib_LTLIBRARIES += libtdt.la
libtdt_la_SOURCES =
libtdt_la_LIBADD = libtdt-core.la
libtdt_la_LDFLAGS = -version-info 0:0:0 -no-undefined $(NOW_LDFLAGS) \
	-Wl,--version-script=$(srcdir)/src/libtdt.map \
	-Wl,--exclude-libs,libiberty.a -Wl,-z,nodelete
if !SANITIZED # Clang leaves a sanitizer's symbols to the program.
libtdt_la_LDFLAGS += -Wl,-z,defs
endif
EXTRA_libtdt_la_DEPENDENCIES = $(srcdir)/src/libtdt.map
EXTRA_DIST += src/libtdt.map

pkgconfig_DATA = src/tdt.pc
