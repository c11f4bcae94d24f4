// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A hash table of trees. */

#include <config.h>

#include "groups.h"

#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "trace.h"

#define FIRST_ROOM 32
#define NONES (TDT_TASK_PANICKED + 1)

bool tdt__groups_init(struct tdt__groups *groups)
{
	*groups = (struct tdt__groups){ .n = NONES, .room = FIRST_ROOM, .slots = 2 * FIRST_ROOM };
	groups->group = malloc(groups->room * sizeof groups->group[0]);
	groups->public = malloc(groups->room * sizeof groups->public[0]);
	groups->slot = calloc(groups->slots, sizeof groups->slot[0]);
	if (groups->group == NULL || groups->public == NULL || groups->slot == NULL) {
		groups->n = 0;
		return false;
	}
	for (unsigned state = 0; state < NONES; state++)
		groups->group[state] = (struct tdt__group){ .answer = TDT_ANSWER_NONE, .state = state };
	return true;
}

void tdt__groups_fini(struct tdt__groups *groups)
{
	for (size_t i = 0; i < groups->n; i++)
		tdt_trace_free(groups->group[i].trace);
	free(groups->group);
	free(groups->public);
	free(groups->slot);
}

/* --- What is alike --------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

static bool is_astray(const struct tdt__capture *capture)
{
	return atomic_load_explicit(&capture->astray, memory_order_relaxed);
}

/* A PC means the same under all snapshots of the modules that have this in common. */
static uint64_t generation(const struct tdt__capture *capture)
{
	const struct tdt__modules *modules = tdt__walk_modules(&capture->walk);

	return modules->lasting ? 0 : modules->unloads + 1;
}

static uint64_t hash_of(enum tdt_answer answer, enum tdt_task_state state, const struct tdt__capture *capture)
{
	uint64_t hash = mix((uint64_t)answer << 8 | state, capture->n);

	for (uint32_t i = 0; i < capture->n; i++) {
		const struct tdt__captured *captured = &capture->frames[i];

		hash = mix(hash, captured->frame.pc);
		hash = mix(hash, (uint64_t)captured->parent << 32 | captured->leaves);
	}
	return hash;
}

static bool same_trees(const struct tdt__capture *a, const struct tdt__capture *b)
{
	if (a->n != b->n || generation(a) != generation(b) || is_astray(a) != is_astray(b))
		return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->frames[i].frame.pc != b->frames[i].frame.pc || a->frames[i].parent != b->frames[i].parent ||
		    a->frames[i].leaves != b->frames[i].leaves ||
		    a->frames[i].frame.guessed != b->frames[i].frame.guessed)
			return false;
	return true;
}

/* --- The table --------------------------------------------------------------- */

static size_t slot_of(const struct tdt__groups *groups, uint64_t hash)
{
	return hash >> 32 & (groups->slots - 1);
}

static void enter(struct tdt__groups *groups, uint32_t index)
{
	size_t slot = slot_of(groups, groups->group[index].hash);

	while (groups->slot[slot] != 0)
		slot = (slot + 1) & (groups->slots - 1);
	groups->slot[slot] = index + 1;
}

/* Room for one more.  What has grown when memory ends does no harm. */
static bool grow(struct tdt__groups *groups)
{
	size_t room = 2 * groups->room;
	struct tdt__group *group;
	struct tdt_snapshot_group *public;
	uint32_t *slot;

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
	slot = calloc(2 * room, sizeof *slot);
	if (group == NULL || public == NULL || slot == NULL) {
		free(slot);
		return false;
	}
	free(groups->slot);
	groups->slot = slot;
	groups->slots = 2 * room;
	groups->room = room;
	for (uint32_t i = NONES; i < groups->n; i++)
		enter(groups, i);
	return true;
}

/*
 * The trace is told what to say of which task by who makes the snapshot.  It gets a copy: the capture has room for more,
 * and is used again.
 */
static bool add(struct tdt__groups *groups, enum tdt_answer answer, enum tdt_task_state state, uint64_t hash,
		const struct tdt__capture *capture)
{
	struct tdt__capture *copy;
	struct tdt_trace *trace;

	if (!grow(groups))
		return false;
	copy = tdt__capture_copy(capture);
	trace = copy != NULL ? tdt__trace_bare(copy) : NULL;
	if (trace == NULL)
		return false;
	groups->group[groups->n++] =
		(struct tdt__group){ .answer = answer, .state = state, .trace = trace, .hash = hash };
	enter(groups, (uint32_t)groups->n - 1);
	return true;
}

static bool is_in(const struct tdt__group *group, enum tdt_answer answer, enum tdt_task_state state,
		  const struct tdt__capture *capture)
{
	return group->answer == answer && group->state == state && same_trees(group->trace->capture, capture);
}

/* The group of a capture.  0: there is none. */
static uint32_t find(const struct tdt__groups *groups, enum tdt_answer answer, enum tdt_task_state state, uint64_t hash,
		     const struct tdt__capture *capture)
{
	for (size_t slot = slot_of(groups, hash); groups->slot[slot] != 0; slot = (slot + 1) & (groups->slots - 1)) {
		uint32_t index = groups->slot[slot] - 1;

		if (groups->group[index].hash == hash && is_in(&groups->group[index], answer, state, capture))
			return index;
	}
	return 0;
}

static uint32_t index_of(struct tdt__groups *groups, enum tdt_answer answer, enum tdt_task_state state,
			 const struct tdt__capture *capture)
{
	uint64_t hash;
	uint32_t index;

	if (capture == NULL)
		return state;
	/* That may be one without a tree, whose answer is another. */
	if (is_in(&groups->group[groups->last], answer, state, capture))
		return groups->last;
	hash = hash_of(answer, state, capture);
	index = find(groups, answer, state, hash, capture);
	if (index == 0 && !add(groups, answer, state, hash, capture))
		return state;
	groups->last = index != 0 ? index : (uint32_t)groups->n - 1;
	return groups->last;
}

uint32_t tdt__groups_add(struct tdt__groups *groups, enum tdt_answer answer, enum tdt_task_state state,
			 const struct tdt__capture *capture)
{
	uint32_t index = index_of(groups, answer, state, capture);

	groups->group[index].n++;
	return index;
}
