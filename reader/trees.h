/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The last trees of watched tasks (<tdt/layout/registry.h>, "Reading the last tree of a task"). */

#include "reader/tasks.h"

struct tdt__stacks;

/*
 * The frames and the leaves of a tree that a reader is willing to look at.  The library's trees
 * have at most 512 frames (<tdt/watch.h>).
 */
#define TDT__TREE_FRAMES_MAX 1024
#define TDT__TREE_LEAVES_MAX 1000000

struct tdt__read_tree {
	struct tdt__stacks *stacks; /* the caller frees them */
	struct tdt_registry_tree head;
	/* Only tdt__tree_read() sets these. */
	uint32_t published;            /* the number of trees of the task so far */
	struct tdt_task_record record; /* of the task, read right after the tree */
};

/* Reads trees one after the other.  All zero but `tasks` at first. */
struct tdt__tree_reader {
	const struct tdt__tasks *tasks;
	uint32_t room;       /* of the last tree that was read: the next one mostly has the same */
	char *buffer;        /* for two trees of that room */
	uint64_t unloads;    /* of the target by now */
	bool unloads_known;
};

/*
 * Read the last tree of `task`.  Returns 0, or -ENODATA if the task has no tree, or the tree cannot
 * be had, or is damaged; or -ENOMEM.
 */
int tdt__tree_read(struct tdt__tree_reader *reader, const struct tdt__seen_task *task,
		   struct tdt__read_tree *tree);

/*
 * Use a tree that was read, and whose entries, `room` at most, were read too.  Returns 0; -ENODATA
 * if it cannot be right; or -ENOMEM.
 */
int tdt__tree_take(struct tdt__tree_reader *reader, const struct tdt_registry_tree *tree,
		   const struct tdt_registry_entry *entry, uint32_t room,
		   struct tdt__read_tree *to);

void tdt__tree_reader_fini(struct tdt__tree_reader *reader);

/* Open the files of the modules whose code is in the trace, which may be NULL. */
void tdt__trace_open_images(const struct tdt_trace *trace, struct tdt__images *images);
