/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Texts, each of which is stored once and has a number.  A text is any bytes, so it may also be a
 * key that was made of several fields.
 */

#include "base/arena.h"
#include "base/array.h"

struct tdt__text {
	const char *bytes; /* a NUL follows them */
	size_t n;
};

/* All zero: there are none. */
struct tdt__texts {
	TDT__TABLE(struct tdt__text, text, n); /* by their numbers */
	struct tdt__arena arena;	       /* for the bytes */
};

/*
 * The number of the text of `n` bytes (0: `bytes` may be NULL).  A new text gets the next number,
 * from 0 on.  TDT__INDEX_NONE: there is no memory, and nothing has changed.
 */
uint32_t tdt__texts_number(struct tdt__texts *texts, const void *bytes, size_t n);

/* The bytes of that text, which stay where they are until tdt__texts_fini().  NULL: no memory. */
const char *tdt__texts_keep(struct tdt__texts *texts, const void *bytes, size_t n);
void tdt__texts_fini(struct tdt__texts *texts);
