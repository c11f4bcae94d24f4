// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Collecting the trees of all tasks of a target. */

#include "reader/dump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/future.h>

#include "base/clock.h"
#include "facts/wait.h"
#include "reader/history.h"
#include "reader/lists.h"
#include "reader/live.h"
#include "reader/trees.h"
#include "tree/stacks.h"
#include "tree/trace.h"
#include "tree/waits.h"

#define TASK_TRIES 5 /* to find a task between two moments in which it runs */

struct collecting {
	struct tdt__tasks *tasks;
	struct tdt__tree_reader trees;
	struct tdt__live_stacks live;
	const struct tdt__answers *answers;
};

static struct collecting collect_of(struct tdt__tasks *tasks, const struct tdt__answers *answers,
				    struct tdt__sampling *sampling)
{
	return (struct collecting){
		.tasks = tasks,
		.trees.tasks = tasks,
		.live = { .tasks = tasks, .walker.images = tasks->images, .sampling = sampling },
		.answers = answers
	};
}

/* --- Trees -------------------------------------------------------------------------------- */

static struct tdt__stacks *last_tree(struct collecting *collecting, struct tdt__seen_task *task)
{
	struct tdt_task_info *info = &task->member.info;
	uint64_t now = collecting->tasks->now;
	struct tdt__read_tree tree;

	if (tdt__tree_read(&collecting->trees, task, &tree) != 0)
		return NULL;
	info->age_ns = now > tree.head.when ? now - tree.head.when : 0;
	info->polls_since = info->polls > tree.head.polls ? info->polls - tree.head.polls : 0;
	return tree.stacks;
}

/* Without memory the waits are not known. */
static void use_answered_waits(struct collecting *collecting, struct tdt__seen_task *task,
			       const struct tdt_outside_tree *answer)
{
	struct tdt_wait *waits = calloc(answer->n_waits + (size_t)1, sizeof *waits);

	for (uint32_t i = 0; i < answer->n_waits && waits != NULL; i++) {
		const struct tdt_outside_wait *from = tdt__answer_wait(answer, i);

		waits[i] = (struct tdt_wait){ .size = sizeof waits[i],
					      .kind = tdt__wait_kind(from->kind),
					      .futurelock = from->futurelock,
					      .object = from->object,
					      .owner = from->owner,
					      .handed_ns = from->handed_ns };
		memcpy(waits[i].name, from->name, TDT_WAIT_NAME_MAX);
	}
	tdt__task_set_waits(collecting->tasks, task, waits, waits != NULL ? answer->n_waits : 0);
	free(waits);
}

/*
 * How the poll that answered has ended.  The record says more, unless the task has gone on since.
 */
static void use_answer(struct collecting *collecting, struct tdt__seen_task *task,
		       const struct tdt_outside_tree *answer)
{
	struct tdt_task_info *info = &task->member.info;

	info->moved = answer->moved != 0;
	task->went_on = info->polls != answer->tree.polls || info->state == TDT_TASK_RUNNING;
	if (task->went_on) {
		info->state = TDT_TASK_WAITING;
		info->thread = 0;
	} else {
		task->answered_at = answer->tree.when;
	}
	if (task->went_on || info->moved)
		info->state_ns = answer->tree.gap;
	if (info->state == TDT_TASK_WAITING)
		use_answered_waits(collecting, task, answer);
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
	if (tdt__answer_tree(answer, &collecting->trees, &tree) != 0)
		return NULL;
	tree.stacks->known =
	    answer->known <= TDT_LEAVES_UNKNOWN ? answer->known : TDT_LEAVES_UNKNOWN;
	if (answer->astray)
		atomic_store_explicit(&tree.stacks->astray, true, memory_order_relaxed);
	use_answer(collecting, task, answer);
	return tree.stacks;
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
	struct tdt_task_info *info = &task->member.info;
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

/* What can be read of the task as it is now; NULL: nothing. */
static struct tdt__stacks *read_now(struct collecting *collecting, struct tdt__seen_task *task,
				    enum tdt_answer *answer)
{
	struct tdt__stacks *stacks;

	if (task->member.info.state == TDT_TASK_RUNNING) {
		*answer = TDT_ANSWER_RUNNING;
		return tdt__live_poll(&collecting->live, task);
	}
	*answer = TDT_ANSWER_LAST;
	stacks = tree_of_coroutine(collecting, task);
	if (stacks != NULL)
		return stacks;
	*answer = TDT_ANSWER_FRESH;
	stacks = tdt__live_suspended(&collecting->live, task);
	return stacks != NULL ? stacks : tdt__list_read(collecting->tasks, task);
}

/* Whether the task has a stack or a list, now and then. */
static bool has_stack(const struct tdt__seen *seen)
{
	const struct tdt_task_record *record = &seen->record;

	return !seen->still || record->state == TDT_TASK_RECORD_POLLING ||
	       record->suspended_pc != 0 || record->leaf != 0;
}

/*
 * The best tree of the task, and its leaves; NULL: there is none.  A task counts as it was listed,
 * if its stack is still the same.  Many tasks are listed before the first stack is read, so a task
 * that often runs for a moment may be another one by then: with `renews` it counts as it is next to
 * its stack.
 */
static struct tdt__stacks *find_tree(struct collecting *collecting, struct tdt__seen_task *task,
				     bool renews, enum tdt_answer *answer)
{
	struct tdt_task_info *info = &task->member.info;
	struct tdt__stacks *stacks = fresh_tree(collecting, task);

	*answer = TDT_ANSWER_FRESH;
	if (stacks == NULL)
		stacks = read_now(collecting, task, answer);
	for (int i = 0; renews && stacks == NULL && i < TASK_TRIES && has_stack(task->seen) &&
			tdt__task_renew(collecting->tasks, task);
	     i++)
		stacks = read_now(collecting, task, answer);
	if (stacks == NULL) {
		*answer = TDT_ANSWER_LAST;
		stacks = last_tree(collecting, task);
	}
	if (stacks != NULL)
		tdt__stacks_count(stacks, info);
	return stacks;
}

static void collect_tree(struct collecting *collecting, struct tdt__findings *findings,
			 struct tdt__seen_task *task)
{
	struct tdt_task_info *info = &task->member.info;
	enum tdt_answer answer;
	struct tdt__stacks *stacks = find_tree(collecting, task, true, &answer);

	task->member.group = tdt__groups_add(&findings->groups,
					     stacks != NULL ? answer : TDT_ANSWER_NONE,
					     info->state, tdt__child_place(info), stacks);
	tdt__stacks_free(stacks);
}

/* --- The dump ----------------------------------------------------------------------------- */

static bool collect_all(struct collecting *collecting, struct tdt__findings *findings,
			const struct tdt__task_choice *choice)
{
	struct tdt__tasks *tasks = collecting->tasks;

	for (size_t i = 0; i < tasks->n; i++) {
		if (!tdt__task_is_chosen(&tasks->task[i], choice))
			continue;
		collect_tree(collecting, findings, &tasks->task[i]);
		if (!tdt__findings_add(findings, &tasks->task[i].member))
			return false;
	}
	return true;
}

static const char *name_of_task(const struct tdt__tasks *tasks, uint64_t id)
{
	for (size_t i = 0; i < tasks->n && id != 0; i++)
		if (tasks->task[i].member.info.id == id)
			return tasks->task[i].member.info.name;
	return NULL;
}

/* The owners of locks may not be among the chosen tasks. */
static void name_owners(const struct collecting *collecting,
			const struct tdt__task_choice *choice)
{
	const struct tdt__tasks *tasks = collecting->tasks;

	for (size_t i = 0; i < tasks->n; i++) {
		struct tdt_task_info *info = &tasks->task[i].member.info;

		if (!tdt__task_is_chosen(&tasks->task[i], choice))
			continue;
		for (uint32_t k = 0; k < info->n_waits; k++)
			tdt__own_wait(info, k)->owner_name =
				name_of_task(tasks, info->waits[k]->owner);
	}
}

/* Whether the requests have proved that wake-ups were lost is known after a second. */
static void wait_for_losts(struct tdt__tasks *tasks)
{
	uint64_t until = tasks->losts.sure_at - (uint64_t)tasks->target->clock_offset;
	const struct timespec wake = tdt__timespec(until);

	if (tasks->losts.sure_at == 0)
		return;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL) == EINTR)
		;
	free(tasks->losts.lost);
	tdt__history_losts(tasks->target, &tasks->registry, tasks->counters.lost,
			   tasks->losts.sure_at, &tasks->losts);
}

/* What happened before belongs to a dump of all tasks; a misuse may explain any tree. */
static void add_history(struct collecting *collecting, struct tdt__findings *findings,
			const struct tdt__task_choice *choice)
{
	struct tdt__seen_misuse *misuse = tdt__arena_take(&findings->arena, sizeof *misuse);

	if (misuse != NULL && tdt__history_misuse(collecting->tasks, misuse))
		findings->public.misuse = &misuse->misuse;
	if (collecting->answers->n != 0)
		wait_for_losts(collecting->tasks);
	tdt__history_lost(&collecting->trees, findings, choice);
	if (choice->n_ids == 0)
		tdt__history_panics(&collecting->trees, findings);
}

/* --- Rings -------------------------------------------------------------------------------- */

/* Prove what a task of a ring says.  Without a dump its tree is read for that, and not shown. */
static void prove_task(struct collecting *collecting, struct tdt__seen_task *task, bool dumped)
{
	struct tdt_task_info listed = task->member.info;
	enum tdt_answer answer;

	if (!dumped)
		tdt__stacks_free(find_tree(collecting, task, false, &answer));
	tdt__task_prove(collecting->tasks, task);
	task->member.info = listed;
}

/* `dumped`: the trees of the tasks are known. */
static int prove_cycles(struct collecting *collecting, struct tdt__cycles *cycles, bool dumped)
{
	int error;

	tdt__tasks_settle(collecting->tasks);
	error = tdt__tasks_cycles(cycles, collecting->tasks);
	for (size_t i = 0; i < cycles->n; i++)
		for (size_t k = 0; k < cycles->cycle[i].n; k++)
			prove_task(collecting, (void *)(uintptr_t)cycles->cycle[i].tasks[k],
				   dumped);
	return error;
}

/* Find the rings, of a recording by the records alone. */
static int find_task_rings(struct tdt__cycles *cycles, struct tdt__tasks *tasks)
{
	static const struct tdt__answers none;
	struct tdt__sampling sampling = { 0 };
	struct collecting collecting;
	int error;

	if (tasks->target == NULL)
		return tdt__tasks_cycles(cycles, tasks);
	collecting = collect_of(tasks, &none, &sampling);
	error = prove_cycles(&collecting, cycles, false);
	tdt__walker_fini(&collecting.live.walker);
	tdt__tree_reader_fini(&collecting.trees);
	if (cycles->n == 0)
		return error;
	tdt__cycles_fini(cycles);
	return tdt__tasks_cycles(cycles, tasks);
}

int tdt__outside_found(struct tdt__outside_found *found, struct tdt__tasks *tasks)
{
	*found = (struct tdt__outside_found){ .live.size = sizeof found->live };
	found->infos = tdt__tasks_live(tasks, &found->live.n);
	if (found->infos == NULL || find_task_rings(&found->cycles, tasks) != 0)
		return -ENOMEM;
	found->live.tasks = found->infos;
	found->group = &found->live;
	found->snapshot = (struct tdt_snapshot){ .groups = &found->group,
						 .n_groups = 1,
						 .cycles = found->cycles.list,
						 .n_cycles = found->cycles.n,
						 .at_least = tdt__tasks_at_least(tasks) };
	tdt__tasks_found(tasks, &found->snapshot);
	return 0;
}

void tdt__outside_found_fini(struct tdt__outside_found *found)
{
	tdt__cycles_fini(&found->cycles);
	free(found->infos);
}

/* --- The result --------------------------------------------------------------------------- */

static void open_images(struct tdt__images *images,
			const struct tdt_snapshot_group *const *groups, size_t n)
{
	for (size_t i = 0; i < n; i++)
		tdt__trace_open_images(groups[i]->trace, images);
}

struct tdt__findings *tdt__outside_dump(struct tdt__tasks *tasks,
					const struct tdt__task_choice *choice,
					const struct tdt__answers *answers,
					struct tdt__sampling *sampling)
{
	struct collecting collecting = collect_of(tasks, answers, sampling);
	struct tdt__findings *findings = tdt__findings_new();
	struct tdt__cycles cycles = { 0 };
	uint64_t start = tdt__clock();
	bool done = findings != NULL && tdt__tasks_note_process(tasks, findings) &&
		    collect_all(&collecting, findings, choice) && tdt__findings_sort(findings);

	if (done)
		add_history(&collecting, findings, choice);
	if (done && choice->n_ids != 0)
		name_owners(&collecting, choice);
	tdt__walker_fini(&collecting.live.walker);
	if (done) {
		tdt__tasks_busy(tasks);
		prove_cycles(&collecting, &cycles, true);
		tdt__cycles_fini(&cycles);
		tdt__history_orphans(&collecting.trees, findings, &tasks->orphans);
	}
	tdt__tree_reader_fini(&collecting.trees);
	if (!done) {
		tdt__findings_free(findings);
		return NULL;
	}
	findings->public.took_ns = tdt__clock() - start;
	findings->public.at_least = tdt__tasks_at_least(tasks);
	tdt__findings_conclude(findings);
	open_images(tasks->images, findings->public.groups, findings->public.n_groups);
	open_images(tasks->images, findings->public.panics, findings->public.n_panics);
	open_images(tasks->images, findings->public.orphans, findings->public.n_orphans);
	open_images(tasks->images, findings->public.lost_wakeups, findings->public.n_lost_wakeups);
	return findings;
}

/* --- Before the requests ------------------------------------------------------------------ */

static bool has_gone_on(const struct tdt_outside_tree *answer)
{
	return answer != NULL && answer->answer == TDT_OUTSIDE_FRESH &&
	       (answer->moved != 0 || answer->outcome != TDT_PENDING);
}

static struct tdt_trace *trace_before(const struct tdt_snapshot_group *group,
				      const struct tdt_task_info *info)
{
	struct tdt__stacks *stacks = group->trace != NULL
					     ? tdt__stacks_copy(group->trace->stacks)
					     : tdt__stacks_new(1);

	return stacks != NULL ? tdt__trace_of(info, stacks) : NULL;
}

void tdt__outside_keep(struct tdt__findings *findings, const struct tdt__findings *before,
		       const struct tdt__answers *answers)
{
	for (size_t i = 0; i < before->public.n_groups; i++) {
		const struct tdt_snapshot_group *group = before->public.groups[i];

		for (size_t k = 0; k < group->n; k++) {
			const struct tdt__seen_task *task = (const void *)group->tasks[k];

			if (group->tasks[k]->state == TDT_TASK_WAITING &&
			    has_gone_on(tdt__answers_find(answers, task->seen)))
				tdt__findings_add_lone(findings, TDT__BEFORE, group->answer,
						       trace_before(group, group->tasks[k]));
		}
	}
}
