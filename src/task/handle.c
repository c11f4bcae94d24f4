// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The ids of tasks, references to a task, and what happens when the last reference is released.
 */

#include "registry/handle.h"

#include "base/refs.h"
#include "capture/chain.h"
#include "host/thread.h"
#include "registry/contexts.h"
#include "registry/registry.h"
#include "watch/last_tree.h"

uint64_t tdt_handle_id(const struct tdt_handle *handle)
{
	return handle != NULL ? TDT__PEEK(handle->record.id) : 0;
}

uint64_t tdt_current_task_id(void)
{
	const struct tdt__poll *poll = tdt__thread.poll;

	return poll != NULL ? poll->task->record.id : tdt__thread.hooked;
}

struct tdt_handle *tdt_handle_ref(struct tdt_handle *handle)
{
	if (handle != NULL)
		atomic_fetch_add_explicit(&handle->refs, 1, memory_order_relaxed);
	return handle;
}

/*
 * Release the state of the record before its polls are counted elsewhere: a reader of the counters
 * that acquires this addition does not count the polls of the record, too.
 */
void tdt__handle_over(struct tdt_handle *task)
{
	/* Release what the task did to its locks.  Pairs with tdt__each_holder(). */
	__atomic_store_n(&task->record.state, TDT_TASK_RECORD_FREE, __ATOMIC_RELEASE);
	tdt__registry_count_polls(task->record.polls);
	if (TDT__PEEK(task->record.own_epoch) != 0 || TDT__PEEK(task->record.tree) != 0)
		tdt__last_tree_drop(task);
	if (TDT__PEEK(task->record.context) != 0)
		tdt__context_set(task, NULL);
}

void tdt_handle_unref(struct tdt_handle *handle)
{
	if (handle != NULL && tdt__refs_drop(&handle->refs)) {
		tdt__handle_over(handle);
		tdt__registry_give(handle);
	}
}

bool tdt__handle_ref_if_same(struct tdt_handle *task, uint32_t seq)
{
	unsigned refs = atomic_load_explicit(&task->refs, memory_order_relaxed);

	do
		if (refs == 0)
			return false;
	/*
	 * Acquire: if the slot belongs to another task by now, the new `seq` is seen.  Pairs with
	 * the store in task.c's record_new().
	 */
	while (!atomic_compare_exchange_weak_explicit(&task->refs, &refs, refs + 1,
						      memory_order_acquire, memory_order_relaxed));
	if (TDT__PEEK(task->record.seq) == seq)
		return true;
	tdt_handle_unref(task);
	return false;
}
