// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Making and copying recorded stacks. */

#include <config.h>

#include "tree/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "symbolize/modules.h"

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
	copy->modules = tdt__modules_ref(stacks->modules);
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
	free(stacks);
}
