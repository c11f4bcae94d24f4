/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Starting the library in a process, when the first task or watch is made; and restarting it in a
 * child of fork().
 *
 * These steps concern every module that has a lock or a thread, so their code lies above all of
 * these modules, in fork.c.  Lower modules reach it through a constant table.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Defined in fork.c. */
extern const struct tdt__fork_handlers {
	void (*begin)(void);    /* start the library's threads */
	void (*before)(void);   /* before fork(): take all locks */
	void (*after)(void);    /* in the parent: release all locks */
	void (*in_child)(void); /* in the child: forget the parent's state; release all locks */
	void (*resume)(void);   /* in the child: start the threads that are not started on need */
} tdt__fork_handlers;

/*
 * How many forks lie between this process and the one that first called tdt__start().  A thread
 * that was started under another number is not in this process.  The number changes in a child,
 * while that has only one thread.
 */
extern uint32_t tdt__forks;

/*
 * Register the fork handlers, which hold all locks across fork(); make the process, and each child
 * of it, ready for tdt__barrier_heavy() (barrier.h); and start the library's threads.  Only the
 * first call in a process does this.  Later calls return what the first returned: 0 or a negative
 * errno.  The first call in a child of fork() starts the threads that wait for a signal; the other
 * threads start when they are needed.
 */
int tdt__start_first(void);

/* Whether that was done, in this process, and went well. */
extern _Atomic bool tdt__started;

static inline int tdt__start(void)
{
	/* Acquire what the first call did.  Pairs with tdt__start_first(). */
	if (__builtin_expect(atomic_load_explicit(&tdt__started, memory_order_acquire), 1))
		return 0;
	return tdt__start_first();
}
