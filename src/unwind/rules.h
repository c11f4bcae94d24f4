/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_UNWIND_RULES_H
#define TDT_SRC_UNWIND_RULES_H

/*
 * Rules: how to get from one PC's frame to its caller's, learned from libunwind once a PC and then looked up in some
 * nanoseconds.  (x86-64.)
 *
 * Nearly every frame a compiler makes fits one sentence: "the CFA is rsp (or rbp) plus so much, the return address lies
 * just below it, and the caller's rbp lies there (or is in rbp still)".  Frames realigned with alloca need one more:
 * "the CFA lies in memory at rbp plus so much".  And hand-written assembly needs this: "the word at rsp plus so much is the
 * caller's rsp, less what was pushed then".  What fits none of these is cut, or guessed by frame pointer.
 *
 * A table holds the rules for the PCs of one table of modules (modules.h).  Entries are only added, and never change:
 * looking up takes no lock.  Whoever walks holds a reference.
 *
 *                    overlaps with   find    learn   get
 *	tdt__rules_find               yes     yes     yes     no lock
 *	tdt__rules_learn              yes     -       -       under tdt__unwind_lock
 *	tdt__rules_get                yes     -       -       under tdt__unwind_lock
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/modules.h"

enum tdt__rule_cfa {
	TDT__CFA_NONE = 0,  /* no entry */
	TDT__CFA_SP,        /* CFA = sp + cfa */
	TDT__CFA_FP,        /* CFA = fp + cfa */
	TDT__CFA_AT_FP,     /* CFA = the word at fp + cfa */
	TDT__CFA_AT_SP,     /* CFA = the word at sp + (cfa >> TDT__AT_SP_BITS), and the lowest bits of cfa */
	TDT__CFA_OUTERMOST, /* there is no caller */
	TDT__CFA_OTHER,     /* there is unwind information that no rule can say: follow.h, or guess */
	TDT__CFA_UNKNOWN    /* no unwind information: guess */
};

#define TDT__AT_SP_BITS 8

enum tdt__rule_fp {
	TDT__FP_SAME = 0, /* the caller's fp is in fp still */
	TDT__FP_AT_CFA,   /* it lies at CFA + 8 * fp */
	TDT__FP_AT_FP     /* it lies at fp + 8 * fp */
};

struct tdt__rule {
	int32_t cfa;
	int16_t fp;
	uint8_t cfa_kind;
	uint8_t fp_kind;
};

struct tdt__rule_entry {
	/* 0: empty.  Stored last, with release, which pairs with the acquire in tdt__rules_find(). */
	_Atomic uintptr_t pc;
	struct tdt__rule rule;
};

struct tdt__rules {
	atomic_uint refs;
	struct tdt__modules *modules;
	size_t used;  /* under tdt__unwind_lock */
	unsigned bits; /* 1 << bits entries */
	struct tdt__rule_entry entry[];
};

static inline size_t tdt__rules_slot(const struct tdt__rules *rules, uintptr_t pc)
{
	return (pc * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - rules->bits); /* Fibonacci hashing */
}

/* The rule for code at `pc`; its cfa_kind is TDT__CFA_NONE if it was not learned yet. */
static inline struct tdt__rule tdt__rules_find(const struct tdt__rules *rules, uintptr_t pc)
{
	size_t mask = ((size_t)1 << rules->bits) - 1;

	for (size_t slot = tdt__rules_slot(rules, pc);; slot = (slot + 1) & mask) {
		const struct tdt__rule_entry *entry = &rules->entry[slot];
		uintptr_t found = atomic_load_explicit(&entry->pc, memory_order_acquire);

		/* First, lest a corrupt stack that has us look for 0 reads a rule that is being written. */
		if (__builtin_expect(found == 0, 0)) /* the table is never full */
			return (struct tdt__rule){ 0, 0, TDT__CFA_NONE, TDT__FP_SAME };
		if (__builtin_expect(found == pc, 1))
			return entry->rule;
	}
}

/*
 * Learn the rule for code at `pc`.  Cold: takes tdt__unwind_lock, and some 7 us.  `*rules` is exchanged for the newest
 * table (the reference goes with it).  TDT__CFA_NONE: no memory to find out.
 */
struct tdt__rule tdt__rules_learn(struct tdt__rules **rules, uintptr_t pc);

/* Have the table know the module that `pc` lies in now, if there is memory; otherwise as tdt__rules_learn(). */
void tdt__rules_meet(struct tdt__rules **rules, uintptr_t pc);

/*
 * A reference to a table for what is loaded now, as far as that can be known soon (unloads.h).  NULL: no memory.  Takes
 * tdt__unwind_lock.
 */
struct tdt__rules *tdt__rules_get(void);

struct tdt__rules *tdt__rules_ref(struct tdt__rules *rules);
void tdt__rules_put(struct tdt__rules *rules);

#endif
