# SPDX-License-Identifier: Apache-2.0 OR MIT
# How traces and dumps are printed: a part of libtdt, and of the programs in cli/.

libtdt_core_la_SOURCES += \
	tree-printer/dump.c \
	tree-printer/dump_group.c \
	tree-printer/dump_json.c \
	tree-printer/dump_text.c \
	tree-printer/dumps.h \
	tree-printer/fold.c \
	tree-printer/fold.h \
	tree-printer/folded.c \
	tree-printer/forms.h \
	tree-printer/frame.c \
	tree-printer/frame.h \
	tree-printer/frames.c \
	tree-printer/frames.h \
	tree-printer/stuck_locks.c \
	tree-printer/stuck_locks.h \
	tree-printer/json.c \
	tree-printer/json_writer.c \
	tree-printer/json_writer.h \
	tree-printer/kin.c \
	tree-printer/kin.h \
	tree-printer/names.c \
	tree-printer/names.h \
	tree-printer/operation.c \
	tree-printer/operation.h \
	tree-printer/origin.c \
	tree-printer/origin.h \
	tree-printer/packet_stacks.c \
	tree-printer/packets.c \
	tree-printer/packets.h \
	tree-printer/perfetto.c \
	tree-printer/perfetto.h \
	tree-printer/perfetto_names.c \
	tree-printer/print.c \
	tree-printer/protobuf.h \
	tree-printer/schema.h \
	tree-printer/strings.c \
	tree-printer/strings.h \
	tree-printer/summaries.h \
	tree-printer/summary_json.c \
	tree-printer/summary_print.c \
	tree-printer/summary_text.c \
	tree-printer/task_line.c \
	tree-printer/terminal.c \
	tree-printer/terminal.h \
	tree-printer/text.c \
	tree-printer/view.c \
	tree-printer/view.h \
	tree-printer/words.c \
	tree-printer/words.h
