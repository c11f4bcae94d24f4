// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Judging captures by the modules that their frames lie in. */

#include <config.h>

#include "judge.h"

#include <errno.h>
#include <stdbool.h>

#include "capture.h"
#include "modules.h"
#include "unloads.h"

/* Whether all frames lie in modules that are never unloaded; then so did all rules that they were walked by. */
static bool all_last(const struct tdt__capture *capture)
{
	const struct tdt__modules *modules = tdt__walk_modules(&capture->walk);

	for (uint32_t i = 0; i < capture->n; i++) {
		const struct tdt__module *module = tdt__modules_find(modules, capture->frames[i].frame.pc - 1);

		if (module == NULL || !module->lasting)
			return false;
	}
	return true;
}

static int check(const struct tdt__capture *capture, struct tdt__unloads *count)
{
	const struct tdt__modules *modules = tdt__walk_modules(&capture->walk);

	if ((modules->lasting && modules->unloads == capture->unloads) || all_last(capture))
		return 0;
	if (!tdt__unloads_count(count))
		return -ETIMEDOUT;
	return count->n == capture->unloads ? 0 : -EAGAIN;
}

int tdt__judge(struct tdt__capture *capture, struct tdt__unloads *count)
{
	int error = check(capture, count);

	/* Relaxed: others that were answered by it find out by themselves. */
	if (error != 0)
		atomic_store_explicit(&capture->astray, true, memory_order_relaxed);
	return error;
}
