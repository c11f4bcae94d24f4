// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Judging recorded stacks by the modules that their frames lie in: see judge.h. */

#include "capture/judge.h"

#include <errno.h>
#include <stdbool.h>

#include "host/unloads.h"
#include "symbolize/modules.h"
#include "tree/named.h"
#include "tree/stacks.h"

/*
 * Whether all frames lie in modules that are never unloaded, or were reported by name.  Then all
 * rules that the frames were walked by are of these modules too.
 */
static bool all_last(const struct tdt__stacks *stacks)
{
	const struct tdt__modules *modules = stacks->modules;

	for (uint32_t i = 0; i < stacks->n; i++) {
		uintptr_t pc = stacks->frames[i].frame.pc;
		const struct tdt__module *module = tdt__modules_find(modules, pc - 1);

		if (tdt__is_named(pc))
			continue;
		if (module == NULL || !module->lasting)
			return false;
	}
	return true;
}

static int check_unloads(const struct tdt__stacks *stacks, struct tdt__unloads *count)
{
	const struct tdt__modules *modules = stacks->modules;

	if ((modules->lasting && modules->unloads == stacks->unloads) || all_last(stacks))
		return 0;
	if (!tdt__unloads_count(count))
		return -ETIMEDOUT;
	return count->n == stacks->unloads ? 0 : -EAGAIN;
}

int tdt__judge(struct tdt__stacks *stacks, struct tdt__unloads *count)
{
	int error = check_unloads(stacks, count);

	/* Relaxed: each requester that has the same stacks finds this out by itself. */
	if (error != 0)
		atomic_store_explicit(&stacks->astray, true, memory_order_relaxed);
	return error;
}
