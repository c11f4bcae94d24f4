// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Making a traced future. */

#include <config.h>

#include <errno.h>

#include <tdt/hooks.h>

#include "base/clock.h"
#include "base/options.h"
#include "capture/counted.h"
#include "host/start.h"
#include "host/thread.h"
#include "probes/probes.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "task/attr.h"
#include "task/substitute.h"
#include "task/wrapper.h"
#include "watch/last_tree.h"
#include "watch/watch.h"

static _Atomic uint64_t next_id = 1; /* relaxed: the ids only have to differ */

int tdt_task_id_base(uint64_t first)
{
	uint64_t next = atomic_load_explicit(&next_id, memory_order_relaxed);

	do {
		if (first == 0 || first < next) {
			errno = EINVAL;
			return -EINVAL;
		}
	} while (!atomic_compare_exchange_weak_explicit(
	    &next_id, &next, first, memory_order_relaxed, memory_order_relaxed));
	return 0;
}

static struct tdt_handle *task_new(struct tdt_future child, const struct tdt_task_attr *attr)
{
	tdt__record_word name[TDT_TASK_RECORD_NAME_SIZE / sizeof(tdt__record_word)] = { 0 };
	struct tdt_handle *task = tdt__registry_take();
	struct tdt_task_record *record;
	uint64_t id = attr->id, now;

	if (task == NULL)
		return NULL;
	if (id == 0)
		id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
	task->record.child_state = (uintptr_t)child.state;
	task->child_drop = child.drop;
	tdt__substitute_init(&task->substitute);
	record = &task->record;
	now = tdt__now();
	TDT__POKE(record->id, id);
	TDT__POKE(record->parent, tdt_current_task_id());
	TDT__POKE(record->since, now);
	TDT__POKE(record->spawned, now);
	TDT__POKE(record->poll, (uintptr_t)child.poll);
	TDT__POKE(record->file, (uintptr_t)attr->file);
	TDT__POKE(record->line, attr->line);
	TDT__POKE(record->column, attr->column);
	if (tdt__attr_name(attr, (char *)name) != 0) {
		for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
			TDT__POKE(((tdt__record_word *)(void *)record->name)[i], name[i]);
	}
	tdt__last_tree_promise(task);
	TDT__POKE(record->state, TDT_TASK_RECORD_IDLE);
	/*
	 * Two references: the future's and the handle's.  Release `seq` to readers of the reference
	 * count.  Pairs with tdt__handle_ref_if_same().
	 */
	atomic_store_explicit(&task->refs, 2, memory_order_release);
	tdt__registry_publish(task);
	return task;
}

struct tdt_traced tdt_traced_with(struct tdt_future fut, const struct tdt_task_attr *attr)
{
	struct tdt_traced untraced = { fut, NULL };
	struct tdt_task_attr ours;
	struct tdt_handle *task;
	int error = 0;

	if (fut.poll == NULL || fut.drop == NULL)
		error = -EINVAL;
	if (error == 0)
		error = tdt__options_read(&ours, sizeof ours, attr);
	if (error == 0)
		error = tdt__attr_keep_file(&ours);
	if (error == 0)
		error = tdt__start();
	if (error != 0) {
		errno = -error;
		return untraced;
	}
	tdt__counted_by_environment();
	tdt__watch_by_environment();
	task = task_new(fut, &ours);
	if (task == NULL)
		return untraced;
	TDT__PROBE_TASK(task__spawn, task);
	return (struct tdt_traced){ { task, tdt__traced_poll, tdt__traced_drop }, task };
}

struct tdt_handle *tdt_future_handle(const struct tdt_future *fut)
{
	return fut != NULL && fut->poll == tdt__traced_poll ? fut->state : NULL;
}
