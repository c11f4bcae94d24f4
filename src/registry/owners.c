// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The names of the tasks that others wait for. */

#include <config.h>

#include "registry/owners.h"

#include "registry/handle.h"
#include "registry/registry.h"
#include "tree/trace.h"

/* The place of `id` among the owners; `n`: it is none of them. */
static uint32_t place_of(uint64_t id, const uint64_t *owners, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && owners[i] != id)
		i++;
	return i;
}

void tdt__name_owners(struct tdt_trace *trace)
{
	uint64_t owners[TDT__OWNERS_NAMED];
	uint32_t n = tdt__trace_owners(trace, owners);
	struct tdt__cursor cursor = { 0 };
	struct tdt_task_record record;
	struct tdt_handle *task;

	while (n > 0 && (task = tdt__registry_next(&cursor)) != NULL) {
		uint32_t place = place_of(TDT__PEEK(task->record.id), owners, n);

		if (place < n && tdt__registry_read(task, &record) &&
		    tdt__record_is_live(&record) && record.id == owners[place] &&
		    record.name[0] != '\0')
			tdt__trace_name_owner(trace, place, record.id, record.name);
	}
}
