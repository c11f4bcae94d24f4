# SPDX-License-Identifier: Apache-2.0 OR MIT
# What several tests share: helpers that are compiled into suites, modules that suites load, and
# functions that scripts source.

# The helpers of the suites, compiled once, with main(): the linker takes what a suite refers to.
check_LIBRARIES += tests/lib/libhelpers.a
tests_helpers = tests/lib/libhelpers.a
tests_lib_libhelpers_a_SOURCES = \
	tests/lib/apart.c \
	tests/lib/apart.h \
	tests/lib/bell.c \
	tests/lib/bell.h \
	tests/lib/calls.h \
	tests/lib/driven.h \
	tests/lib/driver_thread.c \
	tests/lib/driver_thread.h \
	tests/lib/dumped.c \
	tests/lib/dumped.h \
	tests/lib/expected.c \
	tests/lib/expected.h \
	tests/lib/fibered.c \
	tests/lib/fibered.h \
	tests/lib/find_registry.h \
	tests/lib/folder.h \
	tests/lib/futures.c \
	tests/lib/futures.h \
	tests/lib/gate.c \
	tests/lib/gate.h \
	tests/lib/hand.h \
	tests/lib/host_plugins.c \
	tests/lib/host_plugins.h \
	tests/lib/idle.c \
	tests/lib/idle.h \
	tests/lib/leaf.c \
	tests/lib/leaf.h \
	tests/lib/listed.h \
	tests/lib/made_recording.h \
	tests/lib/main.c \
	tests/lib/must.h \
	tests/lib/options.h \
	tests/lib/naive_kept.h \
	tests/lib/no_memory.h \
	tests/lib/no_threads.h \
	tests/lib/poll_now.c \
	tests/lib/poll_now.h \
	tests/lib/printed.c \
	tests/lib/printed.h \
	tests/lib/read_self.h \
	tests/lib/recorded.c \
	tests/lib/recorded.h \
	tests/lib/recording_maker.c \
	tests/lib/recording_maker.h \
	tests/lib/refuse_call.h \
	tests/lib/refused.h \
	tests/lib/request_waiting.h \
	tests/lib/requester.c \
	tests/lib/requester.h \
	tests/lib/rested_fork.h \
	tests/lib/rt.h \
	tests/lib/sanitized.h \
	tests/lib/says.h \
	tests/lib/scoped.h \
	tests/lib/seeded.h \
	tests/lib/self.h \
	tests/lib/stepped.c \
	tests/lib/stepped.h \
	tests/lib/steps.c \
	tests/lib/steps.h \
	tests/lib/stuck_task.c \
	tests/lib/stuck_task.h \
	tests/lib/switched.c \
	tests/lib/switched.h \
	tests/lib/test.h \
	tests/lib/threads.c \
	tests/lib/threads.h \
	tests/lib/unwinding.h \
	tests/lib/visitor.c \
	tests/lib/visitor.h
if RUNTIME
tests_lib_libhelpers_a_SOURCES += tests/lib/driven.c
endif
if WALK_RULES
tests_lib_libhelpers_a_SOURCES += tests/lib/walk_step.c tests/lib/walk_step.h
endif
tests_lib_libhelpers_a_CPPFLAGS = $(AM_CPPFLAGS) $(tests_plugins_cppflags)
tests_lib_libhelpers_a_CFLAGS = $(tests_cflags)

# Functions of the C library that tests have fail or wait.  The linker would take these for every
# suite: a suite that wants them names the archive, in front of the others.
check_LIBRARIES += tests/lib/libcalls.a tests/lib/libmemory.a
tests_calls = tests/lib/libcalls.a
tests_memory = tests/lib/libmemory.a
tests_lib_libcalls_a_SOURCES = tests/lib/calls.c
tests_lib_libcalls_a_CFLAGS = $(tests_cflags)
tests_lib_libmemory_a_SOURCES = tests/lib/no_memory.c
tests_lib_libmemory_a_CFLAGS = $(tests_cflags)

# The same for programs that are no suites: recordings of given events, a reader at the door,
# fibers.
tests_recording_maker = \
	tests/lib/recording_maker.c tests/lib/recording_maker.h tests/lib/must.h
tests_visitor = \
	tests/lib/visitor.c tests/lib/visitor.h tests/lib/find_registry.h tests/lib/must.h
tests_fibered = \
	tests/lib/fibered.c tests/lib/fibered.h tests/lib/must.h src/future/sanitizers.h \
	src/future/switch.h

# Modules that are loaded; -rpath makes libtool build them shared.
tests_plugin_ldflags = -module -avoid-version -shared -rpath /nowhere

check_LTLIBRARIES += tests/lib/ghost_plugin.la
tests_lib_ghost_plugin_la_SOURCES = tests/lib/ghost_plugin.c
tests_lib_ghost_plugin_la_LDFLAGS = $(tests_plugin_ldflags)

# Modules that tests load, and where they are.
tests_plugins = \
	tests/lib/ghost_plugin.la tests/lib/plugin_a.la tests/lib/plugin_b.la \
	$(tests_host_plugins_la)
tests_plugins_cppflags = -DPLUGINS='"$(abs_top_builddir)/tests/lib/.libs"'
check_LTLIBRARIES += tests/lib/plugin_a.la tests/lib/plugin_b.la
tests_lib_plugin_a_la_SOURCES = tests/lib/plugin.c
tests_lib_plugin_a_la_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGIN_NAME=a -DPLUGIN_FRAME=1024
tests_lib_plugin_a_la_LDFLAGS = $(tests_plugin_ldflags)
tests_lib_plugin_b_la_SOURCES = tests/lib/plugin.c
tests_lib_plugin_b_la_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGIN_NAME=b -DPLUGIN_FRAME=2048
tests_lib_plugin_b_la_LDFLAGS = $(tests_plugin_ldflags)

# Plugins of the tests of hosts: b has larger frames than a, c has those of a; d has a constructor
# that takes its time, e no debug information.
check_LTLIBRARIES += $(tests_host_plugins_la)
tests_lib_host_plugin_a_la_SOURCES = tests/lib/host_plugin.c tests/lib/host_plugin.h
tests_lib_host_plugin_a_la_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGIN_NAME=a -DPLUGIN_FRAME=1024
tests_lib_host_plugin_a_la_LDFLAGS = $(tests_plugin_ldflags)
tests_lib_host_plugin_b_la_SOURCES = tests/lib/host_plugin.c tests/lib/host_plugin.h
tests_lib_host_plugin_b_la_CPPFLAGS = \
	$(AM_CPPFLAGS) -DPLUGIN_NAME=b -DPLUGIN_FRAME=2048 -DPLUGIN_BACKWARDS
tests_lib_host_plugin_b_la_LDFLAGS = $(tests_plugin_ldflags)
tests_lib_host_plugin_c_la_SOURCES = tests/lib/host_plugin.c tests/lib/host_plugin.h
tests_lib_host_plugin_c_la_CPPFLAGS = \
	$(AM_CPPFLAGS) -DPLUGIN_NAME=c -DPLUGIN_FRAME=1024 -DPLUGIN_BACKWARDS
tests_lib_host_plugin_c_la_LDFLAGS = $(tests_plugin_ldflags)
tests_lib_host_plugin_d_la_SOURCES = tests/lib/host_plugin.c tests/lib/host_plugin.h
tests_lib_host_plugin_d_la_CPPFLAGS = \
	$(AM_CPPFLAGS) -DPLUGIN_NAME=d -DPLUGIN_FRAME=1024 -DPLUGIN_CONSTRUCTOR_MS=50
tests_lib_host_plugin_d_la_LDFLAGS = $(tests_plugin_ldflags)
tests_lib_host_plugin_e_la_SOURCES = tests/lib/host_plugin.c tests/lib/host_plugin.h
tests_lib_host_plugin_e_la_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGIN_NAME=e -DPLUGIN_FRAME=1024
tests_lib_host_plugin_e_la_LDFLAGS = $(tests_plugin_ldflags) -Wl,-s

# Hosts whose plugins come and go.
tests_host_plugins = tests/lib/host_plugins.c tests/lib/host_plugins.h tests/lib/host_plugin.h
tests_host_plugins_la = \
	tests/lib/host_plugin_a.la \
	tests/lib/host_plugin_b.la \
	tests/lib/host_plugin_c.la \
	tests/lib/host_plugin_d.la \
	tests/lib/host_plugin_e.la

# Preloaded by make check-delays.  A function that a signal handler calls first is not looked up
# there: that takes 3 KiB of the handler's stack.
check_LTLIBRARIES += tests/lib/delays.la
tests_lib_delays_la_SOURCES = tests/lib/delays.c
tests_lib_delays_la_CFLAGS = $(AM_CFLAGS)
tests_lib_delays_la_LDFLAGS = $(tests_plugin_ldflags) -Wl,-z,now

# Polls that get stuck, compiled in several ways.
check_LTLIBRARIES += \
	tests/lib/libstuck_o0.la \
	tests/lib/libstuck_o1.la \
	tests/lib/libstuck_protected.la \
	tests/lib/libstuck_with_fp.la \
	tests/lib/libstuck_without_fp.la
tests_lib_libstuck_o0_la_SOURCES = tests/lib/stuck.c tests/lib/stuck.h
tests_lib_libstuck_o0_la_CPPFLAGS = $(AM_CPPFLAGS) -DSTUCK_TABLE=stuck_o0 -U_FORTIFY_SOURCE
tests_lib_libstuck_o0_la_CFLAGS = $(AM_CFLAGS)
$(tests_lib_libstuck_o0_la_OBJECTS): CFLAGS += -O0
tests_lib_libstuck_o1_la_SOURCES = tests/lib/stuck.c tests/lib/stuck.h
tests_lib_libstuck_o1_la_CPPFLAGS = $(AM_CPPFLAGS) -DSTUCK_TABLE=stuck_o1
tests_lib_libstuck_o1_la_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
$(tests_lib_libstuck_o1_la_OBJECTS): CFLAGS += -O1
tests_lib_libstuck_protected_la_SOURCES = tests/lib/stuck.c tests/lib/stuck.h
tests_lib_libstuck_protected_la_CPPFLAGS = $(AM_CPPFLAGS) -DSTUCK_TABLE=stuck_protected
tests_lib_libstuck_protected_la_CFLAGS = $(AM_CFLAGS) \
	-O2 -fno-omit-frame-pointer -fstack-protector-all -fstack-clash-protection
tests_lib_libstuck_with_fp_la_SOURCES = tests/lib/stuck.c tests/lib/stuck.h
tests_lib_libstuck_with_fp_la_CPPFLAGS = $(AM_CPPFLAGS) -DSTUCK_TABLE=stuck_with_fp
tests_lib_libstuck_with_fp_la_CFLAGS = $(AM_CFLAGS) -O2 -fno-omit-frame-pointer
tests_lib_libstuck_without_fp_la_SOURCES = tests/lib/stuck.c tests/lib/stuck.h
tests_lib_libstuck_without_fp_la_CPPFLAGS = $(AM_CPPFLAGS) -DSTUCK_TABLE=stuck_without_fp
tests_lib_libstuck_without_fp_la_CFLAGS = $(AM_CFLAGS) -O2 -fomit-frame-pointer

# Frames of unusual shapes, compiled in two ways.
check_LTLIBRARIES += \
	tests/lib/libodd_frames_o1.la \
	tests/lib/libodd_frames_o2.la
tests_lib_libodd_frames_o1_la_SOURCES = tests/lib/odd_frames.c tests/lib/odd_frames.h
tests_lib_libodd_frames_o1_la_CPPFLAGS = $(AM_CPPFLAGS) -DODD_FRAMES=odd_frames_o1
tests_lib_libodd_frames_o1_la_CFLAGS = $(AM_CFLAGS)
$(tests_lib_libodd_frames_o1_la_OBJECTS): CFLAGS += -O1
tests_lib_libodd_frames_o2_la_SOURCES = tests/lib/odd_frames.c tests/lib/odd_frames.h
tests_lib_libodd_frames_o2_la_CPPFLAGS = $(AM_CPPFLAGS) -DODD_FRAMES=odd_frames_o2
tests_lib_libodd_frames_o2_la_CFLAGS = $(AM_CFLAGS)
$(tests_lib_libodd_frames_o2_la_OBJECTS): CFLAGS += -O2

# Functions with frames of all kinds, compiled in several ways.
check_LTLIBRARIES += \
	tests/lib/libframes_plain.la tests/lib/libframes_with_fp.la \
	tests/lib/libframes_without_fp.la
tests_lib_libframes_plain_la_SOURCES = tests/lib/frames.c tests/lib/frames.h
tests_lib_libframes_plain_la_CPPFLAGS = $(AM_CPPFLAGS) -DFRAMES_TABLE=frames_plain
tests_lib_libframes_plain_la_CFLAGS = $(AM_CFLAGS)
tests_lib_libframes_with_fp_la_SOURCES = tests/lib/frames.c tests/lib/frames.h
tests_lib_libframes_with_fp_la_CPPFLAGS = $(AM_CPPFLAGS) -DFRAMES_TABLE=frames_with_fp
tests_lib_libframes_with_fp_la_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer -fexceptions
tests_lib_libframes_without_fp_la_SOURCES = tests/lib/frames.c tests/lib/frames.h
tests_lib_libframes_without_fp_la_CPPFLAGS = $(AM_CPPFLAGS) -DFRAMES_TABLE=frames_without_fp
tests_lib_libframes_without_fp_la_CFLAGS = $(AM_CFLAGS) -fomit-frame-pointer

EXTRA_DIST += \
	tests/lib/driver.sh \
	tests/lib/emulated.sh \
	tests/lib/flaky.sh \
	tests/lib/instrumentation.sh \
	tests/lib/outside.sh \
	tests/lib/slowest.sh \
	tests/lib/sysroot.sh \
	tests/lib/tap.sh \
	tests/lib/trace_processor.mjs \
	tests/lib/trace_processor.sh \
	tests/lib/tracers.sh \
	tests/lib/tracing.sh \
	tests/lib/user_probes.sh
