// SPDX-License-Identifier: Apache-2.0 OR MIT
/* From a record to the structs of <tdt/tree.h>; and which tasks match a caller's filter. */

#include "registry/task_info.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdatomic.h>
#include <string.h>

#include <tdt/layout/registry.h>

#include "base/name.h"
#include "base/options.h"
#include "facts/task.h"
#include "host/loaded.h"
#include "host/peek.h"
#include "registry/contexts.h"
#include "registry/handle.h"
#include "registry/holders.h"
#include "registry/owners.h"
#include "symbolize/modules.h"
#include "symbolize/namer.h"
#include "unwind/unwinder.h"

_Static_assert(TDT__NAME_MAX == TDT_TASK_NAME_MAX && TDT__NAME_MAX == TDT_WAIT_NAME_MAX,
	       "names fit");

#define STATES ((1u << TDT_TASK_WAITING) | (1u << TDT_TASK_RUNNING) | (1u << TDT_TASK_RUNNABLE))

/* Whether the task was not polled since the record was copied, so that its leaf still waits. */
static bool is_not_polled_since(const struct tdt_handle *task, const struct tdt_task_record *record)
{
	/* What was read before is not read later.  Pairs with wrapper.c, which stores `polls`. */
	atomic_thread_fence(memory_order_acquire);
	return TDT__PEEK(task->record.polls) == record->polls &&
	       TDT__PEEK(task->record.state) == TDT_TASK_RECORD_IDLE &&
	       TDT__PEEK(task->record.seq) == record->seq;
}

/*
 * The host may free the name as soon as the task is polled again, so the kernel reads it, and it
 * counts only if the task was not polled meanwhile.
 */
void tdt__wait_name_read(char copy[TDT_WAIT_NAME_MAX + 1], const struct tdt_handle *task,
			 const struct tdt_task_record *record)
{
	char name[TDT__NAME_MAX + 2];

	copy[0] = '\0';
	if (record->wait_name == 0)
		return;
	name[tdt__peek(name, record->wait_name, sizeof name - 1)] = '\0';
	if (is_not_polled_since(task, record))
		tdt__name_copy(copy, name);
}

void tdt__task_info(struct tdt__task_info *ours, const struct tdt_handle *task,
		    const struct tdt_task_record *record, uint64_t now)
{
	const struct tdt__task_said said = { .record = record,
					     .name = ours->name,
					     .file = (const char *)(uintptr_t)record->file,
					     .still = true };

	memcpy(ours->name, record->name, sizeof ours->name);
	tdt__task_by_record(&ours->info, &said, now, &ours->wait, &ours->main_wait);
	tdt__context_read(task, record, &ours->info.context);
	if (ours->info.n_waits != 0)
		tdt__wait_name_read(ours->wait.name, task, record);
}

static bool read_own(void *arg, uint64_t address, void *to, size_t size)
{
	(void)arg;
	return tdt__peek(to, address, size) == size;
}

uint64_t tdt__entry_of(const struct tdt_task_record *record)
{
	/* The kernel reads it: the record may have been given to another task meanwhile. */
	static const struct tdt__lock_places view = { .read = read_own };

	return tdt__task_entry(&view, record, (uintptr_t)tdt__callback_poll);
}

const char *tdt__entry_name(const struct tdt_task_record *record, struct tdt__modules **modules,
			    uint64_t deadline)
{
	uint64_t entry = tdt__entry_of(record);
	bool met;

	if (entry == 0)
		return NULL;
	if (*modules == NULL)
		*modules = tdt__modules_new(0);
	pthread_mutex_lock(&tdt__unwind_lock);
	met = *modules != NULL && tdt__loaded_meet(modules, entry) == 0;
	pthread_mutex_unlock(&tdt__unwind_lock);
	return met ? tdt__namer_function(*modules, entry, deadline) : NULL;
}

static bool find_ended(void *arg, uint64_t id, struct tdt_registry_holder *ended)
{
	(void)arg;
	return tdt__holder_find(id, ended);
}

struct tdt__lock_places tdt__locks_here(uint64_t now)
{
	return (struct tdt__lock_places){ .read = read_own,
					  .each_holder = tdt__each_holder,
					  .find_ended = find_ended,
					  .now = now };
}

/* A runnable task has not gone on yet, so a filter for waiting tasks lets it through. */
static bool lets_state(const struct tdt_task_filter *filter, enum tdt_task_state state)
{
	uint32_t bits = 1u << state;

	if (state == TDT_TASK_RUNNABLE)
		bits |= 1u << TDT_TASK_WAITING;
	return filter->states == 0 || (filter->states & bits) != 0;
}

bool tdt__filter_lets(const struct tdt_task_filter *filter, const struct tdt_task_info *info)
{
	return lets_state(filter, info->state) && info->state_ns >= filter->longer_than_ns &&
	       (filter->name == NULL ||
		(info->name != NULL && fnmatch(filter->name, info->name, 0) == 0));
}

int tdt__filter_read(struct tdt_task_filter *filter, const struct tdt_task_filter *theirs)
{
	int error = tdt__options_read(filter, sizeof *filter, theirs);

	if (error == 0 && ((filter->states & ~STATES) != 0 || filter->reserved != 0))
		error = -EINVAL;
	return error;
}
