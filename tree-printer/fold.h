/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Which frames of a tree a reader needs who knows the program, and not its libraries. */

#include <stdint.h>

#include "frames.h"
#include "operation.h"

/* What becomes of a node. */
enum tdt__fold {
	TDT__FOLD_KEEP,      /* shown, unless it is plumbing of tdt: see view.c */
	TDT__FOLD_HIDE,
	TDT__FOLD_OPERATION /* shown: it stands for the calls below, which are hidden */
};

struct tdt__folded {
	uint32_t frame;  /* the number of its frame: tdt__frames_note() */
	uint32_t object; /* of an operation: the number of a frame that polls its object */
	enum tdt__origin origin : 8;
	enum tdt__fold fold : 8;
	enum tdt__polled polled : 8; /* what its frame polls */
	enum tdt__polled has : 8;    /* what the object of an operation is; nothing: it has none */
	bool hides_futures;          /* it polls futures that are not in the tree */
	bool own; /* it is the program's own code, or tdt's, so its path is cut as theirs is */
};

/*
 * Find out what becomes of each node: an array by the nodes' ids, which the caller frees.  If
 * `full`, or if none of the tree is surely the program's own code but some may be, all nodes are
 * kept.  NULL: no memory.
 */
struct tdt__folded *tdt__fold(const struct tdt_node *root, struct tdt__frames *frames, bool full);

/* As what the frame of the node is printed. */
static inline enum tdt__role tdt__role_of(const struct tdt__folded *folded)
{
	return folded->own			     ? TDT__ROLE_OWN
	       : folded->fold == TDT__FOLD_OPERATION ? TDT__ROLE_OPERATION
						     : TDT__ROLE_LIBRARY;
}
