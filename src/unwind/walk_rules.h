/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_UNWIND_WALK_RULES_H
#define TDT_SRC_UNWIND_WALK_RULES_H

/* The walk by rules.  Once the rules are known it takes no lock, allocates nothing, and makes no system call. */

#include <errno.h>

#include "host/loaded.h"
#include "unwind/rules.h"
#include "unwind/walk.h"

struct tdt__walk {
	struct tdt__rules *rules; /* a reference; exchanged when something was learned */
	struct tdt__registers at;
	uintptr_t top;
	uint32_t learns; /* so many PCs it may learn yet: then it is cut at the next */
	intptr_t shift; /* tdt__walk_start_copied() */
	enum tdt_cut cut;
};

/* Get ready to walk code as it is loaded now.  Asker's side: takes tdt__unwind_lock.  False: no memory. */
static inline bool tdt__walk_init(struct tdt__walk *walk)
{
	int saved = errno;

	walk->rules = tdt__rules_get();
	walk->learns = TDT__LEARNS_ALL;
	if (walk->rules == NULL)
		return false;
	errno = saved; /* libunwind sets it to 0 when it is used for the first time */
	return true;
}

/* Get ready as `other` is, which can't fail. */
static inline void tdt__walk_init_as(struct tdt__walk *walk, const struct tdt__walk *other)
{
	walk->rules = tdt__rules_ref(other->rules);
	walk->learns = TDT__LEARNS_ALL;
}

/* Whether both go by the same; and have one go by what the other does. */
static inline bool tdt__walk_same(const struct tdt__walk *a, const struct tdt__walk *b)
{
	return a->rules == b->rules;
}

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

/* Have the PC, which may not have been walked from, be named by what is loaded now.  Takes tdt__unwind_lock. */
static inline void tdt__walk_meet(struct tdt__walk *walk, uintptr_t pc)
{
	if (tdt__modules_find(walk->rules->modules, pc) == NULL)
		tdt__rules_meet(&walk->rules, pc);
}

/* What the PCs that were walked are to be named by. */
static inline struct tdt__modules *tdt__walk_modules(const struct tdt__walk *walk)
{
	return walk->rules->modules;
}

/* Go by the newer rules of the two. */
static inline void tdt__walk_adopt(struct tdt__walk *walk, const struct tdt__walk *other)
{
	if (tdt__modules_newer(other->rules->modules, walk->rules->modules))
		tdt__walk_share(walk, other);
}

static inline void tdt__walk_start(struct tdt__walk *walk, struct tdt__registers from, uintptr_t top)
{
	walk->at = from;
	walk->top = top;
}

/* From a copy of a stack: what was at an address lies `shift` bytes further on now. */
static inline void tdt__walk_start_copied(struct tdt__walk *walk, struct tdt__registers from, uintptr_t top,
					  intptr_t shift)
{
	tdt__walk_start(walk, from, top);
	walk->shift = shift;
}

/*
 * Words of a stack also lie between variables, where a sanitizer reports an error: tdt__word_at() must not be
 * instrumented.  Clang instruments a function that is inlined by force (tdt__walk_step_out()) as it does the caller, in
 * spite of no_sanitize.  So in Clang's sanitized builds tdt__word_at() is never inlined.
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
 * Whether a word may be read at `address`: aligned, and between this frame's sp (or the red zone of so many bytes below
 * it) and the traced future's.
 */
static inline bool tdt__walk_may_read(const struct tdt__walk *walk, const struct tdt__registers *at, uintptr_t address,
				      uintptr_t red_zone)
{
	return address >= at->sp - red_zone && address < walk->top && address % sizeof(uintptr_t) == 0;
}

static inline enum tdt__walked tdt__walk_cut(struct tdt__walk *walk, enum tdt_cut cut)
{
	walk->cut = cut;
	return TDT__WALK_CUT;
}

/*
 * Whether `frame`, which an earlier walk yielded before `caller`, would lead there again.  It is on the stack still, as
 * far as its own registers tell.
 */
static inline __attribute__((no_sanitize("address", "thread"))) bool
tdt__walk_leads_to(const struct tdt__frame *frame, const struct tdt__frame *caller)
{
	return tdt__word_at(frame->cfa - 8) == caller->pc &&
	       (frame->fp_slot == 0 || tdt__word_at(frame->fp_slot) == caller->fp) &&
	       (frame->cfa_at == 0 || tdt__word_at(frame->fp + (intptr_t)frame->cfa_at) == frame->cfa);
}

/*
 * Whether the caller that was guessed may be one: that is, code.  What no module has may have been made at run time;
 * but then who calls such code without unwind information is no module either.
 */
static __attribute__((noinline, cold, unused)) bool tdt__walk_may_call(uintptr_t caller, uintptr_t callee)
{
	return tdt__is_loaded(caller - 1) || !tdt__is_loaded(callee);
}

/*
 * Yield the frame the walk is `at`, and go on to its caller.  A frame that is the last because its caller can't be found
 * is yielded with TDT__WALK_CUT; with TDT__WALK_TOP comes the traced future's own.
 */
static inline __attribute__((always_inline, no_sanitize("address", "thread"))) enum tdt__walked
tdt__walk_step_out(struct tdt__walk *walk, struct tdt__registers *at, struct tdt__frame *frame, intptr_t shift,
		   uintptr_t red_zone)
{
	/* The call is before the return address: what comes after it may belong to other code. */
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

	/* The two that nearly all are first: comparing is quicker than a jump table. */
	if (__builtin_expect(rule.cfa_kind == TDT__CFA_SP, 1)) {
		cfa = at->sp + (intptr_t)rule.cfa;
	} else if (__builtin_expect(rule.cfa_kind == TDT__CFA_FP, 1)) {
		cfa = at->fp + (intptr_t)rule.cfa;
	} else {
		switch (rule.cfa_kind) {
		case TDT__CFA_AT_FP:
			if (!tdt__walk_may_read(walk, at, at->fp + (intptr_t)rule.cfa, red_zone))
				return tdt__walk_cut(walk, TDT_CUT_CORRUPT);
			cfa = tdt__word_at(at->fp + (intptr_t)rule.cfa + shift);
			frame->cfa_at = rule.cfa;
			break;
		case TDT__CFA_AT_SP:
			word = at->sp + (intptr_t)(rule.cfa >> TDT__AT_SP_BITS);
			if (!tdt__walk_may_read(walk, at, word, red_zone))
				return tdt__walk_cut(walk, TDT_CUT_CORRUPT);
			cfa = tdt__word_at(word + shift) + (rule.cfa & ((1 << TDT__AT_SP_BITS) - 1));
			/*
			 * For tdt__walk_leads_to(): the word is less than the CFA, so that no later leaf shares the
			 * frame.  Its own fp may be anything, and far from the word.
			 */
			frame->fp = word - 8;
			frame->cfa_at = 8;
			break;
		case TDT__CFA_OUTERMOST:
			return tdt__walk_cut(walk, TDT_CUT_STACK);
		case TDT__CFA_NONE:
			return tdt__walk_cut(walk, TDT_CUT_MEMORY);
		default:
			/* A function that keeps a frame pointer links its frame into a chain: rbp lies at its CFA - 16. */
			if (!tdt__walk_may_read(walk, at, at->fp, red_zone) ||
			    !tdt__walk_may_read(walk, at, at->fp + 8, red_zone) ||
			    !tdt__walk_may_call(tdt__word_at(at->fp + 8 + shift), code))
				return tdt__walk_cut(walk, rule.cfa_kind == TDT__CFA_OTHER ? TDT_CUT_UNSUPPORTED :
												 TDT_CUT_NO_INFO);
			cfa = at->fp + 16;
			fp_slot = at->fp;
			guessed = true;
		}
	}

	/* At least the return address lies between sp and CFA. */
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

/* `at` is the caller's own copy of where the walk is: as locals of his these are in registers of the processor. */
static inline __attribute__((always_inline)) enum tdt__walked
tdt__walk_next(struct tdt__walk *walk, struct tdt__registers *at, struct tdt__frame *frame)
{
	return tdt__walk_step_out(walk, at, frame, 0, 0);
}

/* The same after tdt__walk_start_copied(). */
static inline enum tdt__walked tdt__walk_next_copied(struct tdt__walk *walk, struct tdt__frame *frame)
{
	return tdt__walk_step_out(walk, &walk->at, frame, walk->shift, TDT__RED_ZONE);
}

#endif
