# SPDX-License-Identifier: Apache-2.0 OR MIT
# libtdt: wrapper, requests, capture, unwind, tree, symbolize.

tdtincludedir = $(includedir)/tdt
tdtinclude_HEADERS = \
	include/tdt/asio.hpp \
	include/tdt/async.h \
	include/tdt/callback.h \
	include/tdt/combine.h \
	include/tdt/context.h \
	include/tdt/coro.hpp \
	include/tdt/coroutine.h \
	include/tdt/coroutine.hpp \
	include/tdt/counters.h \
	include/tdt/decls.h \
	include/tdt/dump.h \
	include/tdt/future.h \
	include/tdt/join.h \
	include/tdt/misuse.h \
	include/tdt/panics.h \
	include/tdt/print.h \
	include/tdt/probe.h \
	include/tdt/recorder.h \
	include/tdt/tasks.h \
	include/tdt/tdt.h \
	include/tdt/trace.h \
	include/tdt/tree.h \
	include/tdt/version.h \
	include/tdt/watch.h
tdtintegratedir = $(tdtincludedir)/integrate
tdtintegrate_HEADERS = \
	include/tdt/integrate/fiber.h \
	include/tdt/integrate/hooks.h \
	include/tdt/integrate/leaf.h \
	include/tdt/integrate/stack.h
tdtlayoutdir = $(tdtincludedir)/layout
tdtlayout_HEADERS = \
	include/tdt/layout/outside.h \
	include/tdt/layout/recording.h \
	include/tdt/layout/registry.h
tdtrtdir = $(tdtincludedir)/rt
tdtrt_HEADERS = \
	include/tdt/rt/blocking.h \
	include/tdt/rt/channel.h \
	include/tdt/rt/join_set.h \
	include/tdt/rt/net.h \
	include/tdt/rt/runtime.h \
	include/tdt/rt/sync.h
public_headers = $(tdtinclude_HEADERS) $(tdtintegrate_HEADERS) $(tdtlayout_HEADERS) $(tdtrt_HEADERS)

# The probes: link-time optimization would copy and inline them; and they need flags of their own
# (see there).
if PROBES
noinst_LTLIBRARIES += libtdt-probes.la
libtdt_probes_la_SOURCES = \
	src/probes/probes.c \
	src/probes/probes.h
libtdt_probes_la_CFLAGS = $(AM_CFLAGS) $(LIB_CFLAGS) $(ONCE_CFLAGS) $(NO_LTO_CFLAGS) $(NOP5_CFLAGS)
PROBES_LA = libtdt-probes.la
endif

# Everything, with the internal names visible, for the library and for tests
# that look inside.
noinst_LTLIBRARIES += libtdt-core.la
libtdt_core_la_SOURCES = \
	src/base/arena.c \
	src/base/arena.h \
	src/base/array.c \
	src/base/array.h \
	src/base/clock.h \
	src/base/hold.h \
	src/base/index.c \
	src/base/index.h \
	src/base/leaf_poll.h \
	src/base/name.h \
	src/base/new_file.c \
	src/base/new_file.h \
	src/base/options.h \
	src/base/pool.c \
	src/base/pool.h \
	src/base/refs.h \
	src/base/proc_syscall.h \
	src/base/proc_text.c \
	src/base/proc_text.h \
	src/base/regular_file.c \
	src/base/regular_file.h \
	src/base/sanitized.h \
	src/base/result.h \
	src/base/service.c \
	src/base/service.h \
	src/base/syscall_name.c \
	src/base/syscall_name.h \
	src/base/text.h \
	src/base/texts.c \
	src/base/texts.h \
	src/base/version.c \
	src/base/write_signals.c \
	src/base/write_signals.h \
	src/capture/capture.c \
	src/capture/capture.h \
	src/capture/capture_trace.c \
	src/capture/capture_trace.h \
	src/capture/chain.h \
	src/capture/counted.c \
	src/capture/counted.h \
	src/capture/facts.h \
	src/capture/fiber.c \
	src/capture/fiber.h \
	src/capture/find_fp.c \
	src/capture/find_fp.h \
	src/capture/follow.h \
	src/capture/interrupt.c \
	src/capture/interrupt.h \
	src/capture/judge.c \
	src/capture/judge.h \
	src/capture/leaf_list.c \
	src/capture/leaf_list.h \
	src/capture/running.c \
	src/capture/running.h \
	src/capture/seal.c \
	src/capture/seal.h \
	src/capture/stack_copy.c \
	src/capture/stack_copy.h \
	src/capture/stack_pieces.c \
	src/capture/stack_pieces.h \
	src/capture/suspended.c \
	src/capture/suspended.h \
	src/capture/walk_copy.c \
	src/capture/walk_copy.h \
	src/door/connection.c \
	src/door/connection.h \
	src/door/door.c \
	src/door/door.h \
	src/door/messages.c \
	src/door/messages.h \
	src/door/socket.c \
	src/door/socket.h \
	src/door/trees.c \
	src/door/trees.h \
	src/dump/backtrace.c \
	src/dump/dump_all.c \
	src/dump/dump_file.c \
	src/dump/dump_file.h \
	src/dump/dump_signal.c \
	src/dump/dump_signal.h \
	src/dump/dump_variable.c \
	src/dump/dump_variable.h \
	src/dump/hourly.h \
	src/dump/path_pattern.c \
	src/dump/path_pattern.h \
	src/dump/recorder_copy.c \
	src/dump/recorder_copy.h \
	src/dump/recorder_snapshot.c \
	src/dump/recorder_snapshot.h \
	src/dump/recorder_trigger.c \
	src/dump/recorder_summary.c \
	src/dump/request_all.c \
	src/dump/request_all.h \
	src/dump/snapshot.c \
	src/dump/snapshot.h \
	src/facts/busy.c \
	src/facts/busy.h \
	src/facts/family.h \
	src/facts/lost.c \
	src/facts/lost.h \
	src/facts/orphans.c \
	src/facts/orphans.h \
	src/facts/past.c \
	src/facts/past.h \
	src/facts/proof.c \
	src/facts/proof.h \
	src/facts/record.h \
	src/facts/registry_tree.h \
	src/facts/task.c \
	src/facts/task.h \
	src/facts/traceparent.c \
	src/facts/traceparent.h \
	src/facts/wait.h \
	src/fork.c \
	src/future/combine.c \
	src/future/coroutine.c \
	src/future/sanitizers.h \
	src/future/switch.c \
	src/future/switch.h \
	src/host/barrier.c \
	src/host/barrier.h \
	src/host/lasting.c \
	src/host/lasting.h \
	src/host/loaded.c \
	src/host/loaded.h \
	src/host/pages.c \
	src/host/pages.h \
	src/host/process_context.c \
	src/host/process_context.h \
	src/host/peek.c \
	src/host/peek.h \
	src/host/proc_thread.c \
	src/host/proc_thread.h \
	src/host/readable.c \
	src/host/readable.h \
	src/host/slot.c \
	src/host/slot.h \
	src/host/start.c \
	src/host/start.h \
	src/host/thread.c \
	src/host/thread.h \
	src/host/unloads.c \
	src/host/unloads.h \
	src/probes/probes.h \
	src/recorder/block.c \
	src/recorder/block.h \
	src/recorder/clock.c \
	src/recorder/clock.h \
	src/recorder/cpu.h \
	src/recorder/files.c \
	src/recorder/files.h \
	src/recorder/record.c \
	src/recorder/record.h \
	src/recorder/recorder.c \
	src/recorder/recorder.h \
	src/recorder/request.c \
	src/recorder/request.h \
	src/recorder/rings.c \
	src/recorder/rings.h \
	src/recorder/service.c \
	src/recorder/service.h \
	src/recorder/stacks.c \
	src/recorder/stacks.h \
	src/recorder/trigger.c \
	src/recorder/trigger.h \
	src/recorder/user.c \
	src/recording/clocks.c \
	src/recording/copy.c \
	src/recording/copy.h \
	src/recording/cursor.c \
	src/recording/describe.c \
	src/recording/describe.h \
	src/recording/durations.c \
	src/recording/durations.h \
	src/recording/identities.c \
	src/recording/module_table.c \
	src/recording/module_table.h \
	src/recording/payload.c \
	src/recording/process.c \
	src/recording/process.h \
	src/recording/read.c \
	src/recording/read.h \
	src/recording/recording.h \
	src/recording/sort.c \
	src/recording/timeline.c \
	src/recording/timeline.h \
	src/recording/summary.c \
	src/recording/summary.h \
	src/recording/summary_groups.c \
	src/recording/summary_groups.h \
	src/recording/supplement.c \
	src/recording/supplement.h \
	src/recording/waits.c \
	src/recording/waits.h \
	src/registry/contexts.c \
	src/registry/contexts.h \
	src/registry/counters.c \
	src/registry/handle.h \
	src/registry/holders.c \
	src/registry/holders.h \
	src/registry/notes.c \
	src/registry/notes.h \
	src/registry/owners.c \
	src/registry/owners.h \
	src/registry/registry.c \
	src/registry/registry.h \
	src/registry/task_info.c \
	src/registry/task_info.h \
	src/symbolize/debugfile.c \
	src/symbolize/debugfile.h \
	src/symbolize/debuginfo.c \
	src/symbolize/debuginfo.h \
	src/symbolize/demangle.c \
	src/symbolize/demangle.h \
	src/symbolize/diename.c \
	src/symbolize/diename.h \
	src/symbolize/dwo.c \
	src/symbolize/dwo.h \
	src/symbolize/elfsym.c \
	src/symbolize/elfsym.h \
	src/symbolize/inlines.c \
	src/symbolize/inlines.h \
	src/symbolize/intern.c \
	src/symbolize/intern.h \
	src/symbolize/maps.c \
	src/symbolize/maps.h \
	src/symbolize/modules.c \
	src/symbolize/modules.h \
	src/symbolize/namer.c \
	src/symbolize/namer.h \
	src/symbolize/plt.c \
	src/symbolize/plt.h \
	src/symbolize/ranges.c \
	src/symbolize/ranges.h \
	src/symbolize/split.c \
	src/symbolize/split.h \
	src/symbolize/stub.h \
	src/symbolize/symbolize.c \
	src/symbolize/symbolize.h \
	src/task/abort.c \
	src/task/attr.c \
	src/task/attr.h \
	src/task/context.c \
	src/task/fibers.c \
	src/task/fibers.h \
	src/task/handle.c \
	src/task/handshake.h \
	src/task/hooked.c \
	src/task/hooks.c \
	src/task/join.c \
	src/task/join.h \
	src/task/label.c \
	src/task/label.h \
	src/task/leaf.c \
	src/task/leaf.h \
	src/task/lost.c \
	src/task/lost.h \
	src/task/misuse.c \
	src/task/misuse.h \
	src/task/panic_hooks.c \
	src/task/panic_hooks.h \
	src/task/panics.c \
	src/task/panics.h \
	src/task/reported.c \
	src/task/reported.h \
	src/task/request.c \
	src/task/request.h \
	src/task/run.h \
	src/task/saved_waker.h \
	src/task/substitute.c \
	src/task/substitute.h \
	src/task/task.c \
	src/task/task.h \
	src/task/tasks.c \
	src/task/waits.h \
	src/task/wrapper.c \
	src/task/wrapper.h \
	src/tree/call_tree.c \
	src/tree/call_tree.h \
	src/tree/cycles.c \
	src/tree/cycles.h \
	src/tree/futurelocks.c \
	src/tree/futurelocks.h \
	src/tree/findings.c \
	src/tree/findings.h \
	src/tree/groups.c \
	src/tree/groups.h \
	src/tree/named.c \
	src/tree/named.h \
	src/tree/over.c \
	src/tree/over.h \
	src/tree/stacks.c \
	src/tree/stacks.h \
	src/tree/trace.c \
	src/tree/trace.h \
	src/tree/tree.c \
	src/tree/tree.h \
	src/tree/waits.h \
	src/unwind/cfi.c \
	src/unwind/cfi.h \
	src/unwind/code.c \
	src/unwind/code.h \
	src/unwind/instruction.h \
	src/unwind/interrupted.h \
	src/unwind/registers.h \
	src/unwind/unwinder.c \
	src/unwind/unwinder.h \
	src/unwind/walk.h \
	src/unwind/walk_rules.h \
	src/watch/epoch.c \
	src/watch/epoch.h \
	src/watch/last_trace.c \
	src/watch/last_tree.c \
	src/watch/last_tree.h \
	src/watch/spare_captures.c \
	src/watch/spare_captures.h \
	src/watch/watch.c \
	src/watch/watch.h
if WALK_RULES
libtdt_core_la_SOURCES += \
	src/capture/follow.c \
	src/unwind/rules.c \
	src/unwind/rules.h
else
libtdt_core_la_SOURCES += \
	tests/lib/step/unwind/walk_rules.h \
	tests/lib/walk_step.c \
	tests/lib/walk_step.h
endif
if AARCH64
libtdt_core_la_SOURCES += \
	src/unwind/aarch64/calls.c \
	src/unwind/aarch64/instruction.c \
	src/unwind/aarch64/interrupted.h \
	src/unwind/aarch64/left.h \
	src/unwind/aarch64/registers.h \
	src/unwind/aarch64/step.h \
	src/unwind/aarch64/switch.S
else
libtdt_core_la_SOURCES += \
	src/unwind/x86_64/calls.c \
	src/unwind/x86_64/instruction.c \
	src/unwind/x86_64/interrupted.h \
	src/unwind/x86_64/left.h \
	src/unwind/x86_64/libunwind.c \
	src/unwind/x86_64/registers.h \
	src/unwind/x86_64/step.h \
	src/unwind/x86_64/switch.S
endif
libtdt_core_la_CFLAGS = $(AM_CFLAGS) $(LIB_CFLAGS) $(ONCE_CFLAGS) $(LIBUNWIND_CFLAGS) \
	$(LIBDW_CFLAGS) $(ZLIB_CFLAGS)
libtdt_core_la_LIBADD = $(PROBES_LA) $(UNWIND_LIBS) $(LIBDW_LIBS) -lelf \
	$(ZLIB_LIBS) $(IBERTY_LIBS) -lpthread

# The names of system calls, of the system it is built for.
$(libtdt_core_la_OBJECTS): src/syscall_names.inc
src/syscall_names.inc: $(srcdir)/src/base/syscall_names.awk
	$(AM_V_GEN)$(MKDIR_P) src && \
		$(CC) $(CPPFLAGS) $(CFLAGS) -E -dM -include sys/syscall.h -x c /dev/null \
			>$@.macros && \
		$(AWK) -f $(srcdir)/src/base/syscall_names.awk $@.macros >$@.new && \
		grep -q __NR_exit_group $@.new && mv $@.new $@ && rm $@.macros
CLEANFILES += src/syscall_names.inc src/syscall_names.inc.macros src/syscall_names.inc.new
EXTRA_DIST += src/base/syscall_names.awk

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

# For find_package(tdt) of CMake: where the headers are, seen from the libraries.
cmakedir = $(libdir)/cmake/tdt
cmake_DATA = src/tdt-config.cmake src/tdt-config-version.cmake
src/tdt-config.cmake: $(srcdir)/src/tdt-config.cmake.in Makefile
	$(AM_V_GEN)$(MKDIR_P) src && include=`realpath -ms --relative-to='$(libdir)' \
		'$(includedir)'` && sed "s|@include_from_lib@|$$include|" \
		$(srcdir)/src/tdt-config.cmake.in >$@
CLEANFILES += src/tdt-config.cmake
EXTRA_DIST += src/tdt-config.cmake.in
