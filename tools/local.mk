# SPDX-License-Identifier: Apache-2.0 OR MIT
# tdt-join-ustack, which reads what tracers print.

bin_PROGRAMS += tdt-join-ustack
tdt_join_ustack_SOURCES = \
	tools/join-ustack.c \
	tools/join.c \
	tools/join.h \
	tools/join_print.c \
	tools/ustack.c \
	tools/ustack.h \
	tree-printer/frame.c \
	tree-printer/printer.h \
	tree-printer/read_json.c \
	tree-printer/read_json.h \
	tree-printer/schema.h \
	tree-printer/string.c \
	tree-printer/view.c
tdt_join_ustack_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tdt_join_ustack_LDADD = libtdt.la $(JANSSON_LIBS)
