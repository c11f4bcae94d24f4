// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The table of rules, and learning them.  On x86-64 libunwind is asked first.  It refuses some
 * unwind information, and sometimes its answer does not fit any rule; then the information itself
 * is read (cfi.h).  On aarch64 that is always done, because libunwind's answer does not say from
 * which register the CFA is computed.
 */

#include "unwind/rules.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/refs.h"
#include "host/lasting.h"
#include "host/loaded.h"
#include "host/pages.h"
#include "host/unloads.h"
#include "unwind/cfi.h"
#include "unwind/unwinder.h"

static bool fits(intptr_t value, int32_t *narrow)
{
	*narrow = (int32_t)value;
	return *narrow == value;
}

static bool cfa_in_memory(struct tdt__rule *rule, uintptr_t expression)
{
	intptr_t at, plus;
	uint32_t number;

	if (!tdt__cfi_is_word(expression, &number, &at, &plus))
		return false;
	if (number == TDT__CFI_FP && plus == 0) {
		rule->cfa_kind = TDT__CFA_AT_FP;
		return fits(at, &rule->cfa);
	}
	rule->cfa_kind = TDT__CFA_AT_SP;
	return number == TDT__CFI_SP && plus >= 0 && plus < 1 << TDT__AT_SP_BITS &&
	       fits(at * (1 << TDT__AT_SP_BITS) + plus, &rule->cfa);
}

static bool cfa_by_row(struct tdt__rule *rule, const struct tdt__cfi_place *cfa)
{
	if (cfa->kind == TDT__CFI_VALUE)
		return cfa_in_memory(rule, (uintptr_t)cfa->n);
	rule->cfa_kind = cfa->number == TDT__CFI_SP ? TDT__CFA_SP : TDT__CFA_FP;
	return cfa->kind == TDT__CFI_PLUS &&
	       (cfa->number == TDT__CFI_SP || cfa->number == TDT__CFI_FP) &&
	       fits(cfa->n, &rule->cfa);
}

#if defined(__x86_64__)
static bool fp_by_row(struct tdt__rule *rule, const struct tdt__cfi_place *fp)
{
	intptr_t offset = fp->n;
	uint32_t number;

	switch (fp->kind) {
	case TDT__CFI_SAME:
	case TDT__CFI_LOST: /* often no walk needs the caller's fp */
		return true;
	case TDT__CFI_AT_CFA:
		rule->fp_kind = TDT__FP_AT_CFA;
		break;
	case TDT__CFI_AT:
		rule->fp_kind = TDT__FP_AT_FP;
		if (!tdt__cfi_is_sum((uintptr_t)fp->n, &number, &offset) || number != TDT__CFI_FP)
			return false;
		break;
	default:
		return false;
	}
	rule->fp = (int16_t)(offset / 8);
	return rule->fp * (intptr_t)8 == offset;
}

/* The return address lies just below the CFA. */
static bool saved_by_row(struct tdt__rule *rule, const struct tdt__cfi_row *row)
{
	const struct tdt__cfi_place *pc = &row->place[TDT__CFI_PC];

	return fp_by_row(rule, &row->place[TDT__CFI_FP]) && pc->kind == TDT__CFI_AT_CFA &&
	       pc->n == -8;
}
#else
/* The return address is in its register, or near the caller's fp: see enum tdt__rule_fp. */
static bool saved_by_row(struct tdt__rule *rule, const struct tdt__cfi_row *row)
{
	const struct tdt__cfi_place *fp = &row->place[TDT__CFI_FP], *pc = &row->place[TDT__CFI_PC];
	intptr_t at = pc->n - 8, above;

	if (fp->kind == TDT__CFI_AT_CFA) {
		rule->fp_kind = TDT__FP_SAVED;
		at = fp->n;
	} else if (fp->kind != TDT__CFI_SAME && fp->kind != TDT__CFI_LOST) {
		return false;
	}
	if (pc->kind == TDT__CFI_SAME)
		return rule->fp_kind == TDT__FP_SAME;
	above = (pc->n - at) / 8;
	at += rule->cfa;
	rule->fp = (int16_t)(at / 8);
	rule->fp_kind |= (uint8_t)((unsigned)above << 2);
	return pc->kind == TDT__CFI_AT_CFA && pc->n % 8 == 0 && rule->fp * (intptr_t)8 == at &&
	       above != 0 && TDT__RULE_PC(*rule) == above;
}
#endif

static struct tdt__rule read_information(uintptr_t pc)
{
	/* Too large for the stack of a fiber.  Protected by tdt__unwind_lock. */
	static struct tdt__cfi_row row;
	struct tdt__rule rule = { 0, 0, TDT__CFA_UNKNOWN, TDT__FP_SAME };
	int error = tdt__cfi_find(pc, &row);

	if (error == -ENOENT)
		return rule;
	if (error == 0 && row.place[TDT__CFI_PC].kind == TDT__CFI_LOST)
		return (struct tdt__rule){ 0, 0, TDT__CFA_OUTERMOST, TDT__FP_SAME };
	if (error == 0 && !row.interrupted && cfa_by_row(&rule, &row.cfa) &&
	    saved_by_row(&rule, &row))
		return rule;
	return (struct tdt__rule){ 0, 0, TDT__CFA_OTHER, TDT__FP_SAME };
}

/*
 * At the return instruction of a function whose frame gcc realigns, the information still says that
 * the caller's rbp is saved where rbp points to.  But rbp has been restored, and only the return
 * address is left of the frame.
 */
static struct tdt__rule mend(struct tdt__rule rule)
{
	if (rule.cfa_kind == TDT__CFA_SP && rule.cfa == 8 && rule.fp_kind == TDT__FP_AT_FP)
		return (struct tdt__rule){ 8, 0, TDT__CFA_SP, TDT__FP_SAME };
	return rule;
}

#define FIRST_BITS 10

/* The newest table.  The variable holds a reference.  Protected by tdt__unwind_lock. */
static struct tdt__rules *current;

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

	/* Relaxed: all stores to `pc` are made with tdt__unwind_lock held, as it is here. */
	while (atomic_load_explicit(&rules->entry[slot].pc, memory_order_relaxed) != 0)
		slot = (slot + 1) & mask;
	rules->entry[slot].rule = rule;
	/*
	 * Release: a thread that finds the pc finds the rule too.  Pairs with the acquire in
	 * tdt__rules_find().
	 */
	atomic_store_explicit(&rules->entry[slot].pc, pc, memory_order_release);
	rules->used++;
}

static bool is_lasting(const struct tdt__rules *rules, uintptr_t pc)
{
	const struct tdt__module *module = tdt__modules_find(rules->modules, pc);

	return module != NULL && module->lasting;
}

/* Copy all rules, or only those for code in lasting modules. */
static void rules_copy(struct tdt__rules *to, const struct tdt__rules *from, bool lasting_only)
{
	for (size_t i = 0; i < (size_t)1 << from->bits; i++) {
		uintptr_t pc = atomic_load_explicit(&from->entry[i].pc, memory_order_relaxed);

		if (pc != 0 && (!lasting_only || is_lasting(from, pc)))
			rules_insert(to, pc, from->entry[i].rule);
	}
}

static void replace_current(struct tdt__rules *rules)
{
	tdt__rules_put(current);
	current = rules;
}

/* Make the first table, unless there is one.  False: no memory. */
static bool make_first_rules(void)
{
	struct tdt__modules *none;

	if (!tdt__libunwind_begin())
		return false;
	if (current != NULL)
		return true;
	/* This call takes a while, so it is made here, and not in the poll that will be walked. */
	tdt__is_lasting(NULL);
	none = tdt__modules_new(0);
	if (none == NULL)
		return false;
	current = rules_new(FIRST_BITS, none);
	tdt__modules_unref(none);
	return current != NULL;
}

/*
 * Replace `current` by a table of rules for these modules; takes over the caller's reference.  If
 * `modules` lacks modules that `current` has, only the rules for lasting modules are kept.
 * False: no memory.
 */
static bool use(struct tdt__modules *modules)
{
	bool lost = tdt__modules_lost(current->modules, modules);
	struct tdt__rules *rules = rules_new(current->bits, modules);

	tdt__modules_unref(modules);
	if (rules == NULL)
		return false;
	rules_copy(rules, current, lost);
	if (lost)
		tdt__pages_forget();
	replace_current(rules);
	return true;
}

/* Bring `current` up to date if more modules were unloaded since.  False: no memory. */
static bool renew_rules(uint64_t unloads)
{
	struct tdt__modules *modules = current->modules;

	if (unloads <= modules->unloads)
		return true;
	tdt__modules_ref(modules);
	if (!tdt__modules_renew(&modules, unloads)) {
		tdt__modules_unref(modules);
		return false;
	}
	return use(modules);
}

/*
 * Make sure that `current` knows the module that `pc` lies in now.  Returns 0, -ENOENT (`pc` lies
 * in no module) or -ENOMEM.
 */
static int meet_by_rules(uintptr_t pc)
{
	struct tdt__modules *modules = tdt__modules_ref(current->modules);
	int error = tdt__loaded_meet(&modules, pc);

	if (error != 0 || modules == current->modules) {
		tdt__modules_unref(modules);
		return error;
	}
	return use(modules) ? 0 : -ENOMEM;
}

/*
 * Keep the table at most half full, so that a look-up ends soon.  False: the table is half full,
 * and there is no memory for a larger one.
 */
static bool make_rule_room(void)
{
	struct tdt__rules *rules;

	if (current->used < (size_t)1 << (current->bits - 1))
		return true;
	rules = rules_new(current->bits + 1, current->modules);
	if (rules == NULL)
		return false;
	rules_copy(rules, current, false);
	replace_current(rules);
	return true;
}

static struct tdt__rule find_or_query(uintptr_t pc)
{
	struct tdt__rule rule = tdt__rules_find(current, pc);
	int error;

	if (rule.cfa_kind != TDT__CFA_NONE)
		return rule;
	error = meet_by_rules(pc);
	if (error == -ENOMEM)
		return rule;
	/*
	 * The table has no entry for a PC outside all modules (code made at run time): other code
	 * may be there later.
	 */
	if (error != 0)
		return (struct tdt__rule){ 0, 0, TDT__CFA_UNKNOWN, TDT__FP_SAME };
	rule = tdt__rule_by_libunwind(pc);
	if (rule.cfa_kind == TDT__CFA_UNKNOWN)
		rule = read_information(pc);
	rule = mend(rule);
	if (make_rule_room())
		rules_insert(current, pc, rule);
	return rule;
}

/* Exchange the reference `*rules` for one to the newest table. */
static void adopt_rules(struct tdt__rules **rules)
{
	if (*rules == current)
		return;
	tdt__rules_put(*rules);
	*rules = tdt__rules_ref(current);
}

struct tdt__rule tdt__rules_learn(struct tdt__rules **rules, uintptr_t pc)
{
	struct tdt__rule rule;

	pthread_mutex_lock(&tdt__unwind_lock);
	rule = find_or_query(pc);
	adopt_rules(rules);
	pthread_mutex_unlock(&tdt__unwind_lock);
	return rule;
}

void tdt__rules_meet(struct tdt__rules **rules, uintptr_t pc)
{
	pthread_mutex_lock(&tdt__unwind_lock);
	meet_by_rules(pc);
	adopt_rules(rules);
	pthread_mutex_unlock(&tdt__unwind_lock);
}

/*
 * Whether the number of unloads is needed: the first time, and if the table has a module that may
 * be unloaded.
 */
static bool rules_may_have_changed(void)
{
	bool may;

	pthread_mutex_lock(&tdt__unwind_lock);
	may = current == NULL || !current->modules->lasting;
	pthread_mutex_unlock(&tdt__unwind_lock);
	return may;
}

struct tdt__rules *tdt__rules_get(void)
{
	struct tdt__rules *rules = NULL;
	uint64_t unloads = 0; /* a lower bound; with 0 the table stays as it is */

	/* This call waits for the loader, so the lock must not be held. */
	if (rules_may_have_changed())
		tdt__unloads_now(&unloads, tdt__clock() + TDT__UNLOADS_SOON);
	pthread_mutex_lock(&tdt__unwind_lock);
	if (make_first_rules() && renew_rules(unloads))
		rules = tdt__rules_ref(current);
	pthread_mutex_unlock(&tdt__unwind_lock);
	return rules;
}

struct tdt__rules *tdt__rules_ref(struct tdt__rules *rules)
{
	atomic_fetch_add_explicit(&rules->refs, 1, memory_order_relaxed);
	return rules;
}

void tdt__rules_put(struct tdt__rules *rules)
{
	if (rules == NULL || !tdt__refs_drop(&rules->refs))
		return;
	tdt__modules_unref(rules->modules);
	free(rules);
}
