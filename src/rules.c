// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Learning rules from libunwind.
 *
 * libunwind steps one frame of a made-up context: rip is the PC in question, rsp, rbp and the others point to zones of a
 * reserved, read-only stretch of memory, far from each other.  Where the CFA and the saved registers then are said to
 * be, tells what they are computed from.  Nothing of the real stack is read, so nothing can fault.  Round rbp's target
 * the memory holds words that point, each to a place of its own, into one more zone: a CFA that lies there was read from
 * memory, and tells from where.
 *
 * libunwind is never asked to step a PC without unwind information.  It would guess, and validate addresses by writing
 * to a pipe of its own, whose descriptors the host may have closed, and got again for a file or a socket.
 */

#include <config.h>

#include "rules.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "fork.h"

/* The zones, each with its target in the middle: frames of up to ZONE / 2 bytes can be learned. */
#define ZONE ((uintptr_t)4 << 20)
enum zone { ZONE_SP, ZONE_FP, ZONE_WORDS, ZONE_OTHER, ZONES };

/* Words from FP - WORDS_REACH to FP + WORDS_REACH point into ZONE_WORDS, WORDS_SPREAD bytes apart for each byte. */
#define WORDS_REACH 1024
#define WORDS_SPREAD 256

static uintptr_t zones; /* under tdt__unwind_lock; 0: not made */

static uintptr_t target(enum zone zone)
{
	return zones + zone * ZONE + ZONE / 2;
}

static bool in_zone(enum zone zone, uintptr_t address)
{
	return address - (zones + zone * ZONE) < ZONE;
}

static bool make_zones(void)
{
	uintptr_t page = 4096, first, last;
	void *memory;

	if (zones != 0)
		return true;
	memory = mmap(NULL, ZONES * ZONE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	zones = (uintptr_t)memory;
	first = (target(ZONE_FP) - WORDS_REACH) & ~(page - 1);
	last = (target(ZONE_FP) + WORDS_REACH + page) & ~(page - 1);
	if (mprotect((void *)first, last - first, PROT_READ | PROT_WRITE) != 0) {
		munmap(memory, ZONES * ZONE);
		zones = 0;
		return false;
	}
	for (intptr_t at = -WORDS_REACH; at < WORDS_REACH; at += 8)
		*(uintptr_t *)(target(ZONE_FP) + at) = target(ZONE_WORDS) + at * WORDS_SPREAD;
	mprotect((void *)first, last - first, PROT_READ);
	return true;
}

static bool rule_cfa(struct tdt__rule *rule, uintptr_t cfa)
{
	intptr_t at;

	if (in_zone(ZONE_SP, cfa)) {
		rule->cfa_kind = TDT__CFA_SP;
		rule->cfa = (int32_t)(cfa - target(ZONE_SP));
		return true;
	}
	if (in_zone(ZONE_FP, cfa)) {
		rule->cfa_kind = TDT__CFA_FP;
		rule->cfa = (int32_t)(cfa - target(ZONE_FP));
		return true;
	}
	at = (intptr_t)(cfa - target(ZONE_WORDS));
	if (in_zone(ZONE_WORDS, cfa) && at % (8 * WORDS_SPREAD) == 0) {
		rule->cfa_kind = TDT__CFA_AT_FP;
		rule->cfa = (int32_t)(at / WORDS_SPREAD);
		return true;
	}
	return false;
}

static bool rule_fp(struct tdt__rule *rule, uintptr_t cfa, const unw_save_loc_t *saved, const void *register_itself)
{
	intptr_t at;

	if (saved->type != UNW_SLT_MEMORY || saved->u.addr == (uintptr_t)register_itself) {
		rule->fp_kind = TDT__FP_SAME;
		return true;
	}
	if (rule->cfa_kind == TDT__CFA_AT_FP) {
		rule->fp_kind = TDT__FP_AT_FP;
		at = (intptr_t)(saved->u.addr - target(ZONE_FP));
	} else {
		rule->fp_kind = TDT__FP_AT_CFA;
		at = (intptr_t)(saved->u.addr - cfa);
	}
	rule->fp = (int16_t)(at / 8);
	return (intptr_t)rule->fp * 8 == at;
}

/* What libunwind makes of code at `pc`. */
static struct tdt__rule ask_libunwind(uintptr_t pc)
{
	const struct tdt__rule unknown = { 0, 0, TDT__CFA_UNKNOWN, TDT__FP_SAME };
	struct tdt__rule rule = unknown;
	unw_context_t context;
	greg_t *registers = context.uc_mcontext.gregs;
	unw_cursor_t cursor;
	unw_proc_info_t info;
	unw_save_loc_t saved;
	unw_word_t cfa;

	memset(&context, 0, sizeof context);
	for (int i = 0; i < NGREG; i++)
		registers[i] = (greg_t)target(ZONE_OTHER);
	registers[REG_RIP] = (greg_t)pc;
	registers[REG_RSP] = (greg_t)target(ZONE_SP);
	registers[REG_RBP] = (greg_t)target(ZONE_FP);

	/* A signal frame's PC is looked up as it is, not minus one. */
	if (unw_init_local2(&cursor, &context, UNW_INIT_SIGNAL_FRAME) < 0)
		return unknown;
	/* For a PC it knows nothing of it gives success too, and a function of one byte. */
	if (unw_get_proc_info(&cursor, &info) < 0 || info.end_ip - info.start_ip <= 1)
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
	    !rule_fp(&rule, cfa, &saved, &registers[REG_RBP]))
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

/* Make `current` fit what is loaded now.  False: no memory, and it is as it was. */
static bool renew(void)
{
	struct tdt__modules *modules;
	struct tdt__rules *rules;
	uint64_t loads, unloads;
	bool same_code;

	tdt__modules_now(&loads, &unloads);
	if (current != NULL && current->modules->loads == loads && current->modules->unloads == unloads)
		return true;
	if (!make_zones())
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
	else
		unw_flush_cache(unw_local_addr_space, 0, 0);
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

static struct tdt__rules *rules_ref(struct tdt__rules *rules)
{
	atomic_fetch_add_explicit(&rules->refs, 1, memory_order_relaxed);
	return rules;
}

struct tdt__rule tdt__rules_learn(struct tdt__rules **rules, uintptr_t pc)
{
	struct tdt__rule rule = { 0, 0, TDT__CFA_UNKNOWN, TDT__FP_SAME };

	pthread_mutex_lock(&tdt__unwind_lock);
	/* A PC outside every module (code made at run time) is never kept: it may mean something else tomorrow. */
	if (renew() && tdt__modules_find(current->modules, pc) != NULL) {
		struct tdt__rule known = tdt__rules_find(current, pc);

		if (known.cfa_kind != TDT__CFA_NONE) {
			rule = known;
		} else {
			rule = ask_libunwind(pc);
			if (make_room())
				rules_insert(current, pc, rule);
		}
	}
	if (*rules != current) {
		tdt__rules_put(*rules);
		*rules = rules_ref(current);
	}
	pthread_mutex_unlock(&tdt__unwind_lock);
	return rule;
}

struct tdt__rules *tdt__rules_get(void)
{
	struct tdt__rules *rules = NULL;

	pthread_mutex_lock(&tdt__unwind_lock);
	if (renew())
		rules = rules_ref(current);
	pthread_mutex_unlock(&tdt__unwind_lock);
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
