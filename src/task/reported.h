/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_TASK_REPORTED_H
#define TDT_SRC_TASK_REPORTED_H

/*
 * The fibers of the tasks that a runtime reports, by the ids of these tasks (hooked.c).
 *
 * The runtime orders what it reports of one task: the task is added first, found then, and removed
 * last.  Threads may do so with different tasks at the same time.  The memory of a fiber stays a
 * fiber, so a thread that follows a list may read fibers that were removed meanwhile, and
 * recognizes its own by the id.
 */

#include <stdbool.h>
#include <stdint.h>

struct tdt_fiber;

/* The fiber of the task; NULL: there is none. */
struct tdt_fiber *tdt__reported_find(uint64_t id);

/* Add the fiber of a task.  False: there is no memory for the table. */
bool tdt__reported_add(struct tdt_fiber *fiber, uint64_t id);

void tdt__reported_remove(struct tdt_fiber *fiber);

#endif
