/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The walk by libunwind's cursor: the reference with which tests compare the walk by rules.
 */

#include <config.h>

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

#if !TDT_WALK_RULES
#define tdt__walk tdt__walk_step
#define tdt__walk_init tdt__walk_step_init
#define tdt__walk_fini tdt__walk_step_fini
#define tdt__walk_meet tdt__walk_step_meet
#define tdt__walk_start tdt__walk_step_start
#define tdt__walk_start_copied tdt__walk_step_start_copied
#define tdt__walk_next_copied tdt__walk_step_next

static inline struct tdt__modules *tdt__walk_modules(const struct tdt__walk_step *walk)
{
	return walk->modules;
}

/* `at` is not used, because the cursor itself knows where the walk is. */
static inline enum tdt__walked tdt__walk_next(struct tdt__walk_step *walk,
					      struct tdt__registers *at, struct tdt__frame *frame)
{
	(void)at;
	return tdt__walk_step_next(walk, frame);
}

/* Get ready with the modules of `other`.  This can't fail. */
static inline void tdt__walk_init_as(struct tdt__walk_step *walk,
				     const struct tdt__walk_step *other)
{
	walk->modules = tdt__modules_ref(other->modules);
	walk->learns = TDT__LEARNS_ALL;
}

/* Whether both walks use the same table of modules. */
static inline bool tdt__walk_same(const struct tdt__walk_step *a, const struct tdt__walk_step *b)
{
	return a->modules == b->modules;
}

/* Make `walk` use the modules of `other`. */
static inline void tdt__walk_share(struct tdt__walk_step *walk, const struct tdt__walk_step *other)
{
	struct tdt__modules *old = walk->modules;

	walk->modules = tdt__modules_ref(other->modules);
	tdt__modules_unref(old);
}

/* Make `walk` use the modules of `other` if those are newer. */
static inline void tdt__walk_adopt(struct tdt__walk_step *walk, const struct tdt__walk_step *other)
{
	if (tdt__modules_newer(other->modules, walk->modules))
		tdt__walk_share(walk, other);
}

/*
 * The cursor does not report all the words that it has read.  So no frames of an earlier walk are
 * reused: every leaf is walked to the end.
 */
static inline bool tdt__walk_leads_to(const struct tdt__frame *frame,
				      const struct tdt__frame *caller)
{
	(void)frame;
	(void)caller;
	return false;
}
#endif
