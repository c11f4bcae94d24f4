/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Text that grows, text that is made harmless for a terminal, and the way out to a stream. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct tdt_print_options;

/*
 * Text that grows.  The first failed allocation sets `failed`, and later additions do nothing.  So
 * the caller checks `failed` once, at the end.
 */
struct tdt__string {
	char *bytes;
	size_t n;
	size_t room;
	bool failed;
	/* In which form it is shown: `utf8` and `color` are YES or NO.  NULL: ASCII, no colours. */
	const struct tdt_print_options *options;
};

void tdt__string_add(struct tdt__string *string, const void *bytes, size_t n);
void tdt__string_puts(struct tdt__string *string, const char *text);
/* Add formatted text. */
void tdt__string_printf(struct tdt__string *string, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The string is empty then, and has its options. */
void tdt__string_free(struct tdt__string *string);

/*
 * Add `text`, which may come from anywhere, in a form that cannot harm a terminal.  The following
 * are escaped as in C: bytes that are not valid UTF-8, control characters, characters that change
 * the direction of writing, invisible characters, backslashes, and the character `quote` (0: no
 * such character).  If `utf8` is false, all characters outside ASCII are escaped, too.
 */
void tdt__string_escape(struct tdt__string *string, const char *text, bool utf8, char quote);

/* The same as the options of the string say; and between quotes, which are escaped in it. */
void tdt__string_text(struct tdt__string *string, const char *text);
void tdt__string_quoted(struct tdt__string *string, const char *text);

/* Replace what would end a frame of folded stacks in the text from `at` on: `;` and ends of lines.
 */
void tdt__string_protect(struct tdt__string *string, size_t at);

/*
 * Decode the UTF-8 character at `text` into `*code`, its code point.  Returns the length of the
 * character in bytes, or 0 if it is invalid.
 */
size_t tdt__utf8_decode(const char *text, uint32_t *code);

/* How many columns UTF-8 takes, if each character takes one. */
unsigned tdt__columns(const char *text, size_t n);

/*
 * Whether a character is a control character, a separator of lines, a character that changes the
 * direction of writing, or an invisible one.  Two names that differ only in invisible characters
 * would look the same.  (Invisible are Unicode's Default_Ignorable_Code_Point and the annotations,
 * but not the variation selectors of emoji.)
 */
bool tdt__is_harmful(uint32_t code);

/*
 * The way out to `file`.  Output is collected and written in large pieces, because `file` may be
 * unbuffered, as stderr is.  The first error is kept in `error`, and nothing is written after it.
 */
struct tdt__out {
	FILE *file; /* NULL: `write` is called (struct tdt_print_options) */
	int (*write)(void *arg, const char *bytes, size_t n);
	void *arg;
	int error; /* 0 or a negative errno */
	bool no_memory; /* for a part, which is missing; the next ones are written */
	size_t used;
	unsigned indent; /* so many blanks begin each line that is not empty */
	bool in_line;    /* with `indent`: the line has begun */
	char buffer[4096];
};

void tdt__out_add(struct tdt__out *out, const void *bytes, size_t n);
/* Add the string, and empty it.  Nothing is added of a string that failed: see `no_memory`. */
void tdt__out_take(struct tdt__out *out, struct tdt__string *string);
/* Keep an error of what is written, as if it were of the stream: nothing more is written. */
void tdt__out_fail(struct tdt__out *out, int error);

/*
 * Write what is left, and flush the stream.  Returns 0, the first error that was kept, or -ENOMEM
 * if a part is missing.
 */
int tdt__out_end(struct tdt__out *out);
