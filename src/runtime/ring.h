/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_RING_H
#define TDT_RUNTIME_RING_H

/*
 * A worker's own queue: a ring of bounded size, first in, first out, from which other workers steal.
 *
 * What may overlap:
 *
 *                  push   pop   steal from   steal into   is_empty
 *   push            -      -        +            -           +
 *   pop             -      -        +            -           +
 *   steal from      +      +        +            +           +
 *   steal into      -      -        +            -           +
 *
 * that is, push, fill, pop, half and stealing *into* a ring are its owner's.
 *
 * `head` and `tail` count what was taken out and put in, and wrap.  Who takes something first copies it, then moves
 * `head` on with a compare-and-swap: if that fails somebody else has taken it.  (A thief that is stopped in between
 * while exactly 2^32 tasks pass would be fooled.)
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TDT__RING_SIZE 256u

struct tdt__task;

struct tdt__ring {
	_Atomic uint32_t head;
	struct tdt__task *_Atomic slots[TDT__RING_SIZE]; /* also keeps thieves' `head` away from the owner's `tail` */
	_Atomic uint32_t tail;
};

/* Put `task` last.  False if the ring is full. */
bool tdt__ring_push(struct tdt__ring *ring, struct tdt__task *task);

/* Put all tasks from `first` on, linked by `next`, into the ring, which is empty; they fit. */
void tdt__ring_fill(struct tdt__ring *ring, struct tdt__task *first);

/* Take the first task out; NULL if there is none. */
struct tdt__task *tdt__ring_pop(struct tdt__ring *ring);

/* Take half of a full ring out, as a list linked by `next`; NULL if it isn't full any more. */
struct tdt__task *tdt__ring_half(struct tdt__ring *ring, struct tdt__task **last);

/* Take half of `from`, rounded up.  One of them is returned (NULL: there is none), the others go into `ring`, which is
 * empty. */
struct tdt__task *tdt__ring_steal(struct tdt__ring *ring, struct tdt__ring *from);

/* Whether there is nothing in it.  Sequentially consistent with pushes: idle.h tells why. */
bool tdt__ring_is_empty(struct tdt__ring *ring);

#endif
