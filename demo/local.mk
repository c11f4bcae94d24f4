# SPDX-License-Identifier: Apache-2.0 OR MIT
# Small programs a newcomer reads first.  `make demo` runs them.

noinst_PROGRAMS += \
	demo/foreign-runtime \
	demo/taskdump

# Names and lines for the trees; frame pointers for tracers' stacks.
demo_cflags = $(AM_CFLAGS) -g -fno-omit-frame-pointer

their_runtime = demo/their_runtime.c demo/their_runtime.h

demo_foreign_runtime_SOURCES = demo/foreign-runtime.c $(their_runtime)
demo_foreign_runtime_CFLAGS = $(demo_cflags)
demo_foreign_runtime_LDADD = libtdt.la -lpthread

demo_taskdump_SOURCES = demo/taskdump.c $(their_runtime)
demo_taskdump_CFLAGS = $(demo_cflags)
demo_taskdump_LDADD = libtdt.la -lpthread

.PHONY: demo
demo: demo/taskdump
	@echo 'A task waits; its tree, asked for from another thread (demo/taskdump.c):'
	@demo/taskdump
