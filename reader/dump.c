// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Collecting the trees of all tasks of a target. */

#include <config.h>

#include "reader/dump.h"

#include <errno.h>
#include <stdlib.h>

#include <tdt/future.h>

#include "base/clock.h"
#include "reader/history.h"
#include "reader/lists.h"
#include "reader/live.h"
#include "reader/trees.h"
#include "tree/stacks.h"
#include "tree/trace.h"

struct collecting {
	struct tdt__tasks *tasks;
	struct tdt__tree_reader trees;
	struct tdt__live_stacks live;
	const struct tdt__answers *answers;
};

/* --- Trees -------------------------------------------------------------------------------- */

/* The last tree of the task; NULL: there is none. */
static struct tdt__stacks *last_tree(struct collecting *collecting, struct tdt__seen_task *task)
{
	struct tdt_trace_info *info = &task->member.info;
	uint64_t now = collecting->tasks->now;
	struct tdt__read_tree tree;

	if (tdt__tree_read(&collecting->trees, task, &tree) != 0)
		return NULL;
	info->age_ns = now > tree.when ? now - tree.when : 0;
	info->polls_since = info->polls > tree.polls ? info->polls - tree.polls : 0;
	return tree.stacks;
}

/*
 * How the poll that answered has ended.  The record says more, unless the task has gone on since.
 */
static void use_answer(struct tdt__seen_task *task, const struct tdt_outside_tree *answer)
{
	struct tdt_trace_info *info = &task->member.info;

	task->answered = info->polls == answer->tree.polls && info->state != TDT_TASK_RUNNING;
	task->answered_at = task->answered ? answer->tree.when : 0;
	if (task->answered)
		return;
	info->state = TDT_TASK_WAITING;
	info->state_ns = answer->tree.gap;
	info->thread = 0;
	info->n_waits = 0;
	info->waits = NULL;
}

/* Whether all frames are in the answer: those that a host has named are not. */
static bool has_all_frames(const struct tdt_outside_tree *answer)
{
	const struct tdt_registry_entry *entry = tdt__answer_entries(answer);

	for (uint32_t i = 0; i < answer->tree.n; i++)
		if (entry[i].pc == 0)
			return false;
	return true;
}

/* The tree that the task has answered with; NULL: there is none. */
static struct tdt__stacks *fresh_tree(struct collecting *collecting, struct tdt__seen_task *task)
{
	const struct tdt_outside_tree *answer =
		tdt__answers_find(collecting->answers, task->seen);
	struct tdt__read_tree tree;

	if (answer == NULL)
		return NULL;
	task->member.info.asked = 1;
	if (answer->answer != TDT_OUTSIDE_FRESH || answer->outcome != TDT_PENDING ||
	    !has_all_frames(answer) ||
	    tdt__tree_take(&collecting->trees, &answer->tree, tdt__answer_entries(answer),
			   answer->tree.n, &tree) != 0)
		return NULL;
	if (answer->astray)
		atomic_store_explicit(&tree.stacks->astray, true, memory_order_relaxed);
	use_answer(task, answer);
	return tree.stacks;
}

static void count_leaves(struct tdt_trace_info *info, const struct tdt__stacks *stacks)
{
	info->leaves = stacks->leaves;
	info->leaves_elsewhere = stacks->elsewhere;
	info->leaves_lost = stacks->lost;
}

/*
 * The tree of the poll in which the task has switched away from a coroutine; NULL: there is none.
 * It is more than the stack of the coroutine, which has neither the frames outside of it nor the
 * leaf.
 */
static struct tdt__stacks *tree_of_coroutine(struct collecting *collecting,
					     struct tdt__seen_task *task)
{
	const struct tdt_task_record *record = &task->seen->record;
	struct tdt_trace_info *info = &task->member.info;
	struct tdt__stacks *stacks;

	if (record->poll == 0 || record->suspended_pc == 0)
		return NULL;
	stacks = last_tree(collecting, task);
	if (stacks == NULL || info->polls_since == 0)
		return stacks;
	info->age_ns = info->polls_since = 0;
	tdt__stacks_free(stacks);
	return NULL;
}

static void collect_tree(struct collecting *collecting, struct tdt__findings *findings,
			 struct tdt__seen_task *task)
{
	struct tdt_trace_info *info = &task->member.info;
	enum tdt_answer answer = TDT_ANSWER_FRESH;
	struct tdt__stacks *stacks = fresh_tree(collecting, task);

	if (stacks == NULL && info->state == TDT_TASK_RUNNING) {
		stacks = tdt__live_poll(&collecting->live, task);
		answer = TDT_ANSWER_RUNNING;
	} else if (stacks == NULL &&
		   (stacks = tree_of_coroutine(collecting, task)) != NULL) {
		answer = TDT_ANSWER_LAST;
	} else if (stacks == NULL) {
		stacks = tdt__live_suspended(&collecting->live, task);
		if (stacks == NULL)
			stacks = tdt__list_read(collecting->tasks->images, task->seen);
	}
	if (stacks == NULL) {
		answer = TDT_ANSWER_LAST;
		stacks = last_tree(collecting, task);
	}
	if (stacks != NULL)
		count_leaves(info, stacks);
	task->member.group = tdt__groups_add(&findings->groups,
					     stacks != NULL ? answer : TDT_ANSWER_NONE,
					     info->state, stacks);
	tdt__stacks_free(stacks);
}

/* --- The dump ----------------------------------------------------------------------------- */

static bool is_chosen(const struct tdt__seen_task *task, const struct tdt__task_choice *choice)
{
	if (task->outcome != NULL)
		return false;
	for (size_t i = 0; i < choice->n_ids; i++)
		if (choice->ids[i] == task->member.info.id)
			return true;
	return choice->n_ids == 0;
}

static bool note_process(struct tdt__findings *findings, const struct tdt__tasks *tasks)
{
	struct tdt_snapshot_process *process = tdt__arena_take(&findings->arena, sizeof *process);

	if (process == NULL)
		return false;
	*process = tdt__tasks_process(tasks);
	findings->public.process = process;
	return true;
}

static bool collect_all(struct collecting *collecting, struct tdt__findings *findings,
			const struct tdt__task_choice *choice)
{
	struct tdt__tasks *tasks = collecting->tasks;

	for (size_t i = 0; i < tasks->n; i++) {
		if (!is_chosen(&tasks->task[i], choice))
			continue;
		collect_tree(collecting, findings, &tasks->task[i]);
		if (!tdt__findings_add(findings, &tasks->task[i].member))
			return false;
	}
	return true;
}

/* What happened before belongs to a dump of all tasks; a misuse may explain any tree. */
static void add_history(struct collecting *collecting, struct tdt__findings *findings,
			const struct tdt__task_choice *choice)
{
	struct tdt__seen_misuse *misuse = tdt__arena_take(&findings->arena, sizeof *misuse);

	if (misuse != NULL && tdt__history_misuse(collecting->tasks, misuse))
		findings->public.misuse = &misuse->misuse;
	if (choice->n_ids == 0)
		tdt__history_panics(&collecting->trees, findings);
}

/* Open the files of the modules whose code is in the trees. */
static void open_images(struct tdt__images *images, const struct tdt_snapshot_group *groups,
			size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct tdt_trace *trace = groups[i].trace;

		for (uint32_t k = 0; trace != NULL && k < trace->stacks->n; k++)
			tdt__images_open(images, trace->stacks->frames[k].frame.pc - 1);
	}
}

struct tdt__findings *tdt__outside_dump(struct tdt__tasks *tasks,
					const struct tdt__task_choice *choice,
					const struct tdt__answers *answers,
					struct tdt__sampling *sampling)
{
	struct collecting collecting = { .tasks = tasks,
					 .trees.tasks = tasks,
					 .live = { .tasks = tasks,
						   .walker.images = tasks->images,
						   .sampling = sampling },
					 .answers = answers };
	struct tdt__findings *findings = tdt__findings_new();
	uint64_t start = tdt__clock();
	bool done = findings != NULL && note_process(findings, tasks) &&
		    collect_all(&collecting, findings, choice) && tdt__findings_sort(findings);

	if (done)
		add_history(&collecting, findings, choice);
	tdt__live_stacks_fini(&collecting.live);
	tdt__tree_reader_fini(&collecting.trees);
	if (!done) {
		tdt__findings_free(findings);
		return NULL;
	}
	tdt__tasks_prove(tasks);
	findings->public.took_ns = tdt__clock() - start;
	findings->public.outside = 1;
	tdt__findings_conclude(findings);
	open_images(tasks->images, findings->public.groups, findings->public.n_groups);
	open_images(tasks->images, findings->public.panics, findings->public.n_panics);
	return findings;
}
