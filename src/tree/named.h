/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Frames that were reported by name instead of by address (struct tdt_leaf_frame in
 * tdt/integrate/leaf.h).
 *
 * In recorded stacks such a frame has a number in place of a PC, which is made of its names and
 * place.  So equal frames have equal numbers, and stacks are compared as if all frames had PCs.  No
 * code has such an address.  The list of the stacks leads from the number to the names.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* One frame of a list.  It stays as it is, so any number of stacks may share it. */
struct tdt__named {
	/* The holders of the list that begins here: stacks, and the frame before it. */
	atomic_uint refs;
	struct tdt__named *next;
	uintptr_t pc;
	const char *function; /* NULL: unknown */
	const char *file;     /* NULL: unknown */
	uint32_t line;
	uint32_t column;
	char text[];
};

/* Whether a frame with this PC may be a named frame. */
static inline bool tdt__is_named(uintptr_t pc)
{
	return pc >> (8 * sizeof pc - 1) != 0;
}

/*
 * Add a frame to the list, with a copy of its strings (each may be NULL), unless it is in the list.
 * Returns the frame's number, or 0 if there is no memory.
 */
uintptr_t tdt__named_add(struct tdt__named **list, const char *function, const char *file,
			 uint32_t line, uint32_t column);

/* The frame of the list (NULL: empty) that has this number; NULL: there is none. */
const struct tdt__named *tdt__named_find(const struct tdt__named *list, uintptr_t pc);

/* Take and give up a reference to the list, which may be NULL. */
struct tdt__named *tdt__named_ref(struct tdt__named *list);
void tdt__named_unref(struct tdt__named *list);
