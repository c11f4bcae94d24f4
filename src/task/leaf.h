/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Tasks that wait at a list: <tdt/integrate/leaf.h>.  Requests to them take part in the handshake
 * of handshake.h.  The owner sets the list and the state, passes the light barrier, and looks for
 * requests; a requester that finds the list in force answers by it.
 */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/integrate/leaf.h>

#include "recorder/record.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "task/waits.h"

/*
 * Answer the requests of an idle task by the list that is in force.  False: no list is, or the task
 * went on all the time; the requests are listed again.  Any thread.
 */
bool tdt__leaf_answer(struct tdt_handle *task);

/*
 * The task goes on, on this thread, or stands still again: one of tdt_task_new(), which the thread
 * does not enter.  A task with a future only leaves its list.
 */
void tdt__leaf_go_on(struct tdt_handle *task);
void tdt__leaf_pause(struct tdt_handle *task);

/* The list that is in force, or from which the task came; NULL: there is none. */
static inline struct tdt_leaf *tdt__leaf_of(const struct tdt_handle *task)
{
	return (struct tdt_leaf *)(uintptr_t)TDT__PEEK(task->record.leaf);
}

/*
 * What a task waits for at the list, which may be NULL: note it in the record, and have it in the
 * recording.  A run is recorded with the list at which it ends, since the last one counts.
 */
static inline void tdt__leaf_waits(struct tdt_handle *task, const struct tdt_leaf *leaf, bool notes,
				   bool records)
{
	for (uint32_t i = 0; leaf != NULL && i < leaf->n_waits; i++) {
		const struct tdt_leaf_wait *wait = &leaf->waits[i];
		enum tdt_wait_kind kind = (enum tdt_wait_kind)wait->kind;

		if (notes)
			tdt__note_wait(&task->record, kind, wait->object, wait->owner, wait->name);
		if (records)
			tdt__record_wait(task->record.id, kind, wait->object, wait->owner,
					 wait->name);
	}
}

/*
 * The task is left: without a list that was set since it was entered, it waits where it did.
 * Returns whether the waits of that list are to be noted.
 */
static inline bool tdt__leaf_stays(struct tdt_handle *task)
{
	struct tdt_leaf *leaf = tdt__leaf_of(task);
	uint64_t polls = TDT__PEEK(task->record.polls);

	if (leaf == NULL || leaf->polls == polls)
		return false;
	leaf->polls = polls;
	return leaf->n_waits != 0;
}
