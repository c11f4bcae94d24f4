# SPDX-License-Identifier: Apache-2.0 OR MIT
# Scripts for tracers, each for bpftrace (.bt) and for DTrace (.d); and tdt-join-ustack, which reads what they print.

toolsdir = $(pkgdatadir)/tools
dist_tools_SCRIPTS = \
	tools/count-spawns.bt \
	tools/count-spawns.d \
	tools/long-polls.bt \
	tools/long-polls.d \
	tools/oncpu-by-task.bt \
	tools/oncpu-by-task.d \
	tools/poll-stats.bt \
	tools/poll-stats.d \
	tools/print-all.bt \
	tools/print-all.d \
	tools/wait-stacks.bt \
	tools/wait-stacks.d \
	tools/worker-util.bt \
	tools/worker-util.d
dist_tools_DATA = tools/README.md

bin_PROGRAMS += tdt-join-ustack
tdt_join_ustack_SOURCES = \
	tools/join-ustack.c \
	tools/join.c \
	tools/join.h \
	tools/join_index.c \
	tools/join_index.h \
	tools/join_print.c \
	tools/ustack.c \
	tools/ustack.h \
	tree-printer/frame.c \
	tree-printer/printer.h \
	tree-printer/read_json.c \
	tree-printer/read_json.h \
	tree-printer/schema.h \
	tree-printer/string.c \
	tree-printer/terminal.c \
	tree-printer/view.c
tdt_join_ustack_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tdt_join_ustack_LDADD = libtdt.la $(JANSSON_LIBS) $(IBERTY_LIBS)
