// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Collecting the recorded stacks of the tasks of a recording: see last_dump.h. */

#include "reader/last_dump.h"

#include <stdlib.h>

#include "reader/trees.h"
#include "symbolize/modules.h"
#include "tree/stacks.h"

struct last_trees {
	const struct tdt__last_states *states;
	struct tdt__stacks *stacks; /* the tree at hand, with room for TDT__TREE_FRAMES_MAX */
};

/* Add a stack as one leaf.  The tree merges the frames that stacks share. */
static void append_recorded(struct last_trees *trees, uint32_t number)
{
	struct tdt__stacks *stacks = trees->stacks;
	const uint64_t *pcs;
	enum tdt_cut cut;
	size_t n = tdt__recording_stack(trees->states->recording, number, &pcs, &cut);

	if (n == 0 || n > TDT__TREE_FRAMES_MAX - stacks->n) {
		stacks->lost++;
		return;
	}
	for (size_t i = 0; i < n; i++, stacks->n++)
		stacks->frames[stacks->n] = (struct tdt__recorded){
			.frame = { .pc = pcs[i] },
			.parent = i + 1 < n ? stacks->n + 1 : TDT__PARENT_CUT(cut),
			.leaves = i == 0,
		};
	stacks->leaves++;
}

/* The stacks of the leaves of a poll, of which some may not have been recorded. */
static void append_leaves(struct last_trees *trees, const struct tdt__recorded_item *begin)
{
	struct tdt__recorded_item part;
	uint64_t leaves = 0;

	for (uint32_t i = 0; i < begin->parts.n; i++) {
		tdt__recording_part(trees->states->recording, &begin->parts, i, &part);
		if (part.event.kind != TDT_EVENT_STACK)
			continue;
		append_recorded(trees, part.event.a);
		leaves = part.event.c;
	}
	if (leaves <= TDT__TREE_LEAVES_MAX && leaves > trees->stacks->leaves)
		trees->stacks->lost = (uint32_t)leaves - trees->stacks->leaves;
}

/* The stack of the poll that goes on, as the recorder has found it. */
static bool take_found(struct last_trees *trees, const struct tdt__last_polls *polls,
		       struct tdt_task_info *info)
{
	if (info->state != TDT_TASK_RUNNING || polls->found == 0 || polls->polls == 0 ||
	    polls->found_at < polls->begun)
		return false;
	append_recorded(trees, polls->found);
	info->age_ns = trees->states->tasks.now - polls->found_at;
	return trees->stacks->leaves != 0;
}

/*
 * How many polls the task has made since the one whose stacks are recorded.  False: some, but
 * nobody knows how many, since they are missing.
 */
static bool count_polls_since(const struct tdt__last_polls *polls, uint64_t *since)
{
	*since = polls->polls - polls->with_stack;
	if (polls->stacked_more != UINT64_MAX)
		*since += polls->more - polls->stacked_more;
	return *since != 0 || polls->begun <= polls->stacked.end;
}

static bool take_leaves(struct last_trees *trees, const struct tdt__last_polls *polls,
			struct tdt_task_info *info)
{
	const struct tdt__recorded_item *poll = &polls->stacked;
	uint64_t now = trees->states->tasks.now, then = poll->begin;

	if (polls->with_stack == 0 || !count_polls_since(polls, &info->polls_since))
		return false;
	append_leaves(trees, poll);
	if (poll->end <= now) /* otherwise it was going on */
		then = poll->end;
	info->age_ns = now > then ? now - then : 0;
	return trees->stacks->leaves != 0;
}

static void collect_last(struct last_trees *trees, struct tdt__findings *findings, size_t i)
{
	const struct tdt__last_polls *polls = &trees->states->polls[i];
	struct tdt__member *member = &trees->states->tasks.task[i].member;
	struct tdt__stacks *stacks = trees->stacks;
	enum tdt_answer answer = TDT_ANSWER_NONE;

	stacks->n = stacks->leaves = stacks->lost = 0;
	if (take_found(trees, polls, &member->info))
		answer = TDT_ANSWER_RUNNING;
	else if (take_leaves(trees, polls, &member->info))
		answer = TDT_ANSWER_LAST;
	if (answer == TDT_ANSWER_NONE)
		member->info.age_ns = member->info.polls_since = 0;
	else
		tdt__stacks_count(stacks, &member->info);
	member->group = tdt__groups_add(&findings->groups, answer, member->info.state,
					tdt__child_place(&member->info),
					answer != TDT_ANSWER_NONE ? stacks : NULL);
}

static bool collect_lasts(struct last_trees *trees, struct tdt__findings *findings,
			  const struct tdt__task_choice *choice)
{
	const struct tdt__tasks *tasks = &trees->states->tasks;

	for (size_t i = 0; i < tasks->n; i++) {
		if (!tdt__task_is_chosen(&tasks->task[i], choice))
			continue;
		collect_last(trees, findings, i);
		if (!tdt__findings_add(findings, &tasks->task[i].member))
			return false;
	}
	return tdt__findings_sort(findings);
}

struct tdt__findings *tdt__last_dump(struct tdt__last_states *states,
				     const struct tdt__task_choice *choice,
				     struct tdt__modules *modules)
{
	struct last_trees trees = { .states = states,
				    .stacks = tdt__stacks_new(TDT__TREE_FRAMES_MAX) };
	struct tdt__findings *findings = tdt__findings_new();
	bool done = findings != NULL && trees.stacks != NULL;

	if (done) {
		trees.stacks->modules = tdt__modules_ref(modules);
		findings->public.recorded = 1;
		done = tdt__tasks_note_process(&states->tasks, findings) &&
		       collect_lasts(&trees, findings, choice);
	}
	tdt__stacks_free(trees.stacks);
	if (done) {
		tdt__findings_conclude(findings);
		return findings;
	}
	tdt__findings_free(findings);
	return NULL;
}
