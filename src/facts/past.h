/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The traces of single tasks of which only a note is left: panics, lost wake-ups, and orphaned
 * locks; of this process, another one, or a core file.
 */

#include <stdint.h>

#include "facts/lost.h"
#include "facts/orphans.h"

struct tdt__stacks;
struct tdt_trace;

/* What notes refer to. */
struct tdt__past_view {
	void *arg;
	/* The stacks of a tree that has room for `room` entries.  NULL: it cannot be had. */
	struct tdt__stacks *(*stacks)(void *arg, const struct tdt_registry_tree *tree,
				      const struct tdt_registry_entry *entry, uint32_t room);
	const char *(*file)(void *arg, uint64_t address); /* NULL: unknown */
	uint64_t now;
};

/* The caller frees the traces.  NULL: there is no memory, or the tree cannot be had. */
struct tdt_trace *tdt__past_panic(const struct tdt__past_view *view,
				  const struct tdt_registry_panic *panic);
struct tdt_trace *tdt__past_lost(const struct tdt__past_view *view, const struct tdt__losts *losts,
				 size_t i);
struct tdt_trace *tdt__past_orphan(const struct tdt__past_view *view, struct tdt__orphan *orphan);
