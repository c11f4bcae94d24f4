/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

/*
 * What the fuzz targets share.  A target is a file with one function, which must cope with any
 * bytes: libFuzzer calls it with inputs that it makes up (`make fuzz`), and replay.c with inputs
 * that are kept as tests (`make check`).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tree-printer/strings.h"

/* Always returns 0: the input was of use.  What goes wrong ends the process. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CLAIM(condition) claim(condition, #condition, __FILE__, __LINE__)

/* To the descriptor, since a target may replace the stream. */
static inline void claim(bool condition, const char *what, const char *file, int line)
{
	if (condition)
		return;
	dprintf(2, "%s:%d: not so: %s\n", file, line, what);
	abort();
}

/* The length of one of our colour sequences (terminal.h) at `text`; 0: there is none. */
static inline size_t color_at(const char *text)
{
	size_t n = 2;

	if (text[0] != '\033' || text[1] != '[')
		return 0;
	while (text[n] >= '0' && text[n] <= '9')
		n++;
	return text[n] == 'm' ? n + 1 : 0;
}

static inline bool is_harmless(uint32_t code, bool utf8)
{
	return code == '\n' || (code >= ' ' && code < 0x7f) || (utf8 && code > 0x9f);
}

/* No byte of `text` (`n` bytes and a NUL) can do anything to a terminal but print, and colour if
 * `color` says so. */
static inline void claim_harmless(const char *text, size_t n, bool utf8, bool color)
{
	for (const char *at = text; at < text + n;) {
		size_t length = color ? color_at(at) : 0;
		uint32_t code = 0;

		if (length == 0) {
			length = tdt__utf8_decode(at, &code);
			CLAIM(length > 0 && is_harmless(code, utf8));
		}
		at += length;
	}
}

/* The same of JSON, which is ASCII.  (DEL stays as it is: terminals pass over it.) */
static inline void claim_json(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		CLAIM(text[i] == 0x7f || is_harmless((unsigned char)text[i], false));
}

#endif
