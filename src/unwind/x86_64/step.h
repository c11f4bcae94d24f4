/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* A step by the rule of a frame on x86-64: see unwind/walk_rules.h, which includes this. */

static inline __attribute__((no_sanitize("address", "thread"))) bool
tdt__walk_leads_to(const struct tdt__frame *frame, const struct tdt__frame *caller)
{
	return tdt__word_at(frame->cfa - 8) == caller->pc &&
	       (frame->fp_slot == 0 || tdt__word_at(frame->fp_slot) == caller->fp) &&
	       (frame->cfa_at == 0 ||
		tdt__word_at(frame->fp + (intptr_t)frame->cfa_at) == frame->cfa);
}

static inline __attribute__((always_inline, no_sanitize("address", "thread"))) enum tdt__walked
tdt__walk_step_out(struct tdt__walk *walk, struct tdt__registers *at, struct tdt__frame *frame,
		   intptr_t shift, uintptr_t red_zone)
{
	struct tdt__rule rule = tdt__walk_rule(walk, at->pc);
	uintptr_t cfa, word, fp_slot = 0;
	bool guessed = false;

	*frame = (struct tdt__frame){ .pc = at->pc, .cfa = at->sp, .fp = at->fp };

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
		case TDT__CFA_NONE:
			return tdt__walk_cut_by(walk, rule.cfa_kind);
		default:
			/*
			 * Guess that the function keeps a frame pointer.  Then rbp points to CFA -
			 * 16, where the caller's rbp is saved: the frames form a chain.
			 */
			if (!tdt__walk_may_read(walk, at, at->fp, red_zone) ||
			    !tdt__walk_may_read(walk, at, at->fp + 8, red_zone) ||
			    !tdt__walk_may_call(tdt__word_at(at->fp + 8 + shift), at->pc - 1))
				return tdt__walk_cut_by(walk, rule.cfa_kind);
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
