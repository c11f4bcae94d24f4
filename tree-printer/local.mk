# SPDX-License-Identifier: Apache-2.0 OR MIT
# Rendering of a trace: part of libtdt, by its public headers only; and tdt-tree.

libtdt_core_la_SOURCES += \
	tree-printer/dump.c \
	tree-printer/dump_all.c \
	tree-printer/dump_folded.c \
	tree-printer/dump_group.c \
	tree-printer/dump_json.c \
	tree-printer/dump_text.c \
	tree-printer/dumps.h \
	tree-printer/folded.c \
	tree-printer/frame.c \
	tree-printer/frames.c \
	tree-printer/json.c \
	tree-printer/names.c \
	tree-printer/names.h \
	tree-printer/print.c \
	tree-printer/printer.h \
	tree-printer/schema.h \
	tree-printer/string.c \
	tree-printer/task_line.c \
	tree-printer/terminal.c \
	tree-printer/text.c \
	tree-printer/view.c

bin_PROGRAMS += tdt-tree
tdt_tree_SOURCES = \
	tree-printer/read_json.c \
	tree-printer/read_json.h \
	tree-printer/schema.h \
	tree-printer/tdt-tree.c
tdt_tree_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tdt_tree_LDADD = libtdt.la $(JANSSON_LIBS)
