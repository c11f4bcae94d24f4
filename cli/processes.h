/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The processes of this machine that use the library. */

#include <stdio.h>
#include <sys/types.h>

#include "cli/pieces.h"
#include "cli/tdt.h"

/*
 * The numbers of all processes that run a program, in their order, but this one.  If there are
 * targets, they are patterns, and the name of the program matches one of them (fnmatch(3)).
 * `*n` becomes how many there are.  The caller frees them.  NULL and errno: they cannot be listed.
 */
pid_t *processes_all(const struct options *options, size_t *n);

/* Exit statuses of a child, which processes_open() returns besides PROGRAM_GOES_ON. */
enum { PROCESS_UNREADABLE = 1, PROCESS_WITHOUT_LIBRARY = 4 };

/*
 * Open a process, without a file of its modules.  If it may not be read, the reason is written to
 * `out`.
 */
int processes_open(struct outside *outside, pid_t pid, FILE *out);

#define PROGRAM_NAME_MAX 64

/* The name that the kernel has for the program of a process; "" if that has ended. */
void processes_program(const struct tdt__target *target, char name[PROGRAM_NAME_MAX]);

/* Reasons why processes cannot be read; those that differ in numbers only are one. */
struct unreadable {
	struct unreadable_reason {
		char text[512]; /* of the first one */
		size_t n;
	} *reason;
	size_t n, room;
};

/*
 * Do `work`, which opens process `i` of `n` by processes_open(), in pieces: in `seconds`, unless
 * --timeout says another time.
 */
struct work_piece *processes_do(size_t n, piece_fn *work, void *arg, const struct options *options,
				unsigned seconds);

/*
 * Note a process whose reading, in such a piece, has failed.  Nothing is noted if it was read, or
 * is without the library.
 */
void unreadable_note(struct unreadable *unreadable, pid_t pid,
		     const struct work_piece *piece);

/* List them for tdt ps and tdt top without a target.  Returns an exit status. */
int processes_list(const struct options *options);
