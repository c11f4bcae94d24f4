/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Which of a task's waits is the main one, which stands for the task where there is room for one:
 * the first one for a lock, else the first one for a task, else the first one.  It is the wait of
 * the task's record, and the first one of `waits` in struct tdt_task_info.
 */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/tree.h>

/* A kind that was read; that of a later library is TDT_WAIT_OTHER. */
static inline enum tdt_wait_kind tdt__wait_kind(unsigned kind)
{
	return kind <= TDT_WAIT_NOTIFICATION ? (enum tdt_wait_kind)kind : TDT_WAIT_OTHER;
}

/* How much a wait says: 2 if a task has what is waited for, and can give it up. */
static inline unsigned tdt__wait_weight(enum tdt_wait_kind kind, uint64_t owner)
{
	if (kind == TDT_WAIT_TASK)
		return 1;
	return kind == TDT_WAIT_MUTEX || owner != 0 ? 2 : 0;
}

static inline bool tdt__is_lock_wait(const struct tdt_wait *wait)
{
	return tdt__wait_weight(wait->kind, wait->owner) == 2;
}

/* Whether `wait` says more than `main`, the main one of the waits before it. */
static inline bool tdt__is_main_wait(const struct tdt_wait *wait, const struct tdt_wait *main)
{
	return tdt__wait_weight(wait->kind, wait->owner) >
	       tdt__wait_weight(main->kind, main->owner);
}

/* Add a wait to the `*n` others: the main one comes first. */
static inline void tdt__add_wait(struct tdt_wait *waits, uint32_t *n, const struct tdt_wait *wait)
{
	uint32_t at = (*n)++;

	if (at > 0 && tdt__is_main_wait(wait, &waits[0])) {
		waits[at] = waits[0];
		at = 0;
	}
	waits[at] = *wait;
}
