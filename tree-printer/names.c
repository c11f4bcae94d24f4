// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A hash table from ids to names: a snapshot may have 100,000 tasks, and each of them may wait for another. */

#include <config.h>

#include "names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

struct slot {
	uint64_t id;
	const char *name;
	bool used;
};

struct tdt__names {
	size_t slots; /* a power of two, twice the tasks at least: there is always a free one */
	struct slot slot[];
};

/* Where `id` is, or else would be. */
static size_t find(const struct tdt__names *names, uint64_t id)
{
	size_t at = (size_t)((id * 0x9e3779b97f4a7c15u) >> 32) & (names->slots - 1);

	while (names->slot[at].used && names->slot[at].id != id)
		at = (at + 1) & (names->slots - 1);
	return at;
}

static void add(struct tdt__names *names, const struct tdt_trace_info *task)
{
	struct slot *slot = &names->slot[find(names, task->id)];

	if (!slot->used)
		*slot = (struct slot){ .id = task->id, .name = task->name, .used = true };
}

struct tdt__names *tdt__names_new(const struct tdt_snapshot *snapshot)
{
	struct tdt__names *names;
	size_t n = 0, slots = 16;

	for (size_t i = 0; i < snapshot->n_groups; i++)
		n += snapshot->groups[i].n;
	while (slots / 2 <= n)
		slots *= 2;
	names = calloc(1, sizeof(*names) + slots * sizeof(names->slot[0]));
	if (names == NULL)
		return NULL;
	names->slots = slots;
	for (size_t i = 0; i < snapshot->n_groups; i++)
		for (size_t j = 0; j < snapshot->groups[i].n; j++)
			add(names, snapshot->groups[i].tasks[j]);
	return names;
}

void tdt__names_free(struct tdt__names *names)
{
	free(names);
}

const char *tdt__names_find(const struct tdt__names *names, uint64_t id)
{
	return names != NULL ? names->slot[find(names, id)].name : NULL;
}
