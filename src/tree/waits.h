/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Lists of waits, as struct tdt_task_info has them: pointers to structs that may grow. */

#include <stddef.h>
#include <stdint.h>

#include <tdt/tree.h>

/* The bytes for one wait in a list, for tdt__waits_in(). */
#define TDT__LISTED_WAIT (sizeof(struct tdt_wait *) + sizeof(struct tdt_wait))

/*
 * Make a list of `n` waits in a block of n * TDT__LISTED_WAIT bytes: pointers, as tdt_trace_info
 * has them, and behind them the waits, which `*waits` becomes.
 */
static inline const struct tdt_wait *const *tdt__waits_in(void *block, size_t n,
							  struct tdt_wait **waits)
{
	const struct tdt_wait **list = (const struct tdt_wait **)block;

	*waits = (struct tdt_wait *)(list + n);
	for (size_t i = 0; i < n; i++)
		list[i] = &(*waits)[i];
	return list;
}

/* A wait of a task that is ours to change: it lies in memory of whoever listed the task. */
static inline struct tdt_wait *tdt__own_wait(const struct tdt_task_info *info, uint32_t i)
{
	return (struct tdt_wait *)(uintptr_t)info->waits[i];
}
