// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Reads a trace, or a snapshot of many tasks, from JSON.  The file may be cut, damaged or hostile,
 * so everything in it is checked before it is used.  Members that are not in the schema are
 * ignored, because later versions may add some.  Members that are in the schema must be right.
 */

#include "cli/read_json.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/read_parts.h"
#include "tree-printer/schema.h"

/*
 * Whether jansson ran out of memory.  Its lexer (2.14) does not check for that when it saves the
 * text of a token; the text that it returns then lacks some characters.
 */
static bool no_memory;

static void *allocate_json(size_t size)
{
	void *memory = malloc(size);

	if (memory == NULL)
		no_memory = true;
	return memory;
}

void reader_json_begin(void)
{
	no_memory = false;
	json_set_alloc_funcs(allocate_json, free);
}

bool reader_json_failed(void)
{
	return no_memory;
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

/* Reads byte by byte, so that no byte of the next object is read with this one. */
static size_t read_for_jansson(void *buffer, size_t size, void *reader)
{
	int byte = read_byte(reader);

	(void)size;
	if (byte == EOF)
		return 0;
	*(char *)buffer = (char)byte;
	return 1;
}

static int read_spaces(struct reader *reader)
{
	int byte;

	do
		byte = read_byte(reader);
	while (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r');
	return byte;
}

/* In a page, each object is a line of its own, and no other line begins with a brace. */
static int read_markup(struct reader *reader, int byte)
{
	while (byte != '{' && byte != EOF) {
		while (byte != '\n' && byte != EOF)
			byte = read_byte(reader);
		if (byte == '\n')
			byte = read_byte(reader);
	}
	return byte;
}

int reader_skip_space(struct reader *reader)
{
	bool first = reader->line == 0;
	int byte;

	if (first)
		reader->line = 1;
	byte = read_spaces(reader);
	reader->page |= first && byte == '<';
	if (reader->page)
		byte = read_markup(reader, byte);
	if (byte == EOF)
		return ferror(reader->file) ? reader_fail(reader, "%s", strerror(errno)) : 0;
	ungetc(byte, reader->file);
	reader->column--;
	return byte;
}

static int read_trace(struct reader *reader, const json_t *object, struct tdt_trace **trace)
{
	const struct json_place task = { .reader = reader,
					 .object = json_object_get(object, "task"),
					 .name = "task" };
	struct tdt_task_info info;

	if (!json_is_object(task.object))
		return reader_fail(reader, "task: not an object");
	if (reader_task(&task, &info) != 0)
		return -1;
	*trace = reader_tree(reader, json_object_get(object, "nodes"), &info);
	free((void *)(uintptr_t)info.waits);
	return *trace != NULL ? 1 : -1;
}

static int read_object(struct reader *reader, json_t *object, struct tdt_trace **trace,
		       struct dump **dump)
{
	const json_t *schema = json_object_get(object, "tdt");

	if (!json_is_integer(schema))
		return reader_fail(reader,
				   "not a trace: an object with \"tdt\", the schema's version, "
				   "was expected");
	if (json_integer_value(schema) != SCHEMA)
		return reader_fail(reader,
				   "schema version %" JSON_INTEGER_FORMAT
				   ": this program knows version %d",
				   json_integer_value(schema), SCHEMA);
	if (reader->lists && dump != NULL && json_object_get(object, "ps") != NULL)
		return reader_list(reader, object, dump);
	if (reader->profile != NULL && json_object_get(object, "profile") != NULL)
		return reader->profile(reader, object);
	if (json_object_get(object, "dump") == NULL)
		return read_trace(reader, object, trace);
	return dump != NULL ? reader_dump(reader, object, dump)
			    : reader_fail(reader, "a dump of many tasks, not a trace of one");
}

/* Whether a page has the object beside its dumps, for what it draws. */
static bool is_beside(const json_t *object)
{
	return json_object_get(object, "dump") == NULL && json_object_get(object, "task") == NULL;
}

#define PASSED_OVER 2

/* The result of reader_next(), or PASSED_OVER. */
static int read_next(struct reader *reader, struct tdt_trace **trace, struct dump **dump)
{
	struct reader start;
	json_error_t error;
	json_t *object;
	int result;

	*trace = NULL;
	if (dump != NULL)
		*dump = NULL;
	result = reader_skip_space(reader);
	if (result <= 0)
		return result;
	start = *reader;
	reader_json_begin();
	object = json_load_callback(read_for_jansson, reader,
				    JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
	if (object == NULL)
		return reader_fail(reader, "%s",
				   ferror(reader->file) ? strerror(errno)
				   : no_memory		? strerror(ENOMEM)
							: error.text);
	result = no_memory			       ? reader_no_memory(reader)
		 : reader->page && is_beside(object) ? PASSED_OVER
						     : read_object(reader, object, trace, dump);
	if (result < 0) {
		reader->line = start.line;
		reader->column = start.column + 1;
	}
	json_decref(object);
	return result;
}

int reader_next(struct reader *reader, struct tdt_trace **trace, struct dump **dump)
{
	int result;

	do
		result = read_next(reader, trace, dump);
	while (result == PASSED_OVER);
	if (result == 0 && reader->page && !reader->dumped)
		return reader_fail(reader, "neither JSON nor a page of tdt report");
	reader->dumped |= result > 0;
	return result;
}
