/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The walk by rules.  If all rules that it needs are known, the walk takes no lock, allocates
 * nothing, and makes no system call.
 */

#include <errno.h>

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
	int saved = errno;

	walk->rules = tdt__rules_get();
	walk->learns = TDT__LEARNS_ALL;
	if (walk->rules == NULL)
		return false;
	errno = saved; /* libunwind sets errno to 0 when it is used for the first time */
	return true;
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
 * A walk reads words of the stack that lie between variables, where a sanitizer reports an error.
 * So tdt__word_at() must not be instrumented.  Clang instruments a function that is inlined by
 * force (tdt__walk_step_out()) as it does the caller, in spite of no_sanitize.  So in Clang's
 * sanitized builds tdt__word_at() is never inlined.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TDT__UNINSTRUMENTED __attribute__((noinline, no_sanitize("address", "thread")))
#endif
#endif
#ifndef TDT__UNINSTRUMENTED
#define TDT__UNINSTRUMENTED __attribute__((no_sanitize("address", "thread")))
#endif

static inline TDT__UNINSTRUMENTED uintptr_t tdt__word_at(uintptr_t address)
{
	return *(const volatile uintptr_t *)address;
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
 * Whether a step from `frame` would lead to `caller` again.  An earlier walk yielded `frame` just
 * before `caller`.  As far as the registers of `frame` show, it is still on the stack.
 */
static inline __attribute__((no_sanitize("address", "thread"))) bool
tdt__walk_leads_to(const struct tdt__frame *frame, const struct tdt__frame *caller)
{
	return tdt__word_at(frame->cfa - 8) == caller->pc &&
	       (frame->fp_slot == 0 || tdt__word_at(frame->fp_slot) == caller->fp) &&
	       (frame->cfa_at == 0 ||
		tdt__word_at(frame->fp + (intptr_t)frame->cfa_at) == frame->cfa);
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
 * Yield the frame that the walk is `at`, and step to its caller.  If the caller can't be found, the
 * frame is yielded with TDT__WALK_CUT.  The frame that comes with TDT__WALK_TOP is that of the
 * traced future.
 */
static inline __attribute__((always_inline, no_sanitize("address", "thread"))) enum tdt__walked
tdt__walk_step_out(struct tdt__walk *walk, struct tdt__registers *at, struct tdt__frame *frame,
		   intptr_t shift, uintptr_t red_zone)
{
	/*
	 * The call is before the return address.  The code at the return address itself may belong
	 * to another function.
	 */

	uintptr_t code = at->pc - 1, cfa, word, fp_slot = 0;
	struct tdt__rule rule;
	bool guessed = false;

	*frame = (struct tdt__frame){ .pc = at->pc, .cfa = at->sp, .fp = at->fp };
	rule = tdt__rules_find(walk->rules, code);
	if (__builtin_expect(rule.cfa_kind == TDT__CFA_NONE, 0)) {
		if (walk->learns == 0)
			return tdt__walk_cut(walk, TDT_CUT_LIMIT);
		walk->learns--;
		rule = tdt__rules_learn(&walk->rules, code);
	}

	/* Nearly all rules are of these two kinds.  A comparison is quicker than a jump table. */
	if (__builtin_expect(rule.cfa_kind == TDT__CFA_SP, 1)) {
		cfa = at->sp + (intptr_t)rule.cfa;
	} else if (__builtin_expect(rule.cfa_kind == TDT__CFA_FP, 1)) {
		cfa = at->fp + (intptr_t)rule.cfa;
	} else {
		switch (rule.cfa_kind) {
		case TDT__CFA_AT_FP:
			if (!tdt__walk_may_read(walk, at, at->fp + (intptr_t)rule.cfa,
						red_zone))
				return tdt__walk_cut(walk, TDT_CUT_CORRUPT);
			cfa = tdt__word_at(at->fp + (intptr_t)rule.cfa + shift);
			frame->cfa_at = rule.cfa;
			break;
		case TDT__CFA_AT_SP:
			word = at->sp + (intptr_t)(rule.cfa >> TDT__AT_SP_BITS);
			if (!tdt__walk_may_read(walk, at, word, red_zone))
				return tdt__walk_cut(walk, TDT_CUT_CORRUPT);
			cfa = tdt__word_at(word + shift) +
			      (rule.cfa & ((1 << TDT__AT_SP_BITS) - 1));
			/*
			 * These values are for tdt__walk_leads_to().  The word is less than the
			 * CFA, so no later leaf shares the frame.  The frame's own fp is not used
			 * here, because it may have any value, and may be far from the word.
			 */
			frame->fp = word - 8;
			frame->cfa_at = 8;
			break;
		case TDT__CFA_OUTERMOST:
			return tdt__walk_cut(walk, TDT_CUT_STACK);
		case TDT__CFA_NONE:
			return tdt__walk_cut(walk, TDT_CUT_MEMORY);
		default:
			/*
			 * Guess that the function keeps a frame pointer.  Then rbp points to CFA -
			 * 16, where the caller's rbp is saved: the frames form a chain.
			 */
			if (!tdt__walk_may_read(walk, at, at->fp, red_zone) ||
			    !tdt__walk_may_read(walk, at, at->fp + 8, red_zone) ||
			    !tdt__walk_may_call(tdt__word_at(at->fp + 8 + shift), code))
				return tdt__walk_cut(walk, rule.cfa_kind == TDT__CFA_OTHER ?
								   TDT_CUT_UNSUPPORTED :
								   TDT_CUT_NO_INFO);
			cfa = at->fp + 16;
			fp_slot = at->fp;
			guessed = true;
		}
	}

	/* There is room for the return address between sp and CFA. */
	if (cfa < at->sp + 8 || cfa > walk->top || cfa % 8 != 0)
		return tdt__walk_cut(walk, TDT_CUT_CORRUPT);
	frame->cfa = cfa;
	if (cfa == walk->top && !guessed)
		return TDT__WALK_TOP;
	if (rule.fp_kind != TDT__FP_SAME) {
		fp_slot = (rule.fp_kind == TDT__FP_AT_CFA ? cfa : at->fp) + (intptr_t)rule.fp * 8;
		if (!tdt__walk_may_read(walk, at, fp_slot, red_zone))
			return tdt__walk_cut(walk, TDT_CUT_CORRUPT);
	}
	frame->fp_slot = fp_slot;
	frame->guessed = guessed;
	at->pc = tdt__word_at(cfa - 8 + shift);
	at->sp = cfa;
	if (fp_slot != 0)
		at->fp = tdt__word_at(fp_slot + shift);
	return TDT__WALK_FRAME;
}

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
