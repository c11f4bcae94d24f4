// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Which groups stand below which. */

#include "kin.h"

#include <stdlib.h>

#include "names.h"
#include "words.h"

static bool has_children(const struct tdt_snapshot *snapshot)
{
	struct tdt_task_info room;

	for (size_t i = 0; i < snapshot->n_groups; i++)
		for (size_t k = 0; k < snapshot->groups[i]->n; k++)
			if (tdt__group_task(snapshot->groups[i], k, &room)->child != 0)
				return true;
	return false;
}

/* The group in which the parents of all its tasks are, and no task of its own. */
static uint32_t group_above(struct tdt__kin *kin, const struct tdt_snapshot_group *of,
			    const struct tdt__names *names, uint32_t group)
{
	uint32_t above = TDT__NO_KIN;
	struct tdt_task_info room;

	for (size_t k = 0; k < of->n; k++) {
		const struct tdt_task_info *task = tdt__group_task(of, k, &room);
		uint32_t parents = task->child != 0 ? tdt__names_group(names, task->parent)
						    : TDT__NO_KIN;

		if (parents != TDT__NO_KIN)
			kin[parents].children++;
		if (k == 0)
			above = parents;
		else if (parents != above)
			above = TDT__NO_KIN;
	}
	return above != group ? above : TDT__NO_KIN;
}

static void find_families(struct tdt__kin *kin, const struct tdt_snapshot *snapshot,
			  const struct tdt__names *names)
{
	for (uint32_t i = 0; i < snapshot->n_groups; i++)
		kin[i].first = TDT__NO_KIN;
	for (uint32_t i = (uint32_t)snapshot->n_groups; i-- > 0;) {
		struct tdt__kin *own = &kin[i], *above;

		own->above = group_above(kin, snapshot->groups[i], names, i);
		if (own->above == TDT__NO_KIN)
			continue;
		above = &kin[own->above];
		own->next = above->first;
		above->first = i;
		if (snapshot->groups[i]->trace != NULL)
			above->shown += snapshot->groups[i]->n;
	}
}

struct tdt__kin *tdt__kin_find(const struct tdt_snapshot *snapshot, struct tdt__out *out)
{
	struct tdt__names *names;
	struct tdt__kin *kin = NULL;

	if (!has_children(snapshot))
		return NULL;
	names = tdt__names_new(snapshot);
	if (names != NULL)
		kin = calloc(snapshot->n_groups, sizeof(kin[0]));
	if (kin != NULL)
		find_families(kin, snapshot, names);
	else
		out->no_memory = true;
	tdt__names_free(names);
	return kin;
}
