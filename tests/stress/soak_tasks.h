/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_SOAK_TASKS_H
#define TESTS_SOAK_TASKS_H

/* Tasks of all kinds that come and go on a runtime, and count themselves: see soak.c. */

#include <stdbool.h>

struct tdt_rt;

struct soak_counts {
	unsigned long spawned, ended; /* tasks: each ends once */
	unsigned long sent, received; /* values */
	unsigned long locked;         /* counted under mutexes, and: */
	unsigned long taken;          /* one by one */
	unsigned long interrupted;    /* system calls that saw EINTR */
};

/* Begin to keep some `live` tasks on `rt`. */
void soak_tasks_begin(struct tdt_rt *rt, unsigned seed, unsigned live);

/* Let them come to their ends.  Returns when the last has. */
void soak_tasks_end(void);

/* All counts, once the last task has ended: some are under mutexes of the tasks. */
struct soak_counts soak_counts(void);

/* How many tasks have ended, at any time. */
unsigned long soak_ended(void);

#endif
