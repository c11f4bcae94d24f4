# SPDX-License-Identifier: Apache-2.0 OR MIT
# Programs that do much at once for as long as they are told.

# Tasks of all kinds that churn while they are dumped, asked, watched, signalled and forked: some
# seconds of it with the other tests, two minutes by `make check-soak`.
if RUNTIME
check_PROGRAMS += tests/stress/soak
endif
tests_stress_soak_SOURCES = \
	tests/stress/soak.c tests/stress/soak_tasks.c tests/stress/soak_tasks.h \
	tests/lib/find_registry.h tests/lib/must.h tests/lib/sanitized.h tests/lib/seeded.h
tests_stress_soak_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
tests_stress_soak_LDADD = libtdt-rt.la libtdt.la -lpthread

check-soak: tests/stress/soak
	tests/stress/soak $(SOAK_SECONDS)
SOAK_SECONDS = 120

# Fibers that switch at full speed while they are read: some seconds of it with the other tests, a
# minute by `make check-fibers`.
check_PROGRAMS += tests/stress/fibers
tests_stress_fibers_SOURCES = \
	tests/stress/fibers.c tests/lib/sanitized.h tests/lib/seeded.h $(tests_fibered)
tests_stress_fibers_CFLAGS = $(AM_CFLAGS)
tests_stress_fibers_LDADD = libtdt-core.la -lpthread

check-fibers: tests/stress/fibers
	tests/stress/fibers $(FIBERS_SECONDS)
FIBERS_SECONDS = 60

# Hosts under limits; and a host that does all at once what may harm it while it is traced: `make
# check-host`.
check_PROGRAMS += tests/stress/host
tests_stress_host_SOURCES = \
	tests/stress/host.c \
	tests/stress/host_ops.c \
	tests/stress/host_ops.h \
	tests/stress/host_tasks.c \
	tests/stress/host_tasks.h \
	tests/lib/must.h \
	tests/lib/sanitized.h \
	tests/lib/seeded.h \
	$(tests_host_plugins)
tests_stress_host_CPPFLAGS = $(AM_CPPFLAGS) $(tests_plugins_cppflags)
tests_stress_host_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
tests_stress_host_LDADD = libtdt.la -ldl -lpthread
EXTRA_tests_stress_host_DEPENDENCIES = $(tests_host_plugins_la)

check-host: tests/stress/host
	$(if $(HOST_TESTS),$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(HOST_TESTS)' \
		check_PROGRAMS='$(HOST_TESTS)')
	tests/stress/host $(HOSTFLAGS) $(SECONDS)
HOSTFLAGS =
HOST_TESTS = tests/unit/host/check_limits

# Rings of the recorder, copied while they are written to: some events with the other tests,
# 100 million by `make check-recorder`.
check_PROGRAMS += tests/stress/recorder
tests_stress_recorder_SOURCES = \
	tests/stress/recorder.c tests/lib/must.h tests/lib/seeded.h
tests_stress_recorder_CFLAGS = $(AM_CFLAGS)
tests_stress_recorder_LDADD = libtdt-core.la

# Files of processes that are killed while they record.
check_PROGRAMS += tests/stress/recorder_killed
tests_stress_recorder_killed_SOURCES = \
	tests/stress/recorder_killed.c tests/lib/must.h tests/lib/seeded.h
tests_stress_recorder_killed_CFLAGS = $(AM_CFLAGS)
tests_stress_recorder_killed_LDADD = libtdt.la -lpthread

check-recorder: tests/stress/recorder
	tests/stress/recorder $(RECORDER_EVENTS)
RECORDER_EVENTS = 100000000

dist_check_SCRIPTS += \
	tests/stress/fibers.sh \
	tests/stress/soak.sh
