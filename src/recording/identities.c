// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The tables of a recording: threads, tasks and modules, as its events describe them. */

#include "recording/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

/* What is before the names in the payload of an identity, and of a module. */
#define IDENTITY_HEAD 16
#define MODULE_HEAD 9

/* A copy of the `n` bytes at `text`, up to a NUL among them.  NULL: no memory. */
static const char *intern(struct tdt__recording *recording, const char *text, size_t n)
{
	return tdt__texts_keep(&recording->texts, text, strnlen(text, n));
}

uint32_t tdt__recording_find_thread(const struct tdt__recording *recording, uint32_t id)
{
	uint32_t i;

	TDT__INDEX_EACH (i, &recording->thread_table.index, tdt__hash_id(id))
		if (recording->thread[i].id == id)
			break;
	return i;
}

uint32_t tdt__recording_thread(struct tdt__recording *recording, uint32_t id)
{
	uint32_t i = tdt__recording_find_thread(recording, id);

	const struct tdt__recorded_thread new = { .id = id, .name = "", .whole_from = UINT64_MAX };

	return i != TDT__INDEX_NONE
		   ? i
		   : tdt__table_add(&recording->thread_table, tdt__hash_id(id), &new, sizeof new);
}

/* The entry of an array that begins with this number; TDT__INDEX_NONE: there is none. */
static inline uint32_t find_number(const struct tdt__index *index, const void *array, size_t size,
				   uint64_t number)
{
	uint32_t i;

	TDT__INDEX_EACH (i, index, tdt__hash_id(number))
		if (*(const uint64_t *)(const void *)((const char *)array + i * size) == number)
			break;
	return i;
}

uint32_t tdt__recording_task(const struct tdt__recording *recording, uint64_t id)
{
	return find_number(&recording->task_table.index, recording->task, sizeof(*recording->task),
			   id);
}

const char *tdt__recording_task_name(const struct tdt__recording *recording, uint64_t id)
{
	uint32_t number = tdt__recording_task(recording, id);

	return number == TDT__RECORDED_NONE || recording->task[number].name[0] == '\0'
		   ? NULL
		   : recording->task[number].name;
}

uint32_t tdt__recording_lock(const struct tdt__recording *recording, uint64_t address)
{
	return find_number(&recording->lock_table.index, recording->lock, sizeof(*recording->lock),
			   address);
}

/* The task with this id, which is added if it is new.  NULL: no memory. */
static struct tdt__recorded_task *learn_task(struct tdt__recording *recording, uint64_t id)
{
	uint32_t i = tdt__recording_task(recording, id);
	const struct tdt__recorded_task new = { .id = id, .name = "", .file = "" };

	if (i == TDT__INDEX_NONE)
		i = tdt__table_add(&recording->task_table, tdt__hash_id(id), &new, sizeof new);
	return i != TDT__INDEX_NONE ? &recording->task[i] : NULL;
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

/* What is behind the names of an identity; `end`: nothing. */
static const char *identity_end(const char *payload, const char *end)
{
	const char *at = payload + IDENTITY_HEAD;

	for (int i = 0; i < 2 && at < end; i++)
		at += strnlen(at, (size_t)(end - at)) + 1;
	return at < end ? at : end;
}

/* The same as tdt__recorded_context().  What a runtime reports of a task does not say. */
static bool read_context(const struct tdt_event *event, const char *payload, size_t n,
			 struct tdt_trace_context *context)
{
	const char *end = payload + n;
	bool sure = event->kind == TDT_EVENT_CONTEXT || event->kind == TDT_EVENT_TASK;

	if (event->kind == TDT_EVENT_SPAWN || event->kind == TDT_EVENT_END)
		sure = event->c != 0;
	else if (!sure)
		return false;
	if (event->kind != TDT_EVENT_CONTEXT)
		payload = identity_end(payload, end);
	*context = (struct tdt_trace_context){ .valid = 0 };
	if ((size_t)(end - payload) >= sizeof *context)
		memcpy(context, payload, sizeof *context);
	return sure || context->valid == 1;
}

bool tdt__recorded_context(const struct tdt__recording *recording,
			   const struct tdt__recorded_item *item, struct tdt_trace_context *context)
{
	char payload[TDT__PAYLOAD_MAX + 1];

	return read_context(&item->event, payload,
			    tdt__recording_payload(recording, item, payload), context);
}

/* The rings are read one after the other, so what is read last need not be the last. */
static void note_context(struct tdt__recorded_task *task, const struct tdt_event *event,
			 uint64_t ns, const char *payload, size_t n)
{
	struct tdt_trace_context context;

	if (ns < task->context_since || !read_context(event, payload, n, &context))
		return;
	task->context = context;
	task->context_since = ns;
}

static int collect_task(struct tdt__recording *recording, const struct tdt__recorded_ring *ring,
			uint32_t slot)
{
	const struct tdt_event *event = tdt__slot(ring, slot);
	struct tdt__recorded_task *task = learn_task(recording, event->task);
	char payload[TDT__PAYLOAD_MAX + 1];
	uint64_t ns;
	size_t n;

	if (task == NULL)
		return -ENOMEM;
	if (event->kind == TDT_EVENT_POLL || event->kind == TDT_EVENT_WAKE ||
	    event->kind == TDT_EVENT_DELAY || event->kind == TDT_EVENT_RUN ||
	    event->kind == TDT_EVENT_LOST)
		return 0;
	n = tdt__slot_payload(ring, slot, payload);
	ns = tdt__recording_ns(recording, event->time);
	note_context(task, event, ns, payload, n);
	if (event->kind == TDT_EVENT_CONTEXT)
		return 0;
	task->blocking |= (event->detail & TDT_EVENT_TASK_BLOCKING) != 0;
	task->identified |= ring->kind != TDT_RING_REMARKABLE;
	/* A listing may lack the entry of a task that just ends. */
	if (event->c != 0 && (!task->has_entry || (event->detail & TDT_EVENT_ENTRY) != 0)) {
		task->poll_function = event->c;
		task->has_entry = (event->detail & TDT_EVENT_ENTRY) != 0;
	}
	if (event->kind == TDT_EVENT_SPAWN && ns > task->spawned)
		task->spawned = ns;
	if (event->kind == TDT_EVENT_END && ns > task->ended)
		task->ended = ns;
	return identify(recording, task, payload, n);
}

static int collect_lock(struct tdt__recording *recording, uint64_t address)
{
	if (tdt__recording_lock(recording, address) != TDT__RECORDED_NONE ||
	    tdt__table_add(&recording->lock_table, tdt__hash_id(address), &address,
			   sizeof address) != TDT__INDEX_NONE)
		return 0;
	return -ENOMEM;
}

static int collect_thread(struct tdt__recording *recording, const struct tdt__recorded_ring *ring,
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

	tdt__put_hex(text, bytes, n);
	return intern(recording, text, 2 * n);
}

static int collect_module(struct tdt__recording *recording, const struct tdt__recorded_ring *ring,
			  uint32_t slot)
{
	const struct tdt_event *event = tdt__slot(ring, slot);
	struct tdt__recorded_module module = { .start = event->task, .end = event->c };
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
	if (module.build_id == NULL || module.path == NULL ||
	    !tdt__array_grow(&recording->module, recording->n_modules, &recording->modules_room,
			     sizeof(module)))
		return -ENOMEM;
	recording->module[recording->n_modules++] = module;
	return 0;
}

static int collect_event(struct tdt__recording *recording, const struct tdt__recorded_ring *ring,
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
	case TDT_EVENT_LOST:
	case TDT_EVENT_CONTEXT:
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

int tdt__recording_collect(struct tdt__recording *recording, const struct tdt__recorded_ring *ring)
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
	tdt__texts_fini(&recording->texts);
	tdt__table_fini(&recording->task_table);
	tdt__table_fini(&recording->thread_table);
	tdt__table_fini(&recording->lock_table);
	free(recording->module);
}
