# SPDX-License-Identifier: Apache-2.0 OR MIT
# Scripts that run real programs, compilers and tracers, and the programs that they run.

check_PROGRAMS += tests/outside/descriptors
tests_outside_descriptors_SOURCES = tests/outside/descriptors.c
tests_outside_descriptors_LDADD = libtdt.la

check_PROGRAMS += tests/outside/busy
tests_outside_busy_SOURCES = tests/outside/busy.c
tests_outside_busy_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
tests_outside_busy_LDADD = libtdt.la -lpthread

# What the scripts run.
check_PROGRAMS += tests/outside/symbolize_pcs
tests_outside_symbolize_pcs_SOURCES = tests/outside/symbolize_pcs.c tests/lib/self.h
tests_outside_symbolize_pcs_CFLAGS = $(AM_CFLAGS) $(LIBDW_CFLAGS)
tests_outside_symbolize_pcs_LDADD = libtdt-core.la

check_PROGRAMS += tests/outside/probed
tests_outside_probed_SOURCES = tests/outside/probed.c tests/lib/must.h
tests_outside_probed_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
tests_outside_probed_LDADD = libtdt.la -lpthread

check_PROGRAMS += tests/outside/patched
tests_outside_patched_SOURCES = tests/outside/patched.c tests/lib/must.h
tests_outside_patched_CFLAGS = $(AM_CFLAGS)
tests_outside_patched_LDADD = libtdt-core.la

# All that the library does, for strace to look at.
check_PROGRAMS += tests/outside/syscalls
tests_outside_syscalls_SOURCES = tests/outside/syscalls.c tests/lib/must.h
tests_outside_syscalls_CFLAGS = $(AM_CFLAGS)
tests_outside_syscalls_LDADD = libtdt.la -ldl -lpthread
EXTRA_tests_outside_syscalls_DEPENDENCIES = tests/lib/plugin_a.la

# Benchmarks, and what looks at what they print.
check_PROGRAMS += $(BENCHES) bench/compare tests/outside/bench_line
tests_outside_bench_line_SOURCES = tests/outside/bench_line.c
tests_outside_bench_line_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_outside_bench_line_LDADD = $(JANSSON_LIBS)

# A reader that has nothing of ours, and what it reads, with libtdt in both ways.
check_PROGRAMS += tests/outside/registry_image tests/outside/registry_reader
check_PROGRAMS += tests/outside/registry_tasks tests/outside/registry_tasks_static
tests_outside_registry_image_SOURCES = tests/outside/registry_image.c tests/lib/must.h
tests_outside_registry_image_CFLAGS = $(AM_CFLAGS)
tests_outside_registry_reader_SOURCES = tests/outside/registry_reader.c
tests_outside_registry_reader_CFLAGS = $(AM_CFLAGS) $(LIBDW_CFLAGS)
tests_outside_registry_reader_LDADD = -lelf
tests_outside_registry_tasks_SOURCES = tests/outside/registry_tasks.c tests/lib/must.h
tests_outside_registry_tasks_CFLAGS = $(AM_CFLAGS)
tests_outside_registry_tasks_LDADD = libtdt.la -lpthread
tests_outside_registry_tasks_static_SOURCES = tests/outside/registry_tasks.c tests/lib/must.h
tests_outside_registry_tasks_static_CFLAGS = $(AM_CFLAGS)
tests_outside_registry_tasks_static_LDFLAGS = -static-libtool-libs
tests_outside_registry_tasks_static_LDADD = libtdt.la -lpthread

EXTRA_DIST += \
	tests/ghosts/harness.c \
	tests/ghosts/shapes.c \
	tests/ghosts/shapes.cc \
	tests/ghosts/shapes.h \
	tests/ghosts/shapes.rs \
	tests/outside/aarch64/libunwind.h \
	tests/outside/fixtures/blocked.c \
	tests/outside/fixtures/chain.c \
	tests/outside/fixtures/coroutines.cc \
	tests/outside/fixtures/damaged.S \
	tests/outside/fixtures/hooks.c \
	tests/outside/fixtures/names.cc \
	tests/outside/fixtures/names.rs \
	tests/outside/fixtures/over.c \
	tests/outside/fixtures/over.cc \
	tests/outside/fixtures/over.h \
	tests/outside/fixtures/over.rs \
	tests/outside/fixtures/over_main.c \
	tests/outside/fixtures/runner.c \
	tests/outside/fixtures/split.c \
	tests/outside/fixtures/trail.h \
	tests/outside/fixtures/tree.c \
	tests/outside/fixtures/tree.cc \
	tests/outside/fixtures/tree_coroutine.cc \
	tests/outside/fixtures/tree_main.c \
	tests/outside/fixtures/tree_stack.c \
	tests/outside/fixtures/wrong_code.c \
	tests/outside/fixtures/wrong_echo.c \
	tests/outside/lines.c \
	tests/outside/rust/tree.rs

dist_check_SCRIPTS += \
	tests/outside/aarch64.sh \
	tests/outside/bench.sh \
	tests/outside/blocked.sh \
	tests/outside/compare.sh \
	tests/outside/cxx.sh \
	tests/outside/damaged_dwarf.sh \
	tests/outside/demo.sh \
	tests/outside/fences.sh \
	tests/outside/ghosts.sh \
	tests/outside/help.sh \
	tests/outside/join_ustack.sh \
	tests/outside/lines.sh \
	tests/outside/odd_frames.sh \
	tests/outside/over.sh \
	tests/outside/probes.sh \
	tests/outside/registry.sh \
	tests/outside/rust.sh \
	tests/outside/switch.sh \
	tests/outside/symbolize_variants.sh \
	tests/outside/syscalls.sh \
	tests/outside/tdt_dump.sh \
	tests/outside/tdt_tree.sh \
	tests/outside/tools.sh \
	tests/outside/tools_echo.sh \
	tests/outside/trace_bpftrace.sh \
	tests/outside/trace_gdb.sh \
	tests/outside/trace_patched.sh \
	tests/outside/trace_perf.sh \
	tests/outside/unwinder.sh \
	tests/outside/variants.sh \
	tests/outside/walk.sh \
	tests/outside/warm.sh \
	tests/outside/wrong_code.sh

# The trees of programs that are compiled with each option of tests/lib/instrumentation.sh, at each
# level.  It takes some 15 minutes.
check-instrumentation: all
	@INSTRUMENTATION=each; export INSTRUMENTATION; \
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='tests/outside/variants.sh tests/outside/cxx.sh'
