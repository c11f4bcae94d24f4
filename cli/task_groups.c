// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Counting tasks and waits by the names of tasks and what they wait for: see task_groups.h. */

#include "cli/task_groups.h"

#include <stdlib.h>
#include <string.h>

#include "facts/family.h"
#include "recording/read.h"
#include "tree-printer/schema.h"

#define GROUPS_TRIED 65536 /* that are counted: more names than that tell nothing */
#define LABELS offsetof(struct metrics_group, n) /* bytes of a group; zeros follow the texts */

/* What a task waits for: a word; "none": it does not wait. */
static const char *word_of_wait(const struct tdt_task_info *info)
{
	if (info->state != TDT_TASK_WAITING)
		return "none";
	return wait_words[info->n_waits != 0 ? info->waits[0]->kind : TDT_WAIT_UNKNOWN];
}

static bool has_labels_of(const struct metrics_group *a, const struct metrics_group *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->wait, b->wait) == 0;
}

static void add_n_and_ns(struct metrics_group *sum, const struct metrics_group *group)
{
	sum->n += group->n;
	sum->ns += group->ns;
}

/* Add a task, or one wait of it that took so long. */
static void count_in_group(struct task_groups *groups, const char *task, const char *file,
			   uint32_t line, const char *wait, uint64_t ns)
{
	const struct metrics_group one = { .n = 1, .ns = ns };
	struct metrics_group group = { .n = 0 };
	char name[sizeof group.name];
	uint32_t i;

	tdt__family_name(name, sizeof name, task, file, line, '#');
	metrics_clean(group.name, sizeof group.name, name);
	snprintf(group.wait, sizeof group.wait, "%s", wait);
	i = groups->n < GROUPS_TRIED
		? tdt__table_note(&groups->group_table, &group, LABELS, sizeof group)
		: tdt__table_find(&groups->group_table, &group, LABELS, sizeof group);
	add_n_and_ns(i != TDT__INDEX_NONE ? &groups->group[i] : &groups->left, &one);
}

void task_groups_count(struct task_groups *groups, const struct tdt__tasks *tasks)
{
	for (size_t i = 0; i < tasks->n; i++) {
		const struct tdt_task_info *info = &tasks->task[i].member.info;

		if (tasks->task[i].outcome == NULL && info->state != TDT_TASK_UNKNOWN)
			count_in_group(groups, info->name != NULL ? info->name : "", info->file,
				       info->line, word_of_wait(info), 0);
	}
}

void task_groups_waited(void *arg, const struct tdt__recorded_task *task, enum tdt_wait_kind kind,
			uint64_t ns)
{
	count_in_group(arg, task->name, task->file, task->line, wait_words[kind], ns);
}

/* Of equal groups the order is always the same, so that the same ones are shown. */
static int by_size(const void *a, const void *b)
{
	const struct metrics_group *x = a, *y = b;
	int order = (x->ns < y->ns) - (x->ns > y->ns);

	if (order == 0)
		order = (x->n < y->n) - (x->n > y->n);
	if (order == 0)
		order = strcmp(x->name, y->name);
	return order != 0 ? order : strcmp(x->wait, y->wait);
}

static void add_to_sum(struct metrics_groups *sum, const struct metrics_group *group)
{
	size_t i = 0;

	while (i < sum->n && !has_labels_of(&sum->group[i], group))
		i++;
	if (i < sum->n)
		add_n_and_ns(&sum->group[i], group);
	else if (i < METRICS_GROUPS_MAX)
		sum->group[sum->n++] = *group;
	else
		add_n_and_ns(&sum->other, group);
}

void task_groups_add_to(struct metrics_groups *sum, struct task_groups *groups)
{
	if (groups->n != 0)
		qsort(groups->group, groups->n, sizeof groups->group[0], by_size);
	for (size_t i = 0; i < groups->n; i++)
		add_to_sum(sum, &groups->group[i]);
	add_n_and_ns(&sum->other, &groups->left);
}

void task_groups_fini(struct task_groups *groups)
{
	tdt__table_fini(&groups->group_table);
}
