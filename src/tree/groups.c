// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Groups of tasks with equal trees, found by an index. */

#include "tree/groups.h"

#include <stdlib.h>

#include "symbolize/modules.h"
#include "tree/stacks.h"
#include "tree/trace.h"

#define FIRST_ROOM 32
#define NONES (TDT_TASK_UNKNOWN + 1)

bool tdt__groups_init(struct tdt__groups *groups)
{
	*groups = (struct tdt__groups){ .n = NONES, .room = FIRST_ROOM };
	groups->group = malloc(groups->room * sizeof groups->group[0]);
	groups->public = malloc(groups->room * sizeof groups->public[0]);
	groups->list = malloc(groups->room * sizeof groups->list[0]);
	if (groups->group == NULL || groups->public == NULL || groups->list == NULL ||
	    tdt__index_reserve(&groups->index, FIRST_ROOM) != 0) {
		groups->n = 0;
		return false;
	}
	for (unsigned state = 0; state < NONES; state++)
		groups->group[state] =
		    (struct tdt__group){ .answer = TDT_ANSWER_NONE, .state = state };
	return true;
}

void tdt__groups_fini(struct tdt__groups *groups)
{
	for (size_t i = 0; i < groups->n; i++)
		tdt_trace_free(groups->group[i].trace);
	free(groups->group);
	free(groups->public);
	free(groups->list);
	tdt__index_fini(&groups->index);
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
 * Make room for one more group.  If memory runs out, an array that has grown already does no harm.
 */
static bool grow(struct tdt__groups *groups)
{
	size_t room = 2 * groups->room;
	struct tdt__group *group;
	struct tdt_snapshot_group *public;
	const struct tdt_snapshot_group **list;

	if (groups->n < groups->room)
		return true;
	if (room > UINT32_MAX / 2)
		return false;
	group = realloc(groups->group, room * sizeof *group);
	if (group != NULL)
		groups->group = group;
	public = realloc(groups->public, room * sizeof *public);
	if (public != NULL)
		groups->public = public;
	list = realloc(groups->list, room * sizeof *list);
	if (list != NULL)
		groups->list = list;
	if (group == NULL || public == NULL || list == NULL ||
	    tdt__index_reserve(&groups->index, room) != 0)
		return false;
	groups->room = room;
	return true;
}

/*
 * The trace has no info of a task yet: findings.c fills it in.  The trace gets a copy of the
 * stacks, which are only lent.
 */
static bool add(struct tdt__groups *groups, const struct tdt__group *like, uint32_t hash,
		const struct tdt__stacks *stacks)
{
	struct tdt_trace *trace;

	if (!grow(groups))
		return false;
	trace = tdt__trace_bare(tdt__stacks_copy(stacks));
	if (trace == NULL)
		return false;
	groups->group[groups->n] = *like;
	groups->group[groups->n].trace = trace;
	tdt__index_add(&groups->index, hash, (uint32_t)groups->n++);
	return true;
}

static bool is_in(const struct tdt__group *group, const struct tdt__group *like,
		  const struct tdt__stacks *stacks)
{
	return group->answer == like->answer && group->state == like->state &&
	       group->child_place == like->child_place &&
	       same_trees(group->trace->stacks, stacks);
}

/* The group of these stacks, or TDT__INDEX_NONE. */
static uint32_t find_group(const struct tdt__groups *groups, const struct tdt__group *like,
			   uint32_t hash, const struct tdt__stacks *stacks)
{
	uint32_t i;

	TDT__INDEX_EACH (i, &groups->index, hash)
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
	if (index == TDT__INDEX_NONE) {
		if (!add(groups, like, hash, stacks))
			return like->state;
		index = (uint32_t)groups->n - 1;
	}
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

/* The group `index` again, without tasks.  0: no memory. */
static uint32_t split_off(struct tdt__groups *groups, uint32_t index, uint32_t deadlock)
{
	struct tdt_trace *trace = groups->group[index].trace;

	if (!grow(groups))
		return 0;
	if (trace != NULL) {
		trace = tdt__trace_bare(tdt__stacks_copy(trace->stacks));
		if (trace == NULL)
			return 0;
	}
	groups->group[groups->n] = (struct tdt__group){ .answer = groups->group[index].answer,
							.state = groups->group[index].state,
							.trace = trace,
							.deadlock = deadlock };
	groups->group[index].split = (uint32_t)groups->n;
	return (uint32_t)groups->n++;
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
	}
	if (split == 0)
		return false;
	groups->group[*index].n--;
	groups->group[split].n++;
	*index = split;
	return true;
}
