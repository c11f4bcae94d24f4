/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_CAPTURE_STACK_PIECES_H
#define TDT_SRC_CAPTURE_STACK_PIECES_H

/*
 * The stack of a running poll, which may lie on several stacks: what runs there has gone over to others, and told of it
 * (tdt_stack_enter()).  So it is copied in pieces, from the innermost on: each from a sp to the base of its stack,
 * where the next one goes on at the registers that were noted when the stack was entered; the last up to the traced
 * future.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/stack_copy.h"

struct tdt__capture;
struct tdt__thread;

#define TDT__PIECES_MAX 16 /* those further out are not looked at */

struct tdt__pieces {
	unsigned n;
	bool doubtful;	  /* the last is on the poll's stack only if the walk shows it */
	enum tdt_cut end; /* why there are none outside of the last; TDT_CUT_NOT: it ends at the traced future */
	bool has_registers; /* the next are those of the innermost frame; otherwise they are not known */
	uintptr_t registers[TDT__GENERAL_REGISTERS];
	struct tdt__stack_copy piece[TDT__PIECES_MAX];
	size_t size;	      /* of all bytes */
	unsigned char *bytes; /* from malloc(); what the pieces have lies there */
};

/*
 * What there is to be copied of a thread with registers `at`, in a poll whose own frame begins at
 * `top`...  `thread` (NULL: not known) is its record, or a copy of it: what it points to is read by
 * the kernel, and may be gone...  At most TDT__STACK_COPY_MAX bytes...  Async-signal-safe, if `errno`
 * is kept.
 *
 * Returns 0, or -ENOTSUP: the thread is on another stack than the poll, and not on one that was
 * entered from there.
 */
int tdt__pieces_plan(struct tdt__pieces *pieces, struct tdt__registers at, uintptr_t top,
		     const struct tdt__thread *thread);

/* Copies like tdt__peek(). */
typedef size_t tdt__pieces_read_fn(void *to, uintptr_t address, size_t size);

/*
 * Copy what was planned to `bytes`, which have room for `size`.  Returns 0, or -EFAULT: not even the innermost frame
 * can be read.  As safe as `read`.
 */
int tdt__pieces_read(struct tdt__pieces *pieces, unsigned char *bytes, tdt__pieces_read_fn *read);

/* The same to memory of its own.  Also returns -ENOMEM. */
int tdt__pieces_copy(struct tdt__pieces *pieces);

/* Make `*to` a copy of `from` in memory of its own.  Returns 0 or -ENOMEM. */
int tdt__pieces_dup(struct tdt__pieces *to, const struct tdt__pieces *from);

/*
 * Walk the pieces, and make them the one leaf of the capture.  Returns 0, or -ENOTSUP: it was
 * doubtful whether they are of the poll's stack, and the walk hasn't shown it.
 */
int tdt__pieces_capture(const struct tdt__pieces *pieces, struct tdt__capture *capture);

#endif
