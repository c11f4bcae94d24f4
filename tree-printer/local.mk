# SPDX-License-Identifier: Apache-2.0 OR MIT
# How traces and dumps are printed: a part of libtdt, and of the programs in cli/.

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
