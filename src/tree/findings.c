// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The order of the tasks of a snapshot, their groups, and their rings. */

#include <config.h>

#include "tree/findings.h"

#include <stdlib.h>

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

void tdt__findings_free(struct tdt__findings *findings)
{
	if (findings == NULL)
		return;
	for (size_t i = 0; i < findings->public.n_panics; i++)
		tdt_trace_free((struct tdt_trace *)(uintptr_t)findings->public.panics[i].trace);
	tdt__cycles_fini(&findings->cycles);
	tdt__groups_fini(&findings->groups);
	tdt__arena_fini(&findings->arena);
	free(findings->tasks);
	free(findings->entry);
	free(findings);
}

/* --- The list ------------------------------------------------------------------ */

static bool grow_list(struct tdt__findings *findings)
{
	size_t room = findings->room == 0 ? 64 : 2 * findings->room;
	struct tdt__entry *entry;

	if (findings->n < findings->room)
		return true;
	entry = realloc(findings->entry, room * sizeof *entry);
	if (entry == NULL)
		return false;
	findings->entry = entry;
	findings->room = room;
	return true;
}

/* Polls that run come first, then the tasks that could run, then the others. */
static unsigned rank_of(const struct tdt_trace_info *info)
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
	if (!grow_list(findings))
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

static void sort_list(struct tdt__findings *findings)
{
	size_t sorted = 1;

	/* When it is sorted again, it has changed little. */
	while (sorted < findings->n &&
	       by_suspicion(&findings->entry[sorted - 1], &findings->entry[sorted]) <= 0)
		sorted++;
	if (sorted < findings->n)
		qsort(findings->entry, findings->n, sizeof findings->entry[0], by_suspicion);
}

bool tdt__findings_sort(struct tdt__findings *findings)
{
	findings->tasks = malloc((findings->n + 1) * sizeof(struct tdt_trace_info *));
	if (findings->tasks == NULL)
		return false;
	sort_list(findings);
	return true;
}

/* --- The result ---------------------------------------------------------------------- */

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

/* Begin all groups, each with its share of the one list of all tasks. */
static void begin_groups(struct tdt__findings *findings)
{
	struct tdt__groups *groups = &findings->groups;
	const struct tdt_trace_info **next = findings->tasks;

	for (size_t i = 0; i < groups->n; i++) {
		groups->public[i] = (struct tdt_snapshot_group){
			.answer = groups->group[i].answer,
			.trace = groups->group[i].trace,
			.tasks = next,
		};
		next += groups->group[i].n;
	}
}

/* Divide the one list of all tasks among the groups. */
static void fill_groups(struct tdt__findings *findings)
{
	struct tdt__groups *groups = &findings->groups;

	for (size_t i = 0; i < findings->n; i++) {
		struct tdt__member *member = findings->entry[i].member;
		struct tdt_snapshot_group *group = &groups->public[member->group];

		findings->tasks[(size_t)(group->tasks - findings->tasks) + group->n++] =
		    &member->info;
		findings->public.answers[group->answer]++;
	}
}

static struct tdt__member *member_of(const struct tdt_trace_info *info)
{
	return (struct tdt__member *)(uintptr_t)info;
}

/*
 * The groups of deadlocks come first, in the order of the deadlocks.  Otherwise groups are compared
 * by their first tasks.
 */
static int groups_by_suspicion(const void *a, const void *b)
{
	const struct tdt_snapshot_group *const x = a, *const y = b;
	const struct tdt__entry first = entry_of(member_of(x->tasks[0])),
				second = entry_of(member_of(y->tasks[0]));
	uint32_t deadlock = first.member->deadlock - 1, other = second.member->deadlock - 1;

	if (deadlock != other) /* if there is none, it is the largest number now */
		return deadlock < other ? -1 : 1;
	return by_suspicion(&first, &second);
}

/* The groups have the tasks by now, and a snapshot may be kept for long. */
static void free_list(struct tdt__findings *findings)
{
	free(findings->entry);
	findings->entry = NULL;
	findings->n = findings->room = 0;
}

/* Take out the empty groups, have each trace say what is known of its first task, and sort. */
static void sort_groups(struct tdt__findings *findings)
{
	struct tdt__groups *groups = &findings->groups;
	size_t n = 0;

	for (size_t i = 0; i < groups->n; i++) {
		if (groups->public[i].n == 0)
			continue;
		if (groups->group[i].trace != NULL)
			groups->group[i].trace->info = *groups->public[i].tasks[0];
		groups->public[n++] = groups->public[i];
	}
	qsort(groups->public, n, sizeof groups->public[0], groups_by_suspicion);
	findings->public.groups = groups->public;
	findings->public.n_groups = n;
}

static enum tdt__proof proof_of(const struct tdt_trace_info *info)
{
	return member_of(info)->proof;
}

static void find_cycles(struct tdt__findings *findings)
{
	for (size_t i = 0; i < findings->n; i++)
		findings->tasks[i] = &findings->entry[i].member->info;
	tdt__cycles_find(&findings->cycles, findings->tasks, findings->n, proof_of);
	findings->public.cycles = findings->cycles.cycle;
	findings->public.n_cycles = findings->cycles.n;
}

/* Give the tasks of each deadlock groups of their own.  Deadlocks are the first cycles. */
static void split_groups(struct tdt__findings *findings)
{
	const struct tdt__cycles *cycles = &findings->cycles;

	for (uint32_t i = 0; i < cycles->n && cycles->cycle[i].deadlock; i++) {
		for (size_t k = 0; k < cycles->cycle[i].n; k++) {
			struct tdt__member *member = member_of(cycles->cycle[i].tasks[k]);

			if (tdt__groups_split(&findings->groups, &member->group, i + 1))
				member->deadlock = i + 1;
		}
	}
}

static void count_groups(struct tdt__findings *findings)
{
	for (size_t i = 0; i < findings->public.n_groups; i++) {
		uint32_t deadlock = member_of(findings->public.groups[i].tasks[0])->deadlock;

		if (deadlock == 0)
			break;
		findings->cycles.cycle[deadlock - 1].n_groups++;
	}
}

void tdt__findings_conclude(struct tdt__findings *findings)
{
	findings->public.size = sizeof findings->public;
	sort_again(findings);
	findings->public.tasks = findings->n;
	find_cycles(findings);
	split_groups(findings);
	begin_groups(findings);
	fill_groups(findings);
	free_list(findings);
	sort_groups(findings);
	count_groups(findings);
}
