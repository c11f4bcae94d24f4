/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The stack of a running poll, which may extend over several stacks: code in the poll may have
 * entered other stacks and reported that (tdt_stack_enter()).  Therefore the stack is copied in
 * pieces, from the innermost on.  Each piece extends from an sp to the base of its stack; the next
 * piece begins with the registers that were saved when that stack was entered.  The last piece ends
 * at the traced future.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/stack_copy.h"

struct tdt__capture;
struct tdt__thread;
struct tdt_stack;

#define TDT__PIECES_MAX 16 /* further pieces outside these are not copied */

struct tdt__pieces {
	unsigned n;
	bool doubtful;	  /* the last piece is on the poll's stack only if the walk shows it */
	/* Why there are no pieces outside the last; TDT_CUT_NOT: it ends at the traced future. */
	enum tdt_cut end;
	bool has_registers; /* `registers` are of the innermost frame; else they are unknown */
	uintptr_t registers[TDT__GENERAL_REGISTERS];
	struct tdt__stack_copy piece[TDT__PIECES_MAX];
	size_t size;	      /* of all bytes */
	unsigned char *bytes; /* from malloc(); the bytes of all pieces lie there */
};

/*
 * Plan what is to be copied for a thread with the registers `at`, in a poll whose own frame begins
 * at `top`: at most TDT__STACK_COPY_MAX bytes.  `thread` is the thread's record, or a copy of it;
 * NULL: it is not known.  What the record points to is read by the kernel, since it may no longer
 * exist.  Async-signal-safe, if the caller saves `errno`.
 *
 * For a fiber, `fiber` is its stack: `base` is `top`, and the frames go on to the outermost one on
 * that stack.  If its size is 0, it is not known where the stack lies.  NULL: the task is no fiber.
 *
 * Returns 0, or -ENOTSUP: the thread is neither on the poll's stack nor on one that was entered
 * from there.
 */
int tdt__pieces_plan(struct tdt__pieces *pieces, struct tdt__registers at, uintptr_t top,
		     const struct tdt__thread *thread, const struct tdt_stack *fiber);

/* A function that copies as tdt__peek() does. */
typedef size_t tdt__pieces_read_fn(void *to, uintptr_t address, size_t size);

/*
 * Copy the planned pieces to `bytes`, which has room for `pieces->size`.  Returns 0, or -EFAULT:
 * not even the innermost frame can be read.  Async-signal-safe if `read` is.
 */
int tdt__pieces_read(struct tdt__pieces *pieces, unsigned char *bytes, tdt__pieces_read_fn *read);

/* The same, to memory that this call allocates.  Also returns -ENOMEM. */
int tdt__pieces_copy(struct tdt__pieces *pieces);

/* Make `*to` a copy of `from` with bytes of its own.  Returns 0 or -ENOMEM. */
int tdt__pieces_dup(struct tdt__pieces *to, const struct tdt__pieces *from);

/*
 * Walk the pieces, and record them as the only leaf of the capture.  Returns 0, or -ENOTSUP: the
 * pieces were doubtful, and the walk has not shown that they are on the poll's stack.
 */
int tdt__pieces_capture(const struct tdt__pieces *pieces, struct tdt__capture *capture);
