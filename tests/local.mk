# SPDX-License-Identifier: Apache-2.0 OR MIT
# Check speaks TAP to automake, so that each test case is named in the log.  The driver in tests/lib
# prints one line for each test.
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/tests/lib/driver.sh \
	$(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)

# CI has a command in TEST_TIMEOUT that ends a test which takes too long.  Check puts its files
# where TEMP says.
LOG_COMPILER = $(TEST_TIMEOUT)
SH_LOG_COMPILER = $(TEST_TIMEOUT) $(SHELL)
AM_TESTS_ENVIRONMENT = \
	CK_TAP_LOG_FILE_NAME=-; export CK_TAP_LOG_FILE_NAME; \
	CK_VERBOSITY=silent; export CK_VERBOSITY; \
	CK_DEFAULT_TIMEOUT=60; export CK_DEFAULT_TIMEOUT; \
	TEMP=$${TMPDIR:-/tmp}; export TEMP; \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; \
	MAKE='$(MAKE)'; export MAKE; \
	CC='$(CC)'; export CC; \
	CXX='$(CXX)'; export CXX; \
	PKG_CONFIG='$(PKG_CONFIG)'; export PKG_CONFIG; \
	SANITIZERS='$(SANITIZERS)'; export SANITIZERS; \
	WITH_RUNTIME='$(WITH_RUNTIME)'; export WITH_RUNTIME; \
	TEST_GCC='$(TEST_GCC)'; export TEST_GCC; \
	TEST_CLANG='$(TEST_CLANG)'; export TEST_CLANG; \
	TEST_GXX='$(TEST_GXX)'; export TEST_GXX; \
	TEST_CLANGXX='$(TEST_CLANGXX)'; export TEST_CLANGXX; \
	BENCHES='$(BENCHES)'; export BENCHES; \
	PROGRAMS='$(bin_PROGRAMS) $(noinst_PROGRAMS)'; export PROGRAMS; \
	$(sanitizer_environment)

# What an environment sets already stays.  AddressSanitizer makes no signal stacks: a thread that
# was cancelled leaves its stack marked as in use, and Clang's runtime, which takes the signal stack
# down in such a thread, reports itself.  ThreadSanitizer would sleep for a second at the end of
# each process that has threads: of most test cases, that is.
if SANITIZED
sanitizer_environment = \
	CK_TIMEOUT_MULTIPLIER=$${CK_TIMEOUT_MULTIPLIER-3}; export CK_TIMEOUT_MULTIPLIER; \
	ASAN_OPTIONS=$${ASAN_OPTIONS-detect_leaks=1:strict_string_checks=1:use_sigaltstack=0}; \
	export ASAN_OPTIONS; \
	UBSAN_OPTIONS=$${UBSAN_OPTIONS-print_stacktrace=1}; export UBSAN_OPTIONS; \
	tsan=halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:atexit_sleep_ms=0; \
	TSAN_OPTIONS=$${TSAN_OPTIONS-$$tsan}; export TSAN_OPTIONS;
endif

# Tests that look inside link libtdt-core.la, all others the library as installed.
tests_cflags = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_core = libtdt-core.la $(CHECK_LIBS)
tests_lib = libtdt.la $(CHECK_LIBS)
tests_rt = libtdt-rt.la $(tests_lib) -lpthread

include tests/lib/local.mk
include tests/unit/local.mk
include tests/outside/local.mk
include tests/stress/local.mk
include tests/project/local.mk

# The tests of TESTS, or all unit programs, many times in random order: see the script.
flaky_tests = $(if $(filter command,$(origin TESTS)),$(TESTS),$(tests_unit))
check-flaky:
	+@$(MAKE) $(AM_MAKEFLAGS) check TESTS=
	@$(AM_TESTS_ENVIRONMENT) SHELL='$(SHELL)' bash $(srcdir)/tests/lib/flaky.sh $(flaky_tests)

# What an incomplete build leaves out is said.
if !RUNTIME
check-local:
	@echo 'make check: left out, without the runtime: $(tests_unit_rt)'
endif

# The scripts come first, and of these the slowest: if one of them began last, all others would have
# ended long before.
check_PROGRAMS += $(tests_unit)
TESTS += $(dist_check_SCRIPTS) $(tests_unit) tests/outside/descriptors tests/stress/recorder \
	tests/stress/recorder_killed
