// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A profile as JSON, as folded stacks, and in pprof's form. */

#include "cli/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "tree-printer/forms.h"
#include "tree-printer/frame.h"
#include "tree-printer/pprof.h"
#include "tree-printer/schema.h"
#include "tree-printer/view.h"
#include "tree/tree.h"

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

const char *profile_kind(enum tdt__profile_state state, enum tdt_wait_kind kind)
{
	return state == TDT__PROFILE_WAITING && kind != TDT_WAIT_UNKNOWN ? wait_words[kind] : NULL;
}

static const char *kind_of_place(const struct tdt__profile_place *place)
{
	return profile_kind(place->group->state, place->group->kind);
}

static void json_number(struct tdt__json *json, const char *key, double number)
{
	tdt__json_u64(json, key, (uint64_t)(number + 0.5));
}

static void json_frames(struct tdt__json *json, const struct tdt_node *node)
{
	tdt__json_begin(json, "frames", '[');
	for (; node != NULL; node = tdt_node_parent(node)) {
		const struct tdt_frame *frame = tdt_node_frame(node);

		if (frame->kind == TDT_NODE_TASK)
			continue;
		tdt__json_begin(json, NULL, '{');
		tdt__json_address(json, "pc", frame->pc);
		tdt__json_string(json, "function", frame->function);
		tdt__json_string(json, "file", frame->file);
		tdt__json_known_u64(json, "line", frame->line);
		tdt__json_known_u64(json, "column", frame->column);
		tdt__json_string(json, "module", frame->module);
		if (frame->kind == TDT_NODE_CUT)
			tdt__json_string(json, "cut", cut_words[frame->cut]);
		tdt__json_end(json, '}');
	}
	tdt__json_end(json, ']');
}

static void json_place(struct tdt__json *json, const struct profile_result *result,
		       const struct tdt__profile_place *place)
{
	tdt__json_begin(json, NULL, '{');
	tdt__json_string(json, "state", task_states[place->group->state]);
	tdt__json_string(json, "kind", kind_of_place(place));
	tdt__json_string(json, "task", name_of_place(result, place));
	json_number(json, "ns", place->ns);
	tdt__json_u64(json, "samples", place->looks);
	json_frames(json, place->leaf);
	tdt__json_end(json, '}');
}

static void json_profile_head(struct tdt__json *json, const struct profile_result *result)
{
	const struct tdt__profile *profile = result->profile;
	const struct tdt__profile_sum *sum = &profile->sum;

	tdt__json_begin(json, "profile", '{');
	tdt__json_u64(json, "pid", result->outside->target.pid);
	tdt__json_u64(json, "start_ns", result->real);
	json_number(json, "duration_ns", result->ns);
	tdt__json_u64(json, "looks", profile->looks);
	tdt__json_u64(json, "tasks_found", profile->found);
	json_number(json, "watch_ns", (double)result->watch_ns);
	tdt__json_bool(json, "ended", result->ended);
	json_number(json, "waiting_ns", sum->state_ns[TDT__PROFILE_WAITING]);
	json_number(json, "runnable_ns", sum->state_ns[TDT__PROFILE_RUNNABLE]);
	json_number(json, "polling_ns", sum->state_ns[TDT__PROFILE_POLLING]);
	json_number(json, "stale_ns", sum->stale_ns);
	json_number(json, "off_ns", sum->off_ns);
	json_number(json, "unknown_ns", sum->unknown_ns);
	tdt__json_end(json, '}');
}

static void json_time(struct tdt__json *json, const struct profile_result *result,
		      const struct tdt__profile_time *time)
{
	tdt__json_begin(json, NULL, '{');
	tdt__json_string(json, "state", task_states[time->state]);
	tdt__json_string(json, "kind", profile_kind(time->state, time->kind));
	tdt__json_string(json, "task", tdt__profile_name_of(&result->profile->sum, time->name));
	tdt__json_u64(json, "ns", time->ns);
	tdt__json_u64(json, "times", time->n);
	tdt__json_end(json, '}');
}

static void json_recorded(struct tdt__json *json, const struct profile_result *result)
{
	if (result->times == NULL)
		return;
	tdt__json_begin(json, "recorded", '{');
	tdt__json_u64(json, "ns", result->times->ns);
	tdt__json_begin(json, "tasks", '[');
	for (size_t i = 0; i < result->times->n; i++)
		json_time(json, result, &result->times->time[i]);
	tdt__json_end(json, ']');
	tdt__json_end(json, '}');
}

void profile_json(struct tdt__out *out, const struct profile_result *result)
{
	struct tdt__json json = tdt__json_document(out);

	json_profile_head(&json, result);
	json_recorded(&json, result);
	tdt__json_begin(&json, "places", '[');
	for (size_t i = 0; i < result->places->n; i++)
		if (profile_has_place(result, &result->places->place[i]))
			json_place(&json, result, &result->places->place[i]);
	tdt__json_end(&json, ']');
	tdt__json_finish(&json);
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

static void add_stack(struct tdt__string *line, struct profile_shown *shown,
		      const struct tdt__profile_place *place)
{
	const struct tdt_node *stack[TDT__TREE_FRAMES_MAX];
	const struct profile_tree *tree;
	size_t n, at;

	if (place->leaf == NULL) {
		tdt__string_puts(line, ";(unknown)");
		return;
	}
	if (profile_shown_tree(shown, place, &tree) != 0) {
		line->failed = true;
		return;
	}
	for (n = list_shown(tree, place->leaf, stack, TDT__TREE_FRAMES_MAX); n > 0; n--) {
		tdt__string_puts(line, ";");
		at = line->n;
		tdt__frame_name(line, tdt_node_frame(stack[n - 1]));
		tdt__string_protect(line, at);
	}
}

static void folded_line(struct tdt__out *out, struct profile_shown *shown,
			const struct tdt__profile_place *place)
{
	const struct profile_result *result = shown->result;
	const char *name = name_of_place(result, place), *kind = kind_of_place(place);
	struct tdt__string line = { .options = result->print };

	tdt__string_text(&line, name[0] != '\0' ? name : "(no name)");
	tdt__string_protect(&line, 0);
	tdt__string_printf(&line, ";%s%s%s", task_states[place->group->state],
			   kind != NULL ? ": " : "", kind != NULL ? kind : "");
	add_stack(&line, shown, place);
	tdt__string_printf(&line, " %" PRIu64 "\n", (uint64_t)place->ns);
	tdt__out_take(out, &line);
}

void profile_folded(struct tdt__out *out, const struct profile_result *result)
{
	struct profile_shown shown;

	out->no_memory |= profile_shown_init(&shown, result, false) != 0;
	for (size_t i = 0; i < result->places->n && !out->no_memory; i++)
		if (profile_has_place(result, &result->places->place[i]))
			folded_line(out, &shown, &result->places->place[i]);
	profile_shown_fini(&shown);
}

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
		.label = { name_of_place(result, place), task_states[place->group->state],
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

int profile_shown_init(struct profile_shown *shown, const struct profile_result *result, bool folds)
{
	*shown = (struct profile_shown){ .result = result,
					 .folds = folds,
					 .frames.string.options = result->print };
	shown->tree = calloc(result->profile->sum.trees.n + 1, sizeof shown->tree[0]);
	return shown->tree != NULL ? 0 : -ENOMEM;
}

void profile_shown_fini(struct profile_shown *shown)
{
	for (size_t i = 0; shown->tree != NULL && i < shown->result->profile->sum.trees.n; i++) {
		free(shown->tree[i].shown);
		free(shown->tree[i].folded);
	}
	free(shown->tree);
	tdt__frames_fini(&shown->frames);
}

static const struct tdt_node *root_of(const struct tdt_node *node)
{
	while (tdt_node_parent(node) != NULL)
		node = tdt_node_parent(node);
	return node;
}

static int mark_rows(struct profile_tree *tree, const struct tdt_node *root,
		      const struct tdt_print_options *options)
{
	struct tdt__view view;
	int error = tdt__view_make(&view, root, options, tree->folded);

	if (error != 0)
		return error;
	tree->shown = calloc(root->tree->n, sizeof tree->shown[0]);
	for (uint32_t i = 1; i < view.n && tree->shown != NULL; i++)
		if (view.row[i].node != NULL)
			tree->shown[tdt_node_id(view.row[i].node)] = true;
	free(view.row);
	return tree->shown != NULL ? 0 : -ENOMEM;
}

int profile_shown_tree(struct profile_shown *shown, const struct tdt__profile_place *place,
		       const struct profile_tree **tree)
{
	struct profile_tree *own = &shown->tree[place->group->tree];
	const struct tdt_node *root = root_of(place->leaf);

	*tree = own;
	if (own->shown != NULL)
		return 0;
	if (shown->folds && own->folded == NULL) {
		own->folded = tdt__fold(root, &shown->frames, shown->result->print->full);
		if (own->folded == NULL)
			return -ENOMEM;
	}
	return mark_rows(own, root, shown->result->print);
}

const struct tdt_node *profile_next_shown(const struct profile_tree *tree,
					  const struct tdt_node *node)
{
	while (node != NULL && !tree->shown[tdt_node_id(node)])
		node = tdt_node_parent(node);
	return node;
}
