// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Making the payloads of events that describe tasks and modules. */

#include "recording/describe.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "facts/orphans.h"
#include "facts/record.h"

#define FILE_KEPT 191 /* of the name of a file, its last bytes */
#define TASK_NAME_MAX (TDT_TASK_RECORD_NAME_SIZE - 1)

_Static_assert(16 + TASK_NAME_MAX + 1 + FILE_KEPT + 1 + sizeof(struct tdt_trace_context) <=
		       TDT__IDENTITY_MAX,
	       "an identity fits");

static char *append_text(char *to, const char *text, size_t size)
{
	memcpy(to, text, size);
	to[size] = '\0';
	return to + size + 1;
}

size_t tdt__describe_task(struct tdt_event *event, const struct tdt__identified *task,
			  char payload[TDT__IDENTITY_MAX])
{
	const struct tdt_task_record *record = task->record;
	size_t length = strlen(task->file), kept = length < FILE_KEPT ? length : FILE_KEPT;
	char *at = payload;

	event->task = record->id;
	event->c = task->entry != 0 ? task->entry : record->poll;
	if (task->entry != 0)
		event->detail |= TDT_EVENT_ENTRY;
	/* A thread that lives writes other bits of it. */
	if ((__atomic_load_n(&record->own_hint, __ATOMIC_RELAXED) & TDT__HINT_BLOCKING) != 0)
		event->detail |= TDT_EVENT_TASK_BLOCKING;
	memcpy(at, &record->parent, 8);
	memcpy(at + 8, &record->line, 4);
	memcpy(at + 12, &record->column, 4);
	at = append_text(at + 16, record->name, strnlen(record->name, TASK_NAME_MAX));
	at = append_text(at, task->file + (length - kept), kept);
	if (task->context.valid == 1) {
		memcpy(at, &task->context, sizeof task->context);
		at += sizeof task->context;
	}
	return (size_t)(at - payload);
}

/* Whether the owner has ended with the lock, so that the task waits for ever: facts/orphans.h. */
static bool waits_for_orphan(struct tdt__lock_places *locks, const struct tdt_wait *wait)
{
	struct tdt_registry_holder holder;

	if (wait->kind != TDT_WAIT_MUTEX || wait->owner == 0 || wait->owner == locks->holds)
		return false;
	if (!locks->find_ended(locks->arg, wait->owner, &holder)) {
		locks->holds = wait->owner;
		return false;
	}
	locks->last.read = false; /* it was read before the owner was found to be gone */
	return tdt__orphaned_lock(locks, wait) != NULL;
}

struct tdt_event tdt__describe_state(const struct tdt_task_record *record,
				     struct tdt__lock_places *locks, uint64_t time,
				     struct tdt__listed_state *listed)
{
	enum tdt_task_state state = tdt__record_state(record);
	bool polled = state == TDT_TASK_RUNNING;
	struct tdt_wait wait = polled ? (struct tdt_wait){ .kind = TDT_WAIT_UNKNOWN }
				      : tdt__wait_of_record(record);

	tdt__lock_renew(locks, &wait, record->id);
	*listed = (struct tdt__listed_state){ .polls = record->polls,
					      .spawned = record->spawned,
					      .woken = record->woken,
					      .woken_by = record->woken_by,
					      .object = wait.object,
					      .owner = wait.owner,
					      .orphaned = waits_for_orphan(locks, &wait) };
	return (struct tdt_event){
		.kind = TDT_EVENT_STATE,
		.detail = (uint8_t)wait.kind,
		.b = polled			  ? TDT_STATE_POLLED
		     : state == TDT_TASK_RUNNABLE ? TDT_STATE_WOKEN
						  : TDT_STATE_IDLE,
		.a = polled			    ? record->thread
		     : tdt__record_has_wait(record) ? record->wait_count
						    : 0,
		.time = time,
		.task = record->id,
		.c = record->since
	};
}

size_t tdt__describe_module(uint64_t bias, const char *build_id, const char *path,
			    char payload[TDT__DESCRIPTION_MAX])
{
	size_t n = strlen(build_id) / 2, length;

	memcpy(payload, &bias, 8);
	payload[8] = (char)n;
	for (size_t i = 0; i < n; i++) {
		unsigned byte = 0;

		sscanf(build_id + 2 * i, "%2x", &byte);
		payload[9 + i] = (char)byte;
	}
	length = strnlen(path, TDT__DESCRIPTION_MAX - 10 - n);
	return (size_t)(append_text(payload + 9 + n, path, length) - payload);
}
