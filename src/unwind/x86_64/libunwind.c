// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Learning rules from libunwind.
 *
 * libunwind steps one frame of a made-up stack (unwinder.h).  There rip is the PC in question; rsp,
 * rbp and all other registers have values that no address has, far from each other; and each word
 * of the stack holds one more such value.  libunwind then says where the CFA is and where the saved
 * registers are.  These values reveal what they are computed from, for frames of any size.  Nothing
 * of the real stack is read.
 */

#include <errno.h>

#include "unwind/rules.h"
#include "unwind/unwinder.h"

/*
 * No user address is as high as these values.  The offset of a rule has 32 bits, so a value and an
 * offset give a number near that value.  The word at FP + n holds WORDS + n * WORDS_SPREAD.
 */
#define MADE_UP ((uintptr_t)1 << 60)
#define OUR_SP (1 * MADE_UP)
#define OUR_FP (2 * MADE_UP)
#define WORDS (4 * MADE_UP)
#define OTHER (6 * MADE_UP)
#define WORDS_SPREAD ((intptr_t)1 << 28)

/* Unwind information lies below: above this address the kernel maps nothing unless requested. */
#define HIGHEST ((uintptr_t)1 << 47)

/* Whether `address` is `base` + `*offset`, where the offset is one that a rule can have. */
static bool is_near(uintptr_t address, uintptr_t base, int32_t *offset)
{
	intptr_t distance = (intptr_t)(address - base);

	*offset = (int32_t)distance;
	return *offset == distance;
}

static int access_mem_of_rule(unw_addr_space_t space, unw_word_t address, unw_word_t *value,
			      int write, void *data)
{
	int32_t offset;

	(void)space;
	(void)data;
	if (write)
		return -UNW_EINVAL;
	if (address < HIGHEST)
		return tdt__unwinder_word(address, value);
	if (is_near(address, OUR_FP, &offset))
		*value = WORDS + (uintptr_t)(offset * WORDS_SPREAD);
	else
		*value = OTHER;
	return 0;
}

static int access_reg_of_rule(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value,
			      int write, void *data)
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
		*value = OUR_SP;
		break;
	case UNW_X86_64_RBP:
		*value = OUR_FP;
		break;
	default:
		*value = OTHER;
	}
	return 0;
}

static unw_addr_space_t space; /* under tdt__unwind_lock; NULL: not made */

bool tdt__libunwind_begin(void)
{
	int saved = errno;

	/* No cache: each PC is looked up once, and modules are loaded and unloaded. */
	if (space == NULL)
		space = tdt__unwinder_new(access_mem_of_rule, access_reg_of_rule, UNW_CACHE_NONE);
	if (space == NULL)
		return false;
	errno = saved;
	return true;
}

static bool rule_cfa(struct tdt__rule *rule, uintptr_t cfa)
{
	intptr_t from_words = (intptr_t)(cfa - WORDS);

	if (is_near(cfa, OUR_SP, &rule->cfa))
		rule->cfa_kind = TDT__CFA_SP;
	else if (is_near(cfa, OUR_FP, &rule->cfa))
		rule->cfa_kind = TDT__CFA_FP;
	else if (from_words % WORDS_SPREAD == 0 &&
		 is_near((uintptr_t)(from_words / WORDS_SPREAD), 0, &rule->cfa))
		rule->cfa_kind = TDT__CFA_AT_FP;
	else
		return false;
	return true;
}

static bool rule_fp(struct tdt__rule *rule, uintptr_t cfa, const unw_save_loc_t *saved)
{
	int32_t offset;

	switch (saved->type) {
	case UNW_SLT_NONE: /* the caller's fp is lost, but often no walk needs it */
		return true;
	case UNW_SLT_REG:
		return saved->u.regnum == UNW_X86_64_RBP;
	case UNW_SLT_MEMORY:
		break;
	}
	if (is_near(saved->u.addr, cfa, &offset))
		rule->fp_kind = TDT__FP_AT_CFA;
	else if (is_near(saved->u.addr, OUR_FP, &offset))
		rule->fp_kind = TDT__FP_AT_FP;
	else
		return false;
	rule->fp = (int16_t)(offset / 8);
	return rule->fp * 8 == offset;
}

struct tdt__rule tdt__rule_by_libunwind(uintptr_t pc)
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
	if (unw_get_reg(&cursor, UNW_REG_SP, &cfa) < 0 || saved.type != UNW_SLT_MEMORY ||
	    saved.u.addr != cfa - 8)
		return unknown;
	if (!rule_cfa(&rule, cfa) || unw_get_save_loc(&cursor, UNW_X86_64_RBP, &saved) < 0 ||
	    !rule_fp(&rule, cfa, &saved))
		return unknown;
	return rule;
}
