/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The walk by rules.  If all rules that it needs are known, the walk takes no lock, allocates
 * nothing, and makes no system call.
 */

#include "host/loaded.h"
#include "unwind/rules.h"
#include "unwind/walk.h"

struct tdt__walk {
	struct tdt__rules *rules; /* a reference; exchanged when the walk learns a rule */
	struct tdt__registers at;
	uintptr_t top;
	uint32_t learns; /* how many more new PCs the walk may learn; the next one cuts it */
	intptr_t shift; /* see tdt__walk_start_copied() */
	enum tdt_cut cut;
};

/*
 * Get ready to walk code that is loaded now.  The requester calls this.  Takes tdt__unwind_lock.
 * False: no memory.
 */
static inline bool tdt__walk_init(struct tdt__walk *walk)
{
	walk->rules = tdt__rules_get();
	walk->learns = TDT__LEARNS_ALL;
	return walk->rules != NULL;
}

/* Get ready with the rules of `other`.  This can't fail. */
static inline void tdt__walk_init_as(struct tdt__walk *walk, const struct tdt__walk *other)
{
	walk->rules = tdt__rules_ref(other->rules);
	walk->learns = TDT__LEARNS_ALL;
}

/* Whether both walks use the same table of rules. */
static inline bool tdt__walk_same(const struct tdt__walk *a, const struct tdt__walk *b)
{
	return a->rules == b->rules;
}

/* Make `walk` use the rules of `other`. */
static inline void tdt__walk_share(struct tdt__walk *walk, const struct tdt__walk *other)
{
	struct tdt__rules *old = walk->rules;

	if (old == other->rules)
		return;
	walk->rules = tdt__rules_ref(other->rules);
	tdt__rules_put(old);
}

static inline void tdt__walk_fini(struct tdt__walk *walk)
{
	tdt__rules_put(walk->rules);
}

/*
 * Make sure that the walk's modules have the module that `pc` lies in now, so that the PC can be
 * named.  No walk needs to have stepped from that PC.  Takes tdt__unwind_lock.
 */
static inline void tdt__walk_meet(struct tdt__walk *walk, uintptr_t pc)
{
	if (tdt__modules_find(walk->rules->modules, pc) == NULL)
		tdt__rules_meet(&walk->rules, pc);
}

/* The modules that name the PCs of the walk. */
static inline struct tdt__modules *tdt__walk_modules(const struct tdt__walk *walk)
{
	return walk->rules->modules;
}

/* Make `walk` use the rules of `other` if those are newer. */
static inline void tdt__walk_adopt(struct tdt__walk *walk, const struct tdt__walk *other)
{
	if (tdt__modules_newer(other->rules->modules, walk->rules->modules))
		tdt__walk_share(walk, other);
}

static inline void tdt__walk_start(struct tdt__walk *walk, struct tdt__registers from,
				   uintptr_t top)
{
	walk->at = from;
	walk->top = top;
}

/* Start in a copy of a stack.  The copy of each word lies at the word's address plus `shift`. */
static inline void tdt__walk_start_copied(struct tdt__walk *walk, struct tdt__registers from,
					  uintptr_t top, intptr_t shift)
{
	tdt__walk_start(walk, from, top);
	walk->shift = shift;
}

/*
 * Whether a word may be read at `address`: it must be aligned, at or above this frame's sp less
 * `red_zone` bytes, and below the walk's `top`.
 */
static inline bool tdt__walk_may_read(const struct tdt__walk *walk, const struct tdt__registers *at,
				      uintptr_t address, uintptr_t red_zone)
{
	return address >= at->sp - red_zone && address < walk->top &&
	       address % sizeof(uintptr_t) == 0;
}

static inline enum tdt__walked tdt__walk_cut(struct tdt__walk *walk, enum tdt_cut cut)
{
	walk->cut = cut;
	return TDT__WALK_CUT;
}

/*
 * The rule of the frame with the return address `pc`, which the walk learns if it may.  The call is
 * before the return address: the code there may belong to another function.
 */
static inline __attribute__((always_inline)) struct tdt__rule
tdt__walk_rule(struct tdt__walk *walk, uintptr_t pc)
{
	struct tdt__rule rule = tdt__rules_find(walk->rules, pc - 1);

	if (__builtin_expect(rule.cfa_kind == TDT__CFA_NONE, 0) && walk->learns != 0) {
		rule = tdt__rules_learn(&walk->rules, pc - 1);
		walk->learns -= rule.cfa_kind != TDT__CFA_NONE; /* see tdt__walk_cut_by() */
	}
	return rule;
}

/* Cut the walk at a frame whose rule gives no CFA. */
static __attribute__((noinline, cold, unused)) enum tdt__walked
tdt__walk_cut_by(struct tdt__walk *walk, unsigned cfa_kind)
{
	switch (cfa_kind) {
	case TDT__CFA_OUTERMOST:
		return tdt__walk_cut(walk, TDT_CUT_STACK);
	case TDT__CFA_NONE:
		return tdt__walk_cut(walk, walk->learns == 0 ? TDT_CUT_LIMIT : TDT_CUT_MEMORY);
	case TDT__CFA_UNKNOWN:
		return tdt__walk_cut(walk, TDT_CUT_NO_INFO);
	default:
		return tdt__walk_cut(walk, TDT_CUT_UNSUPPORTED);
	}
}

/*
 * Whether the return address `caller`, which was guessed, may be code.  It may be if it lies in a
 * module.  It may also be code that was made at run time; but then the callee is such code too, and
 * lies in no module.
 */
static __attribute__((noinline, cold, unused)) bool tdt__walk_may_call(uintptr_t caller,
								       uintptr_t callee)
{
	return tdt__is_loaded(caller - 1) || !tdt__is_loaded(callee);
}

/*
 * tdt__walk_step_out() yields the frame that the walk is `at`, and steps to its caller.  If the
 * caller can't be found, the frame is yielded with TDT__WALK_CUT.  The frame that comes with
 * TDT__WALK_TOP is that of the traced future.
 *
 * tdt__walk_leads_to() tells whether a step from `frame` would lead to `caller` again.  An earlier
 * walk yielded `frame` just before `caller`.  As far as the registers of `frame` show, it is still
 * on the stack.
 */
#if defined(__x86_64__)
#include "unwind/x86_64/step.h"
#elif defined(__aarch64__)
#include "unwind/aarch64/step.h"
#endif

/*
 * `at` is the caller's own copy of the walk's `at`: as local variables of the caller its members
 * stay in registers of the processor.
 */
static inline __attribute__((always_inline)) enum tdt__walked
tdt__walk_next(struct tdt__walk *walk, struct tdt__registers *at, struct tdt__frame *frame)
{
	return tdt__walk_step_out(walk, at, frame, 0, 0);
}

/* The same for a walk that tdt__walk_start_copied() started. */
static inline enum tdt__walked tdt__walk_next_copied(struct tdt__walk *walk,
						     struct tdt__frame *frame)

{
	return tdt__walk_step_out(walk, &walk->at, frame, walk->shift, TDT__RED_ZONE);
}
