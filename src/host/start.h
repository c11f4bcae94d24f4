/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_HOST_START_H
#define TDT_SRC_HOST_START_H

/*
 * The library's start in a process, which the first task or watch brings about; and again in a child of fork().
 *
 * What is to be done there concerns everything that has a lock or a thread, so it lies above all of that, in fork.c.
 * Whatever lies below reaches it through a constant table.
 */

#include <stdint.h>

/* Defined in fork.c. */
extern const struct tdt__fork_handlers {
	void (*begin)(void);    /* start the library's threads */
	void (*before)(void);   /* fork(): take all locks */
	void (*after)(void);    /* in the parent: release them */
	void (*in_child)(void); /* in the child: what was the parent's is forgotten, then they are released */
} tdt__fork_handlers;

/*
 * How many forks lie between this process and the one that first called tdt__start(): a thread that was started when
 * the number was another is not here.  It changes in a child that nobody else runs in yet.
 */
extern uint32_t tdt__forks;

/*
 * Have the locks held across fork(), make the process ready for tdt__barrier_heavy() (barrier.h), again in a child, and
 * start the library's threads.  Once a process; later calls return what the first did: 0 or a negative errno.
 */
int tdt__start(void);

#endif
