// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Making, copying and pruning recorded stacks. */

#include "tree/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "symbolize/modules.h"
#include "tree/named.h"

struct tdt__stacks *tdt__stacks_new(uint32_t room)
{
	struct tdt__stacks *stacks = malloc(sizeof *stacks + room * sizeof stacks->frames[0]);

	if (stacks == NULL)
		return NULL;
	*stacks = (struct tdt__stacks){ .frames = (void *)(stacks + 1) };
	return stacks;
}

struct tdt__stacks *tdt__stacks_copy(const struct tdt__stacks *stacks)
{
	struct tdt__stacks *copy = tdt__stacks_new(stacks->n);

	if (copy == NULL)
		return NULL;
	memcpy(copy->frames, stacks->frames, stacks->n * sizeof copy->frames[0]);
	copy->n = stacks->n;
	copy->leaves = stacks->leaves;
	copy->lost = stacks->lost;
	copy->elsewhere = stacks->elsewhere;
	copy->known = stacks->known;
	copy->modules = tdt__modules_ref(stacks->modules);
	copy->named = tdt__named_ref(stacks->named);
	copy->unloads = stacks->unloads;
	atomic_init(&copy->astray, atomic_load_explicit(&stacks->astray, memory_order_relaxed));
	return copy;
}

void tdt__stacks_free(struct tdt__stacks *stacks)
{
	if (stacks == NULL)
		return;
	if (stacks->modules != NULL)
		tdt__modules_unref(stacks->modules);
	tdt__named_unref(stacks->named);
	free(stacks);
}

/*
 * No walk needs the frames any more, so `cfa_at` and `sealed` have no meaning.  Here they hold the
 * new index of a frame, and whether the frame has one.
 */
void tdt__stacks_prune(struct tdt__stacks *stacks)
{
	struct tdt__recorded *frames = stacks->frames;
	uint32_t n = 0;

	for (uint32_t i = 0; i < stacks->n; i++)
		frames[i].frame.sealed = 0;
	for (uint32_t i = 0; i < stacks->n; i++)
		if (frames[i].leaves > 0)
			for (uint32_t at = i; tdt__is_frame(at) && !frames[at].frame.sealed;
			     at = frames[at].parent)
				frames[at].frame.sealed = 1;
	for (uint32_t i = 0; i < stacks->n; i++)
		if (frames[i].frame.sealed)
			frames[i].frame.cfa_at = (int32_t)n++;
	for (uint32_t i = 0; i < stacks->n; i++)
		if (frames[i].frame.sealed && tdt__is_frame(frames[i].parent))
			frames[i].parent = (uint32_t)frames[frames[i].parent].frame.cfa_at;
	n = 0;
	for (uint32_t i = 0; i < stacks->n; i++)
		if (frames[i].frame.sealed)
			frames[n++] = frames[i];
	stacks->n = n;
}
