// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The places where tasks wait or run, for tdt top.
 *
 * The place of a tree is where its one way ends: the innermost function of the program, and what
 * that called.  A way ends at a leaf, or where it branches.  All tasks of a group (tree/groups.h)
 * have the same tree, so a place is found once for each group.  A task without a tree has what its
 * record says for a place: the object that it waits for, and where it was spawned.
 *
 * Looking up names takes far longer than all the rest.  A name is kept with a key that is derived
 * from the addresses in the tree, and the next round takes it from this one.
 */

#include "cli/top_look.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "facts/record.h"
#include "tree-printer/fold.h"
#include "tree-printer/frame.h"
#include "tree-printer/operation.h"
#include "tree-printer/origin.h"
#include "tree-printer/strings.h"
#include "tree-printer/view.h"
#include "tree-printer/words.h"
#include "tree/stacks.h"
#include "tree/trace.h"
#include "tree/tree.h"

#define PLACES_TIME (5 * TDT__SECOND)
#define NO_PLACE TDT__INDEX_NONE

struct spot {
	uint64_t key;
	const struct tdt_trace *trace; /* NULL: the place is that of a record */
	bool older; /* the tasks were polled since the poll of the tree */
	const struct tdt_task_info *task; /* one of the tasks */
	uint64_t n;                    /* tasks that wait here */
	uint64_t longest;
	char text[TOP_TEXT]; /* "": it was not named */
};

struct top_places {
	const struct top_look *look;
	const struct tdt_snapshot *snapshot;
	uint64_t unloads; /* in every key: other modules may come to lie where one was unloaded */
	TDT__TABLE(struct spot, place, n); /* by their keys */
	uint32_t (*of_group)[2]; /* by `older`; NO_PLACE: no task of the group has such a tree */
};

static uint64_t key_of_stacks(const struct tdt__stacks *stacks, uint64_t unloads)
{
	uint64_t key = tdt__mix(stacks->n, unloads);

	for (uint32_t i = 0; i < stacks->n; i++) {
		key = tdt__mix(key, stacks->frames[i].frame.pc);
		key = tdt__mix(key, (uint64_t)stacks->frames[i].parent << 32 |
					    stacks->frames[i].leaves);
	}
	return key;
}

static uint64_t key_of_record(const struct tdt_task_info *info)
{
	const struct tdt_wait *wait = info->n_waits != 0 ? info->waits[0] : NULL;
	const char *file = info->file != NULL ? info->file : "";
	uint64_t key = tdt__mix(TDT__HASH_START, info->line);

	if (wait != NULL)
		key = tdt__hash_bytes(tdt__mix(key, (uint64_t)wait->kind), wait->name,
				      strlen(wait->name));
	return tdt__hash_bytes(key, file, strlen(file));
}

/* The number of the place with that key, found or made.  NO_PLACE: no memory. */
static uint32_t note_place(struct top_places *places, uint64_t key, const struct tdt_trace *trace,
			   const struct tdt_task_info *task)
{
	const struct spot new = { .key = key, .trace = trace, .task = task };

	return tdt__table_note(&places->place_table, &new, sizeof new.key, sizeof new);
}

/* A watched tree of an earlier poll does not show where the task waits now. */
static bool has_older_tree(const struct tdt_task_info *task)
{
	return task->polls_since != 0;
}

static void count_task_in(struct spot *place, const struct tdt_task_info *task)
{
	if (task->state != TDT_TASK_WAITING)
		return;
	place->n++;
	if (task->state_ns > place->longest)
		place->longest = task->state_ns;
}

/* The number of the place of a tree, found or made. */
static uint32_t note_tree(struct top_places *places, const struct tdt_trace *trace,
			  const struct tdt_task_info *task, uint32_t *known)
{
	bool older = has_older_tree(task);

	if (*known == NO_PLACE)
		*known = note_place(places,
				    tdt__mix(key_of_stacks(trace->stacks, places->unloads), older),
				    trace, task);
	if (*known != NO_PLACE)
		places->place[*known].older = older;
	return *known;
}

/* False: no memory. */
static bool count_group(struct top_places *places, size_t group)
{
	const struct tdt_snapshot_group *from = places->snapshot->groups[group];
	bool has_tree = from->trace != NULL && from->trace->stacks != NULL;
	uint32_t *known = places->of_group[group];

	known[false] = known[true] = NO_PLACE;
	for (size_t i = 0; i < from->n; i++) {
		const struct tdt_task_info *task = from->tasks[i];
		uint32_t number = has_tree && !tdt__has_no_tree(task)
					  ? note_tree(places, from->trace, task,
						      &known[has_older_tree(task)])
					  : note_place(places, key_of_record(task), NULL, task);

		if (number == NO_PLACE)
			return false;
		count_task_in(&places->place[number], task);
	}
	return true;
}

/* The only row below `row`; 0: there is none, or there are several. */
static uint32_t only_child(const struct tdt__view *view, uint32_t row)
{
	uint32_t child = row + 1;

	if (child >= view->n || view->row[child].parent != row || view->row[child].node == NULL)
		return 0;
	for (uint32_t i = child + 1; i < view->n && view->row[i].depth >= view->row[child].depth;
	     i++)
		if (view->row[i].parent == row)
			return 0;
	return child;
}

/* Add the name of what the program called: of an operation, if the calls below it are folded. */
static void add_called(struct tdt__string *string, const struct tdt_frame *frame,
		       const struct tdt__folded *folded)
{
	struct tdt_frame shown = *frame;
	struct tdt__string name = { 0 };

	if (folded->fold == TDT__FOLD_OPERATION && frame->function != NULL) {
		tdt__operation_name(&name, frame->function);
		if (!name.failed)
			shown.function = name.bytes;
	}
	tdt__frame_name(string, &shown);
	tdt__string_puts(string, " in ");
	tdt__string_free(&name);
}

static bool is_programs(const struct tdt_node *node, const struct tdt__folded *folded)
{
	return folded[tdt_node_id(node)].own && !tdt__is_plumbing(tdt_node_frame(node));
}

/* "tdt_tcp_read in conn_poll at demo/echo.c:196:3"; "several in conn_poll at ..."; "several" */
static void add_way(struct tdt__string *string, const struct tdt__view *view,
		    const struct tdt__folded *folded)
{
	uint32_t own = 0, last = 0;

	for (uint32_t row = 0; (row = only_child(view, row)) != 0; last = row)
		if (own == 0 || is_programs(view->row[row].node, folded))
			own = row;
	if (view->n == 1)
		tdt__string_puts(string, "(" TDT__NO_LEAVES ")");
	else if (view->n > last + 1)
		tdt__string_puts(string, own != 0 ? "several in " : "several");
	if (own == 0)
		return;
	if (last != own)
		add_called(string, tdt_node_frame(view->row[last].node),
			   &folded[tdt_node_id(view->row[last].node)]);
	tdt__frame_name(string, tdt_node_frame(view->row[own].node));
	tdt__frame_place(string, tdt_node_frame(view->row[own].node));
}

/* The place of a tree.  Returns whether all of it was named. */
static bool name_tree(struct tdt__string *string, const struct spot *place, uint64_t deadline)
{
	const struct tdt_node *root = tdt__trace_root_by(place->trace, deadline);
	struct tdt__frames frames = { .string.options = string->options };
	struct tdt__folded *folded = root != NULL ? tdt__fold(root, &frames, false) : NULL;
	struct tdt__view view;

	if (place->older)
		tdt__string_puts(string, "(older tree) ");
	if (folded != NULL && tdt__view_make(&view, root, string->options, folded) == 0) {
		add_way(string, &view, folded);
		free(view.row);
	}
	free(folded);
	tdt__frames_fini(&frames);
	return root != NULL && root->tree->unnamed == 0;
}

static void name_record(struct tdt__string *string, const struct tdt_task_info *info)
{
	tdt__string_puts(string, tdt__has_no_tree(info) ? "(" TDT__NO_TREE ")" : "(no tree)");
	if (info->n_waits != 0) {
		struct tdt_wait wait = *info->waits[0];

		wait.object = wait.owner = wait.orphaned = 0;
		tdt__string_puts(string, " ");
		tdt__wait_for(string, &wait, info->id, NULL);
	}
	tdt__task_place(string, info);
}

static const char *name_of_last(const struct top_look *look, uint64_t key)
{
	for (uint64_t i = 0; look->last != NULL && i < look->last->n_known; i++)
		if (look->last->known[i].key == key)
			return look->last->known[i].text;
	return NULL;
}

static void name_top_place(const struct top_places *places, struct spot *place, uint64_t deadline)
{
	struct top_round *round = places->look->round;
	struct tdt_print_options plain = places->look->options->print;
	const char *known = name_of_last(places->look, place->key);
	struct tdt__string string = { .options = &plain };
	bool whole = true;

	plain.color = TDT_PRINT_NO;
	if (known != NULL)
		tdt__string_puts(&string, known);
	else if (place->trace != NULL)
		whole = name_tree(&string, place, deadline);
	if (string.n == 0)
		name_record(&string, place->task);
	top_keep_text(place->text, &string);
	if (place->trace == NULL || !whole || round->n_known == TOP_PLACES)
		return;
	round->known[round->n_known].key = place->key;
	memcpy(round->known[round->n_known++].text, place->text, TOP_TEXT);
}

static int by_tasks(const void *a, const void *b)
{
	const struct spot *x = *(struct spot *const *)a, *y = *(struct spot *const *)b;

	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	if (x->longest != y->longest)
		return x->longest < y->longest ? 1 : -1;
	return (x->key > y->key) - (x->key < y->key);
}

/* Count a place in: trees that differ may have places that read the same. */
static void list_place(struct top_round *round, const struct spot *place)
{
	uint64_t key = tdt__hash_bytes(TDT__HASH_START, place->text, strlen(place->text));
	struct top_place *to = round->place;

	while (to < round->place + round->n_places && to->key != key)
		to++;
	if (to == round->place + round->n_places) {
		*to = (struct top_place){ .key = key };
		memcpy(to->text, place->text, TOP_TEXT);
		round->n_places++;
	}
	to->n += place->n;
	if (place->longest > to->longest)
		to->longest = place->longest;
}

static int by_waiting(const void *a, const void *b)
{
	const struct top_place *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return strcmp(x->text, y->text);
}

static bool name_top_places(struct top_places *places)
{
	struct top_round *round = places->look->round;
	uint64_t deadline = tdt__clock() + PLACES_TIME;
	struct spot **sorted = calloc(places->n + 1, sizeof *sorted);

	if (sorted == NULL)
		return false;
	for (uint32_t i = 0; i < places->n; i++) {
		sorted[i] = &places->place[i];
		round->places += places->place[i].n > 0;
	}
	qsort(sorted, places->n, sizeof *sorted, by_tasks);
	for (uint32_t i = 0; i < places->n && i < TOP_PLACES; i++) {
		name_top_place(places, sorted[i], deadline);
		if (sorted[i]->n > 0)
			list_place(round, sorted[i]);
	}
	qsort(round->place, round->n_places, sizeof round->place[0], by_waiting);
	free(sorted);
	return true;
}

struct top_places *top_places_find(const struct top_look *look, const struct outside *outside,
				   const struct tdt_snapshot *snapshot)
{
	struct top_places *places = calloc(1, sizeof *places);
	bool enough;

	if (places == NULL)
		return NULL;
	places->look = look;
	places->snapshot = snapshot;
	tdt__target_read(&outside->target, outside->found[0].registry.unloads, &places->unloads,
			 sizeof places->unloads);
	places->of_group = calloc(snapshot->n_groups + 1, sizeof *places->of_group);
	enough = places->of_group != NULL;
	for (size_t i = 0; i < snapshot->n_groups && enough; i++)
		enough = count_group(places, i);
	if (!enough || !name_top_places(places)) {
		top_places_free(places);
		return NULL;
	}
	return places;
}

void top_places_free(struct top_places *places)
{
	if (places == NULL)
		return;
	tdt__table_fini(&places->place_table);
	free(places->of_group);
	free(places);
}

const char *top_places_text(const struct top_places *places, size_t group,
			    const struct tdt_task_info *task)
{
	uint32_t number = places->of_group[group][has_older_tree(task)];
	uint64_t key = key_of_record(task);

	if (number == NO_PLACE)
		number = tdt__table_find(&places->place_table, &key, sizeof key,
					 sizeof places->place[0]);
	return number != NO_PLACE ? places->place[number].text : "";
}
