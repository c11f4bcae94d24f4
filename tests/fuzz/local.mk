# SPDX-License-Identifier: Apache-2.0 OR MIT
# Fuzzing: a target is a file with one function.  `make fuzz` has libFuzzer make up bytes for it;
# `make check` gives it the bytes that are kept, by replay.c (tests/outside/fuzz.sh).
# tests/fuzz/README tells how to keep an input.

.PHONY: fuzz fuzz-here

fuzz_door = tests/fuzz/fuzz_door.c tests/fuzz/fuzz.h
fuzz_environment = tests/fuzz/fuzz_environment.c tests/fuzz/fuzz.h
fuzz_json = tests/fuzz/fuzz_json.c tests/fuzz/fuzz.h
fuzz_core_image = tests/fuzz/core_image.c tests/fuzz/core_image.h
fuzz_reader = tests/fuzz/fuzz_reader.c tests/fuzz/fuzz.h $(fuzz_core_image)
fuzz_recording = tests/fuzz/fuzz_recording.c tests/fuzz/fuzz.h
fuzz_serve = tests/fuzz/fuzz_serve.c tests/fuzz/fuzz.h
fuzz_symbolize = tests/fuzz/fuzz_symbolize.c tests/fuzz/fuzz.h
fuzz_top = tests/fuzz/fuzz_top.c tests/fuzz/fuzz.h $(fuzz_core_image)
fuzz_ustack = tests/fuzz/fuzz_ustack.c tests/fuzz/fuzz.h
fuzz_cflags = $(AM_CFLAGS) $(ZLIB_CFLAGS) $(JANSSON_CFLAGS) $(LIBDW_CFLAGS)
fuzz_libs = libtdt-core.la $(JANSSON_LIBS) $(IBERTY_LIBS)
fuzz_cli = cli/libcli.a libtdt-reader.la $(fuzz_libs)

check_PROGRAMS += \
	tests/fuzz/replay_door \
	tests/fuzz/replay_environment \
	tests/fuzz/replay_json \
	tests/fuzz/replay_reader \
	tests/fuzz/replay_recording \
	tests/fuzz/replay_serve \
	tests/fuzz/replay_symbolize \
	tests/fuzz/replay_top \
	tests/fuzz/replay_ustack
tests_fuzz_replay_door_SOURCES = tests/fuzz/replay.c $(fuzz_door)
tests_fuzz_replay_door_CFLAGS = $(fuzz_cflags)
tests_fuzz_replay_door_LDADD = $(fuzz_libs)
tests_fuzz_replay_environment_SOURCES = tests/fuzz/replay.c $(fuzz_environment)
tests_fuzz_replay_environment_CFLAGS = $(fuzz_cflags)
tests_fuzz_replay_environment_LDADD = $(fuzz_cli)
tests_fuzz_replay_json_SOURCES = tests/fuzz/replay.c $(fuzz_json)
tests_fuzz_replay_json_CFLAGS = $(fuzz_cflags)
tests_fuzz_replay_json_LDADD = $(fuzz_cli)
tests_fuzz_replay_reader_SOURCES = tests/fuzz/replay.c $(fuzz_reader)
tests_fuzz_replay_reader_CFLAGS = $(fuzz_cflags)
tests_fuzz_replay_reader_LDADD = libtdt-reader.la $(fuzz_libs)
tests_fuzz_replay_recording_SOURCES = tests/fuzz/replay.c $(fuzz_recording)
tests_fuzz_replay_recording_CFLAGS = $(fuzz_cflags)
tests_fuzz_replay_recording_LDADD = $(fuzz_cli)
tests_fuzz_replay_serve_SOURCES = tests/fuzz/replay.c $(fuzz_serve)
tests_fuzz_replay_serve_CFLAGS = $(fuzz_cflags)
tests_fuzz_replay_serve_LDADD = $(fuzz_cli)
tests_fuzz_replay_symbolize_SOURCES = tests/fuzz/replay.c $(fuzz_symbolize)
tests_fuzz_replay_symbolize_CFLAGS = $(fuzz_cflags)
tests_fuzz_replay_symbolize_LDADD = $(fuzz_libs)
tests_fuzz_replay_top_SOURCES = tests/fuzz/replay.c $(fuzz_top)
tests_fuzz_replay_top_CFLAGS = $(fuzz_cflags)
tests_fuzz_replay_top_LDADD = $(fuzz_cli)
tests_fuzz_replay_ustack_SOURCES = tests/fuzz/replay.c $(fuzz_ustack)
tests_fuzz_replay_ustack_CFLAGS = $(fuzz_cflags)
tests_fuzz_replay_ustack_LDADD = $(fuzz_cli)
dist_check_SCRIPTS += tests/outside/fuzz.sh

# With libFuzzer, which only Clang has.
fuzz_programs = \
	tests/fuzz/fuzz_door \
	tests/fuzz/fuzz_environment \
	tests/fuzz/fuzz_json \
	tests/fuzz/fuzz_reader \
	tests/fuzz/fuzz_recording \
	tests/fuzz/fuzz_serve \
	tests/fuzz/fuzz_symbolize \
	tests/fuzz/fuzz_top \
	tests/fuzz/fuzz_ustack
EXTRA_PROGRAMS += $(fuzz_programs)
CLEANFILES += $(fuzz_programs)
tests_fuzz_fuzz_door_SOURCES = $(fuzz_door)
tests_fuzz_fuzz_door_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_door_LDFLAGS = -fsanitize=fuzzer
tests_fuzz_fuzz_door_LDADD = $(fuzz_libs)
tests_fuzz_fuzz_environment_SOURCES = $(fuzz_environment)
tests_fuzz_fuzz_environment_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_environment_LDFLAGS = -fsanitize=fuzzer
tests_fuzz_fuzz_environment_LDADD = $(fuzz_cli)
tests_fuzz_fuzz_json_SOURCES = $(fuzz_json)
tests_fuzz_fuzz_json_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_json_LDFLAGS = -fsanitize=fuzzer
tests_fuzz_fuzz_json_LDADD = $(fuzz_cli)
tests_fuzz_fuzz_reader_SOURCES = $(fuzz_reader)
tests_fuzz_fuzz_reader_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_reader_LDFLAGS = -fsanitize=fuzzer
tests_fuzz_fuzz_reader_LDADD = libtdt-reader.la $(fuzz_libs)
tests_fuzz_fuzz_recording_SOURCES = $(fuzz_recording)
tests_fuzz_fuzz_recording_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_recording_LDFLAGS = -fsanitize=fuzzer
tests_fuzz_fuzz_recording_LDADD = $(fuzz_cli)
tests_fuzz_fuzz_serve_SOURCES = $(fuzz_serve)
tests_fuzz_fuzz_serve_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_serve_LDFLAGS = -fsanitize=fuzzer
tests_fuzz_fuzz_serve_LDADD = $(fuzz_cli)
tests_fuzz_fuzz_symbolize_SOURCES = tests/fuzz/mutate_elf.c $(fuzz_symbolize)
tests_fuzz_fuzz_symbolize_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_symbolize_LDFLAGS = -fsanitize=fuzzer
tests_fuzz_fuzz_symbolize_LDADD = $(fuzz_libs)
tests_fuzz_fuzz_top_SOURCES = $(fuzz_top)
tests_fuzz_fuzz_top_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_top_LDFLAGS = -fsanitize=fuzzer
tests_fuzz_fuzz_top_LDADD = $(fuzz_cli)
tests_fuzz_fuzz_ustack_SOURCES = $(fuzz_ustack)
tests_fuzz_fuzz_ustack_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_ustack_LDFLAGS = -fsanitize=fuzzer
tests_fuzz_fuzz_ustack_LDADD = $(fuzz_cli)

SECONDS = 60

# In a build of its own, with the whole library instrumented.
fuzz:
	+@sh $(srcdir)/tests/fuzz/have_fuzzer.sh || exit; \
	CFLAGS='-O1 -g -fsanitize=fuzzer-no-link'; CXXFLAGS=$$CFLAGS; export CFLAGS CXXFLAGS; \
	cc=clang cxx=clang++ name=fuzz flags=--with-sanitizers=address,undefined; \
	goal='fuzz-here SECONDS=$(SECONDS)'; $(in_own_build)

fuzz-here: $(fuzz_programs)
	@AWK='$(AWK)'; TEST_GCC='$(TEST_GCC)'; TEST_GXX='$(TEST_GXX)'; \
	TEST_CLANG='$(TEST_CLANG)'; TEST_CLANGXX='$(TEST_CLANGXX)'; \
	export AWK TEST_GCC TEST_GXX TEST_CLANG TEST_CLANGXX; \
	sh $(srcdir)/tests/fuzz/run.sh $(SECONDS) json ustack environment reader recording door \
		serve symbolize top

EXTRA_DIST += \
	tests/fuzz/README \
	tests/fuzz/have_fuzzer.sh \
	tests/fuzz/json.dict \
	tests/fuzz/known \
	tests/fuzz/make_seeds.sh \
	tests/fuzz/run.sh \
	tests/fuzz/seeds \
	tests/fuzz/small.cc \
	tests/fuzz/unhex.awk \
	tests/fuzz/ustack.dict
