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
check_PROGRAMS += \
	tests/check_capture \
	tests/check_tree \
	tests/check_walk
TESTS += \
	tests/check_capture \
	tests/check_tree \
	tests/check_walk
endif
check_PROGRAMS += tests/descriptors
TESTS += tests/descriptors

tests_descriptors_SOURCES = tests/descriptors.c
tests_descriptors_LDADD = libtdt.la

tests_check_capture_SOURCES = \
	tests/check_capture.c \
	tests/no_memory.c \
	tests/no_memory.h \
	tests/poll_now.c \
	tests/poll_now.h
tests_check_capture_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGINS='"$(abs_top_builddir)/tests/.libs"'
tests_check_capture_CFLAGS = $(tests_cflags)
tests_check_capture_LDADD = $(tests_lib) -ldl
EXTRA_tests_check_capture_DEPENDENCIES = tests/plugin_a.la tests/plugin_b.la

# Modules that check_capture loads; -rpath makes libtool build them shared.
check_LTLIBRARIES = tests/plugin_a.la tests/plugin_b.la
tests_plugin_ldflags = -module -avoid-version -shared -rpath /nowhere
tests_plugin_a_la_SOURCES = tests/plugin.c
tests_plugin_a_la_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGIN_NAME=a -DPLUGIN_FRAME=1024
tests_plugin_a_la_LDFLAGS = $(tests_plugin_ldflags)
tests_plugin_b_la_SOURCES = tests/plugin.c
tests_plugin_b_la_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGIN_NAME=b -DPLUGIN_FRAME=2048
tests_plugin_b_la_LDFLAGS = $(tests_plugin_ldflags)

# Functions with frames of all kinds, compiled in several ways.
check_LTLIBRARIES += tests/libframes_plain.la tests/libframes_with_fp.la tests/libframes_without_fp.la
tests_libframes_plain_la_SOURCES = tests/frames.c tests/frames.h
tests_libframes_plain_la_CPPFLAGS = $(AM_CPPFLAGS) -DFRAMES_TABLE=frames_plain
tests_libframes_plain_la_CFLAGS = $(AM_CFLAGS)
tests_libframes_with_fp_la_SOURCES = tests/frames.c tests/frames.h
tests_libframes_with_fp_la_CPPFLAGS = $(AM_CPPFLAGS) -DFRAMES_TABLE=frames_with_fp
tests_libframes_with_fp_la_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer -fexceptions
tests_libframes_without_fp_la_SOURCES = tests/frames.c tests/frames.h
tests_libframes_without_fp_la_CPPFLAGS = $(AM_CPPFLAGS) -DFRAMES_TABLE=frames_without_fp
tests_libframes_without_fp_la_CFLAGS = $(AM_CFLAGS) -fomit-frame-pointer
tests_check_walk_SOURCES = \
	tests/check_walk.c \
	tests/frames.h \
	tests/poll_now.c \
	tests/poll_now.h
tests_check_walk_CPPFLAGS = $(AM_CPPFLAGS) $(LIBUNWIND_CFLAGS)
tests_check_walk_CFLAGS = $(tests_cflags) -fno-omit-frame-pointer
tests_check_walk_LDADD = \
	tests/libframes_plain.la \
	tests/libframes_with_fp.la \
	tests/libframes_without_fp.la \
	$(tests_core) -ldl

tests_check_tree_SOURCES = tests/check_tree.c tests/no_memory.c tests/no_memory.h
tests_check_tree_CFLAGS = $(tests_cflags)
tests_check_tree_LDADD = $(tests_lib)
dist_check_SCRIPTS += tests/lines.sh
EXTRA_DIST += tests/lines.c
EXTRA_DIST += \
	tests/fixtures/tree.c \
	tests/fixtures/tree.cc \
	tests/fixtures/tree_main.c \
	tests/tap.sh
dist_check_SCRIPTS += \
	tests/aarch64.sh \
	tests/bootstrap.sh \
	tests/exports.sh \
	tests/gnumakefile.sh \
	tests/install.sh \
	tests/unwinder.sh \
	tests/variants.sh \
	tests/walk.sh \
	tests/warm.sh
TESTS += $(dist_check_SCRIPTS)
