/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* What a tree in the registry says, in the process of its task and outside of it. */

#include <tdt/layout/registry.h>

#include "tree/stacks.h"

/*
 * Fill in `stacks`, which have room for all entries.  The tree may be overwritten meanwhile: then
 * the caller finds that out, and the numbers may be of two trees.
 */
static inline void tdt__registry_tree_read(struct tdt__stacks *stacks,
					   const struct tdt_registry_tree *tree,
					   const struct tdt_registry_entry *entry)
{
	stacks->unloads = __atomic_load_n(&tree->unloads, __ATOMIC_RELAXED);
	stacks->leaves = __atomic_load_n(&tree->leaves, __ATOMIC_RELAXED);
	stacks->elsewhere = __atomic_load_n(&tree->elsewhere, __ATOMIC_RELAXED);
	stacks->lost = __atomic_load_n(&tree->lost, __ATOMIC_RELAXED);
	stacks->n = __atomic_load_n(&tree->n, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < stacks->n; i++, entry++) {
		uint32_t leaves = __atomic_load_n(&entry->leaves, __ATOMIC_RELAXED);

		stacks->frames[i] = (struct tdt__recorded){
			.frame = { .pc = __atomic_load_n(&entry->pc, __ATOMIC_RELAXED),
				   .guessed = (leaves & TDT_REGISTRY_GUESSED) != 0 },
			.parent = __atomic_load_n(&entry->parent, __ATOMIC_RELAXED),
			.leaves = leaves & ~TDT_REGISTRY_GUESSED,
		};
	}
}
