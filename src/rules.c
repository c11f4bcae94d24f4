// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Learning rules from libunwind.
 *
 * libunwind steps one frame of a made-up stack (unwinder.h): rip is the PC in question; rsp, rbp and all others have
 * values that no address has, far from each other; and each word of the stack holds one more such value.  Where the CFA
 * and the saved registers are then said to be, tells what they are computed from, for frames of any size.  Nothing of
 * the real stack is read.
 */

#include <config.h>

#include "rules.h"

#include <stdlib.h>
#include <string.h>

#include "fork.h"
#include "unwinder.h"

/*
 * No user address is as high.  Round each value lie the offsets that a rule can have, 32 bits of them; the words at FP
 * plus so much are as far from WORDS as a multiple of 28 bits.
 */
#define MADE_UP ((uintptr_t)1 << 60)
#define SP (1 * MADE_UP)
#define FP (2 * MADE_UP)
#define WORDS (4 * MADE_UP)
#define OTHER (6 * MADE_UP)
#define WORDS_SPREAD ((intptr_t)1 << 28)

/* Where unwind information can be: the kernel maps nothing below (vm.mmap_min_addr), nor, unless asked to, above. */
#define LOWEST ((uintptr_t)1 << 16)
#define HIGHEST ((uintptr_t)1 << 47)

/* Whether `address` is `base` and an offset that a rule can have. */
static bool is_near(uintptr_t address, uintptr_t base, int32_t *offset)
{
	intptr_t distance = (intptr_t)(address - base);

	*offset = (int32_t)distance;
	return *offset == distance;
}

static int access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write, void *data)
{
	int32_t offset;

	(void)space;
	(void)data;
	if (write || address < LOWEST)
		return -UNW_EINVAL;
	if (address < HIGHEST)
		memcpy(value, (const void *)address, sizeof *value);
	else if (is_near(address, FP, &offset))
		*value = WORDS + (uintptr_t)(offset * WORDS_SPREAD);
	else
		*value = OTHER;
	return 0;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value, int write, void *data)
{
	const uintptr_t *pc = data;

	(void)space;
	if (write)
		return -UNW_EREADONLYREG;
	switch (number) {
	case UNW_X86_64_RIP:
		*value = *pc;
		break;
	case UNW_X86_64_RSP:
		*value = SP;
		break;
	case UNW_X86_64_RBP:
		*value = FP;
		break;
	default:
		*value = OTHER;
	}
	return 0;
}

static unw_addr_space_t space; /* under tdt__unwind_lock; NULL: not made */

static bool make_space(void)
{
	/* Each PC is asked for once, and modules come and go: there is nothing to be cached. */
	if (space == NULL)
		space = tdt__unwinder_new(access_mem, access_reg, UNW_CACHE_NONE);
	return space != NULL;
}

static bool rule_cfa(struct tdt__rule *rule, uintptr_t cfa)
{
	intptr_t from_words = (intptr_t)(cfa - WORDS);

	if (is_near(cfa, SP, &rule->cfa))
		rule->cfa_kind = TDT__CFA_SP;
	else if (is_near(cfa, FP, &rule->cfa))
		rule->cfa_kind = TDT__CFA_FP;
	else if (from_words % WORDS_SPREAD == 0 && is_near((uintptr_t)(from_words / WORDS_SPREAD), 0, &rule->cfa))
		rule->cfa_kind = TDT__CFA_AT_FP;
	else
		return false;
	return true;
}

static bool rule_fp(struct tdt__rule *rule, uintptr_t cfa, const unw_save_loc_t *saved)
{
	int32_t offset;

	switch (saved->type) {
	case UNW_SLT_NONE: /* lost, but it may well not be needed */
		return true;
	case UNW_SLT_REG:
		return saved->u.regnum == UNW_X86_64_RBP;
	case UNW_SLT_MEMORY:
		break;
	}
	if (is_near(saved->u.addr, cfa, &offset))
		rule->fp_kind = TDT__FP_AT_CFA;
	else if (is_near(saved->u.addr, FP, &offset))
		rule->fp_kind = TDT__FP_AT_FP;
	else
		return false;
	rule->fp = (int16_t)(offset / 8);
	return rule->fp * 8 == offset;
}

/* What libunwind makes of code at `pc`. */
static struct tdt__rule ask_libunwind(uintptr_t pc)
{
	const struct tdt__rule unknown = { 0, 0, TDT__CFA_UNKNOWN, TDT__FP_SAME };
	struct tdt__rule rule = unknown;
	unw_cursor_t cursor;
	unw_save_loc_t saved;
	unw_word_t cfa;

	if (unw_init_remote(&cursor, space, &pc) < 0 || !tdt__unwinder_knows(&cursor))
		return unknown;
	if (unw_step(&cursor) < 0 || unw_get_save_loc(&cursor, UNW_X86_64_RIP, &saved) < 0)
		return unknown;
	if (saved.type == UNW_SLT_NONE) {
		rule.cfa_kind = TDT__CFA_OUTERMOST;
		return rule;
	}
	if (unw_get_reg(&cursor, UNW_REG_SP, &cfa) < 0 || saved.type != UNW_SLT_MEMORY || saved.u.addr != cfa - 8)
		return unknown;
	if (!rule_cfa(&rule, cfa) || unw_get_save_loc(&cursor, UNW_X86_64_RBP, &saved) < 0 ||
	    !rule_fp(&rule, cfa, &saved))
		return unknown;
	return rule;
}

/* --- The table ---------------------------------------------------------- */

#define FIRST_BITS 10

static struct tdt__rules *current; /* with a reference of its own; under tdt__unwind_lock */

static struct tdt__rules *rules_new(unsigned bits, struct tdt__modules *modules)
{
	struct tdt__rules *rules = calloc(1, sizeof *rules + (sizeof rules->entry[0] << bits));

	if (rules == NULL)
		return NULL;
	atomic_init(&rules->refs, 1);
	rules->bits = bits;
	rules->modules = tdt__modules_ref(modules);
	return rules;
}

static void rules_insert(struct tdt__rules *rules, uintptr_t pc, struct tdt__rule rule)
{
	size_t mask = ((size_t)1 << rules->bits) - 1, slot = tdt__rules_slot(rules, pc);

	/* Only writers store, and they hold the lock. */
	while (atomic_load_explicit(&rules->entry[slot].pc, memory_order_relaxed) != 0)
		slot = (slot + 1) & mask;
	rules->entry[slot].rule = rule;
	/* Release: who finds the pc finds the rule.  Pairs with the acquire in tdt__rules_find(). */
	atomic_store_explicit(&rules->entry[slot].pc, pc, memory_order_release);
	rules->used++;
}

static void rules_copy(struct tdt__rules *to, const struct tdt__rules *from)
{
	for (size_t i = 0; i < (size_t)1 << from->bits; i++) {
		uintptr_t pc = atomic_load_explicit(&from->entry[i].pc, memory_order_relaxed);

		if (pc != 0)
			rules_insert(to, pc, from->entry[i].rule);
	}
}

static void replace_current(struct tdt__rules *rules)
{
	tdt__rules_put(current);
	current = rules;
}

static bool is_current(void)
{
	uint64_t loads, unloads;

	tdt__modules_now(&loads, &unloads);
	return current != NULL && current->modules->loads == loads && current->modules->unloads == unloads;
}

/* Make `current` fit what is loaded now.  False: no memory, and it is as it was. */
static bool renew(void)
{
	struct tdt__modules *modules;
	struct tdt__rules *rules;
	bool same_code;

	if (is_current())
		return true;
	if (!make_space())
		return false;
	modules = tdt__modules_take();
	if (modules == NULL)
		return false;
	/* What was learned stays true until a module goes: another may then take its addresses. */
	same_code = current != NULL && current->modules->unloads == modules->unloads;
	rules = rules_new(same_code ? current->bits : FIRST_BITS, modules);
	tdt__modules_unref(modules);
	if (rules == NULL)
		return false;
	if (same_code)
		rules_copy(rules, current);
	replace_current(rules);
	return true;
}

/* Keep the table at most half full, so that a look-up ends soon.  False: it is full enough, and there is no memory. */
static bool make_room(void)
{
	struct tdt__rules *rules;

	if (current->used < (size_t)1 << (current->bits - 1))
		return true;
	rules = rules_new(current->bits + 1, current->modules);
	if (rules == NULL)
		return false;
	rules_copy(rules, current);
	replace_current(rules);
	return true;
}

static struct tdt__rule find_or_ask(uintptr_t pc)
{
	struct tdt__rule rule = tdt__rules_find(current, pc);

	if (rule.cfa_kind != TDT__CFA_NONE)
		return rule;
	/* A PC outside every module (code made at run time) is never kept: it may mean something else tomorrow. */
	if (tdt__modules_find(current->modules, pc) == NULL)
		return (struct tdt__rule){ 0, 0, TDT__CFA_UNKNOWN, TDT__FP_SAME };
	rule = ask_libunwind(pc);
	if (make_room())
		rules_insert(current, pc, rule);
	return rule;
}

struct tdt__rule tdt__rules_learn(struct tdt__rules **rules, uintptr_t pc)
{
	struct tdt__rule rule = { 0, 0, TDT__CFA_NONE, TDT__FP_SAME };

	pthread_mutex_lock(&tdt__unwind_lock);
	if (renew()) {
		rule = find_or_ask(pc);
		if (*rules != current) {
			tdt__rules_put(*rules);
			*rules = tdt__rules_ref(current);
		}
	}
	pthread_mutex_unlock(&tdt__unwind_lock);
	return rule;
}

struct tdt__rules *tdt__rules_get(void)
{
	struct tdt__rules *rules = NULL;

	pthread_mutex_lock(&tdt__unwind_lock);
	if (renew())
		rules = tdt__rules_ref(current);
	pthread_mutex_unlock(&tdt__unwind_lock);
	return rules;
}

bool tdt__rules_current(const struct tdt__rules *rules)
{
	bool is;

	pthread_mutex_lock(&tdt__unwind_lock);
	is = rules == current && is_current();
	pthread_mutex_unlock(&tdt__unwind_lock);
	return is;
}

struct tdt__rules *tdt__rules_ref(struct tdt__rules *rules)
{
	atomic_fetch_add_explicit(&rules->refs, 1, memory_order_relaxed);
	return rules;
}

void tdt__rules_put(struct tdt__rules *rules)
{
	/* Release what this holder did; acquire (by the last) what all others did: pairs with itself. */
	if (rules == NULL || atomic_fetch_sub_explicit(&rules->refs, 1, memory_order_acq_rel) != 1)
		return;
	tdt__modules_unref(rules->modules);
	free(rules);
}
