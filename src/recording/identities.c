// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The tables of a recording: threads, tasks and modules, as its events describe them. */

#include <config.h>

#include "recording/recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is before the names in the payload of an identity, and of a module. */
#define IDENTITY_HEAD 16
#define MODULE_HEAD 9

void *tdt__grown(void *array, size_t n, size_t *room, size_t size)
{
	size_t more = *room == 0 ? 16 : 2 * *room;
	void *grown;

	if (n < *room)
		return array;
	grown = more > SIZE_MAX / size ? NULL : realloc(array, more * size);
	if (grown != NULL)
		*room = more;
	return grown;
}

static const char *find_string(const struct tdt__recording *recording, const char *text, size_t n,
			       uint32_t hash)
{
	size_t tried = 0;
	uint32_t i;

	while ((i = tdt__index_next(&recording->string_index, hash, &tried)) != TDT__INDEX_NONE) {
		const char *string = recording->string[i];

		if (strncmp(string, text, n) == 0 && string[n] == '\0')
			return string;
	}
	return NULL;
}

/* A copy of the `n` bytes at `text`, up to a NUL among them.  NULL: no memory. */
static const char *intern(struct tdt__recording *recording, const char *text, size_t n)
{
	size_t length = strnlen(text, n);
	uint32_t hash = tdt__hash_fold(tdt__hash_bytes(TDT__HASH_START, text, length));
	const char *found = find_string(recording, text, length, hash);
	const char **strings;
	char *copy;

	if (found != NULL)
		return found;
	copy = tdt__arena_take(&recording->arena, length + 1);
	strings = tdt__grown(recording->string, recording->n_strings, &recording->strings_room,
			     sizeof(*strings));
	if (strings != NULL)
		recording->string = strings;
	if (copy == NULL || strings == NULL ||
	    tdt__index_reserve(&recording->string_index, recording->n_strings + 1) != 0)
		return NULL;
	memcpy(copy, text, length);
	copy[length] = '\0';
	tdt__index_add(&recording->string_index, hash, (uint32_t)recording->n_strings);
	recording->string[recording->n_strings++] = copy;
	return copy;
}

uint32_t tdt__recording_find_thread(const struct tdt__recording *recording, uint32_t id)
{
	size_t tried = 0;
	uint32_t i;

	do {
		i = tdt__index_next(&recording->thread_index, tdt__hash_id(id), &tried);
	} while (i != TDT__INDEX_NONE && recording->thread[i].id != id);
	return i;
}

uint32_t tdt__recording_thread(struct tdt__recording *recording, uint32_t id)
{
	uint32_t i = tdt__recording_find_thread(recording, id);
	struct tdt__recorded_thread *threads;

	if (i != TDT__INDEX_NONE)
		return i;
	threads = tdt__grown(recording->thread, recording->n_threads, &recording->threads_room,
			     sizeof(*threads));
	if (threads == NULL)
		return TDT__RECORDED_NONE;
	recording->thread = threads;
	if (tdt__index_reserve(&recording->thread_index, recording->n_threads + 1) != 0)
		return TDT__RECORDED_NONE;
	i = (uint32_t)recording->n_threads++;
	threads[i] =
	    (struct tdt__recorded_thread){ .id = id, .name = "", .whole_from = UINT64_MAX };
	tdt__index_add(&recording->thread_index, tdt__hash_id(id), i);
	return i;
}

/* The entry of an array that begins with this number; TDT__INDEX_NONE: there is none. */
static inline uint32_t find_number(const struct tdt__index *index, const void *array, size_t size,
				   uint64_t number)
{
	size_t tried = 0;
	uint32_t i;

	do {
		i = tdt__index_next(index, tdt__hash_id(number), &tried);
	} while (i != TDT__INDEX_NONE &&
		 *(const uint64_t *)(const void *)((const char *)array + i * size) != number);
	return i;
}

uint32_t tdt__recording_task(const struct tdt__recording *recording, uint64_t id)
{
	return find_number(&recording->task_index, recording->task, sizeof(*recording->task), id);
}

uint32_t tdt__recording_lock(const struct tdt__recording *recording, uint64_t address)
{
	return find_number(&recording->lock_index, recording->lock, sizeof(*recording->lock),
			   address);
}

/* The task with this id, which is added if it is new.  NULL: no memory. */
static struct tdt__recorded_task *learn_task(struct tdt__recording *recording, uint64_t id)
{
	uint32_t i = tdt__recording_task(recording, id);
	struct tdt__recorded_task *tasks;

	if (i != TDT__INDEX_NONE)
		return &recording->task[i];
	tasks =
	    tdt__grown(recording->task, recording->n_tasks, &recording->tasks_room, sizeof(*tasks));
	if (tasks == NULL)
		return NULL;
	recording->task = tasks;
	if (tdt__index_reserve(&recording->task_index, recording->n_tasks + 1) != 0)
		return NULL;
	tdt__index_add(&recording->task_index, tdt__hash_id(id), (uint32_t)recording->n_tasks);
	tasks += recording->n_tasks++;
	*tasks = (struct tdt__recorded_task){ .id = id, .name = "", .file = "" };
	return tasks;
}

/*
 * What a payload of `n` bytes says of the task.  A name that is cut off stays as it was.  An empty
 * name does not replace a known one: what a runtime reports of a traced task has no name.
 */
static int identify(struct tdt__recording *recording, struct tdt__recorded_task *task,
		    const char *payload, size_t n)
{
	const char *name = payload + IDENTITY_HEAD, *file, *known;

	if (n < IDENTITY_HEAD)
		return 0;
	memcpy(&task->parent, payload, 8);
	memcpy(&task->line, payload + 8, 4);
	memcpy(&task->column, payload + 12, 4);
	file = memchr(name, '\0', n - IDENTITY_HEAD);
	file = file == NULL ? payload + n : file + 1;
	known = intern(recording, name, n - IDENTITY_HEAD);
	if (known == NULL || *known != '\0')
		task->name = known;
	task->file =
	    file < payload + n ? intern(recording, file, (size_t)(payload + n - file)) : "";
	return task->name == NULL || task->file == NULL ? -ENOMEM : 0;
}

static int collect_task(struct tdt__recording *recording, const struct tdt__sorted_ring *ring,
			uint32_t slot)
{
	const struct tdt_event *event = tdt__slot(ring, slot);
	struct tdt__recorded_task *task = learn_task(recording, event->task);
	char payload[TDT__PAYLOAD_MAX + 1];
	uint64_t ns;

	if (task == NULL)
		return -ENOMEM;
	if (event->kind == TDT_EVENT_POLL || event->kind == TDT_EVENT_WAKE ||
	    event->kind == TDT_EVENT_DELAY || event->kind == TDT_EVENT_RUN)
		return 0;
	task->identified |= ring->kind != TDT_RING_REMARKABLE;
	if (event->c != 0)
		task->poll_function = event->c;
	ns = tdt__recording_ns(recording, event->time);
	if (event->kind == TDT_EVENT_SPAWN && ns > task->spawned)
		task->spawned = ns;
	if (event->kind == TDT_EVENT_END && ns > task->ended)
		task->ended = ns;
	return identify(recording, task, payload, tdt__slot_payload(ring, slot, payload));
}

static int collect_lock(struct tdt__recording *recording, uint64_t address)
{
	uint64_t *locks;

	if (tdt__recording_lock(recording, address) != TDT__RECORDED_NONE)
		return 0;
	locks =
	    tdt__grown(recording->lock, recording->n_locks, &recording->locks_room, sizeof(*locks));
	if (locks == NULL)
		return -ENOMEM;
	recording->lock = locks;
	if (tdt__index_reserve(&recording->lock_index, recording->n_locks + 1) != 0)
		return -ENOMEM;
	tdt__index_add(&recording->lock_index, tdt__hash_id(address), (uint32_t)recording->n_locks);
	locks[recording->n_locks++] = address;
	return 0;
}

static int collect_thread(struct tdt__recording *recording, const struct tdt__sorted_ring *ring,
			  uint32_t slot)
{
	const struct tdt_event *event = tdt__slot(ring, slot);
	uint32_t number = tdt__recording_thread(recording, event->a);
	char payload[TDT__PAYLOAD_MAX + 1];
	size_t n = tdt__slot_payload(ring, slot, payload);
	const char *name;

	if (number == TDT__RECORDED_NONE)
		return -ENOMEM;
	recording->thread[number].worker |= (event->detail & 1) != 0;
	if (n == 0 || payload[0] == '\0')
		return 0;
	name = intern(recording, payload, n);
	recording->thread[number].name = name == NULL ? "" : name;
	return name == NULL ? -ENOMEM : 0;
}

/* The bytes of a build-id in hexadecimal.  NULL: no memory. */
static const char *build_id(struct tdt__recording *recording, const char *bytes, size_t n)
{
	char text[2 * UINT8_MAX + 1];

	for (size_t i = 0; i < n; i++)
		sprintf(text + 2 * i, "%02x", (unsigned char)bytes[i]);
	return intern(recording, text, 2 * n);
}

static int collect_module(struct tdt__recording *recording, const struct tdt__sorted_ring *ring,
			  uint32_t slot)
{
	const struct tdt_event *event = tdt__slot(ring, slot);
	struct tdt__recorded_module module = { .start = event->task, .end = event->c }, *modules;
	char payload[TDT__PAYLOAD_MAX + 1];
	size_t n = tdt__slot_payload(ring, slot, payload), id_size;

	if (n < MODULE_HEAD)
		return 0;
	id_size = (unsigned char)payload[MODULE_HEAD - 1];
	if (MODULE_HEAD + id_size >= n || module.start >= module.end)
		return 0;
	memcpy(&module.bias, payload, sizeof(module.bias));
	module.build_id = build_id(recording, payload + MODULE_HEAD, id_size);
	module.path = intern(recording, payload + MODULE_HEAD + id_size, n - MODULE_HEAD - id_size);
	modules = tdt__grown(recording->module, recording->n_modules, &recording->modules_room,
			     sizeof(*modules));
	if (modules != NULL)
		recording->module = modules;
	if (module.build_id == NULL || module.path == NULL || modules == NULL)
		return -ENOMEM;
	modules[recording->n_modules++] = module;
	return 0;
}

static int collect_event(struct tdt__recording *recording, const struct tdt__sorted_ring *ring,
			 uint32_t slot)
{
	switch (tdt__slot(ring, slot)->kind) {
	case TDT_EVENT_POLL:
	case TDT_EVENT_WAKE:
	case TDT_EVENT_DELAY:
	case TDT_EVENT_SPAWN:
	case TDT_EVENT_END:
	case TDT_EVENT_TASK:
	case TDT_EVENT_RUN:
		return collect_task(recording, ring, slot);
	case TDT_EVENT_LOCK:
		return collect_lock(recording, tdt__slot(ring, slot)->c);
	case TDT_EVENT_THREAD:
		return collect_thread(recording, ring, slot);
	case TDT_EVENT_MODULE:
		return collect_module(recording, ring, slot);
	default:
		return 0;
	}
}

int tdt__recording_collect(struct tdt__recording *recording, const struct tdt__sorted_ring *ring)
{
	int err = 0;

	for (uint32_t i = 0; i < ring->n && err == 0; i++)
		err = collect_event(recording, ring, i);
	if (err == 0 && ring->current.kind == TDT_EVENT_POLL &&
	    learn_task(recording, ring->current.task) == NULL)
		err = -ENOMEM;
	return err;
}

void tdt__recording_forget(struct tdt__recording *recording)
{
	tdt__arena_fini(&recording->arena);
	tdt__index_fini(&recording->string_index);
	tdt__index_fini(&recording->task_index);
	tdt__index_fini(&recording->thread_index);
	tdt__index_fini(&recording->lock_index);
	free(recording->string);
	free(recording->task);
	free(recording->thread);
	free(recording->lock);
	free(recording->module);
}
