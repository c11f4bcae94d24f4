// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Finds names by ids.  A snapshot may have 100,000 tasks, and each of them may wait for another
 * one, whose name is printed.
 */

#include "names.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"

struct task {
	const struct tdt_task_info *info;
	uint32_t group; /* its number; UINT32_MAX: it is in none */
};

struct tdt__names {
	TDT__TABLE(struct task, task, n); /* by their ids */
};

/* The task with this id, or TDT__INDEX_NONE. */
static uint32_t find_named(const struct tdt__names *names, uint64_t id)
{
	uint32_t i;

	TDT__INDEX_EACH (i, &names->task_table.index, tdt__hash_id(id))
		if (names->task[i].info->id == id)
			break;
	return i;
}

/* Add a task, unless there is one with its id.  False: no memory. */
static bool add_named(struct tdt__names *names, const struct tdt_task_info *info, uint32_t group)
{
	const struct task new = { info, group };

	return find_named(names, info->id) != TDT__INDEX_NONE ||
	       tdt__table_add(&names->task_table, tdt__hash_id(info->id), &new, sizeof new) !=
		       TDT__INDEX_NONE;
}

struct tdt__names *tdt__names_new(const struct tdt_snapshot *snapshot)
{
	struct tdt__names *names = calloc(1, sizeof *names);
	bool enough = names != NULL;

	for (size_t i = 0; i < snapshot->n_groups; i++)
		for (size_t j = 0; j < snapshot->groups[i]->n && enough; j++)
			enough = add_named(names, snapshot->groups[i]->tasks[j], (uint32_t)i);
	for (size_t i = 0; i < snapshot->n_orphans && enough; i++)
		enough = add_named(names, snapshot->orphans[i]->tasks[0], UINT32_MAX);
	if (enough)
		return names;
	tdt__names_free(names);
	return NULL;
}

void tdt__names_free(struct tdt__names *names)
{
	if (names == NULL)
		return;
	tdt__table_fini(&names->task_table);
	free(names);
}

const struct tdt_task_info *tdt__names_task(const struct tdt__names *names, uint64_t id)
{
	uint32_t i = names != NULL ? find_named(names, id) : TDT__INDEX_NONE;

	return i != TDT__INDEX_NONE ? names->task[i].info : NULL;
}

const char *tdt__names_find(const struct tdt__names *names, uint64_t id)
{
	const struct tdt_task_info *task = tdt__names_task(names, id);

	return task != NULL ? task->name : NULL;
}

uint32_t tdt__names_group(const struct tdt__names *names, uint64_t id)
{
	uint32_t i = names != NULL ? find_named(names, id) : TDT__INDEX_NONE;

	return i != TDT__INDEX_NONE ? names->task[i].group : UINT32_MAX;
}
