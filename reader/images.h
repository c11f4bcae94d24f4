/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The modules of a target: their table, and their files.
 *
 * The target names the files, and cannot be trusted.  So a file is opened only when it is needed,
 * and counts only if it is a regular file whose build-id is the one in the target's memory.  A path
 * of a process is followed beneath the root directory of the process, or beneath the reader's own,
 * and never through a link of /proc.
 */

#include "reader/target.h"

struct tdt__modules;

/* Where the files of a core file's target lie.  NULL: no other place is given. */
struct tdt__places {
	const char *exe;     /* the program's file */
	const char *sysroot; /* the directory that stands for the target's root */
	bool no_files;       /* open no file */
};

struct tdt__images {
	struct tdt__target *target;
	struct tdt__places places;
	struct tdt__modules *table; /* the caller's references keep it alive */
	int *file; /* of each module; see images.c */
};

/* Read which modules are mapped.  Returns 0 or -ENOMEM. */
int tdt__images_init(struct tdt__images *images, struct tdt__target *target,
		     const struct tdt__places *places);
void tdt__images_fini(struct tdt__images *images);

/*
 * Open the file of the module at `address`, if it was not tried before.  Then the symbolizer finds
 * the file, and so does a reader of memory that a core file lacks.  Returns the descriptor, which
 * belongs to the images, or -1.
 */
int tdt__images_open(struct tdt__images *images, uint64_t address);

/*
 * Read a string that may lie in a file that a core file lacks: as tdt__target_string().
 */
bool tdt__images_string(struct tdt__images *images, uint64_t address, char *string, size_t size);
