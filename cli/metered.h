/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The processes that a server of metrics remembers: those that it may meet again. */

#include "cli/scrape.h"

struct metered_process {
	pid_t pid; /* 0: the target of the options */
	bool seen; /* since the others were forgotten: it lives, and may use the library */
	struct scrape_totals totals;
};

/* All zeros: none. */
struct metered {
	struct metered_process *process;
	size_t n, room;
};

/* NULL: it is unknown. */
struct metered_process *metered_find(const struct metered *metered, pid_t pid);

/* The same, and adds it if it is unknown.  NULL: no memory. */
struct metered_process *metered_add(struct metered *metered, pid_t pid);

/* Forget those that were not seen.  Those that were have to be seen again. */
void metered_forget_others(struct metered *metered);

void metered_fini(struct metered *metered);
