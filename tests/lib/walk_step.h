/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The walk by libunwind's cursor: the reference with which tests compare the walk by rules.
 */

#include <libunwind.h>

#include "symbolize/modules.h"
#include "unwind/walk.h"

struct tdt__walk_step {
	struct tdt__modules *modules;
	struct tdt__registers from; /* what the cursor starts with */
	struct tdt__registers at;
	unw_cursor_t cursor;
	uintptr_t top;
	uint32_t learns; /* not used: each step takes the lock anyway */
	uintptr_t low;  /* no word of the stack is read below this address */
	intptr_t shift; /* see tdt__walk_start_copied() in walk_rules.h */
	enum tdt_cut cut;
	bool first;
};

bool tdt__walk_step_init(struct tdt__walk_step *walk);
void tdt__walk_step_fini(struct tdt__walk_step *walk);
void tdt__walk_step_start(struct tdt__walk_step *walk, struct tdt__registers from, uintptr_t top);

/*
 * Make sure that the walk's modules have the module that `pc` lies in now, if there is memory, so
 * that the PC can be named.  Takes tdt__unwind_lock.
 */
void tdt__walk_step_meet(struct tdt__walk_step *walk, uintptr_t pc);

void tdt__walk_step_start_copied(struct tdt__walk_step *walk, struct tdt__registers from,
				 uintptr_t top, intptr_t shift);
enum tdt__walked tdt__walk_step_next(struct tdt__walk_step *walk, struct tdt__frame *frame);
