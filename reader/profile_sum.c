// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Adding up the looks of a profile. */

#include "reader/profile_sum.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "facts/family.h"
#include "tree/stacks.h"

int tdt__profile_sum_init(struct tdt__profile_sum *sum)
{
	*sum = (struct tdt__profile_sum){ 0 };
	if (tdt__groups_init(&sum->trees))
		return 0;
	tdt__groups_fini(&sum->trees);
	return -ENOMEM;
}

void tdt__profile_sum_fini(struct tdt__profile_sum *sum)
{
	tdt__groups_fini(&sum->trees);
	for (size_t i = 0; i < sum->n; i++)
		free(sum->group[i].fresh);
	tdt__table_fini(&sum->group_table);
	tdt__table_fini(&sum->stratum_table);
	tdt__table_fini(&sum->young_table);
	tdt__table_fini(&sum->name_table);
	*sum = (struct tdt__profile_sum){ 0 };
}

/* Add an entry of `size` bytes.  Returns its number, or TDT__PROFILE_NONE. */
static uint32_t add_entry(struct tdt__table *table, uint32_t hash, const void *entry, size_t size)
{
	return table->n < TDT__PROFILE_MOST ? tdt__table_add(table, hash, entry, size)
					    : TDT__PROFILE_NONE;
}

/* --- Names -------------------------------------------------------------------------------- */

uint32_t tdt__profile_name(struct tdt__profile_sum *sum, const char *name, uint64_t entry,
			   const char *file, uint32_t line)
{
	struct tdt__profile_name new = { .entry = name[0] == '\0' ? entry : 0 };
	uint32_t hash, i;

	tdt__family_name(new.text, sizeof new.text, name, file, line, '*');
	hash = new.entry != 0 ? tdt__hash_id(new.entry) : tdt__hash_text(new.text);
	TDT__INDEX_EACH (i, &sum->name_table.index, hash)
		if (sum->name[i].entry == new.entry &&
		    (new.entry != 0 || strcmp(sum->name[i].text, new.text) == 0))
			return i;
	return add_entry(&sum->name_table, hash, &new, sizeof new);
}

const char *tdt__profile_name_of(const struct tdt__profile_sum *sum, uint32_t name)
{
	return name < sum->n_names ? sum->name[name].text : "";
}

/* --- Trees and groups --------------------------------------------------------------------- */

uint32_t tdt__profile_tree(struct tdt__profile_sum *sum, const struct tdt__stacks *stacks)
{
	uint32_t tree;

	if (sum->trees.n >= TDT__PROFILE_MOST)
		return TDT__PROFILE_NONE;
	tree = tdt__groups_add(&sum->trees, TDT_ANSWER_LAST, TDT_TASK_WAITING, 0, stacks);
	return sum->trees.group[tree].trace != NULL ? tree : TDT__PROFILE_NONE;
}

/* The number of the entry that begins with the key, found or made; or TDT__PROFILE_NONE. */
static uint32_t note_summed(struct tdt__table *table, const void *entry, size_t key_size,
			    size_t size)
{
	return table->n < TDT__PROFILE_MOST ? tdt__table_note(table, entry, key_size, size)
					    : tdt__table_find(table, entry, key_size, size);
}

uint32_t tdt__profile_group(struct tdt__profile_sum *sum, enum tdt__profile_state state,
			    enum tdt_wait_kind kind, uint32_t name, uint32_t tree)
{
	const struct tdt__profile_group group = {
		.state = state, .kind = kind, .name = name, .tree = tree
	};

	return note_summed(&sum->group_table, &group, offsetof(struct tdt__profile_group, fresh),
			   sizeof group);
}

/* --- Looks -------------------------------------------------------------------------------- */

/* The stratum of tasks of that name and kind; NULL: no memory. */
static struct tdt__profile_stratum *find_stratum(struct tdt__profile_sum *sum, uint32_t name,
						 enum tdt_wait_kind kind)
{
	const struct tdt__profile_stratum stratum = { .name = name, .kind = kind };
	uint32_t i = note_summed(&sum->stratum_table, &stratum,
				 offsetof(struct tdt__profile_stratum, fresh_looks),
				 sizeof stratum);

	return i != TDT__PROFILE_NONE ? &sum->stratum[i] : NULL;
}

#define YOUNG_KEY offsetof(struct tdt__young_trees, looks)

uint32_t tdt__profile_young(struct tdt__profile_sum *sum, uint32_t name, uint32_t tree)
{
	const struct tdt__young_trees young = { .name = name, .tree = tree };

	return note_summed(&sum->young_table, &young, YOUNG_KEY, sizeof young);
}

void tdt__profile_add(struct tdt__profile_sum *sum, uint32_t number, double ns)
{
	sum->group[number].looks++;
	sum->group[number].weight += ns;
}

static void add_fresh(struct tdt__profile_sum *sum, struct tdt__profile_group *group,
		      const struct tdt__profile_wait *wait)
{
	struct tdt__profile_stratum *stratum = find_stratum(sum, group->name, group->kind);
	double weight = wait->ns / wait->chance;

	if (stratum != NULL && group->fresh == NULL)
		group->fresh = calloc(1, sizeof *group->fresh);
	if (stratum == NULL || group->fresh == NULL)
		return;
	group->looks++;
	stratum->looks += stratum->last_look != sum->look;
	stratum->last_look = sum->look;
	if (wait->young)
		group->fresh->young[wait->age] += weight;
	else
		group->fresh->old[wait->age] += weight;
	stratum->fresh_looks[wait->age]++;
	stratum->waited[wait->age] += wait->ns;
}

void tdt__profile_add_wait(struct tdt__profile_sum *sum, uint32_t number,
			   const struct tdt__profile_wait *wait)
{
	if (sum->group[number].tree == TDT__PROFILE_NONE)
		tdt__profile_add(sum, number, wait->ns);
	else
		add_fresh(sum, &sum->group[number], wait);
}

void tdt__profile_add_stale(struct tdt__profile_sum *sum, uint32_t name, enum tdt_wait_kind kind,
			    const struct tdt__profile_wait *wait)
{
	struct tdt__profile_stratum *stratum = find_stratum(sum, name, kind);

	if (stratum == NULL)
		return;
	stratum->waited[wait->age] += wait->ns;
	stratum->stale += wait->ns;
	stratum->stale_looks++;
}

/* --- The end ------------------------------------------------------------------------------ */

/* Scale the weights of a group's young trees, and add all weights to its stratum. */
static void scale_group(struct tdt__profile_sum *sum, struct tdt__profile_group *group)
{
	struct tdt__profile_stratum *stratum = find_stratum(sum, group->name, group->kind);
	const uint32_t key[] = { group->name, group->tree };
	uint32_t young = tdt__table_find(&sum->young_table, key, YOUNG_KEY, sizeof *sum->young);
	double scale[TDT__AGE_BINS];

	if (young != TDT__INDEX_NONE)
		tdt__young_scale(&sum->young[young], scale);
	for (unsigned i = 0; i < TDT__AGE_BINS; i++) {
		if (young != TDT__INDEX_NONE)
			group->fresh->young[i] *= scale[i];
		stratum->fresh[i] += group->fresh->young[i] + group->fresh->old[i];
	}
}

/* The stale time of a stratum without a fresh tree has no place. */
static int conclude_stale(struct tdt__profile_sum *sum, const struct tdt__profile_stratum *stratum)
{
	uint32_t group = tdt__profile_group(sum, TDT__PROFILE_WAITING, stratum->kind,
					    stratum->name, TDT__PROFILE_NONE);

	if (group == TDT__PROFILE_NONE)
		return -ENOMEM;
	sum->group[group].weight += stratum->stale;
	sum->group[group].looks += stratum->stale_looks;
	return 0;
}

/* Set `worth`, where weights of fresh trees were seen. */
static void distribute(struct tdt__profile_stratum *stratum)
{
	unsigned end;

	for (unsigned first = 0; first < TDT__AGE_BINS; first = end) {
		double waited = 0, fresh = 0;

		end = tdt__age_cell(stratum->fresh_looks, first);
		for (unsigned i = first; i < end; i++) {
			waited += stratum->waited[i];
			fresh += stratum->fresh[i];
		}
		for (unsigned i = first; i < end; i++)
			stratum->worth[i] = fresh > 0 ? waited / fresh : 0;
	}
}

static int conclude_stratum(struct tdt__profile_sum *sum, size_t number)
{
	struct tdt__profile_stratum *stratum = &sum->stratum[number];

	for (unsigned i = 0; i < TDT__AGE_BINS; i++) {
		if (stratum->fresh_looks[i] == 0)
			continue;
		distribute(stratum);
		sum->stale_ns += stratum->stale;
		sum->off_ns += stratum->stale * stratum->stale / (double)stratum->looks;
		return 0;
	}
	return conclude_stale(sum, stratum);
}

static void conclude_group(struct tdt__profile_sum *sum, struct tdt__profile_group *group)
{
	const struct tdt__profile_stratum *stratum;

	group->ns = group->weight;
	if (group->fresh != NULL) {
		stratum = find_stratum(sum, group->name, group->kind);
		for (unsigned i = 0; i < TDT__AGE_BINS; i++)
			group->ns += (group->fresh->young[i] + group->fresh->old[i]) *
				     stratum->worth[i];
	}
	sum->state_ns[group->state] += group->ns;
	if (group->state == TDT__PROFILE_WAITING && group->tree == TDT__PROFILE_NONE)
		sum->unknown_ns += group->ns;
}

int tdt__profile_conclude(struct tdt__profile_sum *sum)
{
	int error = 0;

	for (size_t i = 0; i < sum->n; i++)
		if (sum->group[i].fresh != NULL)
			scale_group(sum, &sum->group[i]);
	for (size_t i = 0; i < sum->n_strata && error == 0; i++)
		error = conclude_stratum(sum, i);
	sum->off_ns = sqrt(sum->off_ns);
	for (size_t i = 0; i < sum->n; i++)
		conclude_group(sum, &sum->group[i]);
	return error;
}
