// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The parts of what is read from JSON: members of objects, tasks, and trees of frames. */

#include "cli/read_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "facts/traceparent.h"
#include "tree-printer/schema.h"
#include "tree/waits.h"

int reader_fail(struct reader *reader, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	vsnprintf(reader->message, sizeof(reader->message), format, values);
	va_end(values);
	return -1;
}

int reader_no_memory(struct reader *reader)
{
	return reader_fail(reader, "%s", strerror(ENOMEM));
}

int reader_fail_at(const struct json_place *place, const char *key, const char *what)
{
	return reader_fail(place->reader, "%s%s.%s: %s", place->reader->prefix, place->name, key,
			   what);
}

static bool parse_digits(const char *digits, int base, uint64_t *value)
{
	size_t n = strspn(digits, base == 10 ? "0123456789" : "0123456789abcdefABCDEF");

	errno = 0;
	*value = strtoull(digits, NULL, base);
	return n > 0 && digits[n] == '\0' && errno == 0;
}

bool reader_parse_number(const json_t *json, uint64_t *value)
{
	*value = (uint64_t)json_integer_value(json);
	if (json_is_string(json))
		return parse_digits(json_string_value(json), 10, value);
	return json_is_integer(json) && json_integer_value(json) >= 0;
}

int reader_number(const struct json_place *place, const char *key, uint64_t max, uint64_t *value)
{
	const json_t *json = json_object_get(place->object, key);

	*value = 0;
	if (json == NULL || (reader_parse_number(json, value) && *value <= max))
		return 0;
	return reader_fail_at(place, key,
			      max == UINT64_MAX ? "not a whole number from 0 to 2^64 - 1"
						: "not a whole number from 0 to 2^32 - 1");
}

int reader_u32(const struct json_place *place, const char *key, uint32_t *value)
{
	uint64_t number;
	int err = reader_number(place, key, UINT32_MAX, &number);

	*value = (uint32_t)number;
	return err;
}

int reader_address(const struct json_place *place, const char *key, uint64_t *value)
{
	const json_t *json = json_object_get(place->object, key);
	const char *digits = json_string_value(json);

	*value = 0;
	if (json == NULL)
		return 0;
	if (digits != NULL && digits[0] == '0' && digits[1] == 'x' &&
	    parse_digits(digits + 2, 16, value))
		return 0;
	return reader_fail_at(place, key,
			      "not a string of a 64-bit hexadecimal number as \"0x1f\"");
}

int reader_string(const struct json_place *place, const char *key, const char **value)
{
	const json_t *json = json_object_get(place->object, key);

	*value = json_string_value(json);
	return json == NULL || *value != NULL ? 0 : reader_fail_at(place, key, "not a string");
}

int reader_flag(const struct json_place *place, const char *key, uint8_t *value)
{
	const json_t *json = json_object_get(place->object, key);

	*value = json_is_true(json);
	return json == NULL || json_is_boolean(json)
		   ? 0
		   : reader_fail_at(place, key, "not true or false");
}

int reader_word(const struct json_place *place, const char *key, const char *const *words, size_t n,
		unsigned int *value)
{
	const json_t *json = json_object_get(place->object, key);

	for (*value = 0; *value < n && json_is_string(json); ++*value)
		if (words[*value] != NULL && strcmp(words[*value], json_string_value(json)) == 0)
			return 0;
	return reader_fail_at(place, key,
			      json == NULL ? "is missing" : "not a word that this version knows");
}

int reader_require(const struct json_place *place, const char *key)
{
	return json_object_get(place->object, key) != NULL
		   ? 0
		   : reader_fail_at(place, key, "is missing");
}

static int read_waits(const struct json_place *task, struct tdt_task_info *info)
{
	const json_t *array = json_object_get(task->object, "waits");
	uint32_t n = (uint32_t)json_array_size(array);
	struct tdt_wait *waits;
	void *block;

	if (array != NULL && (!json_is_array(array) || json_array_size(array) > UINT32_MAX))
		return reader_fail_at(task, "waits", "not an array");
	if (n == 0)
		return 0;
	block = calloc(n, TDT__LISTED_WAIT);
	if (block == NULL)
		return reader_no_memory(task->reader);
	info->waits = tdt__waits_in(block, n, &waits);
	for (uint32_t i = 0; i < n; i++) {
		struct json_place place = { .reader = task->reader,
					    .object = json_array_get(array, i) };
		const char *name;
		unsigned int kind;

		snprintf(place.name, sizeof(place.name), "%.12s.waits[%" PRIu32 "]", task->name, i);
		if (reader_word(&place, "kind", wait_words, N_WORDS(wait_words), &kind) ||
		    reader_address(&place, "object", &waits[i].object) ||
		    reader_number(&place, "owner", UINT64_MAX, &waits[i].owner) ||
		    reader_string(&place, "owner_name", &waits[i].owner_name) ||
		    reader_number(&place, "handed_ns", UINT64_MAX, &waits[i].handed_ns) ||
		    reader_u32(&place, "futurelock", &waits[i].futurelock) ||
		    reader_u32(&place, "orphaned", &waits[i].orphaned) ||
		    reader_string(&place, "name", &name)) {
			free(block);
			info->waits = NULL;
			return -1;
		}
		waits[i].size = sizeof waits[i];
		waits[i].kind = (enum tdt_wait_kind)kind;
		if (name != NULL)
			snprintf(waits[i].name, sizeof(waits[i].name), "%s", name);
	}
	info->n_waits = n;
	return 0;
}

static int read_traceparent(const struct json_place *task, struct tdt_task_info *info)
{
	const char *text;

	if (reader_string(task, "traceparent", &text))
		return -1;
	return text == NULL || tdt__traceparent_read(&info->context, text)
		   ? 0
		   : reader_fail_at(task, "traceparent", "not the traceparent of a task");
}

int reader_task(const struct json_place *place, struct tdt_task_info *info)
{
	unsigned int state, known = TDT_LEAVES_ALL;

	*info = (struct tdt_task_info){ .size = sizeof(*info) };
	if (reader_require(place, "id") || reader_number(place, "id", UINT64_MAX, &info->id) ||
	    reader_string(place, "name", &info->name) ||
	    reader_string(place, "file", &info->file) || reader_u32(place, "line", &info->line) ||
	    reader_u32(place, "column", &info->column) ||
	    reader_word(place, "state", state_words, N_WORDS(state_words), &state) ||
	    reader_number(place, "state_ns", UINT64_MAX, &info->state_ns) ||
	    reader_number(place, "polls", UINT64_MAX, &info->polls) ||
	    reader_u32(place, "leaves", &info->leaves) ||
	    (json_object_get(place->object, "leaves_known") != NULL &&
	     reader_word(place, "leaves_known", known_words, N_WORDS(known_words), &known)) ||
	    reader_u32(place, "leaves_unsure", &info->leaves_unsure) ||
	    reader_u32(place, "leaves_elsewhere", &info->leaves_elsewhere) ||
	    reader_u32(place, "leaves_lost", &info->leaves_lost) ||
	    reader_number(place, "parent", UINT64_MAX, &info->parent) ||
	    reader_number(place, "woken_ns", UINT64_MAX, &info->woken_ns) ||
	    reader_number(place, "woken_by", UINT64_MAX, &info->woken_by) ||
	    reader_number(place, "age_ns", UINT64_MAX, &info->age_ns) ||
	    reader_number(place, "polls_since", UINT64_MAX, &info->polls_since) ||
	    reader_u32(place, "thread", &info->thread) ||
	    reader_string(place, "syscall", &info->syscall) ||
	    reader_u32(place, "unknown_stack", &info->unknown_stack) ||
	    reader_u32(place, "asked", &info->asked) || reader_u32(place, "moved", &info->moved) ||
	    reader_number(place, "busy_polls", UINT64_MAX, &info->busy_polls) ||
	    reader_number(place, "busy_ns", UINT64_MAX, &info->busy_ns) ||
	    reader_u32(place, "lost_times", &info->lost_times) ||
	    reader_u32(place, "untraced", &info->untraced) ||
	    reader_u32(place, "child", &info->child) ||
	    reader_u32(place, "aborted", &info->aborted) ||
	    reader_u32(place, "blocking", &info->blocking) ||
	    reader_u32(place, "requested", &info->requested) ||
	    reader_number(place, "spawned_ns", UINT64_MAX, &info->spawned_ns) ||
	    reader_number(place, "polled_ns", UINT64_MAX, &info->polled_ns) ||
	    read_traceparent(place, info) || read_waits(place, info))
		return -1;
	info->state = (enum tdt_task_state)state;
	info->leaves_known = (enum tdt_leaves_known)known;
	return 0;
}

/* How many other names of a function are read; further names are ignored. */
#define ALSO_MAX 4

static int read_also(const struct json_place *place, struct tdt_frame *frame,
		     const char *also[ALSO_MAX + 1])
{
	const json_t *array = json_object_get(place->object, "also");
	size_t n = 0;

	if (array != NULL && !json_is_array(array))
		return reader_fail_at(place, "also", "not an array");
	for (; n < json_array_size(array) && n < ALSO_MAX; n++) {
		also[n] = json_string_value(json_array_get(array, n));
		if (also[n] == NULL)
			return reader_fail_at(place, "also", "not an array of strings");
	}
	also[n] = NULL;
	if (n > 0)
		frame->also = also;
	return 0;
}

static int read_json_frame(const struct json_place *place, struct tdt_frame *frame)
{
	unsigned int cut;

	if (frame->kind == TDT_NODE_CUT) {
		if (reader_word(place, "cut", cut_words, N_WORDS(cut_words), &cut))
			return -1;
		frame->cut = (enum tdt_cut)cut;
		return 0;
	}
	if (reader_address(place, "pc", &frame->pc) ||
	    reader_string(place, "function", &frame->function) ||
	    reader_string(place, "file", &frame->file) ||
	    reader_string(place, "directory", &frame->directory) ||
	    reader_u32(place, "line", &frame->line) ||
	    reader_u32(place, "column", &frame->column) ||
	    reader_string(place, "module", &frame->module) ||
	    reader_address(place, "module_offset", &frame->module_offset) ||
	    reader_string(place, "symbol", &frame->symbol) ||
	    reader_address(place, "symbol_offset", &frame->symbol_offset) ||
	    reader_string(place, "build_id", &frame->build_id) ||
	    reader_string(place, "missing", &frame->missing) ||
	    reader_flag(place, "inlined", &frame->inlined) ||
	    reader_flag(place, "guessed", &frame->guessed) ||
	    reader_flag(place, "unnamed", &frame->unnamed))
		return -1;
	return 0;
}

/*
 * Read node `i`.  Its id must be `i`, and its parent's id must be less, so that the parent has been
 * read, and there can be no cycle.
 */
static int read_node(const struct json_place *place, size_t i, struct tdt_trace *trace,
		     const struct tdt_node **nodes)
{
	struct tdt_frame frame = { .size = sizeof(struct tdt_frame), .kind = TDT_NODE_TASK };
	const char *also[ALSO_MAX + 1];
	uint64_t id, parent;
	uint32_t leaves;
	unsigned int kind;

	if (reader_require(place, "id") || reader_number(place, "id", UINT64_MAX, &id) ||
	    reader_word(place, "kind", kind_words, N_WORDS(kind_words), &kind))
		return -1;
	if (id != i)
		return reader_fail_at(place, "id", "not the node's index");
	if ((kind == TDT_NODE_TASK) != (i == 0))
		return reader_fail_at(place, "kind", "the first node and no other is the task");
	if (i == 0) {
		nodes[0] = tdt_trace_root(trace);
		return 0;
	}
	frame.kind = (enum tdt_node_kind)kind;
	if (reader_require(place, "parent") ||
	    reader_number(place, "parent", UINT64_MAX, &parent) ||
	    reader_u32(place, "leaves", &leaves))
		return -1;
	if (parent >= i)
		return reader_fail_at(place, "parent", "not the id of a node before this one");
	if (read_json_frame(place, &frame) != 0 || read_also(place, &frame, also) != 0)
		return -1;
	nodes[i] = tdt_trace_add(trace, nodes[parent], &frame, leaves);
	return nodes[i] != NULL ? 0 : reader_fail(place->reader, "%s", strerror(errno));
}

static int read_nodes(struct reader *reader, const json_t *array, struct tdt_trace *trace)
{
	const struct tdt_node **nodes;
	size_t n = json_array_size(array);
	int err = 0;

	if (!json_is_array(array) || n == 0)
		return reader_fail(reader, "%snodes: not an array with the task as its first node",
				   reader->prefix);
	nodes = calloc(n, sizeof(const struct tdt_node *));
	if (nodes == NULL)
		return reader_no_memory(reader);
	for (size_t i = 0; i < n && err == 0; i++) {
		struct json_place place = { .reader = reader, .object = json_array_get(array, i) };

		snprintf(place.name, sizeof(place.name), "nodes[%zu]", i);
		err = read_node(&place, i, trace, nodes);
	}
	free(nodes);
	return err;
}

struct tdt_trace *reader_tree(struct reader *reader, const json_t *nodes,
			      const struct tdt_task_info *info)
{
	struct tdt_trace *trace = tdt_trace_new(info);

	if (trace == NULL) {
		reader_fail(reader, "%s", strerror(errno));
	} else if (read_nodes(reader, nodes, trace) != 0) {
		tdt_trace_free(trace);
		trace = NULL;
	}
	return trace;
}
