// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Counting the locks of tasks, and the last tasks that ended with one: see holders.h. */

#include "registry/holders.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/index.h"
#include "host/thread.h"
#include "registry/handle.h"
#include "registry/notes.h"
#include "registry/registry.h"

#define HASHES 4096

/* Relaxed: a task's own count is ordered by what orders its polls. */
static _Atomic uint32_t held[HASHES];
static _Atomic uint64_t noted; /* how many; relaxed: the numbers only have to differ */

static _Atomic uint32_t *count_of(uint64_t id)
{
	return &held[tdt__hash_id(id) % HASHES];
}

void tdt__holder_pass(uint64_t from, uint64_t to)
{
	if (from == to)
		return;
	if (from != 0)
		atomic_fetch_sub_explicit(count_of(from), 1, memory_order_relaxed);
	if (to != 0)
		atomic_fetch_add_explicit(count_of(to), 1, memory_order_relaxed);
}

static __attribute__((noinline, cold)) void note_holder(const struct tdt_handle *task)
{
	struct tdt_registry_holder ours = { .outcome = task->record.outcome,
					    .when = tdt__now(),
					    .id = task->record.id };

	memcpy(ours.name, task->record.name, sizeof ours.name);
	ours.number = atomic_fetch_add_explicit(&noted, 1, memory_order_relaxed) + 1;
	tdt__note_write(&tdt__holders[ours.number % TDT__HOLDERS], &ours, sizeof ours);
}

void tdt__holder_over(struct tdt_handle *task)
{
	if (__builtin_expect(atomic_load_explicit(count_of(task->record.id),
						  memory_order_relaxed) != 0, 0))
		note_holder(task);
	/*
	 * Release: a reader that sees this sees what the task did to its locks.  Pairs with the
	 * acquire in tdt__each_holder().
	 */
	__atomic_store_n(&task->record.stack_top, 0, __ATOMIC_RELEASE);
}

bool tdt__holder_find(uint64_t id, struct tdt_registry_holder *holder)
{
	for (int i = 0; i < TDT__HOLDERS; i++)
		if (TDT__PEEK(tdt__holders[i].id) == id &&
		    tdt__note_read(holder, &tdt__holders[i], sizeof *holder,
				   TDT__PEEK(tdt__holders[i].number)) &&
		    holder->id == id && holder->number != 0)
			return true;
	return false;
}
