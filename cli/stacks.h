/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Two profiles, to be compared: stacks with the counts of both.  A stack is a text as in folded
 * stacks, the outermost frame first: `a;b;c`.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/texts.h"
#include "cli/read_json.h"
#include "tree-printer/strings.h"

struct stack {
	const char *text;
	uint64_t count[2]; /* of the first and of the second profile */
};

/* A new object is all zero. */
struct stacks {
	struct stack *stack; /* in the order in which they were first added */
	size_t n, room;
	uint64_t total[2]; /* of all counts */

	struct tdt__texts texts; /* private to stacks.c */
};

/* The profile, 0 or 1, that is being read. */
struct stacks_side {
	struct stacks *stacks;
	unsigned side;
};

void stacks_fini(struct stacks *stacks);

/* Add to the count of the stack of `n` bytes.  Returns 0, -ENOMEM, or -EOVERFLOW. */
int stacks_add(const struct stacks_side *to, const char *text, size_t n, uint64_t count);

/*
 * Read folded stacks: lines of a stack, a space, and a whole number.  Returns 0 or a negative
 * errno; -EINVAL: line `*line` is no such line.
 */
int stacks_read_folded(const struct stacks_side *to, FILE *file, unsigned long *line);

/* Add the stacks of a profile: for struct reader, whose `arg` is a struct stacks_side. */
int stacks_read_profile(struct reader *reader, const struct json_t *object);

/*
 * The forms: a table of the stacks whose shares differ most, JSON, and folded stacks with both
 * counts.  Errors are kept in `out`.
 */
void stacks_text(struct tdt__out *out, const struct stacks *stacks,
		 const struct tdt_print_options *options);
void stacks_json(struct tdt__out *out, const struct stacks *stacks);
void stacks_folded(struct tdt__out *out, const struct stacks *stacks,
		   const struct tdt_print_options *options);
