# SPDX-License-Identifier: Apache-2.0 OR MIT
# Benchmarks: `make bench` builds and runs them.

EXTRA_PROGRAMS = bench/capture bench/coroutine bench/dump bench/probes bench/registry bench/running bench/runtime
CLEANFILES += $(EXTRA_PROGRAMS)
bench_capture_SOURCES = bench/capture.c bench/measure.h
bench_capture_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer $(LIBUNWIND_CFLAGS)
bench_capture_LDADD = libtdt-core.la

bench_dump_SOURCES = bench/dump.c bench/measure.h
bench_dump_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
bench_dump_LDADD = libtdt-rt.la libtdt.la

bench_coroutine_SOURCES = bench/coroutine.c bench/measure.h
bench_coroutine_CFLAGS = $(AM_CFLAGS)
bench_coroutine_LDADD = libtdt.la

bench_probes_SOURCES = bench/probes.c
bench_probes_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
bench_probes_LDADD = libtdt.la
EXTRA_DIST += bench/probes.sh

bench_running_SOURCES = bench/running.c bench/measure.h
bench_running_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
bench_running_LDADD = libtdt-core.la -lpthread

bench_registry_SOURCES = bench/registry.c bench/measure.h
bench_registry_CFLAGS = $(AM_CFLAGS)
bench_registry_LDADD = libtdt.la -lpthread

bench_runtime_SOURCES = bench/runtime.c bench/measure.h
bench_runtime_CFLAGS = $(AM_CFLAGS)
bench_runtime_LDADD = libtdt-rt.la libtdt.la -lpthread

.PHONY: bench bench-probes
bench: bench/capture bench/coroutine bench/dump bench/registry bench/running bench/runtime bench-probes
	@bench/capture
	@bench/coroutine
	@bench/dump
	@bench/registry
	@bench/running
	@bench/runtime

# Against a build of the library without probes (tests/sanitizers.mk has in_own_build).
bench-probes: bench/probes
	+@(name=noprobes; flags=--disable-probes; goal=libtdt.la; $(in_own_build)) >/dev/null
	@$(SHELL) $(srcdir)/bench/probes.sh .libs build-noprobes/.libs bench/.libs/probes
