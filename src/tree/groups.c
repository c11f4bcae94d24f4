// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Groups of tasks with equal trees, found by an index. */

#include "tree/groups.h"

#include <stdlib.h>

#include "symbolize/modules.h"
#include "tree/stacks.h"
#include "tree/trace.h"

/* Add a group, with room in the list for it.  TDT__INDEX_NONE: no memory. */
static uint32_t add(struct tdt__groups *groups, const struct tdt__group *group, uint32_t hash)
{
	if (!tdt__array_grow(&groups->list, groups->n, &groups->list_room, sizeof groups->list[0]))
		return TDT__INDEX_NONE;
	return tdt__table_add(&groups->group_table, hash, group, sizeof *group);
}

bool tdt__groups_init(struct tdt__groups *groups)
{
	*groups = (struct tdt__groups){ 0 };
	for (unsigned state = 0; state <= TDT_TASK_UNKNOWN; state++)
		if (add(groups, &(struct tdt__group){ .answer = TDT_ANSWER_NONE, .state = state },
			0) == TDT__INDEX_NONE)
			return false;
	return true;
}

void tdt__groups_fini(struct tdt__groups *groups)
{
	for (size_t i = 0; i < groups->n; i++)
		tdt_trace_free(groups->group[i].trace);
	free(groups->list);
	tdt__table_fini(&groups->group_table);
}

static bool is_astray(const struct tdt__stacks *stacks)
{
	return atomic_load_explicit(&stacks->astray, memory_order_relaxed);
}

/* A PC means the same under all snapshots of the modules that have the same generation. */
static uint64_t generation(const struct tdt__stacks *stacks)
{
	const struct tdt__modules *modules = stacks->modules;

	return modules->lasting ? 0 : modules->unloads + 1;
}

static uint32_t hash_of(const struct tdt__group *like, const struct tdt__stacks *stacks)
{
	uint64_t hash = tdt__mix((uint64_t)like->answer << 8 | like->state, stacks->n);

	hash = tdt__mix(hash, like->child_place);
	for (uint32_t i = 0; i < stacks->n; i++) {
		const struct tdt__recorded *recorded = &stacks->frames[i];

		hash = tdt__mix(hash, recorded->frame.pc);
		hash = tdt__mix(hash, (uint64_t)recorded->parent << 32 | recorded->leaves);
	}
	return (uint32_t)hash;
}

static bool same_trees(const struct tdt__stacks *a, const struct tdt__stacks *b)
{
	if (a->n != b->n || generation(a) != generation(b) || is_astray(a) != is_astray(b))
		return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->frames[i].frame.pc != b->frames[i].frame.pc ||
		    a->frames[i].parent != b->frames[i].parent ||
		    a->frames[i].leaves != b->frames[i].leaves ||
		    a->frames[i].frame.guessed != b->frames[i].frame.guessed)
			return false;
	return true;
}

/*
 * Add a group with a copy of these stacks.  Its trace has no info of a task yet: findings.c fills
 * it in.
 */
static uint32_t add_tree(struct tdt__groups *groups, const struct tdt__group *like, uint32_t hash,
			 const struct tdt__stacks *stacks)
{
	struct tdt__group group = *like;
	uint32_t index;

	group.trace = tdt__trace_bare(tdt__stacks_copy(stacks));
	if (group.trace == NULL)
		return TDT__INDEX_NONE;
	index = add(groups, &group, hash);
	if (index == TDT__INDEX_NONE)
		tdt_trace_free(group.trace);
	return index;
}

static bool is_in(const struct tdt__group *group, const struct tdt__group *like,
		  const struct tdt__stacks *stacks)
{
	return group->answer == like->answer && group->state == like->state &&
	       group->child_place == like->child_place && group->trace != NULL &&
	       same_trees(group->trace->stacks, stacks);
}

/* The group of these stacks, or TDT__INDEX_NONE. */
static uint32_t find_group(const struct tdt__groups *groups, const struct tdt__group *like,
			   uint32_t hash, const struct tdt__stacks *stacks)
{
	uint32_t i;

	TDT__INDEX_EACH (i, &groups->group_table.index, hash)
		if (is_in(&groups->group[i], like, stacks))
			break;
	return i;
}

static uint32_t index_of(struct tdt__groups *groups, const struct tdt__group *like,
			 const struct tdt__stacks *stacks)
{
	uint32_t hash, index;

	if (stacks == NULL)
		return like->state;
	/* If the last group has no tree, its answer differs, and it is never a match. */
	if (is_in(&groups->group[groups->last], like, stacks))
		return groups->last;
	hash = hash_of(like, stacks);
	index = find_group(groups, like, hash, stacks);
	if (index == TDT__INDEX_NONE)
		index = add_tree(groups, like, hash, stacks);
	if (index == TDT__INDEX_NONE)
		return like->state;
	groups->last = index;
	return index;
}

uint32_t tdt__groups_add(struct tdt__groups *groups, enum tdt_answer answer,
			 enum tdt_task_state state, uint64_t child_place,
			 const struct tdt__stacks *stacks)
{
	const struct tdt__group like = { .answer = answer, .state = state,
					 .child_place = child_place };
	uint32_t index = index_of(groups, &like, stacks);

	groups->group[index].n++;
	return index;
}

/* The group `index` again, without tasks.  TDT__INDEX_NONE: no memory. */
static uint32_t split_off(struct tdt__groups *groups, uint32_t index, uint32_t deadlock)
{
	const struct tdt__group *whole = &groups->group[index];
	uint32_t hash = tdt__hash_id(groups->n); /* nobody looks it up; equal ones would be slow */
	const struct tdt__group like = { .answer = whole->answer,
					 .state = whole->state,
					 .deadlock = deadlock };

	return whole->trace == NULL ? add(groups, &like, hash)
				    : add_tree(groups, &like, hash, whole->trace->stacks);
}

bool tdt__groups_split(struct tdt__groups *groups, uint32_t *index, uint32_t deadlock)
{
	uint32_t split = groups->group[*index].split;

	if (split == 0 || groups->group[split].deadlock != deadlock) {
		if (groups->group[*index].n == 1) {
			groups->group[*index].deadlock = deadlock;
			return true;
		}
		split = split_off(groups, *index, deadlock);
		if (split == TDT__INDEX_NONE)
			return false;
		groups->group[*index].split = split;
	}
	groups->group[*index].n--;
	groups->group[split].n++;
	*index = split;
	return true;
}
