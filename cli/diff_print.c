// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A comparison as text, which has the first places of each part, and as JSON, which has all of
 * them; tdt(1) has examples of both.
 */

#include "cli/compare.h"

#include <inttypes.h>
#include <string.h>

#include <tdt/tree.h>

#include "tree-printer/dumps.h"
#include "tree-printer/forms.h"
#include "tree-printer/terminal.h"
#include "tree-printer/words.h"

#define MOST_PLACES 10 /* of a part of the text */
#define MOST_IDS 8     /* of a group */

/* In the order of enum compare_fate. */
static const char *const fate_words[] = { "stuck", "returned", "moved", "came", "went" };

struct diff_printing {
	struct tdt__out *out;
	const struct comparison *comparison;
	const struct tdt_print_options *print;
	struct tdt__names *names;
	struct tdt__string string;
};

static size_t count_live(const struct comparison *comparison, bool after)
{
	size_t n = 0;

	for (size_t i = 0; i < comparison->n_places; i++)
		n += after ? comparison->place[i].after : comparison->place[i].before;
	return n;
}

static void diff_heading(struct tdt__string *string, const struct comparison *comparison)
{
	if (comparison->same_process) {
		tdt__string_printf(string, "process %" PRIu32 ": %s apart, ",
				   comparison->after->process->pid,
				   TDT__DURATION(comparison->apart_ns));
	} else {
		tdt__string_puts(string, "different processes, as far as the answers say, so only "
					 "places are compared: ");
	}
	tdt__string_printf(string, "%s before, %s after\n",
			   TDT__COUNTED(count_live(comparison, false), "task"),
			   TDT__NUMBER(count_live(comparison, true)));
}

/* How many tasks have which fate; nothing if tasks were not compared. */
static void fates_line(struct tdt__string *string, const struct comparison *comparison)
{
	static const char *const words[] = { " did not move", " came back to the same place",
					     " went on", " came", " went" };
	const char *before = "";

	for (int fate = 0; fate < FATES; fate++) {
		if (comparison->fates[fate] == 0)
			continue;
		tdt__string_printf(string, "%s%s%s", before, TDT__NUMBER(comparison->fates[fate]),
				   words[fate]);
		before = ", ";
	}
	if (*before != '\0')
		tdt__string_puts(string, "\n");
	tdt__string_puts(string, "\n");
}

/* The last line of a part counts the places and tasks that it leaves out. */
static void rest_line(struct tdt__string *string, size_t places, size_t tasks)
{
	if (places == 0)
		return;
	tdt__string_printf(string, "and %s%s%s (--json has all)\n\n", TDT__NUMBER(places),
			   places == 1 ? " more place, with " : " more places, with ",
			   TDT__COUNTED(tasks, "task"));
}

/* Write groups as a dump does, without what it says of all of them. */
static void write_groups(struct diff_printing *printing, const struct compare_group *group,
			 size_t n)
{
	const struct tdt_snapshot_group *groups[MOST_PLACES];
	struct tdt_snapshot snapshot = *printing->comparison->after;
	const struct tdt__dump dump = { .snapshot = &snapshot,
					.names = printing->names,
					.options = printing->print,
					.max_ids = MOST_IDS };

	for (size_t i = 0; i < n; i++)
		groups[i] = &group[i].tasks;
	snapshot.groups = groups;
	snapshot.n_groups = n;
	tdt__dump_groups(printing->out, &dump);
}

static void fate_part(struct diff_printing *printing, const char *title, enum compare_fate fate)
{
	const struct comparison *comparison = printing->comparison;
	struct tdt__string *string = &printing->string;
	size_t from = 0, n = 0, tasks = 0, shown;

	while (from < comparison->n_groups && comparison->group[from].fate != fate)
		from++;
	while (from + n < comparison->n_groups && comparison->group[from + n].fate == fate)
		n++;
	shown = n < MOST_PLACES ? n : MOST_PLACES;
	for (size_t i = shown; i < n; i++)
		tasks += comparison->group[from + i].tasks.n;
	if (n == 0)
		return;
	tdt__colored(string, TDT__BOLD, title);
	if (fate == FATE_STUCK)
		tdt__string_printf(string, " %s", TDT__DURATION(comparison->apart_ns));
	tdt__string_printf(string, ": %s\n\n", TDT__COUNTED(comparison->fates[fate], "task"));
	tdt__out_take(printing->out, string);
	write_groups(printing, &comparison->group[from], shown);
	rest_line(string, n - shown, tasks);
	tdt__out_take(printing->out, string);
}

/* Where tasks without a tree wait, and were spawned. */
static void record_line(struct diff_printing *printing, const struct tdt_task_info *info)
{
	struct tdt__string *string = &printing->string;

	tdt__string_puts(string, "   ");
	if (info->n_waits != 0) {
		struct tdt_wait wait = { .kind = info->waits[0]->kind };

		memcpy(wait.name, info->waits[0]->name, sizeof wait.name);
		tdt__string_puts(string, "waits ");
		tdt__wait_for(string, &wait, info->id, NULL);
		tdt__string_puts(string, ", ");
	}
	tdt__spawn_place(string, info->file != NULL ? info->file : "an unknown place", info->line,
			 0);
	tdt__string_puts(string, "\n");
}

static void write_place(struct diff_printing *printing, const struct compare_place *place,
			struct tdt__frames *frames)
{
	struct tdt__string *string = &printing->string;

	tdt__string_printf(string, "+%s: %s before, %s after\n",
			   TDT__COUNTED(place->after - place->before, "task"),
			   TDT__NUMBER(place->before), TDT__NUMBER(place->after));
	if (place->trace == NULL)
		record_line(printing, place->example);
	tdt__out_take(printing->out, string);
	if (place->trace != NULL)
		tdt__print_tree(printing->out, NULL, tdt_trace_root(place->trace), frames, NULL);
	tdt__out_add(printing->out, "\n", 1);
}

/* The places that have grown come first. */
static size_t count_grown(const struct comparison *comparison)
{
	size_t n = 0;

	while (n < comparison->n_places &&
	       comparison->place[n].after > comparison->place[n].before)
		n++;
	return comparison->has_grown ? n : 0;
}

static void grown_part(struct diff_printing *printing)
{
	const struct comparison *comparison = printing->comparison;
	size_t n = count_grown(comparison), shown = n < MOST_PLACES ? n : MOST_PLACES, tasks = 0;
	struct tdt__frames frames = { .string.options = printing->print };

	if (n == 0)
		return;
	tdt__colored(&printing->string, TDT__BOLD, "more tasks than before");
	tdt__string_printf(&printing->string, ": %s%s", TDT__NUMBER(n),
			   n == 1 ? " place\n\n" : " places\n\n");
	tdt__out_take(printing->out, &printing->string);
	for (size_t i = 0; i < shown; i++)
		write_place(printing, &comparison->place[i], &frames);
	for (size_t i = shown; i < n; i++)
		tasks += comparison->place[i].after;
	rest_line(&printing->string, n - shown, tasks);
	tdt__frames_fini(&frames);
	tdt__out_take(printing->out, &printing->string);
}

void diff_text(struct tdt__out *out, const struct comparison *comparison,
	       const struct tdt_print_options *print)
{
	struct diff_printing printing = { .out = out,
					  .comparison = comparison,
					  .print = print,
					  .string.options = print,
					  .names = tdt__names_new(comparison->after) };

	out->no_memory |= printing.names == NULL;
	diff_heading(&printing.string, comparison);
	fates_line(&printing.string, comparison);
	tdt__out_take(out, &printing.string);
	fate_part(&printing, "did not move for", FATE_STUCK);
	grown_part(&printing);
	fate_part(&printing, "came", FATE_CAME);
	fate_part(&printing, "went", FATE_WENT);
	tdt__names_free(printing.names);
}

static void diff_head(struct tdt__json *json, const struct comparison *comparison)
{
	tdt__json_begin(json, "diff", '{');
	tdt__json_bool(json, "same_process", comparison->same_process);
	tdt__json_u64(json, "apart_ns", comparison->apart_ns);
	tdt__json_u64(json, "before", count_live(comparison, false));
	tdt__json_u64(json, "after", count_live(comparison, true));
	for (int fate = 0; fate < FATES && comparison->same_process; fate++)
		tdt__json_u64(json, fate_words[fate], comparison->fates[fate]);
	tdt__json_bool(json, "comparable", comparison->has_grown);
	tdt__json_end(json, '}');
}

static void group_of_json(struct tdt__json *json, const struct compare_group *group)
{
	tdt__json_string(json, "fate", fate_words[group->fate]);
	tdt__json_u64(json, "place", group->place);
	tdt__json_begin(json, "tasks", '[');
	for (size_t i = 0; i < group->tasks.n && json->out->error == 0; i++)
		tdt__json_task(json, NULL, group->tasks.tasks[i]);
	tdt__json_end(json, ']');
}

static void place_json(struct tdt__json *json, const struct compare_place *place)
{
	tdt__json_u64(json, "before", place->before);
	tdt__json_u64(json, "after", place->after);
	if (place->trace != NULL)
		tdt__json_nodes(json, tdt_trace_root(place->trace));
	else
		tdt__json_task(json, "task", place->example);
}

void diff_json(struct tdt__out *out, const struct comparison *comparison)
{
	struct tdt__json json = tdt__json_document(out);

	diff_head(&json, comparison);
	TDT__JSON_LIST(&json, "groups", comparison->group, comparison->n_groups, group_of_json,
		       &json);
	TDT__JSON_LIST(&json, "places", comparison->place, comparison->n_places, place_json, &json);
	tdt__json_finish(&json);
}
