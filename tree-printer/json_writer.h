/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * JSON, written member by member.  The writer remembers only whether a comma comes next.  It
 * allocates nothing, and nothing can fail but the stream, which `out` knows.  The output is ASCII
 * only, so it is the same in every locale, and harmless to a terminal.
 *
 *	tdt__json_begin(json, NULL, '{');
 *	tdt__json_u64(json, "id", 7);
 *	tdt__json_begin(json, "waits", '[');
 *	tdt__json_end(json, ']');
 *	tdt__json_end(json, '}');		{"id":7,"waits":[]}
 *
 * A key is ASCII that needs no escape.  An element of an array has none: NULL.
 */

#include <stdbool.h>
#include <stdint.h>

#include "strings.h"

struct tdt__json {
	struct tdt__out *out;
	bool comma; /* one comes before the next member or element */
};

/* Begin and end an object, '{' and '}', or an array, '[' and ']'. */
void tdt__json_begin(struct tdt__json *json, const char *key, char bracket);
void tdt__json_end(struct tdt__json *json, char bracket);

/* A number, or a string of digits if readers would lose some of a number's digits. */
void tdt__json_u64(struct tdt__json *json, const char *key, uint64_t value);
/* A string as "0x1f". */
void tdt__json_address(struct tdt__json *json, const char *key, uint64_t value);
void tdt__json_bool(struct tdt__json *json, const char *key, bool value);
/* A string, in which bytes that are not UTF-8 become U+FFFD.  A NULL is left out. */
void tdt__json_string(struct tdt__json *json, const char *key, const char *text);
/* `text` as it is, which is JSON already. */
void tdt__json_raw(struct tdt__json *json, const char *key, const char *text);

/*
 * Write an array of objects: `members(to, &list[i])` writes the members of each.  Nothing more is
 * written after an error.
 */
#define TDT__JSON_LIST(json, key, list, n, members, to)                                            \
	do {                                                                                       \
		tdt__json_begin(json, key, '[');                                                   \
		for (size_t at = 0; at < (n) && (json)->out->error == 0; at++) {                   \
			tdt__json_begin(json, NULL, '{');                                          \
			members(to, &(list)[at]);                                                  \
			tdt__json_end(json, '}');                                                  \
		}                                                                                  \
		tdt__json_end(json, ']');                                                          \
	} while (0)

/* The same, left out if the value is unknown: 0, false, or an empty string. */
void tdt__json_known_u64(struct tdt__json *json, const char *key, uint64_t value);
void tdt__json_known_string(struct tdt__json *json, const char *key, const char *text);
void tdt__json_true(struct tdt__json *json, const char *key, bool value);
