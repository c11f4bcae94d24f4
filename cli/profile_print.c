// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A profile as JSON, as folded stacks, and in pprof's form. */

#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/profile.h"
#include "tree-printer/forms.h"
#include "tree-printer/frame.h"
#include "tree-printer/pprof.h"
#include "tree-printer/schema.h"

const char *const profile_states[] = {
	[TDT__PROFILE_WAITING] = "waiting",
	[TDT__PROFILE_RUNNABLE] = "runnable",
	[TDT__PROFILE_POLLING] = "polling",
	[TDT__PROFILE_STATES] = NULL,
};

bool profile_has_place(const struct profile_result *result, const struct tdt__profile_place *place)
{
	return place->ns >= 1 && (result->states & 1u << place->group->state) != 0;
}

double profile_total(const struct profile_result *result)
{
	double ns = 0;

	for (int i = 0; i < TDT__PROFILE_STATES; i++)
		if ((result->states & 1u << i) != 0)
			ns += result->profile->sum.state_ns[i];
	return ns;
}

static const char *name_of_place(const struct profile_result *result,
				 const struct tdt__profile_place *place)
{
	return tdt__profile_name_of(&result->profile->sum, place->group->name);
}

/* The word for what is waited for; NULL: unknown, or the task does not wait. */
static const char *kind_of_place(const struct tdt__profile_place *place)
{
	if (place->group->state != TDT__PROFILE_WAITING ||
	    place->group->kind == TDT_WAIT_UNKNOWN)
		return NULL;
	return wait_words[place->group->kind];
}

/* --- JSON --------------------------------------------------------------------------------- */

static void number_member(struct tdt__out *out, const char *before, double number)
{
	tdt__json_text(out, before);
	tdt__json_u64(out, (uint64_t)(number + 0.5));
}

static int text_member(struct tdt__out *out, const char *before, const char *text)
{
	if (text == NULL)
		return 0;
	tdt__json_text(out, before);
	return tdt__json_string(out, text);
}

static int json_frame(struct tdt__out *out, const struct tdt_frame *frame)
{
	struct tdt__string pc = { 0 };
	int error;

	tdt__string_printf(&pc, "{\"pc\":\"0x%" PRIx64 "\"", frame->pc);
	if (pc.failed)
		return -ENOMEM;
	tdt__out_add(out, pc.bytes, pc.n);
	tdt__string_free(&pc);
	error = text_member(out, ",\"function\":", frame->function);
	if (error == 0)
		error = text_member(out, ",\"file\":", frame->file);
	if (frame->line != 0)
		number_member(out, ",\"line\":", frame->line);
	if (frame->column != 0)
		number_member(out, ",\"column\":", frame->column);
	if (error == 0)
		error = text_member(out, ",\"module\":", frame->module);
	if (frame->kind == TDT_NODE_CUT && error == 0)
		error = text_member(out, ",\"cut\":", cut_words[frame->cut]);
	tdt__json_text(out, "}");
	return error;
}

/* The frames, the innermost first. */
static int json_frames(struct tdt__out *out, const struct tdt_node *node)
{
	int error = 0;

	tdt__json_text(out, ",\"frames\":[");
	for (bool first = true; node != NULL && error == 0; node = tdt_node_parent(node)) {
		if (tdt_node_frame(node)->kind == TDT_NODE_TASK)
			continue;
		if (!first)
			tdt__json_text(out, ",");
		first = false;
		error = json_frame(out, tdt_node_frame(node));
	}
	tdt__json_text(out, "]}");
	return error;
}

static int json_place(struct tdt__out *out, const struct profile_result *result,
		      const struct tdt__profile_place *place)
{
	int error = text_member(out, "{\"state\":", profile_states[place->group->state]);

	if (error == 0)
		error = text_member(out, ",\"kind\":", kind_of_place(place));
	if (error == 0)
		error = text_member(out, ",\"task\":", name_of_place(result, place));
	number_member(out, ",\"ns\":", place->ns);
	tdt__json_text(out, ",\"samples\":");
	tdt__json_u64(out, place->looks);
	return error == 0 ? json_frames(out, place->leaf) : error;
}

static void json_profile_head(struct tdt__out *out, const struct profile_result *result)
{
	const struct tdt__profile *profile = result->profile;
	const struct tdt__profile_sum *sum = &profile->sum;

	number_member(out, "{\"tdt\":", SCHEMA);
	number_member(out, ",\"profile\":{\"pid\":", result->outside->target.pid);
	tdt__json_text(out, ",\"start_ns\":");
	tdt__json_u64(out, result->real);
	number_member(out, ",\"duration_ns\":", result->ns);
	tdt__json_text(out, ",\"looks\":");
	tdt__json_u64(out, profile->looks);
	tdt__json_text(out, ",\"tasks_found\":");
	tdt__json_u64(out, profile->found);
	number_member(out, ",\"watch_ns\":", (double)result->watch_ns);
	tdt__json_text(out, result->ended ? ",\"ended\":true" : ",\"ended\":false");
	number_member(out, ",\"waiting_ns\":", sum->state_ns[TDT__PROFILE_WAITING]);
	number_member(out, ",\"runnable_ns\":", sum->state_ns[TDT__PROFILE_RUNNABLE]);
	number_member(out, ",\"polling_ns\":", sum->state_ns[TDT__PROFILE_POLLING]);
	number_member(out, ",\"stale_ns\":", sum->stale_ns);
	number_member(out, ",\"unknown_ns\":", sum->unknown_ns);
	tdt__json_text(out, "}");
}

static int json_time(struct tdt__out *out, const struct profile_result *result,
		     const struct tdt__profile_time *time)
{
	bool waits = time->state == TDT__PROFILE_WAITING && time->kind != TDT_WAIT_UNKNOWN;
	int error = text_member(out, "{\"state\":", profile_states[time->state]);

	if (error == 0)
		error = text_member(out, ",\"kind\":", waits ? wait_words[time->kind] : NULL);
	if (error == 0)
		error = text_member(out, ",\"task\":",
				    tdt__profile_name_of(&result->profile->sum, time->name));
	tdt__json_text(out, ",\"ns\":");
	tdt__json_u64(out, time->ns);
	tdt__json_text(out, ",\"times\":");
	tdt__json_u64(out, time->n);
	tdt__json_text(out, "}");
	return error;
}

static int json_recorded(struct tdt__out *out, const struct profile_result *result)
{
	int error = 0;

	if (result->times == NULL)
		return 0;
	tdt__json_text(out, ",\"recorded\":{\"ns\":");
	tdt__json_u64(out, result->times->ns);
	tdt__json_text(out, ",\"tasks\":[");
	for (size_t i = 0; i < result->times->n && error == 0; i++) {
		if (i > 0)
			tdt__json_text(out, ",");
		error = json_time(out, result, &result->times->time[i]);
	}
	tdt__json_text(out, "]}");
	return error;
}

int profile_json(struct tdt__out *out, const struct profile_result *result)
{
	bool first = true;
	int error;

	json_profile_head(out, result);
	error = json_recorded(out, result);
	tdt__json_text(out, ",\"places\":[");
	for (size_t i = 0; i < result->places->n && error == 0; i++) {
		if (!profile_has_place(result, &result->places->place[i]))
			continue;
		if (!first)
			tdt__json_text(out, ",");
		first = false;
		error = json_place(out, result, &result->places->place[i]);
	}
	if (error == 0) /* output that is cut short must not look complete */
		tdt__json_text(out, "]}\n");
	return error;
}

/* --- Folded stacks ------------------------------------------------------------------------ */

/* A `;` or an end of line would end the frame, which begins at `at`. */
static void protect_frame(struct tdt__string *string, size_t at)
{
	for (size_t i = at; i < string->n; i++)
		if (string->bytes[i] == ';' || string->bytes[i] == '\n')
			string->bytes[i] = ':';
}

/* Add the frames that are shown from `node` on, the innermost first, to `stack`. */
static size_t list_shown(const struct profile_tree *tree, const struct tdt_node *node,
			 const struct tdt_node **stack, size_t room)
{
	size_t n = 0;

	while ((node = profile_next_shown(tree, node)) != NULL && n < room) {
		stack[n++] = node;
		node = tdt_node_parent(node);
	}
	return n;
}

static int add_stack(struct tdt__string *line, struct profile_shown *shown,
		     const struct tdt__profile_place *place)
{
	const struct tdt_node *stack[TDT__TREE_FRAMES_MAX];
	const struct profile_tree *tree;
	size_t n, at;
	int error;

	if (place->leaf == NULL) {
		tdt__string_puts(line, ";(unknown)");
		return 0;
	}
	error = profile_shown_tree(shown, place, &tree);
	if (error != 0)
		return error;
	for (n = list_shown(tree, place->leaf, stack, TDT__TREE_FRAMES_MAX); n > 0; n--) {
		tdt__string_puts(line, ";");
		at = line->n;
		tdt__frame_name(line, tdt_node_frame(stack[n - 1]), shown->result->print);
		protect_frame(line, at);
	}
	return 0;
}

static int folded_line(struct tdt__out *out, struct profile_shown *shown,
		       const struct tdt__profile_place *place)
{
	const struct profile_result *result = shown->result;
	const char *name = name_of_place(result, place), *kind = kind_of_place(place);
	struct tdt__string line = { 0 };
	int error;

	tdt__string_escape(&line, name[0] != '\0' ? name : "(no name)",
			   result->print->utf8 == TDT_PRINT_YES, '\0');
	protect_frame(&line, 0);
	tdt__string_printf(&line, ";%s%s%s", profile_states[place->group->state],
			   kind != NULL ? ": " : "", kind != NULL ? kind : "");
	error = add_stack(&line, shown, place);
	tdt__string_printf(&line, " %" PRIu64 "\n", (uint64_t)place->ns);
	if (line.failed)
		error = -ENOMEM;
	if (error == 0)
		tdt__out_add(out, line.bytes, line.n);
	tdt__string_free(&line);
	return error;
}

int profile_folded(struct tdt__out *out, const struct profile_result *result)
{
	struct profile_shown shown;
	int error = profile_shown_init(&shown, result, false);

	for (size_t i = 0; i < result->places->n && error == 0; i++)
		if (profile_has_place(result, &result->places->place[i]))
			error = folded_line(out, &shown, &result->places->place[i]);
	profile_shown_fini(&shown);
	return error;
}

/* --- pprof -------------------------------------------------------------------------------- */

/* The values of a sample: the time in each state, and the looks. */
#define LOOKS_VALUE TDT__PROFILE_STATES

_Static_assert(TDT__PPROF_VALUES == TDT__PROFILE_STATES + 1, "each state has a value");

static int set_sample(struct tdt__pprof_sample *sample, struct profile_shown *shown,
		      const struct tdt__profile_place *place)
{
	const struct profile_result *result = shown->result;
	const struct profile_tree *tree;

	if (place->leaf != NULL && profile_shown_tree(shown, place, &tree) != 0)
		return -ENOMEM;
	*sample = (struct tdt__pprof_sample){
		.leaf = place->leaf,
		.shown = place->leaf != NULL ? tree->shown : NULL,
		.instead = "(unknown)",
		.label = { name_of_place(result, place), profile_states[place->group->state],
			   kind_of_place(place) },
	};
	sample->value[place->group->state] = (int64_t)place->ns;
	sample->value[LOOKS_VALUE] = (int64_t)place->looks;
	return 0;
}

int profile_pprof(FILE *file, const struct profile_result *result)
{
	struct tdt__pprof_sample *sample = calloc(result->places->n + 1, sizeof *sample);
	struct tdt__pprof pprof = {
		.type = { "waiting", "runnable", "polling", "samples" },
		.unit = { "nanoseconds", "nanoseconds", "nanoseconds", "count" },
		.label = { "task", "state", "waits for" },
		.comment = "tdt profile: the time of all tasks together",
		.sample = sample,
		.modules = result->outside->images.table,
		.real = result->real,
		.duration = (uint64_t)result->ns,
		.period = (uint64_t)(1e9 / result->hz),
	};
	struct profile_shown shown;
	int error = profile_shown_init(&shown, result, false);

	if (sample == NULL)
		error = -ENOMEM;
	for (size_t i = 0; i < result->places->n && error == 0; i++)
		if (profile_has_place(result, &result->places->place[i]))
			error = set_sample(&sample[pprof.n++], &shown, &result->places->place[i]);
	if (error == 0)
		error = tdt__pprof_write(&pprof, file);
	profile_shown_fini(&shown);
	free(sample);
	return error;
}
