// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The names of the tasks that others wait for. */

#include "registry/owners.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "facts/orphans.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "registry/task_info.h"
#include "tree/findings.h"
#include "tree/trace.h"

/* The place of `id` among the owners; `n`: it is none of them. */
static uint32_t place_of(uint64_t id, const uint64_t *owners, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && owners[i] != id)
		i++;
	return i;
}

bool tdt__each_holder(void *arg, void (*see)(void *to, uint64_t id), void *to)
{
	struct tdt__cursor cursor = { 0 };
	struct tdt_task_record record;
	const struct tdt_handle *task;

	(void)arg;
	while ((task = tdt__registry_next(&cursor)) != NULL)
		if (tdt__registry_read(task, &record) && tdt__record_may_hold(&record))
			see(to, record.id);
	/*
	 * Acquire what the tasks did that are not live any more, before their locks are read.
	 * Pairs with tdt__holder_over() and with tdt__handle_over().
	 */
	atomic_thread_fence(memory_order_acquire);
	return true;
}

static struct tdt__member *only_member(void *arg, size_t index)
{
	(void)index;
	return arg;
}

/* The waits of a trace with stacks are its own. */
static void find_orphans(struct tdt_trace *trace, const uint64_t *owners, uint32_t n)
{
	struct tdt__member member = { .info = trace->info };
	struct tdt__lock_places places = tdt__locks_here(0);
	struct tdt__orphans orphans;

	places.arg = &member;
	places.member = only_member;
	places.n = 1;
	tdt__orphans_find(&places, &orphans);
	for (size_t i = 0; i < orphans.n; i++) {
		const struct tdt_registry_holder *ended = &orphans.lock[i].owner;

		if (ended->name[0] != '\0')
			tdt__trace_name_owner(trace, place_of(ended->id, owners, n), ended->id,
					      ended->name);
	}
	free(orphans.lock);
}

void tdt__name_owners(struct tdt_trace *trace)
{
	uint64_t owners[TDT__OWNERS_NAMED];
	uint32_t n = tdt__trace_owners(trace, owners);
	struct tdt__cursor cursor = { 0 };
	struct tdt_task_record record;
	struct tdt_handle *task;

	if (n > 0)
		find_orphans(trace, owners, n);
	while (n > 0 && (task = tdt__registry_next(&cursor)) != NULL) {
		uint32_t place = place_of(TDT__PEEK(task->record.id), owners, n);

		if (place < n && tdt__registry_read(task, &record) &&
		    tdt__record_is_live(&record) && record.id == owners[place] &&
		    record.name[0] != '\0')
			tdt__trace_name_owner(trace, place, record.id, record.name);
	}
}
