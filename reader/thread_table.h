/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The threads that the registry knows: workers, and other threads that poll
 * (<tdt/layout/registry.h>).
 */

#include "reader/tasks.h"

struct tdt__known_thread {
	uint32_t id;        /* as the target numbers it */
	char name[16];      /* as the kernel has it; "": unknown, as in a core file */
	bool worker;        /* its runtime has reported it as a worker */
	uint64_t parked_ns; /* how long the worker has idled; 0: it does not idle */
	const struct tdt__seen_task *polls; /* the task that it polls; NULL: none */
};

struct tdt__thread_table {
	struct tdt__known_thread *thread; /* by id */
	size_t n;
};

/* Read the table.  Returns 0 or -ENOMEM; then there is nothing to free. */
int tdt__thread_table_read(struct tdt__thread_table *table, const struct tdt__tasks *tasks);
void tdt__thread_table_fini(struct tdt__thread_table *table);
