/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Fresh trees: what the tasks of a process answer to requests through its door. */

#include "base/arena.h"
#include "base/array.h"
#include "reader/door.h"
#include "reader/tasks.h"
#include "reader/trees.h"

/* The most bytes of answers that a reader is willing to keep. */
#define TDT__ANSWERS_MAX ((size_t)256 << 20)

/* All zero: no task was requested. */
struct tdt__answers {
	/* By the record's address.  The entries and waits of each lie behind it. */
	TDT__TABLE(struct tdt_outside_tree *, answer, n);
	uint64_t left_out; /* tasks that were not requested, because there were too many */

	/* Private to fresh.c. */
	struct tdt__arena arena;
	size_t bytes;
};

/*
 * Request the trees of the chosen tasks, of `most` tasks at most (1 or more), and wait for the
 * answers, for `ns` nanoseconds and TDT__DOOR_PATIENCE at most.  Returns 0, or a negative errno, as
 * tdt__door_receive() does; then there are the answers that had come by then.  The caller frees
 * them by tdt__answers_fini() in both cases.
 */
int tdt__answers_request(struct tdt__answers *answers, struct tdt__door *door,
			 const struct tdt__task_choice *choice, uint32_t most, uint64_t ns,
			 struct tdt__trouble *trouble);
void tdt__answers_fini(struct tdt__answers *answers);

/* The answer of the task of `seen`; NULL: it was not requested. */
const struct tdt_outside_tree *tdt__answers_find(const struct tdt__answers *answers,
						 const struct tdt__seen *seen);

/*
 * Copy the tree in which the task waited; the caller frees `to->stacks`.  Returns 0; -ENODATA:
 * there is none, or it lacks frames, as those that a host has named are not in it; or -ENOMEM.
 */
int tdt__answer_tree(const struct tdt_outside_tree *answer, struct tdt__tree_reader *reader,
		     struct tdt__read_tree *to);

static inline const struct tdt_registry_entry *
tdt__answer_entries(const struct tdt_outside_tree *answer)
{
	return (const void *)((const char *)answer + answer->entries);
}

static inline const struct tdt_outside_wait *
tdt__answer_wait(const struct tdt_outside_tree *answer, uint32_t i)
{
	return (const void *)((const char *)(tdt__answer_entries(answer) + answer->tree.n) +
			      (size_t)i * answer->wait_size);
}
