/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What a waiting task says of the task that it waits for: whether it is proof for a deadlock
 * (tree/cycles.h), in this process, in another one, or in a core file.
 */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/layout/registry.h>

#include "tree/cycles.h"
#include "tree/futurelocks.h"

/* A task that was listed with others, and what was found out of it since. */
struct tdt__witness {
	/* What was listed of it, with the wait of its record first, and the leaves of its tree. */
	const struct tdt_task_info *info;
	const struct tdt_task_record *now; /* its record, read after all tasks were listed */
	/*
	 * The task was polled only for requests since it was listed, and was not woken.  A task
	 * that was handed a lock, and has not been polled since, still says that it waits for the
	 * lock.
	 */
	bool stood_still;
	bool others_woken;    /* the wake-up of any task was reported */
	bool answered_since;  /* it has answered a request after it was listed */
	uint64_t answered_at; /* when its last poll has answered a request; 0: it has not */
};

enum tdt__proof tdt__prove(const struct tdt__lock_places *places, const struct tdt__witness *task);

/* Until when the task is known to have been polled after each wake-up: see struct tdt__member. */
uint64_t tdt__settled(const struct tdt__lock_places *places, const struct tdt__witness *task);
