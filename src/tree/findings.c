// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The order of the tasks of a snapshot, their groups, and their rings. */

#include "tree/findings.h"

#include <stdlib.h>

#include "base/array.h"
#include "tree/trace.h"

struct tdt__findings *tdt__findings_new(void)
{
	struct tdt__findings *findings = calloc(1, sizeof *findings);

	if (findings != NULL && !tdt__groups_init(&findings->groups)) {
		tdt__findings_free(findings);
		return NULL;
	}
	return findings;
}

static void free_lones(struct tdt__lones *lones)
{
	for (size_t i = 0; i < lones->n; i++)
		tdt_trace_free((struct tdt_trace *)(uintptr_t)lones->list[i]->trace);
	free(lones->list);
}

void tdt__findings_free(struct tdt__findings *findings)
{
	if (findings == NULL)
		return;
	for (size_t i = 0; i < sizeof findings->lones / sizeof findings->lones[0]; i++)
		free_lones(&findings->lones[i]);
	tdt__cycles_fini(&findings->cycles);
	tdt__groups_fini(&findings->groups);
	tdt__arena_fini(&findings->arena);
	free(findings->tasks);
	free(findings->entry);
	free(findings);
}

/* A task, and its group of one. */
struct lone {
	struct tdt_snapshot_group group;
	const struct tdt_task_info *task;
};

/* NULL: no memory; then the trace is freed. */
static const struct tdt_snapshot_group *make_lone(struct tdt__findings *findings,
						  enum tdt_answer answer, struct tdt_trace *trace)
{
	struct lone *lone = tdt__arena_take(&findings->arena, sizeof *lone);

	if (lone == NULL) {
		tdt_trace_free(trace);
		return NULL;
	}
	lone->task = &trace->info;
	lone->group = (struct tdt_snapshot_group){ .size = sizeof lone->group,
						   .answer = answer,
						   .trace = trace,
						   .tasks = &lone->task,
						   .n = 1 };
	return &lone->group;
}

/* Have the public lists be these. */
static void publish_lones(struct tdt__findings *findings)
{
	const struct tdt__lones *lones = findings->lones;
	struct tdt_snapshot *public = &findings->public;

	public->panics = lones[TDT__PANICKED].list;
	public->n_panics = lones[TDT__PANICKED].n;
	public->orphans = lones[TDT__ORPHANED].list;
	public->n_orphans = lones[TDT__ORPHANED].n;
	public->before = lones[TDT__BEFORE].list;
	public->n_before = lones[TDT__BEFORE].n;
	public->lost_wakeups = lones[TDT__LOST_WAKEUP].list;
	public->n_lost_wakeups = lones[TDT__LOST_WAKEUP].n;
}

void tdt__findings_add_lone(struct tdt__findings *findings, enum tdt__lone kind,
			    enum tdt_answer answer, struct tdt_trace *trace)
{
	struct tdt__lones *lones = &findings->lones[kind];
	const struct tdt_snapshot_group **list;
	const struct tdt_snapshot_group *lone =
		trace != NULL ? make_lone(findings, answer, trace) : NULL;

	if (lone == NULL)
		return;
	list = reallocarray(lones->list, lones->n + 1, sizeof(struct tdt_snapshot_group *));
	if (list == NULL) {
		tdt_trace_free(trace);
		return;
	}
	lones->list = list;
	lones->list[lones->n++] = lone;
	publish_lones(findings);
}

/* Polls that run come first, then the tasks that could run, then the others. */
static unsigned rank_of(const struct tdt_task_info *info)
{
	switch (info->state) {
	case TDT_TASK_RUNNING:
		return 0;
	case TDT_TASK_RUNNABLE:
		return 1;
	default:
		return 2;
	}
}

static struct tdt__entry entry_of(struct tdt__member *member)
{
	return (struct tdt__entry){ rank_of(&member->info), member->info.state_ns, member->info.id,
				    member };
}

bool tdt__findings_add(struct tdt__findings *findings, struct tdt__member *member)
{
	if (!tdt__array_grow(&findings->entry, findings->n, &findings->room,
			     sizeof findings->entry[0]))
		return false;
	findings->entry[findings->n++] = entry_of(member);
	return true;
}

/*
 * Of two tasks with the same rank, the one that has been in its state for longer comes first; of
 * equals, the one with the smaller id.
 */
static int by_suspicion(const void *a, const void *b)
{
	const struct tdt__entry *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->state_ns != y->state_ns)
		return x->state_ns > y->state_ns ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

/*
 * Tasks are mostly listed nearly in order, and change little until they are sorted again: so they
 * are inserted one by one, as long as they have few places to move.
 */
static void sort_list(struct tdt__findings *findings)
{
	struct tdt__entry *entry = findings->entry;
	size_t moves = 8 * findings->n;

	for (size_t i = 1; i < findings->n; i++) {
		const struct tdt__entry inserted = entry[i];
		size_t at = i;

		for (; moves > 0 && at > 0 && by_suspicion(&entry[at - 1], &inserted) > 0; at--) {
			entry[at] = entry[at - 1];
			moves--;
		}
		entry[at] = inserted;
	}
	if (moves == 0 && findings->n != 0)
		qsort(entry, findings->n, sizeof entry[0], by_suspicion);
}

bool tdt__findings_sort(struct tdt__findings *findings)
{
	findings->tasks = malloc((findings->n + 1) * sizeof(struct tdt_task_info *));
	if (findings->tasks == NULL)
		return false;
	sort_list(findings);
	return true;
}

/* Leave out the tasks that had ended, and sort the others by what is known now. */
static void sort_again(struct tdt__findings *findings)
{
	size_t n = 0;

	for (size_t i = 0; i < findings->n; i++) {
		struct tdt__member *member = findings->entry[i].member;

		if (member->group != TDT__LEFT_OUT)
			findings->entry[n++] = entry_of(member);
	}
	findings->n = n;
	sort_list(findings);
}

static void find_cycles(struct tdt__findings *findings)
{
	for (size_t i = 0; i < findings->n; i++)
		findings->tasks[i] = &findings->entry[i].member->info;
	tdt__cycles_find(&findings->cycles, findings->tasks, findings->n, tdt__member_proof);
	findings->public.cycles = findings->cycles.list;
	findings->public.n_cycles = findings->cycles.n;
}

/* Give the group the next place in the result.  False: it has a place already. */
static bool place_group(struct tdt__findings *findings, uint32_t index)
{
	struct tdt__group *group = &findings->groups.group[index];

	if (group->place != 0)
		return false;
	group->place = (uint32_t)++findings->public.n_groups;
	return true;
}

/*
 * Give the tasks of each deadlock groups of their own, which get the first places, in the order of
 * the rings.  Deadlocks are the first cycles.
 */
static void place_deadlocks(struct tdt__findings *findings)
{
	const struct tdt__cycles *cycles = &findings->cycles;

	for (uint32_t i = 0; i < cycles->n && cycles->cycle[i].deadlock; i++) {
		struct tdt_snapshot_cycle *cycle = &cycles->cycle[i];

		for (size_t k = 0; k < cycle->n; k++) {
			struct tdt__member *member = (void *)(uintptr_t)cycle->tasks[k];

			if (tdt__groups_split(&findings->groups, &member->group, i + 1))
				cycle->n_groups += place_group(findings, member->group);
		}
	}
}

/* The other groups have the order of their first tasks. */
static void place_others(struct tdt__findings *findings)
{
	for (size_t i = 0; i < findings->n; i++)
		place_group(findings, findings->entry[i].member->group);
}

/* Begin all groups that have tasks, each with its share of the one list of all tasks. */
static void begin_groups(struct tdt__findings *findings)
{
	struct tdt__groups *groups = &findings->groups;
	const struct tdt_task_info **next = findings->tasks;

	for (size_t i = 0; i < groups->n; i++) {
		struct tdt__group *group = &groups->group[i];

		if (group->place == 0)
			continue;
		group->public = (struct tdt_snapshot_group){
			.size = sizeof(struct tdt_snapshot_group),
			.answer = group->answer, .trace = group->trace, .tasks = next
		};
		groups->list[group->place - 1] = &group->public;
		next += group->n;
	}
	findings->public.groups = groups->list;
}

/*
 * Divide the one list of all tasks among the groups, and have each trace say what is known of the
 * first task of its group.
 */
static void fill_groups(struct tdt__findings *findings)
{
	for (size_t i = 0; i < findings->n; i++) {
		struct tdt__member *member = findings->entry[i].member;
		struct tdt__group *of = &findings->groups.group[member->group];
		struct tdt_snapshot_group *group = &of->public;

		if (group->n == 0 && of->trace != NULL)
			of->trace->info = member->info;
		findings->tasks[(size_t)(group->tasks - findings->tasks) + group->n++] =
		    &member->info;
		(*tdt__answered(&findings->public, group->answer))++;
	}
}

/* The groups have the tasks by now, and a snapshot may be kept for long. */
static void free_list(struct tdt__findings *findings)
{
	free(findings->entry);
	findings->entry = NULL;
	findings->n = findings->room = 0;
}

void tdt__findings_conclude(struct tdt__findings *findings)
{
	findings->public.size = sizeof findings->public;
	sort_again(findings);
	findings->public.tasks = findings->n;
	find_cycles(findings);
	place_deadlocks(findings);
	place_others(findings);
	begin_groups(findings);
	fill_groups(findings);
	free_list(findings);
}
