# SPDX-License-Identifier: Apache-2.0 OR MIT
# Benchmarks, one program a question: `make bench` builds and runs them, and prints what each found.
# `make -s bench BENCHFLAGS=--json` prints a line of JSON for each.

noinst_LTLIBRARIES += libbench.la
libbench_la_SOURCES = bench/report.c bench/report.h
libbench_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libbench_la_LIBADD = $(JANSSON_LIBS)

BENCHES = \
	bench/capture \
	bench/coroutine \
	bench/dump \
	bench/echo \
	bench/registry \
	bench/running \
	bench/runtime
EXTRA_PROGRAMS = $(BENCHES) bench/probes
CLEANFILES += $(EXTRA_PROGRAMS)

bench_capture_SOURCES = bench/capture.c bench/measure.h
bench_capture_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer $(LIBUNWIND_CFLAGS)
bench_capture_LDADD = libbench.la libtdt-core.la

bench_dump_SOURCES = bench/dump.c bench/measure.h
bench_dump_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
bench_dump_LDADD = libbench.la libtdt-rt.la libtdt.la

bench_coroutine_SOURCES = bench/coroutine.c
bench_coroutine_CFLAGS = $(AM_CFLAGS)
bench_coroutine_LDADD = libbench.la libtdt.la

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

bench_probes_SOURCES = bench/probes.c
bench_probes_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
bench_probes_LDADD = libtdt.la
EXTRA_DIST += bench/probes.sh

bench_running_SOURCES = bench/running.c bench/measure.h
bench_running_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
bench_running_LDADD = libbench.la libtdt-core.la -lpthread

bench_registry_SOURCES = bench/registry.c
bench_registry_CFLAGS = $(AM_CFLAGS)
bench_registry_LDADD = libbench.la libtdt.la -lpthread

bench_runtime_SOURCES = bench/runtime.c bench/measure.h
bench_runtime_CFLAGS = $(AM_CFLAGS)
bench_runtime_LDADD = libbench.la libtdt-rt.la libtdt.la -lpthread

.PHONY: bench bench-probes
bench: $(BENCHES)
	@for bench in $(BENCHES); do $$bench $(BENCHFLAGS) || exit; done

# Against a build of the library without probes (tests/sanitizers.mk has in_own_build).
bench-probes: bench/probes
	+@(name=noprobes; flags=--disable-probes; goal=libtdt.la; $(in_own_build)) >/dev/null
	@$(SHELL) $(srcdir)/bench/probes.sh .libs build-noprobes/.libs bench/.libs/probes
