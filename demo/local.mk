# SPDX-License-Identifier: Apache-2.0 OR MIT
# Small programs a newcomer reads first.  `make demo` runs the main one.

noinst_PROGRAMS += demo/taskdump
demo_taskdump_SOURCES = \
	demo/poll_loop.c \
	demo/poll_loop.h \
	demo/taskdump.c
demo_taskdump_LDADD = libtdt.la -lpthread

.PHONY: demo
demo: demo/taskdump
	@echo 'A task waits; its tree, asked for from another thread (demo/taskdump.c):'
	@demo/taskdump
