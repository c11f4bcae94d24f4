// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Comparing two snapshots.  The time is linear in the number of tasks, but for sorting. */

#include "cli/compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/tree.h>

#include "base/texts.h"
#include "tree-printer/strings.h"

#define NO_MEMBER TDT__INDEX_NONE
#define REQUESTED_MODULO 128 /* of `requested` in struct tdt_task_info */

/* A task of one of the snapshots. */
struct compared {
	const struct tdt_task_info *info;
	const struct tdt_snapshot_group *group;
	const struct tdt_trace *trace; /* NULL: there is none */
	uint32_t place;
	enum compare_fate fate;
	bool matched; /* the other snapshot has the task, too */
};

struct compared_all {
	const struct tdt_snapshot *snapshot;
	struct compared *member;
	size_t n;
	bool trees; /* a task between two polls has a tree, at least one of them */
};

struct comparing {
	struct comparison *result;
	struct compared_all before, after;
	struct tdt__texts places; /* by what makes them the same */
	size_t places_room;
	struct tdt__string key; /* that is made */
};

/* --- Places ------------------------------------------------------------------------- */

/* NULL and "" differ. */
static void add_key_text(struct tdt__string *key, const char *text)
{
	tdt__string_add(key, text != NULL ? "1" : "0", 1);
	if (text != NULL)
		tdt__string_add(key, text, strlen(text) + 1);
}

/* A frame is its name and its place in the source; without a name, its place in the module. */
static void add_key_node(struct tdt__string *key, const struct tdt_node *node)
{
	const struct tdt_node *parent = tdt_node_parent(node);
	const struct tdt_frame *frame = tdt_node_frame(node);
	bool named = frame->function != NULL;
	const uint64_t place[] = {
		parent != NULL ? tdt_node_id(parent) : 0,
		frame->kind,
		frame->cut,
		named ? (uint64_t)frame->line << 32 | frame->column : frame->module_offset,
	};

	tdt__string_add(key, place, sizeof place);
	add_key_text(key, frame->function);
	add_key_text(key, named ? frame->file : frame->module);
}

static void add_key_record(struct tdt__string *key, const struct tdt_task_info *info)
{
	const struct tdt_wait *wait = info->n_waits != 0 ? info->waits[0] : NULL;
	const uint64_t place[] = { (uint64_t)info->line << 32 | info->column,
				   wait != NULL ? (uint64_t)wait->kind : UINT64_MAX };

	tdt__string_add(key, place, sizeof place);
	add_key_text(key, info->file);
	add_key_text(key, wait != NULL ? wait->name : NULL);
}

/* The number of the place, or NO_MEMBER: there is no memory. */
static uint32_t place_number(struct comparing *comparing, const struct tdt_trace *trace,
			     const struct tdt_task_info *info)
{
	struct comparison *result = comparing->result;
	struct tdt__string *key = &comparing->key;
	uint32_t i;

	key->n = 0;
	tdt__string_add(key, trace != NULL ? "t" : "r", 1);
	if (trace == NULL)
		add_key_record(key, info);
	else
		for (const struct tdt_node *node = tdt_trace_root(trace); node != NULL;
		     node = tdt_node_next(node))
			add_key_node(key, node);
	if (key->failed || !tdt__array_grow(&result->place, result->n_places,
					    &comparing->places_room, sizeof *result->place))
		return NO_MEMBER;
	i = tdt__texts_number(&comparing->places, key->bytes, key->n);
	if (i == result->n_places)
		result->place[result->n_places++] =
		    (struct compare_place){ .trace = trace, .example = info, .number = i };
	return i;
}

/* --- Members ------------------------------------------------------------------------ */

/* List the tasks of a group, all of which are at one place if they have a tree. */
static int list_group(struct comparing *comparing, struct compared_all *members,
		      const struct tdt_snapshot_group *group)
{
	uint32_t place = NO_MEMBER;

	for (size_t i = 0; i < group->n; i++) {
		const struct tdt_task_info *info = group->tasks[i];

		if (info->state == TDT_TASK_READY || info->state == TDT_TASK_PANICKED)
			continue;
		if (place == NO_MEMBER || group->trace == NULL)
			place = place_number(comparing, group->trace, info);
		if (place == NO_MEMBER)
			return -ENOMEM;
		members->trees = members->trees || (group->trace != NULL &&
						    info->state != TDT_TASK_RUNNING);
		members->member[members->n++] = (struct compared){
			.info = info, .group = group, .trace = group->trace, .place = place
		};
	}
	return 0;
}

static int list_members(struct comparing *comparing, struct compared_all *members)
{
	const struct tdt_snapshot *snapshot = members->snapshot;
	size_t n = 0;
	int error = 0;

	for (size_t i = 0; i < snapshot->n_groups; i++)
		n += snapshot->groups[i]->n;
	if (n >= UINT32_MAX)
		return -ENOMEM;
	members->member = calloc(n + 1, sizeof *members->member);
	if (members->member == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->n_groups && error == 0; i++)
		error = list_group(comparing, members, snapshot->groups[i]);
	return error;
}

/* --- Fates -------------------------------------------------------------------------- */

static bool is_same_process(const struct tdt_snapshot_process *a,
			    const struct tdt_snapshot_process *b)
{
	return a != NULL && b != NULL && a->pid == b->pid && a->registry == b->registry &&
	       a->start_real_ns == b->start_real_ns && a->start_real_ns != 0;
}

/* Whether two times ago are one moment: 1, 0, or -1 if a time is unknown. */
static int same_moment(const struct comparing *comparing, uint64_t before_ns, uint64_t after_ns)
{
	if (before_ns == 0 || after_ns == 0)
		return -1;
	return comparing->before.snapshot->process->now_ns - before_ns ==
	       comparing->after.snapshot->process->now_ns - after_ns;
}

/*
 * Whether all polls between the two were made only for requests.  Their number is known modulo 128:
 * the moment of the last poll tells 128 polls from none.
 */
static bool is_not_polled(const struct comparing *comparing, const struct tdt_task_info *before,
			  const struct tdt_task_info *after)
{
	uint64_t polls = after->polls - before->polls;
	uint64_t requested = (uint64_t)after->requested - before->requested;
	int same = same_moment(comparing, before->polled_ns, after->polled_ns);

	return (polls - requested) % REQUESTED_MODULO == 0 &&
	       (same < 0 ? polls < REQUESTED_MODULO : same != 0);
}

/* Whether the task has a tree of its last poll: not an older one, as a watch may have. */
static bool has_tree(const struct compared *task)
{
	return task->trace != NULL && task->info->polls_since == 0;
}

/*
 * Whether the task is still in the same poll, or in the same wait.  A poll that was made for a
 * request may have let the task go on; then its tree has changed.  Trees that were had in different
 * ways (the stack of a coroutine, and a poll) say nothing of that.
 */
static bool did_not_move(const struct comparing *comparing, const struct compared *before,
			 const struct compared *after)
{
	if (!is_not_polled(comparing, before->info, after->info) ||
	    (before->info->state == TDT_TASK_RUNNING) != (after->info->state == TDT_TASK_RUNNING))
		return false;
	return before->place == after->place || !has_tree(before) || !has_tree(after) ||
	       after->info->state == TDT_TASK_RUNNING ||
	       before->info->leaves_known != after->info->leaves_known ||
	       before->info->requested == after->info->requested;
}

/* Whether it is known of two tasks at one place that this is where they wait. */
static bool are_there(const struct compared *before, const struct compared *after)
{
	if (before->trace != NULL)
		return has_tree(before) && has_tree(after);
	return after->info->n_waits != 0;
}

static enum compare_fate fate_of(const struct comparing *comparing, const struct compared *before,
				 const struct compared *after)
{
	if (did_not_move(comparing, before, after))
		return FATE_STUCK;
	if (before->place == after->place && after->info->state == TDT_TASK_WAITING &&
	    are_there(before, after))
		return FATE_RETURNED;
	return FATE_MOVED;
}

static void match_task(const struct comparing *comparing, struct compared *before,
		       struct compared *after)
{
	before->matched = true;
	after->fate = fate_of(comparing, before, after);
	if (after->fate != FATE_STUCK || has_tree(after) || !has_tree(before))
		return;
	/* It is still where it was. */
	after->trace = before->trace;
	after->place = before->place;
}

/* The first member with an id.  Of hostile answers many have one. */
struct first_with_id {
	uint64_t id;
	uint32_t member;
};

static int match(struct comparing *comparing)
{
	struct compared_all *before = &comparing->before, *after = &comparing->after;
	TDT__TABLE(struct first_with_id, first, n) by_id = { 0 };
	int error = 0;

	for (uint32_t i = 0; i < before->n && error == 0; i++) {
		const struct first_with_id new = { before->member[i].info->id, i };

		if (tdt__table_note(&by_id.first_table, &new, sizeof new.id, sizeof new) ==
		    TDT__INDEX_NONE)
			error = -ENOMEM;
	}
	for (size_t i = 0; i < after->n && error == 0; i++) {
		struct compared *member = &after->member[i], *same;
		uint32_t k = tdt__table_find(&by_id.first_table, &member->info->id,
					     sizeof member->info->id, sizeof by_id.first[0]);

		member->fate = FATE_CAME;
		if (k == TDT__INDEX_NONE)
			continue;
		same = &before->member[by_id.first[k].member];
		if (!same->matched && same_moment(comparing, same->info->spawned_ns,
						  member->info->spawned_ns) != 0)
			match_task(comparing, same, member);
	}
	tdt__table_fini(&by_id.first_table);
	return error;
}

/* --- Groups ------------------------------------------------------------------------- */

static bool same_group(const struct compared *a, const struct compared *b)
{
	return a->fate == b->fate && a->place == b->place && a->info->state == b->info->state &&
	       a->group->answer == b->group->answer;
}

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static int by_group(const void *a, const void *b)
{
	const struct compared *x = a, *y = b;
	int order = ORDER(x->fate, y->fate);

	order = order != 0 ? order : ORDER(x->place, y->place);
	order = order != 0 ? order : ORDER(x->info->state, y->info->state);
	order = order != 0 ? order : ORDER(x->group->answer, y->group->answer);
	order = order != 0 ? order : ORDER(y->info->state_ns, x->info->state_ns);
	return order != 0 ? order : ORDER(x->info->id, y->info->id);
}

static int by_fate(const void *a, const void *b)
{
	const struct compare_group *x = a, *y = b;
	int order = ORDER(x->fate, y->fate);

	order = order != 0 ? order : ORDER(y->tasks.n, x->tasks.n);
	order = order != 0 ? order : ORDER(x->place, y->place);
	order = order != 0 ? order : ORDER(x->tasks.tasks[0]->state, y->tasks.tasks[0]->state);
	return order != 0 ? order : ORDER(x->tasks.answer, y->tasks.answer);
}

static int group_members(struct comparison *result, const struct compared *member, size_t n)
{
	result->tasks = calloc(n + 1, sizeof *result->tasks);
	result->group = calloc(n + 1, sizeof *result->group);
	if (result->tasks == NULL || result->group == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		result->fates[member[i].fate]++;
		result->tasks[i] = member[i].info;
		if (i == 0 || !same_group(&member[i - 1], &member[i]))
			result->group[result->n_groups++] = (struct compare_group){
				.fate = member[i].fate,
				.place = member[i].place,
				.tasks = { .answer = member[i].group->answer,
					   .trace = member[i].trace,
					   .tasks = &result->tasks[i] },
			};
		result->group[result->n_groups - 1].tasks.n++;
	}
	qsort(result->group, result->n_groups, sizeof *result->group, by_fate);
	return 0;
}

static int group_all(struct comparing *comparing)
{
	const struct compared_all *before = &comparing->before, *after = &comparing->after;
	struct compared *all = calloc(before->n + after->n + 1, sizeof *all);
	size_t n = after->n;
	int error;

	if (all == NULL)
		return -ENOMEM;
	memcpy(all, after->member, n * sizeof *all);
	for (size_t i = 0; i < before->n; i++)
		if (!before->member[i].matched) {
			all[n] = before->member[i];
			all[n++].fate = FATE_WENT;
		}
	qsort(all, n, sizeof *all, by_group);
	error = group_members(comparing->result, all, n);
	free(all);
	return error;
}

/* --- Growth ------------------------------------------------------------------------- */

static int by_growth(const void *a, const void *b)
{
	const struct compare_place *x = a, *y = b;
	int64_t grown_x = (int64_t)x->after - (int64_t)x->before;
	int64_t grown_y = (int64_t)y->after - (int64_t)y->before;
	int order = ORDER(grown_y, grown_x);

	return order != 0 ? order : ORDER(x->number, y->number);
}

static void count_places(struct comparing *comparing)
{
	struct compare_place *place = comparing->result->place;

	for (size_t i = 0; i < comparing->before.n; i++)
		place[comparing->before.member[i].place].before++;
	for (size_t i = 0; i < comparing->after.n; i++)
		place[comparing->after.member[i].place].after++;
}

static int sort_places(struct comparison *result)
{
	size_t n = result->n_places;
	uint32_t *number = calloc(n + 1, sizeof *number); /* by the number before */

	if (number == NULL)
		return -ENOMEM;
	if (n > 0)
		qsort(result->place, n, sizeof *result->place, by_growth);
	for (uint32_t i = 0; i < n; i++)
		number[result->place[i].number] = i;
	for (size_t i = 0; i < result->n_groups; i++)
		result->group[i].place = number[result->group[i].place];
	free(number);
	return 0;
}

/* --- All ---------------------------------------------------------------------------- */

static int compare_members(struct comparing *comparing)
{
	struct comparison *result = comparing->result;
	int error = list_members(comparing, &comparing->before);

	if (error == 0)
		error = list_members(comparing, &comparing->after);
	if (error != 0)
		return error;
	result->has_grown = comparing->before.trees == comparing->after.trees;
	if (result->same_process)
		error = match(comparing);
	count_places(comparing);
	if (result->same_process && error == 0)
		error = group_all(comparing);
	return error != 0 ? error : sort_places(result);
}

int compare(struct comparison *comparison, const struct tdt_snapshot *before,
	    const struct tdt_snapshot *after)
{
	struct comparing comparing = { .result = comparison,
				       .before.snapshot = before,
				       .after.snapshot = after };
	int error;

	*comparison = (struct comparison){
		.after = after, .same_process = is_same_process(before->process, after->process)
	};
	if (comparison->same_process && after->process->now_ns < before->process->now_ns)
		return -EINVAL;
	if (comparison->same_process)
		comparison->apart_ns = after->process->now_ns - before->process->now_ns;
	error = compare_members(&comparing);
	free(comparing.before.member);
	free(comparing.after.member);
	tdt__texts_fini(&comparing.places);
	tdt__string_free(&comparing.key);
	if (error != 0)
		comparison_fini(comparison);
	return error;
}

void comparison_fini(struct comparison *comparison)
{
	free(comparison->place);
	free(comparison->group);
	free(comparison->tasks);
	*comparison = (struct comparison){ 0 };
}
