# SPDX-License-Identifier: Apache-2.0 OR MIT
# The programs.

bin_PROGRAMS += tdt-join-ustack tdt-tree

tdt_join_ustack_SOURCES = \
	cli/join-ustack.c \
	cli/join.c \
	cli/join.h \
	cli/join_index.c \
	cli/join_index.h \
	cli/join_print.c \
	cli/program.c \
	cli/program.h \
	cli/read_json.c \
	cli/read_json.h \
	cli/ustack.c \
	cli/ustack.h \
	tree-printer/frame.c \
	tree-printer/frame.h \
	tree-printer/schema.h \
	tree-printer/strings.c \
	tree-printer/strings.h \
	tree-printer/terminal.c \
	tree-printer/terminal.h \
	tree-printer/view.c \
	tree-printer/view.h
tdt_join_ustack_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tdt_join_ustack_LDADD = libtdt.la $(JANSSON_LIBS) $(IBERTY_LIBS)

tdt_tree_SOURCES = \
	cli/program.c \
	cli/program.h \
	cli/read_json.c \
	cli/read_json.h \
	cli/tdt-tree.c \
	tree-printer/schema.h
tdt_tree_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tdt_tree_LDADD = libtdt.la $(JANSSON_LIBS)
