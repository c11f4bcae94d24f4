/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_CAPTURE_FACTS_H
#define TDT_SRC_CAPTURE_FACTS_H

/* What a poll says of its task, besides its stacks: the fields of struct tdt_trace_info with the same names. */

#include <stdint.h>

#include <tdt/tree.h>

struct tdt__facts {
	enum tdt_task_state state;
	uint64_t state_ns;
	uint64_t polls;
	uint64_t woken_ns;
	uint64_t woken_by;
	/* Of a poll that runs. */
	uint32_t thread;
	const char *syscall;
	/* What the leaves say they wait for. */
	uint32_t n_waits;
	struct tdt_wait *waits;
};

/* Say so in `info`, which lends the waits. */
static inline void tdt__facts_say(const struct tdt__facts *facts, struct tdt_trace_info *info)
{
	info->state = facts->state;
	info->state_ns = facts->state_ns;
	info->polls = facts->polls;
	info->woken_ns = facts->woken_ns;
	info->woken_by = facts->woken_by;
	info->thread = facts->thread;
	info->syscall = facts->syscall;
	info->n_waits = facts->n_waits;
	info->waits = facts->waits;
}

#endif
