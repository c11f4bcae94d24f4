# SPDX-License-Identifier: Apache-2.0 OR MIT
# Scripts that run real programs, compilers and tracers, and the programs that they run.

check_PROGRAMS += tests/outside/descriptors
tests_outside_descriptors_SOURCES = tests/outside/descriptors.c
tests_outside_descriptors_LDADD = libtdt.la

tests_outside_busy_SOURCES = tests/outside/busy.c
tests_outside_busy_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
tests_outside_busy_LDADD = libtdt.la -lpthread

# What the scripts run.
check_PROGRAMS += tests/outside/symbolize_pcs
tests_outside_symbolize_pcs_SOURCES = tests/outside/symbolize_pcs.c tests/lib/self.h
tests_outside_symbolize_pcs_CFLAGS = $(AM_CFLAGS) $(LIBDW_CFLAGS)
tests_outside_symbolize_pcs_LDADD = libtdt-core.la

tests_outside_probed_SOURCES = tests/outside/probed.c tests/lib/must.h
tests_outside_probed_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
tests_outside_probed_LDADD = libtdt.la -lpthread

tests_outside_patched_SOURCES = tests/outside/patched.c tests/lib/must.h
tests_outside_patched_CFLAGS = $(AM_CFLAGS)
tests_outside_patched_LDADD = libtdt-core.la

# Made recordings as Perfetto traces.
tests_outside_make_trace_SOURCES = tests/outside/make_trace.c $(tests_recording_maker)
tests_outside_make_trace_CFLAGS = $(AM_CFLAGS) $(ZLIB_CFLAGS)
tests_outside_make_trace_LDADD = libtdt-core.la

# A program whose recording is looked at, and that knows what it did; and one of traces.
tests_outside_traced_SOURCES = tests/outside/traced.c tests/lib/at_rest.h tests/lib/must.h
tests_outside_traced_CFLAGS = $(AM_CFLAGS)
tests_outside_traced_LDADD = $(tests_rt)
tests_outside_recorded_SOURCES = tests/outside/recorded.c tests/lib/must.h
tests_outside_recorded_CFLAGS = $(AM_CFLAGS)
tests_outside_recorded_LDADD = libtdt-rt.la libtdt.la -lpthread

# A program at the leaves of the library.
if RUNTIME
check_PROGRAMS += tests/outside/leaves
tests_outside_leaves_SOURCES = tests/outside/leaves.c tests/lib/at_rest.h tests/lib/must.h
tests_outside_leaves_CFLAGS = $(AM_CFLAGS)
tests_outside_leaves_LDADD = libtdt-rt.la libtdt.la -lpthread
endif

# All that the library does, for strace to look at.
tests_outside_syscalls_SOURCES = tests/outside/syscalls.c $(tests_visitor)
tests_outside_syscalls_CFLAGS = $(AM_CFLAGS)
tests_outside_syscalls_LDADD = libtdt.la -ldl -lpthread
EXTRA_tests_outside_syscalls_DEPENDENCIES = tests/lib/plugin_a.la

# Fibers for a core file.
check_PROGRAMS += tests/outside/fiber_core
tests_outside_fiber_core_SOURCES = tests/outside/fiber_core.c $(tests_fibered)
tests_outside_fiber_core_CFLAGS = $(AM_CFLAGS)
tests_outside_fiber_core_LDADD = libtdt-core.la -lpthread
# A program with planted facts, whose recording is summed up.
check_PROGRAMS += tests/outside/planted
tests_outside_planted_SOURCES = tests/outside/planted.c tests/lib/asleep.h tests/lib/must.h
tests_outside_planted_CFLAGS = $(AM_CFLAGS)
tests_outside_planted_LDADD = libtdt.la -ldl -lpthread

# Tasks with trace contexts.
check_PROGRAMS += tests/outside/spans
tests_outside_spans_SOURCES = tests/outside/spans.c tests/lib/idle.c tests/lib/idle.h \
	tests/lib/must.h
tests_outside_spans_CFLAGS = $(AM_CFLAGS)
tests_outside_spans_LDADD = libtdt.la -lpthread

# Benchmarks, and what looks at what they print.  With sanitizers they make long runs, and no
# figures.
if !SANITIZED
check_PROGRAMS += $(BENCHES) bench/compare tests/outside/bench_line
dist_check_SCRIPTS += tests/outside/bench.sh
endif
tests_outside_bench_line_SOURCES = tests/outside/bench_line.c
tests_outside_bench_line_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_outside_bench_line_LDADD = $(JANSSON_LIBS)

# A reader that has nothing of ours, and what it reads, with libtdt in both ways.
check_PROGRAMS += tests/outside/registry_image tests/outside/registry_reader
check_PROGRAMS += tests/outside/registry_tasks tests/outside/registry_tasks_static
tests_outside_registry_image_SOURCES = tests/outside/registry_image.c tests/lib/must.h
tests_outside_registry_image_CFLAGS = $(AM_CFLAGS)
tests_outside_registry_image_LDADD =
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

# What the program tdt looks at, and how.
check_PROGRAMS += tests/outside/copies tests/outside/liar tests/outside/without_call
tests_outside_copies_SOURCES = tests/outside/copies.c tests/lib/must.h
tests_outside_copies_CFLAGS = $(AM_CFLAGS)
tests_outside_copies_LDFLAGS = -static-libtool-libs
tests_outside_copies_LDADD = libtdt.la -ldl -lpthread
tests_outside_liar_SOURCES = tests/outside/liar.c tests/lib/must.h
tests_outside_liar_CFLAGS = $(AM_CFLAGS)
tests_outside_liar_LDADD = -lpthread
tests_outside_without_call_SOURCES = tests/outside/without_call.c tests/lib/refuse_call.h
tests_outside_without_call_CFLAGS = $(AM_CFLAGS)
tests_outside_without_call_LDADD =
check_PROGRAMS += tests/outside/metered
tests_outside_metered_SOURCES = tests/outside/metered.c tests/lib/must.h
tests_outside_metered_CFLAGS = $(AM_CFLAGS)
tests_outside_metered_LDADD = libtdt.la
if RUNTIME
check_PROGRAMS += tests/outside/outside_bank tests/outside/outside_shop
check_PROGRAMS += tests/outside/waits
tests_outside_waits_SOURCES = tests/outside/waits.c bench/waits.c bench/waits.h tests/lib/must.h
tests_outside_waits_CFLAGS = $(AM_CFLAGS) -g
tests_outside_waits_LDADD = $(tests_rt) -lm
tests_outside_outside_shop_SOURCES = tests/outside/outside_shop.cc tests/lib/at_rest.h
tests_outside_outside_shop_CXXFLAGS = $(AM_CXXFLAGS) -g
tests_outside_outside_shop_LDADD = $(tests_rt)
tests_outside_outside_bank_SOURCES = \
	tests/outside/outside_bank.c tests/lib/asleep.h tests/lib/at_rest.h tests/lib/must.h
tests_outside_outside_bank_CFLAGS = $(AM_CFLAGS) -g
tests_outside_outside_bank_LDADD = $(tests_rt)
check_PROGRAMS += tests/outside/outside_busy
tests_outside_outside_busy_SOURCES = tests/outside/outside_busy.c tests/lib/must.h
tests_outside_outside_busy_CFLAGS = $(AM_CFLAGS) -g
tests_outside_outside_busy_LDADD = $(tests_rt)
check_PROGRAMS += tests/outside/outside_lost
tests_outside_outside_lost_SOURCES = \
	tests/outside/outside_lost.c tests/lib/at_rest.h tests/lib/must.h
tests_outside_outside_lost_CFLAGS = $(AM_CFLAGS) -g
tests_outside_outside_lost_LDADD = $(tests_rt)
check_PROGRAMS += tests/outside/outside_futurelock
tests_outside_outside_futurelock_SOURCES = tests/outside/outside_futurelock.c tests/lib/must.h
tests_outside_outside_futurelock_CFLAGS = $(AM_CFLAGS) -g
tests_outside_outside_futurelock_LDADD = $(tests_rt)
# Ten thousand callback operations, which know where they wait.
check_PROGRAMS += tests/outside/callbacks
tests_outside_callbacks_SOURCES = tests/outside/callbacks.c tests/lib/must.h
tests_outside_callbacks_CFLAGS = $(AM_CFLAGS) -g
tests_outside_callbacks_LDADD = libtdt.la -lpthread

check_PROGRAMS += tests/outside/matrix
tests_outside_matrix_SOURCES = tests/outside/matrix.c tests/lib/at_rest.h tests/lib/must.h
tests_outside_matrix_CFLAGS = $(AM_CFLAGS) -g
tests_outside_matrix_LDADD = $(tests_rt) -ldl
EXTRA_tests_outside_matrix_DEPENDENCIES = tests/lib/plugin_a.la
check_PROGRAMS += tests/outside/diff_tasks
tests_outside_diff_tasks_SOURCES = tests/outside/diff_tasks.c tests/lib/must.h
tests_outside_diff_tasks_CFLAGS = $(AM_CFLAGS) -g
tests_outside_diff_tasks_LDADD = $(tests_rt)
endif

# Ten thousand coroutines, which know where they wait.
EXTRA_PROGRAMS += tests/outside/coro tests/outside/coro_asio tests/outside/coro_boost
if HAVE_COROUTINES
check_PROGRAMS += tests/outside/coro
endif
if HAVE_ASIO
check_PROGRAMS += tests/outside/coro_asio
endif
if HAVE_BOOST_ASIO
check_PROGRAMS += tests/outside/coro_boost
endif
tests_outside_coro_SOURCES = tests/outside/coro.cc tests/lib/must.h
tests_outside_coro_CXXFLAGS = $(AM_CXXFLAGS) $(CORO_CXXFLAGS) -g
tests_outside_coro_LDADD = libtdt.la -lpthread
tests_outside_coro_asio_SOURCES = $(tests_outside_coro_SOURCES)
tests_outside_coro_asio_CXXFLAGS = $(tests_outside_coro_CXXFLAGS) -DASIO_ALONE
tests_outside_coro_asio_LDADD = libtdt.la -lpthread
tests_outside_coro_boost_SOURCES = $(tests_outside_coro_SOURCES)
tests_outside_coro_boost_CXXFLAGS = $(tests_outside_coro_CXXFLAGS) -DASIO_BOOST
tests_outside_coro_boost_LDADD = libtdt.la -lpthread

EXTRA_DIST += \
	tests/ghosts/harness.c \
	tests/ghosts/shapes.c \
	tests/ghosts/shapes.cc \
	tests/ghosts/shapes.h \
	tests/ghosts/shapes.rs \
	tests/outside/fixtures/blocked.c \
	tests/outside/fixtures/cafe.cc \
	tests/outside/fixtures/chain.c \
	tests/outside/fixtures/coro_asio.cc \
	tests/outside/fixtures/coro_types.cc \
	tests/outside/fixtures/coroutines.cc \
	tests/outside/fixtures/damaged.S \
	tests/outside/fixtures/fiber_core.py \
	tests/outside/fixtures/fiber_load.h \
	tests/outside/fixtures/fiber_load_boost.cc \
	tests/outside/fixtures/fiber_load_minicoro.c \
	tests/outside/fixtures/fiber_load_pth.c \
	tests/outside/fixtures/hooks.c \
	tests/outside/fixtures/names.cc \
	tests/outside/fixtures/names.rs \
	tests/outside/fixtures/over.c \
	tests/outside/fixtures/over.cc \
	tests/outside/fixtures/over.h \
	tests/outside/fixtures/over.rs \
	tests/outside/fixtures/report.js \
	tests/outside/fixtures/over_main.c \
	tests/outside/fixtures/remote_stub.py \
	tests/outside/fixtures/runner.c \
	tests/outside/fixtures/small_coroutines/minicoro.h \
	tests/outside/fixtures/split.c \
	tests/outside/fixtures/trail.h \
	tests/outside/fixtures/tree.c \
	tests/outside/fixtures/tree.cc \
	tests/outside/fixtures/tree_coroutine.cc \
	tests/outside/fixtures/tree_main.c \
	tests/outside/fixtures/tree_stack.c \
	tests/outside/fixtures/user_probes.c \
	tests/outside/fixtures/user_probes.cc \
	tests/outside/fixtures/user_probes.h \
	tests/outside/fixtures/user_probes_library.c \
	tests/outside/fixtures/wrong_code.c \
	tests/outside/fixtures/wrong_echo.c \
	tests/outside/fold/pond.rs \
	tests/outside/fold/pool.hpp \
	tests/outside/fold/serve.cc \
	tests/outside/fold/serve.rs \
	tests/outside/lines.c \
	tests/outside/callbacks.py \
	tests/outside/chat.py \
	tests/outside/matrix.py \
	tests/outside/matrix.tsv \
	tests/outside/otlp.proto \
	tests/outside/otlp.py \
	tests/outside/perfetto.proto \
	tests/outside/profile.proto \
	tests/outside/rust/tree.rs

# The slowest first: see TESTS.
dist_check_SCRIPTS += tests/outside/coro.sh tests/outside/tdt_hostile.sh

# With sanitizers these would find the same, if anything: they compile programs of their own, or
# look at sources, at what compilers make of them, and at what tracers see; and no sanitizer knows
# of the stacks that the matrix switches.
if !SANITIZED
dist_check_SCRIPTS += \
	tests/outside/variants.sh \
	tests/outside/cxx.sh \
	tests/outside/crates.sh \
	tests/outside/user_probes.sh \
	tests/outside/tools.sh \
	tests/outside/tdt_rest.sh \
	tests/outside/walk.sh \
	tests/outside/otlp.sh \
	tests/outside/perfetto.sh \
	tests/outside/ghosts.sh \
	tests/outside/over.sh \
	tests/outside/odd_frames.sh \
	tests/outside/lines.sh \
	tests/outside/fibers.sh \
	tests/outside/blocked.sh \
	tests/outside/tools_echo.sh \
	tests/outside/trace_bpftrace.sh \
	tests/outside/trace_perf.sh \
	tests/outside/trace_gdb.sh \
	tests/outside/trace_patched.sh \
	tests/outside/trace_user_probes.sh \
	tests/outside/wrong_code.sh \
	tests/outside/matrix.sh \
	tests/outside/completions.sh \
	tests/outside/compare.sh \
	tests/outside/fences.sh \
	tests/outside/fiber_core.sh \
	tests/outside/fold.sh \
	tests/outside/gdb_script.sh \
	tests/outside/registry.sh \
	tests/outside/rust.sh \
	tests/outside/stripped.sh \
	tests/outside/switch.sh \
	tests/outside/syscalls.sh \
	tests/outside/unwinder.sh \
	tests/outside/warm.sh
# Programs for these alone.
check_PROGRAMS += \
	tests/outside/busy \
	tests/outside/make_trace \
	tests/outside/patched \
	tests/outside/probed \
	tests/outside/syscalls
if RUNTIME
check_PROGRAMS += tests/outside/recorded tests/outside/traced
endif
endif

dist_check_SCRIPTS += \
	tests/outside/probes.sh \
	tests/outside/tdt_ps.sh \
	tests/outside/tdt_tree.sh \
	tests/outside/tdt_record.sh \
	tests/outside/tdt_report.sh \
	tests/outside/tdt_targets.sh \
	tests/outside/tdt_requests.sh \
	tests/outside/tdt_top.sh \
	tests/outside/tdt_trace.sh \
	tests/outside/tdt_examples.sh \
	tests/outside/callbacks.sh \
	tests/outside/crates_race.sh \
	tests/outside/damaged_dwarf.sh \
	tests/outside/demo.sh \
	tests/outside/help.sh \
	tests/outside/join_ustack.sh \
	tests/outside/evolve.sh \
	tests/outside/summary.sh \
	tests/outside/symbolize_variants.sh \
	tests/outside/tdt_bt.sh \
	tests/outside/tdt_diff.sh \
	tests/outside/tdt_dump.sh \
	tests/outside/tdt_last.sh \
	tests/outside/tdt_lost.sh \
	tests/outside/tdt_metrics.sh \
	tests/outside/alerts.sh \
	tests/outside/tdt_processes.sh \
	tests/outside/tdt_profile.sh

# The tests that are shortened in `make check`, in full.
check-full: all
	@TDT_TEST_FULL=1; export TDT_TEST_FULL; $(MAKE) $(AM_MAKEFLAGS) check \
		TESTS="`cd $(srcdir) && echo $$(grep -l TDT_TEST_FULL $(dist_check_SCRIPTS))`"

# One tree by each compiler and set of flags.
check-flags: all
	@TDT_TEST_FULL=1; export TDT_TEST_FULL; \
	$(MAKE) $(AM_MAKEFLAGS) check TESTS=tests/outside/variants.sh

# The trees of programs that are compiled with each option of tests/lib/instrumentation.sh, at each
# level.  It takes some 15 minutes.
check-instrumentation: all
	@INSTRUMENTATION=each; TDT_TEST_FULL=1; export INSTRUMENTATION TDT_TEST_FULL; \
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='tests/outside/variants.sh tests/outside/cxx.sh'

# What cargo has built for crates.sh.
clean-crates:
	rm -rf build-crates
