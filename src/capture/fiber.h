/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Fibers (tdt/integrate/fiber.h): the struct, and how others find it.  A task of tdt_task_new() has
 * one for its runs.  Memory that was a fiber once stays a fiber, for other tasks, and never goes
 * back to malloc().  So a reader that got a fiber's index from a record may read `stack` at any
 * time, and finds out afterwards whether it was that of the task (suspended.c).
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tdt/integrate/stack.h>
#include <tdt/layout/registry.h>

#include "base/pool.h"
#include "capture/chain.h"
#include "registry/handle.h"

struct tdt_fiber {
	struct tdt__pool_item item; /* first */
	/*
	 * What readers read, also outside the process.  The owner thread writes it, between
	 * tdt__fiber_begin_write() and tdt__fiber_end_write().
	 */
	struct tdt_registry_fiber stack;
	/* The rest belongs to the owner thread. */
	struct tdt__poll poll;    /* the link in the chain of the thread on which the fiber runs */
	struct tdt_handle *task;  /* a reference */
	/*
	 * The innermost poll that was in progress on the fiber's stack when the fiber was
	 * suspended; NULL: there was none.  Such a poll goes with the fiber.
	 */
	struct tdt__poll *inner;
	struct tdt__record_poll record; /* of the run, from resume to suspend */
	struct tdt__label label;	/* the same */
	bool noted;			/* the run may have one of the two */
	bool own;            /* the task is the fiber, and not a future that runs on it */
	bool has_record;     /* nobody has the fiber, and `task` is a free record for the next */
	_Atomic uint8_t link; /* enum tdt__fiber_link */
	/* In the table of task/reported.c, where other threads read them: */
	_Atomic uint64_t reported;       /* the id of the task that is reported; 0: none is */
	struct tdt_fiber *_Atomic next;
	_Atomic uint64_t ended; /* the id of the task that was reported, and has ended while the
				   link was in the chain of another thread; 0: none */
};

/* Whether `poll` is in the chain of some thread.  Only that thread takes it out. */
enum tdt__fiber_link {
	TDT__LINK_NONE,
	TDT__LINK_THERE,
	TDT__LINK_ENDED /* the fiber has ended on another thread: free it with the link */
};

/*
 * Take memory for a fiber.  NULL: there is none.  Only `stack.moves` has a meaning in it, and
 * `has_record`, as it had when the fiber was given back.
 */
struct tdt_fiber *tdt__fiber_take(void);
void tdt__fiber_give(struct tdt_fiber *fiber);

/* The fiber whose `item.index` this is.  NULL: `index` is 0. */
struct tdt_fiber *tdt__fiber_at(uint32_t index);

/* Whether the task is a fiber, made by tdt_fiber_new(). */
static inline bool tdt__is_fiber(const struct tdt_handle *task)
{
	return TDT__PEEK(task->record.poll) == 0;
}

/*
 * Copy where the stack of the task lies.  Of a task of tdt_task_new(), only the base is known: its
 * frames are on the stack of the thread that has entered it.  False: the task is polled.
 * Async-signal-safe.
 */
bool tdt__fiber_stack(const struct tdt_handle *task, struct tdt_stack *stack);

/*
 * The owner thread calls this before and after it writes to `stack`, and to the registers of a
 * suspended stack that belongs to a future.  `moves` is odd in between.
 *
 * The first call's fence orders the odd number before what is written later, and, in
 * tdt_fiber_resume(), before what the fiber does on its stack.  The second call releases what was
 * written.  Both pair with look() in suspended.c.
 */
static inline void tdt__fiber_begin_write(struct tdt_fiber *fiber)
{
	TDT__POKE(fiber->stack.moves, fiber->stack.moves | 1);
	atomic_thread_fence(memory_order_release);
}

static inline void tdt__fiber_end_write(struct tdt_fiber *fiber)
{
	__atomic_store_n(&fiber->stack.moves, (fiber->stack.moves | 1) + 1, __ATOMIC_RELEASE);
}

/*
 * Protects the making of memory for fibers, and the lists of task/reported.c while a fiber that is
 * not alone is taken out.  Held across fork() (fork.c).
 */
extern pthread_mutex_t tdt__fibers_lock;
