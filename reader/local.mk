# SPDX-License-Identifier: Apache-2.0 OR MIT
# Reading another process or a core file: a library for programs, which is not installed.  It takes
# what it needs of libtdt-core.la, with which each program links it.

noinst_LTLIBRARIES += libtdt-reader.la
libtdt_reader_la_SOURCES = \
	reader/core.c \
	reader/core.h \
	reader/core_open.c \
	reader/door.c \
	reader/door.h \
	reader/dump.c \
	reader/dump.h \
	reader/elf_facts.c \
	reader/elf_facts.h \
	reader/entered.c \
	reader/entered.h \
	reader/find.c \
	reader/find.h \
	reader/fresh.c \
	reader/fresh.h \
	reader/history.c \
	reader/history.h \
	reader/images.c \
	reader/images.h \
	reader/last_dump.c \
	reader/last_dump.h \
	reader/last_states.c \
	reader/last_states.h \
	reader/lists.c \
	reader/lists.h \
	reader/live.c \
	reader/live.h \
	reader/process.c \
	reader/profile.c \
	reader/profile.h \
	reader/profile_ages.c \
	reader/profile_ages.h \
	reader/profile_places.c \
	reader/profile_places.h \
	reader/profile_recorded.c \
	reader/profile_recorded.h \
	reader/profile_sum.c \
	reader/profile_sum.h \
	reader/recorded.c \
	reader/recorded.h \
	reader/records.c \
	reader/records.h \
	reader/registers.c \
	reader/registers.h \
	reader/target.c \
	reader/target.h \
	reader/tasks.c \
	reader/tasks.h \
	reader/thread_table.c \
	reader/thread_table.h \
	reader/stop.c \
	reader/stop.h \
	reader/threads.c \
	reader/threads.h \
	reader/trees.c \
	reader/trees.h \
	reader/unpack.c \
	reader/unpack.h \
	reader/walk.c \
	reader/walk.h
libtdt_reader_la_LIBADD = -lm
libtdt_reader_la_CFLAGS = $(AM_CFLAGS) $(INSTALLED_CFLAGS) $(ONCE_CFLAGS) $(LIBDW_CFLAGS)
