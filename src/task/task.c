// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Making a task, and a traced future. */

#include "task/task.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include <tdt/integrate/hooks.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/result.h"
#include "capture/chain.h"
#include "capture/counted.h"
#include "host/start.h"
#include "host/thread.h"
#include "probes/probes.h"
#include "recorder/record.h"
#include "recorder/recorder.h"
#include "registry/contexts.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "task/attr.h"
#include "task/label.h"
#include "task/substitute.h"
#include "task/wrapper.h"
#include "watch/last_tree.h"
#include "watch/watch.h"

static _Atomic uint64_t next_id = 1; /* relaxed: the ids only have to differ */

int tdt_task_id_base(uint64_t first)
{
	uint64_t next = atomic_load_explicit(&next_id, memory_order_relaxed);

	do {
		if (first == 0 || first < next)
			return tdt__result(-EINVAL);
	} while (!atomic_compare_exchange_weak_explicit(
	    &next_id, &next, first, memory_order_relaxed, memory_order_relaxed));
	return 0;
}

/* The record is one that tdt__registry_take() returned. */
static void set_name(struct tdt_task_record *record, const struct tdt_task_attr *attr)
{
	tdt__record_word *word = (tdt__record_word *)(void *)record->name, part;
	const char *name;
	size_t left = tdt__attr_name(attr, &name);

	for (; left >= sizeof part; left -= sizeof part, name += sizeof part) {
		memcpy(&part, name, sizeof part);
		TDT__POKE(*word++, part);
	}
	if (left != 0) {
		part = 0;
		memcpy(&part, name, left);
		TDT__POKE(*word, part);
	}
}

/* Make the record of a task.  NULL: no memory, and errno is set. */
static struct tdt_handle *record_new(const struct tdt_future *child, uint32_t fiber,
				     const struct tdt_task_attr *attr, struct tdt_handle *kept)
{
	const struct tdt__poll *poll = tdt__thread.poll;
	struct tdt_handle *task = tdt__registry_take(kept);
	struct tdt_task_record *record;
	uint64_t id = attr->id, now;

	if (task == NULL)
		return NULL;
	if (id == 0)
		id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
	TDT__POKE(task->record.child_state, (uintptr_t)child->state);
	task->child_drop = child->drop;
	tdt__substitute_init(&task->substitute);
	record = &task->record;
	now = tdt__now();
	TDT__POKE(record->id, id);
	TDT__POKE(record->parent, tdt__attr_parent(attr));
	TDT__POKE(record->since, now);
	TDT__POKE(record->spawned, now);
	TDT__POKE(record->poll, (uintptr_t)child->poll);
	TDT__POKE(record->file, (uintptr_t)attr->file);
	TDT__POKE(record->line, attr->line);
	TDT__POKE(record->column, attr->column);
	if (attr->name != NULL || attr->default_name != NULL)
		set_name(record, attr);
	TDT__POKE(record->own_fiber, fiber);
	if (poll != NULL && TDT__PEEK(poll->task->record.context) != 0)
		tdt__context_inherit(task, poll->task);
	if ((attr->flags & TDT_ATTR_CHILD) != 0)
		TDT__POKE(record->own_hint, TDT__HINT_CHILD);
	if ((attr->flags & TDT_ATTR_BLOCKING) != 0)
		TDT__POKE(record->own_hint, record->own_hint | TDT__HINT_BLOCKING);
	if (fiber == 0) /* fibers get no last tree */
		tdt__last_tree_promise(task);
	TDT__POKE(record->state, TDT_TASK_RECORD_IDLE);
	/*
	 * Two references: the future's and the handle's.  Release `seq` to readers of the reference
	 * count.  Pairs with tdt__handle_ref_if_same().
	 */
	atomic_store_explicit(&task->refs, 2, memory_order_release);
	tdt__registry_publish(record);
	return task;
}

static _Atomic bool environment_read; /* a load costs less than a call of pthread_once() */

static void do_as_the_environment_says(void)
{
	tdt__counted_by_environment();
	tdt__watch_by_environment();
	tdt__recorder_by_environment();
	tdt__labels_by_environment();
	/* Release what they did.  Pairs with tdt__task_new(). */
	atomic_store_explicit(&environment_read, true, memory_order_release);
}

/* Returns `attr`, or a copy of it with a file that stays; NULL, and errno is set. */
static const struct tdt_task_attr *read_attr(struct tdt_task_attr *ours,
					     const struct tdt_task_attr *attr)
{
	static const struct tdt_task_attr none = { .size = sizeof none };
	int error;

	if (attr == NULL)
		return &none;
	if (attr->size == sizeof *attr && attr->file_length == 0)
		return attr;
	error = tdt__options_read(ours, sizeof *ours, attr);
	if (error == 0)
		error = tdt__attr_keep_file(ours);
	return error == 0 ? ours : tdt__nothing(error);
}

struct tdt_handle *tdt__task_new(const struct tdt_future *child, uint32_t fiber,
				 const struct tdt_task_attr *attr, struct tdt_handle *kept)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct tdt_task_attr ours;
	int error;

	attr = read_attr(&ours, attr);
	if (attr == NULL)
		return NULL;
	error = (attr->flags & ~(TDT_ATTR_PARENT | TDT_ATTR_CHILD | TDT_ATTR_BLOCKING)) != 0
		    ? -EINVAL
		    : tdt__start();
	if (error != 0)
		return tdt__nothing(error);
	if (!atomic_load_explicit(&environment_read, memory_order_acquire))
		pthread_once(&once, do_as_the_environment_says);
	return record_new(child, fiber, attr, kept);
}

/* Whether task-spawn fires in tdt_hook_adopt(). */
static bool is_announced_later(const struct tdt_task_attr *attr)
{
	return attr != NULL && attr->size > offsetof(struct tdt_task_attr, id_later) &&
	       attr->id_later != 0;
}

void tdt__task_announce(const struct tdt_handle *task)
{
	TDT__PROBE_TASK(task__spawn, task);
	if (tdt__recording())
		tdt__record_spawn(task);
}

struct tdt_traced tdt_traced_with(struct tdt_future fut, const struct tdt_task_attr *attr)
{
	struct tdt_handle *task = NULL;

	if (fut.poll == NULL)
		errno = EINVAL;
	else
		task = tdt__task_new(&fut, 0, attr, NULL);
	if (task == NULL)
		return (struct tdt_traced){ fut, NULL };
	if (!is_announced_later(attr))
		tdt__task_announce(task);
	return (struct tdt_traced){ { task, tdt__traced_poll, tdt__traced_drop }, task };
}

struct tdt_handle *tdt_future_handle(const struct tdt_future *fut)
{
	return fut != NULL && fut->poll == tdt__traced_poll ? fut->state : NULL;
}
