// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The looks of a profile.  Most tasks of most programs wait for long, so a look that finds a task
 * in the same wait as the look before needs nothing but the record.  For other waits the number of
 * the task's trees is read, and the tree if it is a new one; with it the record is read again, in
 * one system call.  The task counts as it is at that moment, or else a wait that is short would be
 * over by the time its tree is read.
 */

#include "reader/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "facts/record.h"
#include "reader/lists.h"
#include "symbolize/modules.h"
#include "tree/stacks.h"

#define WALKS_MOST 200 /* stacks that a look reads */
#define CHANCE_LEAST 0.001
#define GAP_UNKNOWN 1000000 /* ns: shorter than the clock that the runtime has */

int tdt__profile_begin(struct tdt__profile *profile, struct tdt__target *target,
		       struct tdt__images *images, const struct tdt__found *found)
{
	*profile = (struct tdt__profile){ .watched_from = UINT64_MAX,
					  .tasks = { .target = target,
						     .images = images,
						     .registry = found->registry } };
	profile->trees.tasks = &profile->tasks;
	profile->live = (struct tdt__live_stacks){ .tasks = &profile->tasks,
					    .walker.images = images,
					    .sampling = &profile->sampling };
	return tdt__profile_sum_init(&profile->sum);
}

void tdt__profile_end(struct tdt__profile *profile)
{
	for (size_t i = 0; i < profile->n_slabs; i++)
		free(profile->slab[i].task);
	tdt__table_fini(&profile->slab_table);
	tdt__tree_reader_fini(&profile->trees);
	tdt__walker_fini(&profile->live.walker);
	tdt__profile_sum_fini(&profile->sum);
}

/* --- What is remembered of each task ------------------------------------------------------ */

/* The memory of the first `n` records of a slab; NULL: no memory. */
static struct tdt__profiled *tasks_of_slab(struct tdt__profile *profile, uint64_t address, size_t n)
{
	const struct tdt__profiled_slab new = { .address = address };
	uint32_t i = tdt__table_note(&profile->slab_table, &new, sizeof new.address, sizeof new);
	struct tdt__profiled_slab *slab;
	struct tdt__profiled *grown;

	if (i == TDT__INDEX_NONE)
		return NULL;
	slab = &profile->slab[i];
	if (n <= slab->room)
		return slab->task;
	n = n > 2 * slab->room ? n : 2 * slab->room;
	grown = realloc(slab->task, n * sizeof *grown);
	if (grown == NULL)
		return NULL;
	memset(grown + slab->room, 0, (n - slab->room) * sizeof *grown);
	slab->task = grown;
	slab->room = n;
	return grown;
}

static uint32_t name_task(struct tdt__profile *profile, const struct tdt_task_record *record)
{
	char file[TDT__PROFILE_NAME_MAX - 32] = "", name[TDT_TASK_RECORD_NAME_SIZE];
	uint64_t entry = 0;

	memcpy(name, record->name, sizeof name);
	name[sizeof name - 1] = '\0';
	if (name[0] == '\0' && record->file != 0 &&
	    !tdt__images_string(profile->tasks.images, record->file, file, sizeof file))
		file[0] = '\0';
	if (name[0] == '\0')
		entry = tdt__seen_entry(&profile->tasks, record);
	return tdt__profile_name(&profile->sum, name, entry, file, record->line);
}

static void begin_profiled(struct tdt__profile *profile, struct tdt__profiled *task,
		       const struct tdt_task_record *record)
{
	*task = (struct tdt__profiled){ .id = record->id,
					.polls = UINT64_MAX,
					.group = TDT__PROFILE_NONE,
					.poll_tree = TDT__PROFILE_NONE,
					.name = name_task(profile, record) };
}

/* --- Ages --------------------------------------------------------------------------------- */

static uint64_t time_of_target(const struct tdt__profile *profile)
{
	return tdt__clock() + (uint64_t)profile->tasks.target->clock_offset;
}

static unsigned age_bin(const struct tdt__profile *profile, uint64_t since)
{
	return tdt__age_bin(profile->now > since ? profile->now - since : 0);
}

static bool is_young(const struct tdt__profile *profile, const struct tdt__profiled_tree *tree)
{
	return tree->young != 0 && age_bin(profile, tree->when) < tree->young;
}

/* This look sees the task's last tree, whether it is fresh or not. */
static void see_tree(struct tdt__profile *profile, const struct tdt__profiled_tree *tree)
{
	if (is_young(profile, tree))
		tdt__young_see(&profile->sum.young[tree->trees], profile->ns / tree->chance,
			       age_bin(profile, tree->when), tree->young);
}

/* --- Counting a task ---------------------------------------------------------------------- */

static void count_in(struct tdt__profile *profile, enum tdt__profile_state state,
		     enum tdt_wait_kind kind, uint32_t name, uint32_t tree)
{
	uint32_t group = tdt__profile_group(&profile->sum, state, kind, name, tree);

	if (group != TDT__PROFILE_NONE)
		tdt__profile_add(&profile->sum, group, profile->ns);
}

/* The tree of a function alone, for tasks whose stack is not known. */
static uint32_t tree_of_function(struct tdt__profile *profile, uint64_t function)
{
	struct tdt__stacks *stacks = function != 0 ? tdt__stacks_new(1) : NULL;
	uint32_t tree = TDT__PROFILE_NONE;

	if (stacks == NULL)
		return tree;
	stacks->n = stacks->leaves = 1;
	stacks->modules = tdt__modules_ref(profile->tasks.images->table);
	/* As if it were a return address, which is looked up one byte before. */
	stacks->frames[0] = (struct tdt__recorded){ .frame.pc = function + 1,
						    .parent = TDT__PARENT_TOP,
						    .leaves = 1 };
	tree = tdt__profile_tree(&profile->sum, stacks);
	tdt__stacks_free(stacks);
	return tree;
}

/* Of a task of tdt_task_new(), the poll function is one of the library. */
static uint32_t poll_tree(struct tdt__profile *profile, struct tdt__profiled *task,
			  const struct tdt_task_record *record)
{
	bool has_poll = (record->stack_top != 0 || record->polls == 0) &&
			!tdt__is_seen_callback(&profile->tasks, record);

	if (task->poll_tree == TDT__PROFILE_NONE && has_poll)
		task->poll_tree = tree_of_function(profile, record->poll);
	return task->poll_tree;
}

static void count_runnable(struct tdt__profile *profile, struct tdt__profiled *task,
			   const struct tdt_task_record *record)
{
	count_in(profile, TDT__PROFILE_RUNNABLE, TDT_WAIT_UNKNOWN, task->name,
		 poll_tree(profile, task, record));
}

static void count_waiting(struct tdt__profile *profile, const struct tdt__profiled *task,
			  const struct tdt_task_record *record)
{
	const struct tdt__profile_wait wait = {
		.ns = profile->ns,
		.age = age_bin(profile, record->since),
		.chance = task->chance,
		.young = task->tree.polls == record->polls && is_young(profile, &task->tree),
	};

	if (task->group != TDT__PROFILE_NONE)
		tdt__profile_add_wait(&profile->sum, task->group, &wait);
	else if (record->since > profile->watched_from)
		tdt__profile_add_stale(&profile->sum, task->name, tdt__wait_of_record(record).kind,
				       &wait);
	else
		count_in(profile, TDT__PROFILE_WAITING, tdt__wait_of_record(record).kind,
			 task->name, TDT__PROFILE_NONE);
}

/* --- Polls that go on --------------------------------------------------------------------- */

static uint32_t tree_of_stack(struct tdt__profile *profile, struct tdt__stacks *stacks)
{
	uint32_t tree = stacks != NULL && stacks->n != 0 ? tdt__profile_tree(&profile->sum, stacks)
							 : TDT__PROFILE_NONE;

	tdt__stacks_free(stacks);
	return tree;
}

static void count_polling(struct tdt__profile *profile, struct tdt__profiled *task,
			  const struct tdt__seen *seen)
{
	struct tdt__seen_task polling = { .seen = seen };
	uint32_t tree = TDT__PROFILE_NONE;

	if (profile->walks > 0) {
		profile->walks--;
		tree = tree_of_stack(profile, tdt__live_poll(&profile->live, &polling));
	}
	if (tree == TDT__PROFILE_NONE)
		tree = poll_tree(profile, task, &seen->record);
	count_in(profile, TDT__PROFILE_POLLING, TDT_WAIT_UNKNOWN, task->name, tree);
}

/* --- Waits -------------------------------------------------------------------------------- */

/* From now on the task is known to wait at that tree, until it is polled again. */
static void find_waiting(struct tdt__profile *profile, struct tdt__profiled *task,
			 const struct tdt_task_record *record, uint32_t tree, double chance)
{
	task->polls = record->polls;
	task->group = tdt__profile_group(&profile->sum, TDT__PROFILE_WAITING,
					 tdt__wait_of_record(record).kind, task->name, tree);
	task->chance = (float)(tree != TDT__PROFILE_NONE ? chance : 1);
	task->stale_looks = 0;
}

/* The chance with which the watch captures a poll that comes so long after the one before. */
static double chance_of(const struct tdt_registry_tree *tree)
{
	uint64_t gap = tree->gap != 0 ? tree->gap : GAP_UNKNOWN;
	double chance = (double)gap / (double)tree->tick;

	return chance > 1 ? 1 : chance < CHANCE_LEAST ? CHANCE_LEAST : chance;
}

/* Whether the tree is of a poll that had to be captured: the first one, or a requested one. */
static bool is_certain(const struct tdt__profile *profile, const struct tdt__read_tree *read)
{
	const struct tdt_registry_tree *tree = &read->head;

	return tree->polls <= 1 || tree->tick == 0 || tree->when <= profile->watched_from ||
	       (tree->polls == read->record.polls && tree->when != read->record.since);
}

static void remember_tree(struct tdt__profile *profile, struct tdt__profiled *task,
			  const struct tdt__read_tree *read, uint32_t tree)
{
	struct tdt__profiled_tree *last = &task->tree;

	*last = (struct tdt__profiled_tree){ .polls = read->head.polls,
					     .when = read->head.when,
					     .chance = 1 };
	if (is_certain(profile, read))
		return;
	last->chance = (float)chance_of(&read->head);
	/* The tick came within the gap, so this tree stays for at least the rest of a tick. */
	if (tree == TDT__PROFILE_NONE || read->head.gap >= read->head.tick)
		return;
	last->trees = tdt__profile_young(&profile->sum, task->name, tree);
	if (last->trees != TDT__PROFILE_NONE)
		last->young = (uint8_t)tdt__age_bin(read->head.tick - read->head.gap);
}

static void read_last_tree(struct tdt__profile *profile, struct tdt__profiled *task,
			   struct tdt__seen *seen)
{
	const struct tdt__seen_task seen_task = { .seen = seen };
	struct tdt__read_tree read;
	uint32_t tree;

	if (tdt__tree_read(&profile->trees, &seen_task, &read) != 0)
		return;
	profile->now = time_of_target(profile);
	seen->still = seen->still && memcmp(&read.record, &seen->record, sizeof read.record) == 0;
	seen->record = read.record;
	task->published = read.published;
	tree = tree_of_stack(profile, read.stacks);
	remember_tree(profile, task, &read, tree);
	if (read.head.polls == read.record.polls)
		find_waiting(profile, task, &read.record, tree, task->tree.chance);
}

/* The tree that the task has answered with when the profile began, if it is still in that wait. */
static bool use_first_answer(struct tdt__profile *profile, struct tdt__profiled *task,
			const struct tdt__seen *seen)
{
	const struct tdt_outside_tree *answer =
		profile->answers != NULL ? tdt__answers_find(profile->answers, seen) : NULL;
	struct tdt__read_tree tree;

	if (answer == NULL || answer->tree.polls != seen->record.polls ||
	    tdt__answer_tree(answer, &profile->trees, &tree) != 0)
		return false;
	find_waiting(profile, task, &seen->record, tree_of_stack(profile, tree.stacks), 1);
	return true;
}

/* The list at which the task waits, or the stack of its fiber or coroutine. */
static void find_live_stack(struct tdt__profile *profile, struct tdt__profiled *task,
		       const struct tdt__seen *seen)
{
	struct tdt__seen_task waiting = { .seen = seen };
	struct tdt__stacks *stacks = NULL;

	if (profile->walks == 0)
		return;
	profile->walks--;
	if (seen->record.suspended_pc != 0)
		stacks = tdt__live_suspended(&profile->live, &waiting);
	if (stacks == NULL)
		stacks = tdt__list_read(&profile->tasks, &waiting);
	if (stacks != NULL)
		find_waiting(profile, task, &seen->record, tree_of_stack(profile, stacks), 1);
}

/* Whether the place of this wait was found before. */
static bool is_known(const struct tdt__profiled *task, const struct tdt__seen *seen)
{
	return task->group != TDT__PROFILE_NONE && task->polls == seen->record.polls;
}

/* Whether the task may wait at a list, or on a stack that stands. */
static bool has_live_stack(const struct tdt_task_record *record)
{
	return record->suspended_pc != 0 || record->leaf != 0 ||
	       record->poll == TDT_TASK_RECORD_REPORTED;
}

/* Count a task as it is.  Of a wait that is not known, no tree is found, or not in this look. */
static void count_as_seen(struct tdt__profile *profile, struct tdt__profiled *task,
		       const struct tdt__seen *seen)
{
	switch (tdt__record_state(&seen->record)) {
	case TDT_TASK_RUNNING:
		count_polling(profile, task, seen);
		break;
	case TDT_TASK_RUNNABLE:
		count_runnable(profile, task, &seen->record);
		break;
	case TDT_TASK_WAITING:
		if (!is_known(task, seen)) {
			bool again = task->group == TDT__PROFILE_NONE &&
				     task->polls == seen->record.polls;
			bool later = profile->walks == 0 && has_live_stack(&seen->record);

			task->stale_looks = again && task->stale_looks > 0 && !later ? 2 : 1;
			task->group = TDT__PROFILE_NONE;
			task->polls = seen->record.polls;
		}
		count_waiting(profile, task, &seen->record);
		break;
	default:
		return;
	}
	see_tree(profile, &task->tree);
	profile->found++;
}

/* --- Candidates --------------------------------------------------------------------------- */

static void find_wait(struct tdt__profile *profile, struct tdt__profiled *task,
		      const struct tdt__seen *seen)
{
	if (tdt__record_state(&seen->record) != TDT_TASK_WAITING || is_known(task, seen) ||
	    use_first_answer(profile, task, seen))
		return;
	if (has_live_stack(&seen->record))
		find_live_stack(profile, task, seen);
}

/* Count the candidate as it is now: `record` was read again, with the number of trees. */
static void count_candidate(struct tdt__profile *profile, struct tdt__profile_candidate *candidate,
			    const struct tdt_task_record *record, uint32_t published)
{
	struct tdt__seen *seen = &candidate->seen;

	if (record->seq != seen->record.seq || record->id != seen->record.id)
		return; /* the task has ended */
	seen->still = memcmp(record, &seen->record, sizeof *record) == 0;
	seen->record = *record;
	if (published != candidate->task->published)
		read_last_tree(profile, candidate->task, seen);
	find_wait(profile, candidate->task, seen);
	count_as_seen(profile, candidate->task, seen);
}

static void count_candidates(struct tdt__profile *profile)
{
	struct tdt_registry_watched head[TDT__PROFILE_TOGETHER];
	struct tdt_task_record record[TDT__PROFILE_TOGETHER];
	uint32_t seq[TDT__PROFILE_TOGETHER];
	struct tdt__memory_range range[3 * TDT__PROFILE_TOGETHER];
	size_t n = profile->n_candidates;
	uint64_t now;

	for (size_t i = 0; i < n; i++) {
		const struct tdt__seen *seen = &profile->candidate[i].seen;

		head[i].published = profile->candidate[i].task->published;
		range[3 * i] = (struct tdt__memory_range){
			seen->record.tree, &head[i], seen->record.tree != 0 ? sizeof head[i] : 0,
			false
		};
		range[3 * i + 1] = (struct tdt__memory_range){ seen->address, &record[i],
							       sizeof record[i], false };
		range[3 * i + 2] = (struct tdt__memory_range){
			seen->address + offsetof(struct tdt_task_record, seq), &seq[i],
			sizeof seq[i], false
		};
	}
	tdt__target_read_ranges(profile->tasks.target, range, 3 * n);
	now = time_of_target(profile);
	for (size_t i = 0; i < n; i++) {
		profile->now = now;
		/* Otherwise the record may have parts of two tasks. */
		if (range[3 * i + 1].read && range[3 * i + 2].read && seq[i] == record[i].seq)
			count_candidate(profile, &profile->candidate[i], &record[i],
					head[i].published);
	}
	profile->n_candidates = 0;
}

static void add_candidate(struct tdt__profile *profile, struct tdt__profiled *task,
			  uint64_t address, const struct tdt_task_record *record)
{
	struct tdt__profile_candidate *candidate = &profile->candidate[profile->n_candidates++];

	candidate->task = task;
	candidate->seen = (struct tdt__seen){ .address = address, .record = *record };
	if (profile->n_candidates == TDT__PROFILE_TOGETHER)
		count_candidates(profile);
}

/* --- A look ------------------------------------------------------------------------------- */

static bool has_live_task(const struct tdt_task_record *record)
{
	return record->seq % 2 == 0 && (record->state == TDT_TASK_RECORD_IDLE ||
					record->state == TDT_TASK_RECORD_POLLING);
}

/* Whether the record alone says all: the task is in a wait whose place was found, or has none. */
static bool is_simple(const struct tdt__profiled *task, const struct tdt_task_record *record)
{
	return record->state == TDT_TASK_RECORD_IDLE && task->polls == record->polls &&
	       (task->group != TDT__PROFILE_NONE || task->stale_looks == 2);
}

static void look_at_record(struct tdt__profile *profile, struct tdt__profiled *task,
			   uint64_t address, const struct tdt_task_record *record)
{
	if (!has_live_task(record))
		return;
	if (task->id != record->id)
		begin_profiled(profile, task, record);
	if (!is_simple(task, record)) {
		add_candidate(profile, task, address, record);
		return;
	}
	profile->found++;
	see_tree(profile, &task->tree);
	if (tdt__record_state(record) == TDT_TASK_RUNNABLE)
		count_runnable(profile, task, record);
	else
		count_waiting(profile, task, record);
}

/* A tdt__piece_fn. */
static int look_at_piece(const struct tdt__record_piece *piece, void *arg)
{
	struct tdt__profile *profile = arg;
	struct tdt__profiled *task;

	if (piece->stride % sizeof(uint64_t) != 0)
		return -EIO;
	profile->now = time_of_target(profile);
	task = tasks_of_slab(profile, piece->slab, piece->first + piece->n);
	if (task == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < piece->n; i++)
		look_at_record(profile, &task[piece->first + i],
			piece->slab + (piece->first + i) * (uint64_t)piece->stride,
			(const void *)(piece->records + i * piece->stride));
	count_candidates(profile);
	return 0;
}

int tdt__profile_look(struct tdt__profile *profile, double ns)
{
	struct tdt_registry registry;
	int error;

	if (!tdt__target_read(profile->tasks.target, profile->tasks.registry.self, &registry,
			      sizeof registry))
		return 0;
	profile->tasks.registry.slabs = registry.slabs;
	profile->trees.unloads_known = false;
	profile->walks = WALKS_MOST;
	profile->ns = ns;
	profile->sum.look = ++profile->looks;
	error = tdt__records_visit(profile->tasks.target, &profile->tasks.registry, look_at_piece,
				   profile);
	if (error != -EIO)
		return error;
	profile->damaged = true;
	return 0;
}
