# SPDX-License-Identifier: Apache-2.0 OR MIT
# Benchmarks: `make bench` builds and runs them.

EXTRA_PROGRAMS = bench/capture bench/runtime
CLEANFILES += $(EXTRA_PROGRAMS)
bench_capture_SOURCES = bench/capture.c
bench_capture_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer $(LIBUNWIND_CFLAGS)
bench_capture_LDADD = libtdt-core.la

bench_runtime_SOURCES = bench/runtime.c
bench_runtime_CFLAGS = $(AM_CFLAGS)
bench_runtime_LDADD = libtdt-rt.la libtdt.la -lpthread

.PHONY: bench
bench: bench/capture bench/runtime
	@bench/capture
	@bench/runtime
