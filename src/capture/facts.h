/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The facts that a poll reports about its task, besides the stacks: the fields of struct
 * tdt_task_info with the same names.
 */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/tree.h>

struct tdt__facts {
	enum tdt_task_state state;
	uint64_t state_ns;
	uint64_t polls;
	uint64_t woken_ns;
	uint64_t woken_by;
	bool moved;
	/* They are from the task's record, and not from a poll: see leaf_list.h. */
	bool recorded;
	/* Only of a poll in progress. */
	uint32_t thread;
	const char *syscall;
	/* The waits that the leaves reported. */
	uint32_t n_waits;
	struct tdt_wait *waits;
	const struct tdt_wait **wait_list; /* pointers to them */
};

/* Copy the facts to `info`.  `info->waits` is borrowed from `facts`. */
static inline void tdt__facts_say(const struct tdt__facts *facts, struct tdt_task_info *info)
{
	info->state = facts->state;
	info->state_ns = facts->state_ns;
	info->polls = facts->polls;
	info->woken_ns = facts->woken_ns;
	info->woken_by = facts->woken_by;
	info->moved = facts->moved;
	info->thread = facts->thread;
	info->syscall = facts->syscall;
	info->n_waits = facts->n_waits;
	info->waits = facts->wait_list;
}
