// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Aborting a task.  An abort is a request for a poll, like that for a trace (handshake.h); the poll
 * that sees it drops the task's future (tdt__abort_poll() in wrapper.c).
 */

#include <errno.h>
#include <stdbool.h>

#include <tdt/join.h>

#include "base/clock.h"
#include "base/result.h"
#include "host/barrier.h"
#include "host/thread.h"
#include "recorder/record.h"
#include "registry/handle.h"
#include "task/handshake.h"
#include "task/request.h"

/* Under the lock.  From now on tdt_task_woken() leaves the wake-up as it is. */
static void note_abort(struct tdt_handle *task)
{
	TDT__POKE(task->record.woken, tdt__now());
	TDT__POKE(task->record.woken_by, tdt_current_task_id());
	TDT__POKE(task->record.woken_polls, (uint32_t)TDT__PEEK(task->record.polls));
	TDT__POKE(task->record.own_request, (uint8_t)(TDT__PEEK(task->record.own_request) |
						      TDT__REQUESTED | TDT__RECORD_ABORTED));
}

int tdt_task_abort(struct tdt_handle *handle)
{
	pthread_mutex_t *lock = tdt__request_lock(handle);
	bool ended, first;

	if (handle == NULL || handle->record.poll == 0 || tdt__is_callback_task(handle))
		return tdt__result(-EINVAL);
	if (TDT__PEEK(handle->child_drop) == NULL)
		return tdt__result(-EOPNOTSUPP);
	pthread_mutex_lock(lock);
	ended = TDT__PEEK(handle->record.state) == TDT_TASK_RECORD_ENDED;
	first = !ended && !tdt__record_aborted(&handle->record);
	if (first)
		note_abort(handle);
	pthread_mutex_unlock(lock);
	if (first) {
		if (tdt__recording())
			tdt__record_wake(handle->record.id);
		tdt__barrier_heavy();
		tdt__request_see(handle);
	}
	return tdt__result(ended ? -ESRCH : 0);
}
