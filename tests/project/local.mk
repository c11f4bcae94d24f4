# SPDX-License-Identifier: Apache-2.0 OR MIT
# Scripts that look at the project's own files: sources, headers, documents, and how it is built.
# With sanitizers they would find the same.

EXTRA_DIST += \
	tests/project/headers.c \
	tests/project/headers.cc \
	tests/project/tsan_host.c

if !SANITIZED
dist_check_SCRIPTS += \
	tests/project/abi.sh \
	tests/project/headers.sh \
	tests/project/configure.sh \
	tests/project/bootstrap.sh \
	tests/project/columns.sh \
	tests/project/covers.sh \
	tests/project/docs.sh \
	tests/project/driver.sh \
	tests/project/exports.sh \
	tests/project/failures.sh \
	tests/project/gnumakefile.sh \
	tests/project/install.sh \
	tests/project/layers.sh \
	tests/project/manual.sh \
	tests/project/names.sh \
	tests/project/opens.sh \
	tests/project/release.sh \
	tests/project/skips.sh
endif

# Alone, after all others: for a moment of an installation libtool has no libtdt-rt.so where it was
# built.
tests/project/install.log: $(TEST_LOGS:tests/project/install.log=)
