/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef DEMO_TASK_LIST_H
#define DEMO_TASK_LIST_H

/* A list of the tasks that live, for who wants to ask them all where they wait. */

#include <pthread.h>
#include <stdio.h>
#include <sys/queue.h>

#include <tdt/print.h>
#include <tdt/runtime.h>

/* A place in the list: all zero to begin with, and part of the task's own state. */
struct listed {
	struct tdt_handle *handle; /* NULL: not in the list */
	TAILQ_ENTRY(listed) entry;
};

struct task_list {
	pthread_mutex_t lock; /* of the list */
	TAILQ_HEAD(, listed) tasks;
};

void task_list_init(struct task_list *list);

/*
 * Spawn `future` on `rt`, and list it.  `listed` is in the future's state, whose `fini` calls task_list_remove().
 * Takes `future` over: returns 0, or a negative errno, and the future has been dropped.
 */
int task_list_spawn(struct task_list *list, struct tdt_rt *rt, struct tdt_future future, struct listed *listed,
		    const struct tdt_task_attr *attr);

/* Nothing, if it is not listed. */
void task_list_remove(struct task_list *list, struct listed *listed);

/* Print to `out` where each task waits; as text with how many told.  Not on a thread that polls tasks. */
void task_list_print(struct task_list *list, FILE *out, enum tdt_print_format format);

#endif
