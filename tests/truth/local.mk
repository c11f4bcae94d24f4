# SPDX-License-Identifier: Apache-2.0 OR MIT
# Random programs, whose trees are compared with what is true of them (tests/truth/README): `make
# check-truth`.  The programs that are kept are tests, too (tests/outside/truth.sh).  They are
# compiled without a sanitizer.

.PHONY: check-truth

if !SANITIZED
check_PROGRAMS += tests/truth/generate tests/truth/generate_cxx tests/truth/step
dist_check_SCRIPTS += tests/outside/truth.sh
endif
tests_truth_generate_SOURCES = tests/truth/generate.c tests/truth/random.h
tests_truth_generate_CFLAGS = $(AM_CFLAGS)
tests_truth_generate_LDADD =
tests_truth_generate_cxx_SOURCES = tests/truth/generate_cxx.c tests/truth/random.h
tests_truth_generate_cxx_CFLAGS = $(AM_CFLAGS)
tests_truth_generate_cxx_LDADD =
tests_truth_step_SOURCES = tests/truth/step.c tests/truth/step.h tests/lib/must.h
tests_truth_step_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
tests_truth_step_CFLAGS = $(AM_CFLAGS)
tests_truth_step_LDADD =

check-truth: libtdt.la tdt tests/truth/generate tests/truth/generate_cxx tests/truth/step
	@top_srcdir='$(abs_top_srcdir)'; top_builddir='$(abs_top_builddir)'; AWK='$(AWK)'; \
	TEST_GCC='$(TEST_GCC)'; TEST_CLANG='$(TEST_CLANG)'; \
	TEST_GXX='$(TEST_GXX)'; TEST_CLANGXX='$(TEST_CLANGXX)'; SANITIZERS='$(SANITIZERS)'; \
	export top_srcdir top_builddir AWK TEST_GCC TEST_CLANG TEST_GXX TEST_CLANGXX SANITIZERS; \
	sh $(srcdir)/tests/truth/run.sh $(if $(TRUTH_OF),programs $(TRUTH_OF),for $(SECONDS))

EXTRA_DIST += \
	tests/truth/README \
	tests/truth/classes.awk \
	tests/truth/compare.awk \
	tests/truth/coroutines.awk \
	tests/truth/corpus \
	tests/truth/frames.py \
	tests/truth/links \
	tests/truth/outside.py \
	tests/truth/run.c \
	tests/truth/run.sh \
	tests/truth/truth.h \
	tests/truth/truth.hpp
