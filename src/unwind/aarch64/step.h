/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A step by the rule of a frame on aarch64: see unwind/walk_rules.h, which includes this.
 *
 * The CFA is a register plus a constant.  The return address is in memory too, at a constant
 * distance from the slot of x29, which is nearly always one word: the two are a frame record.  A
 * frame that has made no call yet may have the return address in x30.
 */

static inline __attribute__((no_sanitize("address", "thread"))) bool
tdt__walk_leads_to(const struct tdt__frame *frame, const struct tdt__frame *caller)
{
	return frame->pc_at != 0 &&
	       tdt__unsigned_pc(tdt__word_at(tdt__return_slot(frame))) == caller->pc &&
	       (frame->fp_slot == 0 || tdt__word_at(frame->fp_slot) == caller->fp);
}

/*
 * Guess that the function keeps a frame pointer: then x29 points to its frame record.  That does
 * not say where the caller's frame begins; but the rule of the caller does, if that one keeps a
 * frame pointer too.
 */
static __attribute__((noinline, cold, unused, no_sanitize("address", "thread"))) enum tdt__walked
tdt__walk_guess(struct tdt__walk *walk, struct tdt__registers *at, struct tdt__frame *frame,
		intptr_t shift, uintptr_t red_zone, unsigned cfa_kind)
{
	struct tdt__registers next;
	struct tdt__rule rule;

	if (!tdt__walk_may_read(walk, at, at->fp, red_zone) ||
	    !tdt__walk_may_read(walk, at, at->fp + 8, red_zone))
		return tdt__walk_cut_by(walk, cfa_kind);
	next = (struct tdt__registers){ .pc = tdt__unsigned_pc(tdt__word_at(at->fp + 8 + shift)),
					.sp = at->fp + 16,
					.fp = tdt__word_at(at->fp + shift) };
	if (!tdt__walk_may_call(next.pc, at->pc - 1))
		return tdt__walk_cut_by(walk, cfa_kind);
	rule = tdt__walk_rule(walk, next.pc);
	if (rule.cfa_kind == TDT__CFA_SP && rule.fp_kind == TDT__FP_RECORD)
		next.sp = next.fp - (uintptr_t)(rule.fp * (intptr_t)8);
	if (next.sp < at->fp + 16 || next.sp > walk->top)
		return tdt__walk_cut_by(walk, cfa_kind);
	frame->guessed = true;
	frame->fp_slot = at->fp;
	frame->cfa = next.sp;
	frame->pc_at = (int32_t)(at->fp + 8 - next.sp);
	*at = next;
	return TDT__WALK_FRAME;
}

/*
 * Whether the frame of the mark is found right: there x29 is the mark.  (In the copy of a stack x29
 * may be unknown.)
 */
static inline enum tdt__walked tdt__walk_arrive(struct tdt__walk *walk,
						const struct tdt__registers *at,
						struct tdt__frame *frame, uintptr_t cfa)
{
	if (at->fp != walk->top && at->fp != TDT__NO_FP)
		return tdt__walk_cut(walk, TDT_CUT_CORRUPT);
	frame->cfa = cfa;
	return TDT__WALK_TOP;
}

/*
 * Find the return address where it is not in a frame record.  Returns its slot; 0: it can't be
 * read.
 */
static __attribute__((noinline, cold, unused)) uintptr_t
tdt__walk_odd_slot(const struct tdt__walk *walk, const struct tdt__registers *at,
		   struct tdt__rule rule, struct tdt__frame *frame, uintptr_t slot, uintptr_t cfa,
		   uintptr_t red_zone)
{
	uintptr_t pc_slot = slot + (uintptr_t)(TDT__RULE_PC(rule) * (intptr_t)8);

	if ((rule.fp_kind & TDT__FP_MASK) == TDT__FP_SAME)
		slot = 0;
	if (cfa <= at->sp || (slot != 0 && !tdt__walk_may_read(walk, at, slot, red_zone)) ||
	    !tdt__walk_may_read(walk, at, pc_slot, red_zone))
		return 0;
	frame->fp_slot = slot;
	return pc_slot;
}

/* Step out of a frame that has made no call: the return address is in x30. */
static inline enum tdt__walked
tdt__walk_by_lr(struct tdt__walk *walk, struct tdt__registers *at, struct tdt__frame *frame,
		uintptr_t cfa)
{
	if (at->lr == 0)
		return tdt__walk_cut(walk, TDT_CUT_NO_INFO);
	if (cfa < at->sp || cfa % 8 != 0)
		return tdt__walk_cut(walk, TDT_CUT_CORRUPT);
	frame->cfa = cfa;
	*at = (struct tdt__registers){ .pc = at->lr, .sp = cfa, .fp = at->fp };
	return TDT__WALK_FRAME;
}

static inline __attribute__((always_inline, no_sanitize("address", "thread"))) enum tdt__walked
tdt__walk_step_out(struct tdt__walk *walk, struct tdt__registers *at, struct tdt__frame *frame,
		   intptr_t shift, uintptr_t red_zone)
{
	struct tdt__rule rule = tdt__walk_rule(walk, at->pc);
	uintptr_t base, cfa, slot;
	enum tdt__walked walked;
	struct tdt__registers copy; /* for functions: `at` itself is kept in registers */

	*frame = (struct tdt__frame){ .pc = at->pc, .cfa = at->sp, .fp = at->fp };
	if (__builtin_expect(rule.cfa_kind == TDT__CFA_SP, 1))
		base = at->sp;
	else if (rule.cfa_kind == TDT__CFA_FP)
		base = at->fp;
	else if (rule.cfa_kind == TDT__CFA_OUTERMOST || rule.cfa_kind == TDT__CFA_NONE)
		return tdt__walk_cut_by(walk, rule.cfa_kind);
	else {
		copy = *at;
		walked = tdt__walk_guess(walk, &copy, frame, shift, red_zone, rule.cfa_kind);
		*at = copy;
		return walked;
	}

	cfa = base + (uintptr_t)(intptr_t)rule.cfa;
	if (__builtin_expect(cfa > walk->top, 0))
		return tdt__walk_arrive(walk, at, frame, cfa);
	if (__builtin_expect(rule.fp_kind == TDT__FP_RECORD, 1)) {
		slot = base + (uintptr_t)(rule.fp * (intptr_t)8);
		if (slot < at->sp - red_zone || slot > cfa - 16 || slot % 8 != 0)
			return tdt__walk_cut(walk, TDT_CUT_CORRUPT);
		frame->fp_slot = slot;
		at->fp = tdt__word_at(slot + (uintptr_t)shift);
		slot += 8;
	} else if (rule.fp_kind == TDT__FP_SAME) {
		return tdt__walk_by_lr(walk, at, frame, cfa);
	} else {
		copy = *at;
		slot = tdt__walk_odd_slot(walk, &copy, rule, frame,
					  base + (uintptr_t)(rule.fp * (intptr_t)8), cfa,
					  red_zone);
		if (slot == 0)
			return tdt__walk_cut(walk, TDT_CUT_CORRUPT);
		if (frame->fp_slot != 0)
			at->fp = tdt__word_at(frame->fp_slot + (uintptr_t)shift);
	}
	frame->cfa = cfa;
	frame->pc_at = (int32_t)(slot - cfa);
	at->pc = tdt__unsigned_pc(tdt__word_at(slot + (uintptr_t)shift));
	at->sp = cfa;
	at->lr = 0;
	return TDT__WALK_FRAME;
}
