/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The target: the process or the core file that is read from outside, its memory, and what is
 * mapped in it.
 *
 * Nothing is written to the target, and none of its threads is stopped.  A process may change or
 * end while it is read.  Everything that is read is to be checked before it is used: the memory may
 * be damaged, and its owner may be hostile.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/proc_text.h"

/*
 * Why a target cannot be read, as sentences for the user: what is wrong, and what helps against it.
 * The text may contain names that come from the target, so whoever prints it escapes it.
 */

struct tdt__trouble {
	char text[512];
};

/* Set the text, and return `error`, a negative errno.  A text that is too long is cut. */
int tdt__trouble(struct tdt__trouble *trouble, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Mapped memory of the target. */
struct tdt__mapping {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	bool is_file;    /* a file is mapped, which `path` names */
	bool readable, writable, executable, shared; /* of a process only */
	/* The path as the target knows it, or a name in brackets; "": there is none. */
	char *path;
	/*
	 * The file, from which memory that a core file lacks is read.  -1: it was not opened
	 * (images.h).  The images own it.
	 */
	int file;
};

struct tdt__core; /* what a core file has besides memory: see core.h */

struct tdt__target {
	pid_t pid; /* of a process, as the reader knows it; 0: a core file */
	int proc;  /* the directory /proc/PID; -1: a core file */
	struct tdt__core *core; /* NULL: a process */
	/*
	 * What is to be added to CLOCK_MONOTONIC of the reader to get that of the process, which
	 * may be in another time namespace.  Nanoseconds.
	 */
	int64_t clock_offset;
	struct tdt__mapping *mapping; /* by start */
	size_t n_mappings, mappings_room;
};

/*
 * Open the process `pid`, or the core file `path`.  Returns 0.  On failure it returns a negative
 * errno, `trouble` says why, and there is nothing to close.
 */
int tdt__target_open_process(struct tdt__target *target, pid_t pid, struct tdt__trouble *trouble);
int tdt__target_open_core(struct tdt__target *target, const char *path,
			  struct tdt__trouble *trouble);
void tdt__target_close(struct tdt__target *target);

/* The state of a process, as /proc/PID/stat has it: 'R', 'S', 'T'...; 0: it is gone. */
char tdt__target_state(const struct tdt__target *target);

/*
 * The id of a process or a thread in its own PID namespace, by a file of /proc/PID: "status" or
 * "task/TID/status".  0: unknown.
 */
uint32_t tdt__target_own_id(const struct tdt__target *target, const char *status);

/* Whether the process has not ended.  A core file stays as it is. */
bool tdt__target_is_there(const struct tdt__target *target);

/* A range of memory to read. */
struct tdt__memory_range {
	uint64_t address;
	void *buffer;
	size_t size;
	bool read; /* the result: all of it was read */
};

/*
 * Read ranges, one after the other, with as few system calls as possible.  The order is kept, so a
 * range that is listed a second time is read later.  Returns how many were read.
 */
size_t tdt__target_read_ranges(const struct tdt__target *target, struct tdt__memory_range *range,
			       size_t n);

/* Read `size` bytes.  False: they cannot all be read. */
bool tdt__target_read(const struct tdt__target *target, uint64_t address, void *buffer,
		      size_t size);

/*
 * Read a string of at most `size` - 1 bytes, and end it with NUL.  Memory that cannot be read ends
 * it, too.  False: not even the first byte can be read.
 */
bool tdt__target_string(const struct tdt__target *target, uint64_t address, char *string,
			size_t size);

/* The mapping that contains `address`; NULL: none. */
struct tdt__mapping *tdt__target_mapping(const struct tdt__target *target, uint64_t address);

/* Read a file of /proc/PID by tdt__proc_text(). */
static inline ssize_t tdt__target_proc_text(const struct tdt__target *target, const char *name,
					    char *text, size_t room)
{
	return tdt__proc_text(target->proc, name, text, room);
}

/* The same of a thread, as this process numbers it. */
ssize_t tdt__thread_proc_text(const struct tdt__target *target, uint32_t here, const char *name,
			      char *text, size_t size);

/* Add a mapping, whose path is copied.  False: no memory.  For process.c and core_open.c. */
bool tdt__target_add_mapping(struct tdt__target *target, const struct tdt__mapping *mapping);
