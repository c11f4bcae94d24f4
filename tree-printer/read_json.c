// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * From JSON to a trace.  The file may be cut, damaged or hostile: nothing in it is believed before it was looked at.
 * What is not in the schema is passed over, since later versions may add it; what is, must be right.
 */

#include <config.h>

#include "read_json.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "schema.h"

/*
 * Whether jansson ran out of memory.  Its lexer (2.14) doesn't look when it saves the text of a token, and what it
 * returns then lacks some characters.
 */
static bool no_memory;

static void *allocate(size_t size)
{
	void *memory = malloc(size);

	if (memory == NULL)
		no_memory = true;
	return memory;
}

/* Where in the object we are: "task" or "nodes[7]". */
struct place {
	struct reader *reader;
	const json_t *object;
	char name[32];
};

static int fail(struct reader *reader, const char *message)
{
	snprintf(reader->message, sizeof(reader->message), "%s", message);
	return -1;
}

static int fail_at(const struct place *place, const char *key, const char *what)
{
	snprintf(place->reader->message, sizeof(place->reader->message), "%s.%s: %s", place->name, key, what);
	return -1;
}

static int read_byte(struct reader *reader)
{
	int byte = getc(reader->file);

	if (byte == '\n') {
		reader->line++;
		reader->column = 0;
	} else if (byte != EOF) {
		reader->column++;
	}
	return byte;
}

/* Byte by byte, so that nothing of the next object is read with this one. */
static size_t read_for_jansson(void *buffer, size_t size, void *reader)
{
	int byte = read_byte(reader);

	(void)size;
	if (byte == EOF)
		return 0;
	*(char *)buffer = (char)byte;
	return 1;
}

/* Up to the next object.  0: there is none. */
static int skip_space(struct reader *reader)
{
	int byte;

	do
		byte = read_byte(reader);
	while (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r');
	if (byte == EOF)
		return ferror(reader->file) ? fail(reader, strerror(errno)) : 0;
	ungetc(byte, reader->file);
	reader->column--;
	return 1;
}

/* A string of digits of `base`, and nothing else. */
static bool parse_digits(const char *digits, int base, uint64_t *value)
{
	size_t n = strspn(digits, base == 10 ? "0123456789" : "0123456789abcdefABCDEF");

	errno = 0;
	*value = strtoull(digits, NULL, base);
	return n > 0 && digits[n] == '\0' && errno == 0;
}

/* A number that may be left out; a string where the writer feared that readers lose digits. */
static int get_number(const struct place *place, const char *key, uint64_t max, uint64_t *value)
{
	const json_t *json = json_object_get(place->object, key);
	bool ok = json == NULL;

	*value = 0;
	if (json_is_integer(json)) {
		ok = json_integer_value(json) >= 0;
		*value = (uint64_t)json_integer_value(json);
	} else if (json_is_string(json)) {
		ok = parse_digits(json_string_value(json), 10, value);
	}
	if (ok && *value <= max)
		return 0;
	return fail_at(place, key,
		       max == UINT64_MAX ? "not a whole number from 0 to 2^64 - 1"
					 : "not a whole number from 0 to 2^32 - 1");
}

static int get_u32(const struct place *place, const char *key, uint32_t *value)
{
	uint64_t number;
	int err = get_number(place, key, UINT32_MAX, &number);

	*value = (uint32_t)number;
	return err;
}

static int get_address(const struct place *place, const char *key, uint64_t *value)
{
	const json_t *json = json_object_get(place->object, key);
	const char *digits = json_string_value(json);

	*value = 0;
	if (json == NULL)
		return 0;
	if (digits != NULL && digits[0] == '0' && digits[1] == 'x' && parse_digits(digits + 2, 16, value))
		return 0;
	return fail_at(place, key, "not a string of a 64-bit hexadecimal number as \"0x1f\"");
}

static int get_string(const struct place *place, const char *key, const char **value)
{
	const json_t *json = json_object_get(place->object, key);

	*value = json_string_value(json);
	return json == NULL || *value != NULL ? 0 : fail_at(place, key, "not a string");
}

static int get_flag(const struct place *place, const char *key, uint8_t *value)
{
	const json_t *json = json_object_get(place->object, key);

	*value = json_is_true(json);
	return json == NULL || json_is_boolean(json) ? 0 : fail_at(place, key, "not true or false");
}

#define N_WORDS(words) (sizeof(words) / sizeof((words)[0]))

/* One of some words, as its index. */
static int get_word(const struct place *place, const char *key, const char *const *words, size_t n,
		    unsigned int *value)
{
	const json_t *json = json_object_get(place->object, key);

	for (*value = 0; *value < n && json_is_string(json); ++*value)
		if (words[*value] != NULL && strcmp(words[*value], json_string_value(json)) == 0)
			return 0;
	return fail_at(place, key, json == NULL ? "is missing" : "not a word that this version knows");
}

static int require(const struct place *place, const char *key)
{
	return json_object_get(place->object, key) != NULL ? 0 : fail_at(place, key, "is missing");
}

static int read_task(const struct place *place, struct tdt_trace_info *info)
{
	unsigned int state;

	*info = (struct tdt_trace_info){ .size = sizeof(*info) };
	if (require(place, "id") || get_number(place, "id", UINT64_MAX, &info->id) ||
	    get_string(place, "name", &info->name) || get_string(place, "file", &info->file) ||
	    get_u32(place, "line", &info->line) || get_u32(place, "column", &info->column) ||
	    get_word(place, "state", state_words, N_WORDS(state_words), &state) ||
	    get_number(place, "state_ns", UINT64_MAX, &info->state_ns) ||
	    get_number(place, "polls", UINT64_MAX, &info->polls) || get_u32(place, "leaves", &info->leaves) ||
	    get_u32(place, "leaves_elsewhere", &info->leaves_elsewhere) ||
	    get_u32(place, "leaves_lost", &info->leaves_lost))
		return -1;
	info->state = (enum tdt_task_state)state;
	return 0;
}

static int read_frame(const struct place *place, struct tdt_frame *frame)
{
	unsigned int cut;

	if (frame->kind == TDT_NODE_CUT) {
		if (get_word(place, "cut", cut_words, N_WORDS(cut_words), &cut))
			return -1;
		frame->cut = (enum tdt_cut)cut;
		return 0;
	}
	if (get_address(place, "pc", &frame->pc) || get_string(place, "function", &frame->function) ||
	    get_string(place, "file", &frame->file) || get_string(place, "directory", &frame->directory) ||
	    get_u32(place, "line", &frame->line) || get_u32(place, "column", &frame->column) ||
	    get_string(place, "module", &frame->module) || get_address(place, "module_offset", &frame->module_offset) ||
	    get_string(place, "symbol", &frame->symbol) || get_address(place, "symbol_offset", &frame->symbol_offset) ||
	    get_string(place, "build_id", &frame->build_id) || get_flag(place, "inlined", &frame->inlined) ||
	    get_flag(place, "guessed", &frame->guessed))
		return -1;
	return 0;
}

/* Node `i`, whose id must be `i`, so that a parent is a node that has been read; there can't be a cycle. */
static int read_node(const struct place *place, size_t i, struct tdt_trace *trace, const struct tdt_node **nodes)
{
	struct tdt_frame frame = { .size = sizeof(struct tdt_frame), .kind = TDT_NODE_TASK };
	uint64_t id, parent;
	uint32_t leaves;
	unsigned int kind;

	if (require(place, "id") || get_number(place, "id", UINT64_MAX, &id) ||
	    get_word(place, "kind", kind_words, N_WORDS(kind_words), &kind))
		return -1;
	if (id != i)
		return fail_at(place, "id", "not the node's index");
	if ((kind == TDT_NODE_TASK) != (i == 0))
		return fail_at(place, "kind", "the first node and no other is the task");
	if (i == 0) {
		nodes[0] = tdt_trace_root(trace);
		return 0;
	}
	frame.kind = (enum tdt_node_kind)kind;
	if (require(place, "parent") || get_number(place, "parent", UINT64_MAX, &parent) ||
	    get_u32(place, "leaves", &leaves))
		return -1;
	if (parent >= i)
		return fail_at(place, "parent", "not the id of a node before this one");
	if (read_frame(place, &frame) != 0)
		return -1;
	nodes[i] = tdt_trace_add(trace, nodes[parent], &frame, leaves);
	return nodes[i] != NULL ? 0 : fail(place->reader, strerror(errno));
}

static int read_nodes(struct reader *reader, const json_t *array, struct tdt_trace *trace)
{
	const struct tdt_node **nodes;
	size_t n = json_array_size(array);
	int err = 0;

	if (!json_is_array(array) || n == 0)
		return fail(reader, "nodes: not an array with the task as its first node");
	nodes = calloc(n, sizeof(const struct tdt_node *));
	if (nodes == NULL)
		return fail(reader, strerror(ENOMEM));
	for (size_t i = 0; i < n && err == 0; i++) {
		struct place place = { .reader = reader, .object = json_array_get(array, i) };

		snprintf(place.name, sizeof(place.name), "nodes[%zu]", i);
		err = read_node(&place, i, trace, nodes);
	}
	free(nodes);
	return err;
}

static int read_object(struct reader *reader, const json_t *object, struct tdt_trace **trace)
{
	const struct place task = { .reader = reader, .object = json_object_get(object, "task"), .name = "task" };
	const json_t *schema = json_object_get(object, "tdt");
	struct tdt_trace_info info;

	if (!json_is_integer(schema))
		return fail(reader, "not a trace: an object with \"tdt\", the schema's version, was expected");
	if (json_integer_value(schema) != SCHEMA) {
		snprintf(reader->message, sizeof(reader->message),
			 "schema version %" JSON_INTEGER_FORMAT ": this program knows version %d",
			 json_integer_value(schema), SCHEMA);
		return -1;
	}
	if (!json_is_object(task.object))
		return fail(reader, "task: not an object");
	if (read_task(&task, &info) != 0)
		return -1;
	*trace = tdt_trace_new(&info);
	if (*trace == NULL)
		return fail(reader, strerror(errno));
	if (read_nodes(reader, json_object_get(object, "nodes"), *trace) != 0) {
		tdt_trace_free(*trace);
		*trace = NULL;
		return -1;
	}
	return 1;
}

int reader_next(struct reader *reader, struct tdt_trace **trace)
{
	struct reader start;
	json_error_t error;
	json_t *object;
	int result;

	*trace = NULL;
	if (reader->line == 0)
		reader->line = 1;
	result = skip_space(reader);
	if (result <= 0)
		return result;
	start = *reader;
	no_memory = false;
	json_set_alloc_funcs(allocate, free);
	object = json_load_callback(read_for_jansson, reader, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
	if (object == NULL)
		return fail(reader, ferror(reader->file) ? strerror(errno) : no_memory ? strerror(ENOMEM) : error.text);
	result = no_memory ? fail(reader, strerror(ENOMEM)) : read_object(reader, object, trace);
	if (result < 0) {
		reader->line = start.line;
		reader->column = start.column + 1;
	}
	json_decref(object);
	return result;
}
