# SPDX-License-Identifier: Apache-2.0 OR MIT
# Benchmarks, one program a question: `make bench` builds and runs them, and prints what each found.
# `make -s bench BENCHFLAGS=--json` prints a line of JSON for each.  The results of the last two
# runs are kept in bench/last.json and bench/previous.json; `make bench KEEP=FILE` appends them to
# FILE instead.

noinst_LTLIBRARIES += libbench.la
libbench_la_SOURCES = bench/report.c bench/report.h
libbench_la_CFLAGS = $(AM_CFLAGS) $(ONCE_CFLAGS) $(JANSSON_CFLAGS)
libbench_la_LIBADD = $(JANSSON_LIBS)

BENCHES = \
	bench/capture \
	bench/coroutine \
	bench/fiber \
	bench/fleet \
	bench/perfetto \
	bench/probes \
	bench/reader \
	bench/registry \
	bench/running \
	bench/snapshot \
	bench/symbols
if HAVE_COROUTINES
BENCHES += bench/coro
endif
if RUNTIME
BENCHES += \
	bench/asleep \
	bench/blocked \
	bench/deadline \
	bench/dump \
	bench/ghosts \
	bench/outside \
	bench/poll \
	bench/profile \
	bench/recorder \
	bench/wake
if HAVE_LIBUV
BENCHES += bench/callbacks bench/echo bench/spawn
endif
endif
EXTRA_PROGRAMS = $(BENCHES) bench/compare
if RUNTIME
EXTRA_PROGRAMS += bench/count bench/pairs
endif
EXTRA_DIST += bench/count.sh
CLEANFILES += $(EXTRA_PROGRAMS) bench/last.json bench/previous.json

# libgcc_s first: libunwind has an _Unwind_Backtrace(), too.
bench_capture_SOURCES = bench/capture.c
bench_capture_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer $(LIBUNWIND_CFLAGS)
bench_capture_LDADD = -lgcc_s libbench.la libtdt-core.la -lpthread

bench_compare_SOURCES = bench/compare.c
bench_compare_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
bench_compare_LDADD = $(JANSSON_LIBS)

# Instructions in place of time: bench/count.sh.
bench_count_SOURCES = bench/count.c
bench_count_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
bench_count_LDADD = libbench.la libtdt-rt-core.la libtdt-reader.la libtdt-core.la -lpthread -ldl

bench_blocked_SOURCES = bench/blocked.c
bench_blocked_CFLAGS = $(AM_CFLAGS)
bench_blocked_LDADD = libbench.la libtdt-rt.la libtdt.la -lpthread

# Looks inside for the namer, and has files that can't be opened.
bench_deadline_SOURCES = bench/deadline.c
bench_deadline_CFLAGS = $(AM_CFLAGS)
bench_deadline_LDADD = libbench.la libtdt-rt-core.la libtdt-core.la -lpthread -ldl

bench_dump_SOURCES = bench/dump.c
bench_dump_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
bench_dump_LDADD = libbench.la libtdt-rt.la libtdt.la

# Looks inside, at a recording that a helper of the tests makes.
bench_perfetto_SOURCES = bench/perfetto.c \
	tests/lib/recording_maker.c tests/lib/recording_maker.h tests/lib/must.h
bench_perfetto_CFLAGS = $(AM_CFLAGS) $(ZLIB_CFLAGS)
bench_perfetto_LDADD = libbench.la libtdt-core.la

bench_coroutine_SOURCES = bench/coroutine.c
bench_coroutine_CFLAGS = $(AM_CFLAGS)
bench_coroutine_LDADD = libbench.la libtdt.la

bench_coro_SOURCES = bench/coro.cc bench/coro_asio.h bench/coro_plain.cc
bench_coro_CXXFLAGS = $(AM_CXXFLAGS) $(CORO_CXXFLAGS)
bench_coro_LDADD = libbench.la libtdt.la -lpthread

bench_callbacks_SOURCES = bench/callbacks.c
bench_callbacks_CFLAGS = $(AM_CFLAGS) $(LIBUV_CFLAGS)
bench_callbacks_LDADD = libbench.la libtdt.la $(LIBUV_LIBS)

bench_fiber_SOURCES = bench/fiber.c
bench_fiber_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
bench_fiber_LDADD = libbench.la libtdt-core.la -lpthread

# The demo's server, with names and lines as it has them there.
bench_echo_SOURCES = \
	bench/echo.c \
	bench/load.c \
	bench/load.h \
	bench/uv_echo.c \
	bench/uv_echo.h \
	demo/echo.c \
	demo/echo.h
bench_echo_CFLAGS = $(demo_cflags) $(LIBUV_CFLAGS)
bench_echo_LDADD = libbench.la libtdt-rt.la libtdt.la $(LIBUV_LIBS) -lpthread

# A server whose leaves register before they look.
store = bench/load.c bench/load.h bench/store.c bench/store.h
bench_ghosts_SOURCES = bench/ghosts.c $(store)
bench_ghosts_CFLAGS = $(demo_cflags)
bench_ghosts_LDADD = libbench.la libtdt-rt.la libtdt.la -lpthread

# The same for two builds, or two environments, in turn.
bench_pairs_SOURCES = bench/pairs.c demo/echo.c demo/echo.h $(store)
bench_pairs_CFLAGS = $(demo_cflags)
bench_pairs_LDADD = libbench.la libtdt-rt.la libtdt.la -lpthread -lm

# The runtime's own, to have it poll without the wrapper.
bench_poll_SOURCES = bench/poll.c
bench_poll_CFLAGS = $(AM_CFLAGS)
bench_poll_LDFLAGS = -Wl,--wrap=tdt_traced_with
bench_poll_LDADD = libbench.la libtdt-rt-core.la libtdt.la -lpthread -ldl

# Runs the program tdt, too.
bench_outside_SOURCES = bench/outside.c
bench_outside_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
bench_outside_LDADD = libbench.la libtdt-rt-core.la libtdt-reader.la libtdt-core.la -lpthread -ldl
EXTRA_bench_outside_DEPENDENCIES = tdt

# Runs the program tdt.
bench_fleet_SOURCES = bench/fleet.c
bench_fleet_CFLAGS = $(AM_CFLAGS)
bench_fleet_LDADD = libbench.la libtdt-core.la -lpthread -ldl
EXTRA_bench_fleet_DEPENDENCIES = tdt

bench_probes_SOURCES = bench/probes.c
bench_probes_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer $(NOP5_CFLAGS)
bench_probes_LDADD = libbench.la libtdt-core.la

# What a process is found doing, and what it says that it did.
bench_profile_SOURCES = bench/profile.c bench/waits.c bench/waits.h tests/lib/must.h
bench_profile_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
bench_profile_LDADD = libbench.la libtdt-rt-core.la libtdt-reader.la libtdt-core.la \
	-lpthread -ldl -lm

bench_snapshot_SOURCES = bench/snapshot.c
bench_snapshot_CFLAGS = $(AM_CFLAGS)
bench_snapshot_LDADD = libbench.la libtdt.la -lpthread

bench_running_SOURCES = bench/running.c
bench_running_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
bench_running_LDADD = libbench.la libtdt-core.la -lpthread

bench_reader_SOURCES = bench/reader.c
bench_reader_CFLAGS = $(AM_CFLAGS)
bench_reader_LDADD = libbench.la libtdt-reader.la libtdt-core.la -lpthread
bench_registry_SOURCES = bench/registry.c
bench_registry_CFLAGS = $(AM_CFLAGS)
bench_registry_LDADD = libbench.la libtdt.la -lpthread

bench_asleep_SOURCES = bench/asleep.c
bench_asleep_CFLAGS = $(AM_CFLAGS)
bench_asleep_LDADD = libbench.la libtdt-rt.la libtdt.la

# GNU Pth, to compare with.
if HAVE_PTH
PTH_SOURCES = bench/pth.c bench/pth.h
else
PTH_SOURCES = bench/pth_none.c bench/pth.h
endif
EXTRA_DIST += bench/pth.c bench/pth_none.c

bench_spawn_SOURCES = bench/spawn.c bench/pool.c bench/pool.h $(PTH_SOURCES)
bench_spawn_CFLAGS = $(AM_CFLAGS) $(LIBUV_CFLAGS)
bench_spawn_LDADD = libbench.la libtdt-rt.la libtdt.la $(LIBUV_LIBS) $(PTH_LIBS) -lpthread

bench_recorder_SOURCES = bench/recorder.c
bench_recorder_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
bench_recorder_LDADD = libbench.la libtdt-rt.la libtdt.la -lpthread

bench_wake_SOURCES = bench/wake.c $(PTH_SOURCES)
bench_wake_CFLAGS = $(AM_CFLAGS)
bench_wake_LDADD = libbench.la libtdt-rt.la libtdt.la $(PTH_LIBS) -lpthread

bench_symbols_SOURCES = bench/symbols.c
bench_symbols_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
bench_symbols_CPPFLAGS = $(AM_CPPFLAGS) -DBENCH_CC='"$(CC)"' -DBENCH_CXX='"$(CXX)"'
bench_symbols_LDADD = libbench.la libtdt.la

# A library without probes, for bench/poll to compare with (tests/sanitizers.mk has in_own_build).
.PHONY: bench bench-without-probes
bench-without-probes:
	+@(name=noprobes; flags=--disable-probes; goal=libtdt.la; $(in_own_build)) >/dev/null

bench: $(BENCHES) bench/compare bench-without-probes
	@test -n '$(KEEP)' || ! test -e bench/last.json || mv bench/last.json bench/previous.json
	@TDT_BENCH_WITHOUT_PROBES=$(abs_builddir)/build-noprobes/.libs/libtdt.so; \
	export TDT_BENCH_WITHOUT_PROBES; \
	keep='$(KEEP)'; \
	for bench in $(BENCHES); do \
		$$bench --keep="$${keep:-bench/last.json}" $(BENCHFLAGS) || exit; \
	done
	@test -n '$(KEEP)' || ! test -e bench/previous.json || \
		echo 'bench/compare bench/previous.json bench/last.json compares this run' \
			'with the one before' >&2
