/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A worker's own queue: a ring of fixed size, first in, first out, from which other workers steal.
 *
 * What may overlap:
 *
 *                  push   pop   steal from   steal into   is_empty
 *   push            -      -        +            -           +
 *   pop             -      -        +            -           +
 *   steal from      +      +        +            +           +
 *   steal into      -      -        +            -           +
 *
 * that is, only the owner of a queue calls push, fill, halve, pop, and steal *into* this queue.
 *
 * `head` and `tail` count the tasks that were taken out and put in; both wrap.  A taker first
 * copies the slots and then advances `head` with a compare-and-swap; if that fails, another thread
 * has taken the tasks.  (The compare-and-swap of a thief that is stopped in between while exactly
 * 2^32 tasks pass would succeed wrongly.)
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TDT__RUN_QUEUE_SIZE 256u
#define TDT__RUN_QUEUE_HALF (TDT__RUN_QUEUE_SIZE / 2)

struct tdt__task;

struct tdt__run_queue {
	_Atomic uint32_t head; /* which thieves write: on another cache line than `tail` */
	struct tdt__task *_Atomic slots[TDT__RUN_QUEUE_SIZE];
	_Atomic uint32_t tail;
};

/* Append `task`.  False if the queue is full. */
bool tdt__run_queue_push(struct tdt__run_queue *queue, struct tdt__task *task);

/*
 * Take the older half out of a full queue, TDT__RUN_QUEUE_HALF tasks: a list linked by `next`,
 * from the first to `*last`, whose `next` is not set.  NULL: thieves have made room meanwhile.
 */
struct tdt__task *tdt__run_queue_halve(struct tdt__run_queue *queue, struct tdt__task **last);

/* Put the list `first`, linked by `next`, into the queue, which is empty.  The list fits. */
void tdt__run_queue_fill(struct tdt__run_queue *queue, struct tdt__task *first);

/* Take the first task out; NULL if there is none. */
struct tdt__task *tdt__run_queue_pop(struct tdt__run_queue *queue);

/*
 * Take half of the tasks of `from`, rounded up.  Returns one of them, or NULL if there is none; the
 * others go into `queue`, which is empty.
 */
struct tdt__task *tdt__run_queue_steal(struct tdt__run_queue *queue, struct tdt__run_queue *from);

/* Whether the queue is empty.  Sequentially consistent with pushes: idle.h says why. */
bool tdt__run_queue_is_empty(struct tdt__run_queue *queue);

/*
 * Whether the queue holds tasks, and none was taken out since the last call.  `*seen` is the
 * caller's, for the next call.  Any one thread.
 */
bool tdt__run_queue_is_left(struct tdt__run_queue *queue, uint32_t *seen);
