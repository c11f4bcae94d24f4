// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The processes that a server of metrics remembers: see metered.h. */

#include "cli/metered.h"

#include <stdlib.h>

#include "base/array.h"

struct metered_process *metered_find(const struct metered *metered, pid_t pid)
{
	for (size_t i = 0; i < metered->n; i++)
		if (metered->process[i].pid == pid)
			return &metered->process[i];
	return NULL;
}

struct metered_process *metered_add(struct metered *metered, pid_t pid)
{
	struct metered_process *process = metered_find(metered, pid);

	if (process != NULL || !tdt__array_grow(&metered->process, metered->n, &metered->room,
						sizeof *metered->process))
		return process;
	process = &metered->process[metered->n++];
	*process = (struct metered_process){ .pid = pid };
	return process;
}

void metered_forget_others(struct metered *metered)
{
	size_t n = 0;

	for (size_t i = 0; i < metered->n; i++) {
		if (!metered->process[i].seen)
			continue;
		metered->process[n] = metered->process[i];
		metered->process[n++].seen = false;
	}
	metered->n = n;
}

void metered_fini(struct metered *metered)
{
	free(metered->process);
	*metered = (struct metered){ 0 };
}
