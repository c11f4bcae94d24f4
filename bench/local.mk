# SPDX-License-Identifier: Apache-2.0 OR MIT
# Benchmarks: `make bench` builds and runs them.

EXTRA_PROGRAMS = bench/capture
CLEANFILES += $(EXTRA_PROGRAMS)
bench_capture_SOURCES = bench/capture.c
bench_capture_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer $(LIBUNWIND_CFLAGS)
bench_capture_LDADD = libtdt-core.la

.PHONY: bench
bench: bench/capture
	@bench/capture
