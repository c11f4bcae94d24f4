// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A copy of what this process has recorded.  recording/copy.c copies the rings.  This file adds
 * what only the process knows, in a ring at the end of the copy: the *supplement*.
 */

#include "dump/recorder_copy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <tdt/layout/recording.h>

#include "base/sanitized.h"
#include "host/loaded.h"
#include "recorder/clock.h"
#include "recorder/rings.h"
#include "recorder/service.h"
#include "recording/copy.h"
#include "recording/describe.h"
#include "recording/supplement.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "registry/task_info.h"
#include "symbolize/modules.h"
#include "unwind/unwinder.h"

/* The modules that were met so far, and the events about them and about tasks. */
struct copy_supplement {
	struct tdt__supplement events;
	struct tdt__modules *modules;
	bool failed; /* no memory */
};

/* Have the module of the code at `pc` in the table. */
static void supply_module_of(void *data, uint64_t pc)
{
	struct copy_supplement *supplement = data;

	if (supplement->failed || tdt__modules_find(supplement->modules, (uintptr_t)pc) != NULL)
		return;
	pthread_mutex_lock(&tdt__unwind_lock);
	supplement->failed = tdt__loaded_meet(&supplement->modules, (uintptr_t)pc) == -ENOMEM;
	pthread_mutex_unlock(&tdt__unwind_lock);
}

static void supply_tasks(struct copy_supplement *supplement)
{
	struct tdt__cursor cursor = { .slab = NULL };
	char payload[TDT__DESCRIPTION_MAX];
	struct tdt_task_record record;
	struct tdt__lock_places locks = tdt__locks_here(0);
	struct tdt__listed_state listed;
	struct tdt_handle *task;
	struct tdt_event event;
	size_t size;

	while ((task = tdt__registry_next(&cursor)) != NULL && !supplement->failed) {
		uint64_t before = tdt__ticks();

		if (!tdt__registry_read(task, &record) || !tdt__record_is_live(&record))
			continue;
		event = tdt__describe_state(&record, &locks, before, &listed);
		tdt__supplement_add(&supplement->events, &event, (const char *)&listed,
				    sizeof listed);
		size = tdt__service_task(task, &record, &event, payload);
		supply_module_of(supplement, (uintptr_t)event.c);
		tdt__supplement_add(&supplement->events, &event, payload, size);
	}
}

static void supply_modules(struct copy_supplement *supplement)
{
	char payload[TDT__DESCRIPTION_MAX];
	struct tdt_event event;

	for (size_t i = 0; i < supplement->modules->n; i++) {
		const struct tdt__module *module = &supplement->modules->module[i];
		size_t size = tdt__service_module(module, &event, payload);

		tdt__supplement_add(&supplement->events, &event, payload, size);
	}
}

/* --- The copy ------------------------------------------------------------------------------ */

static int supplement_copy(void **copy, size_t *size)
{
	struct copy_supplement supplement = { .modules = tdt__modules_new(0) };
	struct tdt__moment now;

	if (supplement.modules == NULL)
		return -ENOMEM;
	supply_tasks(&supplement);
	tdt__recording_visit_code(*copy, supply_module_of, &supplement);
	supply_modules(&supplement);
	tdt__moment_now(&now);
	tdt__supplement_clock(&supplement.events, now.ticks, now.monotonic, now.boot, now.real);
	supplement.events.failed |= supplement.failed;
	tdt__modules_unref(supplement.modules);
	return tdt__supplement_append(&supplement.events, copy, size);
}

/*
 * Acquire: what the next call reads was not written before what this call reads.  See copy.h.
 * ThreadSanitizer does not know fences.
 */
static int read_here(void *nothing, uint64_t address, void *to, size_t n)
{
	const uint64_t *from = (const uint64_t *)(uintptr_t)address;
	uint64_t *word = to;

	(void)nothing;
	for (size_t i = 0; i < n / sizeof *word; i++)
		word[i] =
		    __atomic_load_n(&from[i], TDT__TSAN ? __ATOMIC_ACQUIRE : __ATOMIC_RELAXED);
	atomic_thread_fence(memory_order_acquire);
	return 0;
}

/* The block is not freed meanwhile, and what it has is whole, also if another one comes. */
static int copy_block(const struct tdt_recording *block, uint64_t since_ns, void **copy,
		      size_t *size)
{
	struct tdt__recording_source source = { .read = read_here,
						.address = (uintptr_t)block,
						.now = tdt__ticks() };
	uint64_t ticks = tdt__ticks_of_ns(since_ns);

	if (since_ns != 0 && ticks < source.now)
		source.since = source.now - ticks;
	return tdt__recording_copy(&source, copy, size);
}

int tdt__recorder_copy(uint64_t since_ns, void **copy, size_t *size)
{
	const struct tdt_recording *block = tdt__block_enter();
	int error;

	*copy = NULL;
	if (block == NULL)
		return -ENODATA;
	error = copy_block(block, since_ns, copy, size);
	tdt__block_leave();
	if (error == 0)
		error = supplement_copy(copy, size);
	if (error != 0) {
		free(*copy);
		*copy = NULL;
	}
	return error;
}
