/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The parts of objects that read_json.c and read_dump.c read.  The calls that return an int return
 * 0, or after a failure -1, with the message set.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/read_json.h"

/* The current place in the object: "task" or "nodes[7]". */
struct json_place {
	struct reader *reader;
	const json_t *object;
	char name[32];
};

#define N_WORDS(words) (sizeof(words) / sizeof((words)[0]))

int reader_fail(struct reader *reader, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
int reader_no_memory(struct reader *reader);
int reader_fail_at(const struct json_place *place, const char *key, const char *what);

/* A whole number, or a string of digits, which writers use for large numbers. */
bool reader_parse_number(const json_t *json, uint64_t *value);

/* Members of the object.  One that is left out is 0, NULL or false. */
int reader_number(const struct json_place *place, const char *key, uint64_t max, uint64_t *value);
int reader_u32(const struct json_place *place, const char *key, uint32_t *value);
int reader_address(const struct json_place *place, const char *key, uint64_t *value);
int reader_string(const struct json_place *place, const char *key, const char **value);
int reader_flag(const struct json_place *place, const char *key, uint8_t *value);

/* A member that is one of the `n` words, as its index. */
int reader_word(const struct json_place *place, const char *key, const char *const *words, size_t n,
		unsigned int *value);

int reader_require(const struct json_place *place, const char *key);

/* A task.  The caller frees info->waits; the strings belong to the JSON object. */
int reader_task(const struct json_place *place, struct tdt_task_info *info);

/* The tree of the task that `info` describes.  NULL: it failed. */
struct tdt_trace *reader_tree(struct reader *reader, const json_t *nodes,
			      const struct tdt_task_info *info);

/* Read a dump (read_dump.c).  Returns 1 and sets `*result`, or returns -1 with the message set. */
int reader_dump(struct reader *reader, json_t *object, struct dump **result);

/* A list of tasks, in the same way. */
int reader_list(struct reader *reader, json_t *object, struct dump **result);
