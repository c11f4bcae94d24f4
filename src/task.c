// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Making a traced future, and its handles. */

#include <config.h>

#include "task.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/hooks.h>

#include "clock.h"
#include "fork.h"
#include "options.h"
#include "poll.h"
#include "probes.h"
#include "substitute.h"
#include "thread.h"

static _Atomic uint64_t next_id = 1; /* relaxed: nothing hangs on it but being different */

int tdt_task_id_base(uint64_t first)
{
	uint64_t next = atomic_load_explicit(&next_id, memory_order_relaxed);

	do {
		if (first == 0 || first < next) {
			errno = EINVAL;
			return -EINVAL;
		}
	} while (!atomic_compare_exchange_weak_explicit(&next_id, &next, first, memory_order_relaxed,
							memory_order_relaxed));
	return 0;
}

/* How much of a name is kept: at most the maximum, and no part of a UTF-8 character. */
static size_t name_length(const char *name)
{
	size_t length = strnlen(name, TDT_TASK_NAME_MAX + 1);

	if (length <= TDT_TASK_NAME_MAX)
		return length;
	length = TDT_TASK_NAME_MAX;
	while (length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80)
		length--;
	return length;
}

static struct tdt_handle *task_new(struct tdt_future child, const struct tdt_task_attr *attr)
{
	size_t length = attr->name != NULL ? name_length(attr->name) + 1 : 0;
	struct tdt_handle *task = calloc(1, sizeof *task + length);

	if (task == NULL)
		return NULL;
	task->child = child;
	atomic_init(&task->state, TDT__IDLE);
	atomic_init(&task->since, tdt__now());
	tdt__substitute_init(&task->substitute);
	task->id = attr->id;
	if (task->id == 0)
		task->id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
	task->file = attr->file;
	task->line = attr->line;
	task->column = attr->column;
	atomic_init(&task->refs, 2); /* the future and the handle */
	if (attr->name != NULL) {
		task->named = true;
		memcpy(task->name, attr->name, length - 1);
	}
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
		error = tdt__fork_init();
	if (error != 0) {
		errno = -error;
		return untraced;
	}
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

uint64_t tdt_handle_id(const struct tdt_handle *handle)
{
	return handle != NULL ? handle->id : 0;
}

struct tdt_handle *tdt_handle_ref(struct tdt_handle *handle)
{
	if (handle != NULL)
		atomic_fetch_add_explicit(&handle->refs, 1, memory_order_relaxed);
	return handle;
}

void tdt_handle_unref(struct tdt_handle *handle)
{
	/* Release what this holder did; acquire (by the last) what all others did: pairs with itself. */
	if (handle != NULL && atomic_fetch_sub_explicit(&handle->refs, 1, memory_order_acq_rel) == 1)
		free(handle);
}

void tdt_task_woken(struct tdt_handle *handle)
{
	if (handle != NULL)
		TDT__PROBE_TASK(task__wake, handle);
}

uint64_t tdt_current_task_id(void)
{
	const struct tdt__poll *poll = tdt__thread.poll;

	return poll != NULL ? poll->task->id : 0;
}
