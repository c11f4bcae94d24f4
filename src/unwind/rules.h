/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Rules: how to step from the frame of one PC to its caller.  A rule is learned once for each PC,
 * from libunwind or from unwind information (cfi.h); later look-ups take some nanoseconds.
 *
 * On x86-64, nearly every frame that a compiler makes fits one form: the CFA is rsp (or rbp) plus a
 * constant, the return address lies just below the CFA, and the caller's rbp is in memory at a
 * constant offset (or still in rbp).  Realigned frames with alloca() need a second form: the CFA is
 * the word in memory at rbp plus a constant.  Hand-written assembly needs a third form: the CFA is
 * the word in memory at rsp plus a constant, plus a small constant for what was pushed before that
 * word was saved.  If a frame fits none of these forms, the stack is cut there, or the caller is
 * guessed by frame pointer.
 *
 * A table holds the rules for the PCs in the modules of one table of modules (modules.h).  Entries
 * are only added, and never change, so a look-up takes no lock.  A thread that walks holds a
 * reference to the table.
 *
 *                    overlaps with   find    learn   get
 *	tdt__rules_find               yes     yes     yes     no lock
 *	tdt__rules_learn              yes     -       -       under tdt__unwind_lock
 *	tdt__rules_get                yes     -       -       under tdt__unwind_lock
 */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/modules.h"

enum tdt__rule_cfa {
	TDT__CFA_NONE = 0,  /* no entry */
	TDT__CFA_SP,        /* CFA = sp + cfa */
	TDT__CFA_FP,        /* CFA = fp + cfa */
	TDT__CFA_AT_FP,     /* CFA = the word at fp + cfa */
	TDT__CFA_AT_SP,     /* CFA = the word at sp + (cfa >> TDT__AT_SP_BITS), plus the lowest
			       TDT__AT_SP_BITS bits of cfa */
	TDT__CFA_OUTERMOST, /* there is no caller */
	TDT__CFA_OTHER,     /* no rule can express the unwind information: use follow.h, or guess */
	TDT__CFA_UNKNOWN    /* there is no unwind information: guess */
};

#define TDT__AT_SP_BITS 8

enum tdt__rule_fp {
	TDT__FP_SAME = 0, /* the caller's fp is still in the register */
	TDT__FP_AT_CFA,   /* the caller's fp is in memory, at CFA + 8 * the rule's `fp` */
	TDT__FP_AT_FP,    /* the caller's fp is in memory, at the register + 8 * the rule's `fp` */

	/*
	 * On aarch64: the caller's fp is in memory, at the register that the CFA is computed from
	 * + 8 * the rule's `fp`.  The upper six bits of `fp_kind` say how many words above that
	 * place the return address is, also if the caller's fp is still in the register; 0: it is
	 * still in x30.
	 */
	TDT__FP_SAVED = 3,
	TDT__FP_MASK = 3,
	TDT__FP_RECORD = TDT__FP_SAVED | 1 << 2
};
#define TDT__RULE_PC(rule) ((int8_t)(rule).fp_kind >> 2)

struct tdt__rule {
	int32_t cfa;
	int16_t fp;
	uint8_t cfa_kind;
	uint8_t fp_kind;
};

struct tdt__rule_entry {
	/*
	 * 0: the entry is empty.  Stored after `rule`, with release, which pairs with the acquire
	 * in tdt__rules_find().
	 */
	_Atomic uintptr_t pc;
	struct tdt__rule rule;
};

struct tdt__rules {
	atomic_uint refs;
	struct tdt__modules *modules;
	size_t used;  /* under tdt__unwind_lock */
	unsigned bits; /* the table has 1 << bits entries */
	struct tdt__rule_entry entry[];
};

static inline size_t tdt__rules_slot(const struct tdt__rules *rules, uintptr_t pc)
{
	return (pc * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - rules->bits); /* Fibonacci hashing */
}

/* The rule for code at `pc`.  Its cfa_kind is TDT__CFA_NONE if the rule was not learned yet. */
static inline struct tdt__rule tdt__rules_find(const struct tdt__rules *rules, uintptr_t pc)
{
	size_t mask = ((size_t)1 << rules->bits) - 1;

	for (size_t slot = tdt__rules_slot(rules, pc);; slot = (slot + 1) & mask) {
		const struct tdt__rule_entry *entry = &rules->entry[slot];
		/* Acquire: pairs with the release in rules_insert() (rules.c). */
		uintptr_t found = atomic_load_explicit(&entry->pc, memory_order_acquire);

		/*
		 * The loop ends, since the table is never full.  This test comes first because `pc`
		 * may be 0, from a corrupt stack: then the rule may be in the middle of a write.
		 */
		if (__builtin_expect(found == 0, 0))
			return (struct tdt__rule){ 0, 0, TDT__CFA_NONE, TDT__FP_SAME };
		if (__builtin_expect(found == pc, 1))
			return entry->rule;
	}
}

/*
 * The rule that libunwind's answer for code at `pc` gives; TDT__CFA_UNKNOWN: none.  Before the
 * first one, tdt__libunwind_begin(); false: no memory.  The caller holds tdt__unwind_lock.
 */
#if defined(__x86_64__)
bool tdt__libunwind_begin(void);
struct tdt__rule tdt__rule_by_libunwind(uintptr_t pc);
#else
static inline bool tdt__libunwind_begin(void)
{
	return true;
}

static inline struct tdt__rule tdt__rule_by_libunwind(uintptr_t pc)
{
	(void)pc;
	return (struct tdt__rule){ 0, 0, TDT__CFA_UNKNOWN, TDT__FP_SAME };
}
#endif

/*
 * Learn the rule for code at `pc`.  Takes tdt__unwind_lock, and some 7 us for a PC that is new.
 * `*rules` is exchanged for the newest table: the caller's reference moves to that one.
 * TDT__CFA_NONE: there was no memory for this.
 */
struct tdt__rule tdt__rules_learn(struct tdt__rules **rules, uintptr_t pc);

/*
 * Make sure that the table knows the module that `pc` lies in now, if there is memory.  Takes
 * tdt__unwind_lock, and exchanges `*rules` as tdt__rules_learn() does.
 */
void tdt__rules_meet(struct tdt__rules **rules, uintptr_t pc);

/*
 * A reference to a table for the modules that are loaded now.  The table may be out of date if the
 * number of unloads can't be found out soon (unloads.h).  NULL: no memory.  Takes tdt__unwind_lock.
 */

struct tdt__rules *tdt__rules_get(void);

struct tdt__rules *tdt__rules_ref(struct tdt__rules *rules);
void tdt__rules_put(struct tdt__rules *rules);
