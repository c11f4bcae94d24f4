// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Counting tasks by their names and waits: see task_groups.h. */

#include "cli/task_groups.h"

#include <stdlib.h>
#include <string.h>

#include "facts/family.h"
#include "tree-printer/schema.h"

#define GROUPS_TRIED 65536 /* that are counted: more names than that tell nothing */

/* What a task waits for: a word; "none": it does not wait. */
static const char *word_of_wait(const struct tdt_task_info *info)
{
	if (info->state != TDT_TASK_WAITING)
		return "none";
	return wait_words[info->n_waits != 0 ? info->waits[0]->kind : TDT_WAIT_UNKNOWN];
}

static void count_in_group(struct task_groups *groups, const struct tdt_task_info *info)
{
	struct metrics_group group = { .n = 1 };
	char name[sizeof group.name];
	uint32_t hash, i;

	tdt__family_name(name, sizeof name, info->name != NULL ? info->name : "", info->file,
			 info->line, '#');
	metrics_clean(group.name, sizeof group.name, name);
	snprintf(group.wait, sizeof group.wait, "%s", word_of_wait(info));
	hash = tdt__hash_text(group.name);
	TDT__INDEX_EACH (i, &groups->group_table.index, hash)
		if (strcmp(groups->group[i].name, group.name) == 0 &&
		    strcmp(groups->group[i].wait, group.wait) == 0) {
			groups->group[i].n++;
			return;
		}
	if (groups->n == GROUPS_TRIED ||
	    tdt__table_add(&groups->group_table, hash, &group, sizeof group) == TDT__INDEX_NONE)
		groups->left++;
}

void task_groups_count(struct task_groups *groups, const struct tdt__tasks *tasks)
{
	for (size_t i = 0; i < tasks->n; i++) {
		const struct tdt_task_info *info = &tasks->task[i].member.info;

		if (tasks->task[i].outcome == NULL && info->state != TDT_TASK_UNKNOWN)
			count_in_group(groups, info);
	}
}

/* Of equal groups the order is always the same, so that the same ones are shown. */
static int by_size(const void *a, const void *b)
{
	const struct metrics_group *x = a, *y = b;
	int order = (x->n < y->n) - (x->n > y->n);

	if (order == 0)
		order = strcmp(x->name, y->name);
	return order != 0 ? order : strcmp(x->wait, y->wait);
}

void task_groups_largest(struct task_groups *groups, struct metrics_page *page)
{
	if (groups->n != 0)
		qsort(groups->group, groups->n, sizeof groups->group[0], by_size);
	page->grouped = true;
	page->n_groups = groups->n < METRICS_GROUPS_MAX ? groups->n : METRICS_GROUPS_MAX;
	page->other_tasks = groups->left;
	for (size_t i = 0; i < groups->n; i++)
		if (i < page->n_groups)
			page->group[i] = groups->group[i];
		else
			page->other_tasks += groups->group[i].n;
}

void task_groups_fini(struct task_groups *groups)
{
	tdt__table_fini(&groups->group_table);
}
