// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A profile as a table: docs/outside.md has one. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/texts.h"
#include "cli/profile.h"
#include "tree-printer/terminal.h"
#include "tree-printer/words.h"

#define FRAMES_SHOWN 5 /* of each place, the innermost ones */

/* A line of the table: places that read the same. */
struct profile_row {
	const struct tdt__profile_place *place;
	double ns;
	uint32_t text[FRAMES_SHOWN]; /* the numbers of the frames' texts, the innermost first */
	bool guessed[FRAMES_SHOWN];
	size_t n;
	bool more; /* frames follow */
};

struct profile_table {
	const struct profile_result *result;
	struct profile_shown shown;
	struct tdt__texts keys; /* of the rows: what they say */
	struct profile_row *row;
	size_t n, room;
};

static int set_texts(struct profile_table *table, struct profile_row *row)
{
	const struct profile_tree *tree;
	const struct tdt_node *node = row->place->leaf;
	int error = node != NULL ? profile_shown_tree(&table->shown, row->place, &tree) : 0;

	if (error != 0 || node == NULL)
		return error;
	while ((node = profile_next_shown(tree, node)) != NULL && row->n < FRAMES_SHOWN) {
		const struct tdt__folded *folded = &tree->folded[tdt_node_id(node)];

		row->text[row->n] =
		    tdt__frames_text(&table->shown.frames, folded->frame, tdt__role_of(folded));
		if (row->text[row->n] == UINT32_MAX)
			return -ENOMEM;
		row->guessed[row->n++] = tdt_node_frame(node)->guessed != 0;
		node = tdt_node_parent(node);
	}
	row->more = node != NULL && profile_next_shown(tree, node) != NULL;
	return 0;
}

/* Add a row to the table, or its time to a row that reads the same. */
static int merge_row(struct profile_table *table, const struct tdt__profile_place *place)
{
	const struct tdt__profile_group *group = place->group;
	struct profile_row row = { .place = place, .ns = place->ns };
	int error = set_texts(table, &row);
	uint32_t key[4 + FRAMES_SHOWN] = { (uint32_t)group->state, (uint32_t)group->kind,
					   group->name, row.more },
			 i;

	if (error != 0)
		return error;
	memcpy(&key[4], row.text, row.n * sizeof row.text[0]);
	if (!tdt__array_grow(&table->row, table->n, &table->room, sizeof row))
		return -ENOMEM;
	i = tdt__texts_number(&table->keys, key, (4 + row.n) * sizeof key[0]);
	if (i == TDT__INDEX_NONE)
		return -ENOMEM;
	if (i == table->n)
		table->row[table->n++] = row;
	else
		table->row[i].ns += row.ns;
	return 0;
}

static int by_time_of_row(const void *a, const void *b)
{
	const struct profile_row *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

static int make_profile_rows(struct profile_table *table)
{
	const struct tdt__profile_places *places = table->result->places;
	int error = profile_shown_init(&table->shown, table->result, true);

	for (size_t i = 0; i < places->n && error == 0; i++)
		if (profile_has_place(table->result, &places->place[i]))
			error = merge_row(table, &places->place[i]);
	if (table->n > 0)
		qsort(table->row, table->n, sizeof table->row[0], by_time_of_row);
	return error;
}

static double percent(double part, double all)
{
	return all > 0 ? 100 * part / all : 0;
}

static void add_states(struct tdt__string *string, const struct profile_result *result)
{
	const double *ns = result->profile->sum.state_ns;
	double all = 0;

	for (int i = 0; i < TDT__PROFILE_STATES; i++)
		all += ns[i];
	for (int i = 0; i < TDT__PROFILE_STATES; i++)
		tdt__string_printf(string, "%s%s %s (%.1f %%)", i == 0 ? "" : ", ", task_states[i],
				   TDT__DURATION((uint64_t)ns[i]), percent(ns[i], all));
	tdt__string_puts(string, "\n");
}

/* How much of the waiting time rests on what. */
static void add_trust(struct tdt__string *string, const struct profile_result *result)
{
	const struct tdt__profile_sum *sum = &result->profile->sum;
	double waiting = sum->state_ns[TDT__PROFILE_WAITING];

	if (waiting <= 0)
		return;
	tdt__string_printf(
	    string,
	    "of the waiting time, %.1f %% was seen without a fresh tree, and %.1f %% has no place",
	    percent(sum->stale_ns + sum->unknown_ns, waiting), percent(sum->unknown_ns, waiting));
	if (sum->stale_ns > 0)
		tdt__string_printf(string, ": a place may be %.1f points off",
				   percent(sum->off_ns, waiting));
	tdt__string_puts(string, "\n");
}

static void add_head(struct tdt__string *string, const struct profile_result *result)
{
	const struct tdt__profile *profile = result->profile;
	double looks = profile->looks != 0 ? (double)profile->looks : 1;

	tdt__string_printf(string, "process %d, libtdt ", (int)result->outside->target.pid);
	tdt__string_escape(string, profile->tasks.registry.library, false, '\0');
	tdt__string_printf(string, ": %s, %s looks, %.1f tasks\n",
			   TDT__DURATION((uint64_t)result->ns), TDT__NUMBER(profile->looks),
			   (double)profile->found / looks);
	add_states(string, result);
	add_trust(string, result);
}

static void add_numbers(struct tdt__string *string, const struct profile_result *result,
			const struct profile_row *row)
{
	tdt__color(string, TDT__BOLD);
	tdt__string_printf(string, "%5.1f %%", percent(row->ns, profile_total(result)));
	tdt__color(string, TDT__PLAIN);
	tdt__string_printf(string, "%12s", TDT__DURATION((uint64_t)row->ns));
	tdt__string_printf(string, " %8.2f  ", result->ns > 0 ? row->ns / result->ns : 0);
}

static void add_kind(struct tdt__string *string, const struct tdt__profile_group *group)
{
	const char *kind = profile_kind(group->state, group->kind);

	tdt__string_printf(string, "%-9s %-10s ", task_states[group->state],
			   kind != NULL ? kind : "-");
}

static void add_name(struct tdt__string *string, const struct profile_result *result,
		     const struct tdt__profile_group *group)
{
	const char *name = tdt__profile_name_of(&result->profile->sum, group->name);

	if (name[0] == '\0')
		tdt__string_puts(string, "-");
	else
		tdt__string_text(string, name);
	tdt__string_puts(string, "\n");
}

static void frame_lines(struct tdt__string *string, const struct profile_table *table,
			const struct profile_row *row)
{
	if (row->n == 0)
		tdt__string_printf(string, "%29sthe place is unknown\n", "");
	for (size_t i = 0; i < row->n; i++) {
		tdt__string_printf(string, "%29s", "");
		tdt__frames_add(string, &table->shown.frames, row->text[i]);
		tdt__string_puts(string, row->guessed[i] ? " (callers may be missing)\n" : "\n");
	}
	if (row->more)
		tdt__string_printf(string, "%29s...\n", "");
}

static void write_rows(struct tdt__out *out, const struct profile_table *table)
{
	const struct profile_result *result = table->result;
	struct tdt__string string = { .options = result->print };
	size_t n = table->n < result->rows ? table->n : result->rows;

	tdt__string_puts(&string, "\n  SHARE        TIME    TASKS  STATE     WAITS FOR  TASK\n");
	for (size_t i = 0; i < n; i++) {
		const struct profile_row *row = &table->row[i];

		add_numbers(&string, result, row);
		add_kind(&string, row->place->group);
		add_name(&string, result, row->place->group);
		frame_lines(&string, table, row);
	}
	if (n < table->n)
		tdt__string_printf(&string, "and %zu more places (--rows)\n", table->n - n);
	tdt__out_take(out, &string);
}

static void add_recorded_row(struct tdt__string *string, const struct profile_result *result,
			     const struct tdt__profile_time *recorded)
{
	const struct tdt__profile_group alike = { .state = recorded->state,
						  .kind = recorded->kind,
						  .name = recorded->name };
	tdt__string_printf(string, "%12s", TDT__DURATION(recorded->ns));
	tdt__string_printf(string, " %10" PRIu64 "  ", recorded->n);
	add_kind(string, &alike);
	add_name(string, result, &alike);
}

static void write_recorded(struct tdt__out *out, const struct profile_result *result)
{
	const struct tdt__profile_times *times = result->times;
	struct tdt__string string = { .options = result->print };

	if (times == NULL || times->n == 0)
		return;
	tdt__string_printf(
	    &string,
	    "\nrecorded, in %s of it:\n        TIME      TIMES  STATE     WAITS FOR  TASK\n",
	    TDT__DURATION(times->ns));
	for (size_t i = 0; i < times->n && i < result->rows; i++)
		if ((result->states & 1u << times->time[i].state) != 0)
			add_recorded_row(&string, result, &times->time[i]);
	tdt__out_take(out, &string);
}

void profile_text(struct tdt__out *out, const struct profile_result *result)
{
	struct profile_table table = { .result = result };
	struct tdt__string head = { .options = result->print };

	if (make_profile_rows(&table) == 0) {
		add_head(&head, result);
		tdt__out_take(out, &head);
		if (table.n != 0)
			write_rows(out, &table);
		write_recorded(out, result);
	} else {
		out->no_memory = true;
	}
	profile_shown_fini(&table.shown);
	tdt__texts_fini(&table.keys);
	free(table.row);
}
