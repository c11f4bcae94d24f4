# SPDX-License-Identifier: Apache-2.0 OR MIT
# Check speaks TAP to automake, so that each test case is named in the log.
TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
SH_LOG_COMPILER = $(SHELL)
AM_TESTS_ENVIRONMENT = \
	CK_TAP_LOG_FILE_NAME=-; export CK_TAP_LOG_FILE_NAME; \
	CK_VERBOSITY=silent; export CK_VERBOSITY; \
	CK_DEFAULT_TIMEOUT=60; export CK_DEFAULT_TIMEOUT; \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; \
	MAKE='$(MAKE)'; export MAKE; \
	CC='$(CC)'; export CC; \
	CXX='$(CXX)'; export CXX; \
	PKG_CONFIG='$(PKG_CONFIG)'; export PKG_CONFIG; \
	SANITIZERS='$(SANITIZERS)'; export SANITIZERS; \
	TEST_GCC='$(TEST_GCC)'; export TEST_GCC; \
	TEST_CLANG='$(TEST_CLANG)'; export TEST_CLANG; \
	TEST_GXX='$(TEST_GXX)'; export TEST_GXX; \
	TEST_CLANGXX='$(TEST_CLANGXX)'; export TEST_CLANGXX;

# Tests that look inside link libtdt-core.la, all others the library as installed.
tests_cflags = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_core = libtdt-core.la $(CHECK_LIBS)
tests_lib = libtdt.la $(CHECK_LIBS)

if HAVE_CHECK
check_PROGRAMS += tests/check_tree
TESTS += tests/check_tree
endif

tests_check_tree_SOURCES = tests/check_tree.c tests/no_memory.c tests/no_memory.h
tests_check_tree_CFLAGS = $(tests_cflags)
tests_check_tree_LDADD = $(tests_lib)
dist_check_SCRIPTS += tests/lines.sh
EXTRA_DIST += tests/lines.c
EXTRA_DIST += tests/tap.sh
dist_check_SCRIPTS += \
	tests/aarch64.sh \
	tests/bootstrap.sh \
	tests/exports.sh \
	tests/gnumakefile.sh \
	tests/install.sh \
	tests/unwinder.sh
TESTS += $(dist_check_SCRIPTS)

# Traced futures and requests.
tests_futures = tests/futures.c tests/futures.h tests/test.h
tests_asking = tests/asking.c tests/asking.h $(tests_futures)

check_PROGRAMS += tests/check_handshake
TESTS += tests/check_handshake
tests_check_handshake_SOURCES = tests/check_handshake.c
tests_check_handshake_CFLAGS = $(tests_cflags)
tests_check_handshake_LDFLAGS = -Wl,--wrap=tdt__barrier_heavy
tests_check_handshake_LDADD = libtdt-core.la

check_PROGRAMS += tests/check_traced
TESTS += tests/check_traced
tests_check_traced_SOURCES = tests/check_traced.c $(tests_asking)
tests_check_traced_CFLAGS = $(tests_cflags)
tests_check_traced_LDADD = $(tests_lib)

# The second is the first with a naive src/kept.h in the wrapper.
check_PROGRAMS += tests/check_kept tests/check_kept_naive
TESTS += tests/check_kept tests/check_kept_naive
tests_check_kept_SOURCES = tests/check_kept.c $(tests_asking)
tests_check_kept_CFLAGS = $(tests_cflags)
tests_check_kept_LDADD = $(tests_core)
tests_check_kept_naive_SOURCES = tests/check_kept.c src/poll.c tests/naive_kept.h $(tests_asking)
tests_check_kept_naive_CFLAGS = $(tests_cflags) $(LIB_CFLAGS) $(LIBUNWIND_CFLAGS) -include $(srcdir)/tests/naive_kept.h
tests_check_kept_naive_LDADD = $(tests_core)

check_PROGRAMS += tests/check_unwound
TESTS += tests/check_unwound
tests_check_unwound_SOURCES = tests/check_unwound.c tests/unwinding.cc tests/unwinding.h $(tests_asking)
tests_check_unwound_CFLAGS = $(tests_cflags) -fexceptions
tests_check_unwound_LDADD = $(tests_core)

check_PROGRAMS += tests/check_refused
TESTS += tests/check_refused
tests_check_refused_SOURCES = tests/check_refused.c tests/listed.h $(tests_asking)
tests_check_refused_CFLAGS = $(tests_cflags)
tests_check_refused_LDADD = $(tests_core)

check_PROGRAMS += tests/check_requests
TESTS += tests/check_requests
tests_check_requests_SOURCES = tests/check_requests.c tests/listed.h $(tests_asking)
tests_check_requests_CFLAGS = $(tests_cflags)
tests_check_requests_LDADD = $(tests_core)

check_PROGRAMS += tests/check_leaves
TESTS += tests/check_leaves
tests_check_leaves_SOURCES = tests/check_leaves.c $(tests_asking)
tests_check_leaves_CFLAGS = $(tests_cflags)
tests_check_leaves_LDADD = $(tests_lib)

check_PROGRAMS += tests/check_traced_nomem
TESTS += tests/check_traced_nomem
tests_check_traced_nomem_SOURCES = tests/check_traced_nomem.c tests/no_memory.c tests/no_memory.h tests/test.h
tests_check_traced_nomem_CFLAGS = $(tests_cflags)
tests_check_traced_nomem_LDADD = $(tests_lib)

check_PROGRAMS += tests/check_fork
TESTS += tests/check_fork
tests_check_fork_SOURCES = tests/check_fork.c tests/must.h tests/test.h
tests_check_fork_CFLAGS = $(tests_cflags)
tests_check_fork_LDADD = $(tests_lib)

check_PROGRAMS += tests/check_concurrent
TESTS += tests/check_concurrent
tests_check_concurrent_SOURCES = tests/check_concurrent.c tests/must.h tests/test.h
tests_check_concurrent_CFLAGS = $(tests_cflags)
tests_check_concurrent_LDADD = $(tests_lib)
