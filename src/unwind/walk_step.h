/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_UNWIND_WALK_STEP_H
#define TDT_SRC_UNWIND_WALK_STEP_H

/* The walk by libunwind's cursor: for architectures without rules, and the reference for those with. */

#include <libunwind.h>

#include "symbolize/modules.h"
#include "unwind/walk.h"

struct tdt__walk_step {
	struct tdt__modules *modules;
	struct tdt__registers from; /* what the cursor starts with */
	struct tdt__registers at;
	unw_cursor_t cursor;
	uintptr_t top;
	uint32_t learns; /* not heeded: each step takes the lock anyway */
	uintptr_t low;  /* nothing is read below */
	intptr_t shift; /* tdt__walk_step_start_copied() */
	enum tdt_cut cut;
	bool first;
};

bool tdt__walk_step_init(struct tdt__walk_step *walk);
void tdt__walk_step_fini(struct tdt__walk_step *walk);
void tdt__walk_step_start(struct tdt__walk_step *walk, struct tdt__registers from, uintptr_t top);

/* Have the PC be named by what is loaded now, if there is memory. */
void tdt__walk_step_meet(struct tdt__walk_step *walk, uintptr_t pc);

void tdt__walk_step_start_copied(struct tdt__walk_step *walk, struct tdt__registers from, uintptr_t top,
				 intptr_t shift);
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

/* The cursor knows where it is by itself. */
static inline enum tdt__walked tdt__walk_next(struct tdt__walk_step *walk, struct tdt__registers *at,
					      struct tdt__frame *frame)
{
	(void)at;
	return tdt__walk_step_next(walk, frame);
}

/* Get ready as `other` is, which can't fail. */
static inline void tdt__walk_init_as(struct tdt__walk_step *walk, const struct tdt__walk_step *other)
{
	walk->modules = tdt__modules_ref(other->modules);
	walk->learns = TDT__LEARNS_ALL;
}

/* Whether both go by the same modules; and have one go by the other's. */
static inline bool tdt__walk_same(const struct tdt__walk_step *a, const struct tdt__walk_step *b)
{
	return a->modules == b->modules;
}

static inline void tdt__walk_share(struct tdt__walk_step *walk, const struct tdt__walk_step *other)
{
	struct tdt__modules *old = walk->modules;

	walk->modules = tdt__modules_ref(other->modules);
	tdt__modules_unref(old);
}

/* Name PCs by the newer modules of the two. */
static inline void tdt__walk_adopt(struct tdt__walk_step *walk, const struct tdt__walk_step *other)
{
	if (tdt__modules_newer(other->modules, walk->modules))
		tdt__walk_share(walk, other);
}

/* The cursor doesn't tell all it has read: so every leaf is walked to the end. */
static inline bool tdt__walk_leads_to(const struct tdt__frame *frame, const struct tdt__frame *caller)
{
	(void)frame;
	(void)caller;
	return false;
}
#endif

#endif
