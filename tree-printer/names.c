// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Finds names by ids.  A snapshot may have 100,000 tasks, and each of them may wait for another
 * one, whose name is printed.
 */

#include "names.h"

#include <stdlib.h>

#include "base/index.h"

struct task {
	const struct tdt_task_info *info;
	uint32_t group; /* its number; UINT32_MAX: it is in none */
};

struct tdt__names {
	struct tdt__index by_id;
	uint32_t n;
	struct task task[];
};

/* The task with this id, or TDT__INDEX_NONE. */
static uint32_t find_named(const struct tdt__names *names, uint64_t id)
{
	uint32_t i;

	TDT__INDEX_EACH (i, &names->by_id, tdt__hash_id(id))
		if (names->task[i].info->id == id)
			break;
	return i;
}

static void add_named(struct tdt__names *names, const struct tdt_task_info *info, uint32_t group)
{
	if (find_named(names, info->id) != TDT__INDEX_NONE)
		return;
	tdt__index_add(&names->by_id, tdt__hash_id(info->id), names->n);
	names->task[names->n++] = (struct task){ info, group };
}

struct tdt__names *tdt__names_new(const struct tdt_snapshot *snapshot)
{
	struct tdt__names *names;
	size_t n = snapshot->n_orphans;

	for (size_t i = 0; i < snapshot->n_groups; i++)
		n += snapshot->groups[i]->n;
	names = calloc(1, sizeof *names + n * sizeof names->task[0]);
	if (names == NULL || tdt__index_reserve(&names->by_id, n) != 0) {
		free(names);
		return NULL;
	}
	for (size_t i = 0; i < snapshot->n_groups; i++)
		for (size_t j = 0; j < snapshot->groups[i]->n; j++)
			add_named(names, snapshot->groups[i]->tasks[j], (uint32_t)i);
	for (size_t i = 0; i < snapshot->n_orphans; i++)
		add_named(names, snapshot->orphans[i]->tasks[0], UINT32_MAX);
	return names;
}

void tdt__names_free(struct tdt__names *names)
{
	if (names == NULL)
		return;
	tdt__index_fini(&names->by_id);
	free(names);
}

const struct tdt_task_info *tdt__names_task(const struct tdt__names *names, uint64_t id)
{
	uint32_t i = names != NULL ? find_named(names, id) : TDT__INDEX_NONE;

	return i != TDT__INDEX_NONE ? names->task[i].info : NULL;
}

const char *tdt__names_owner(const struct tdt__names *names, const struct tdt_wait *wait)
{
	const struct tdt_task_info *task = tdt__names_task(names, wait->owner);

	if (wait->owner_name != NULL)
		return wait->owner_name;
	return task != NULL ? task->name : NULL;
}

uint32_t tdt__names_group(const struct tdt__names *names, uint64_t id)
{
	uint32_t i = names != NULL ? find_named(names, id) : TDT__INDEX_NONE;

	return i != TDT__INDEX_NONE ? names->task[i].group : UINT32_MAX;
}
