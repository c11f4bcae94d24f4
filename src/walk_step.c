// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The walk by libunwind's cursor.  Slow (some 500 ns a frame, and under a lock), and less safe than rules: libunwind
 * reads the stack where the unwind information says, before the result can be checked.
 */

#include <config.h>

#include "walk_step.h"

#include <string.h>

#include "fork.h"
#include "registers.h"

#if defined(__x86_64__)
#define REG_FP UNW_X86_64_RBP
#define FP_IS_CHAIN false /* rbp may hold anything */
static void set_context(unw_context_t *context, struct tdt__registers from)
{
	context->uc_mcontext.gregs[REG_RIP] = (greg_t)from.pc;
	context->uc_mcontext.gregs[REG_RSP] = (greg_t)from.sp;
	context->uc_mcontext.gregs[REG_RBP] = (greg_t)from.fp;
}
#elif defined(__aarch64__)
#define REG_FP UNW_AARCH64_X29
#define FP_IS_CHAIN true /* the procedure call standard asks that x29 always be a frame record's address */
static void set_context(unw_context_t *context, struct tdt__registers from)
{
	context->uc_mcontext.pc = from.pc;
	context->uc_mcontext.sp = from.sp;
	context->uc_mcontext.regs[29] = from.fp;
}
#else
#error "tdt: this architecture is not known; add its registers here"
#endif

bool tdt__walk_step_init(struct tdt__walk_step *walk)
{
	pthread_mutex_lock(&tdt__unwind_lock);
	walk->modules = tdt__modules_take();
	unw_flush_cache(unw_local_addr_space, 0, 0); /* modules may have come and gone */
	pthread_mutex_unlock(&tdt__unwind_lock);
	return walk->modules != NULL;
}

void tdt__walk_step_fini(struct tdt__walk_step *walk)
{
	tdt__modules_unref(walk->modules);
}

void tdt__walk_step_start(struct tdt__walk_step *walk, struct tdt__registers from, uintptr_t top)
{
	memset(&walk->context, 0, sizeof walk->context);
	/* Minus one, and below as a signal frame's: a return address is looked up at the call. */
	from.pc--;
	set_context(&walk->context, from);
	walk->sp = from.sp;
	walk->top = top;
	walk->first = true;
}

static enum tdt__walked cut(struct tdt__walk_step *walk, enum tdt_cut why)
{
	walk->cut = why;
	return TDT__WALK_CUT;
}

/* A module may have been loaded since the walk was made ready; without memory its PCs get no names. */
static void know_module(struct tdt__walk_step *walk, uintptr_t pc)
{
	struct tdt__modules *modules;
	uint64_t loads, unloads;

	if (tdt__modules_find(walk->modules, pc - 1) != NULL)
		return;
	tdt__modules_now(&loads, &unloads);
	if (loads == walk->modules->loads)
		return;
	modules = tdt__modules_take();
	if (modules == NULL)
		return;
	tdt__modules_unref(walk->modules);
	walk->modules = modules;
}

static enum tdt__walked step(struct tdt__walk_step *walk, struct tdt__frame *frame)
{
	unw_cursor_t *cursor = &walk->cursor;
	unw_proc_info_t info;
	unw_word_t pc, sp, fp;
	int more;

	if (walk->first && unw_init_local2(cursor, &walk->context, UNW_INIT_SIGNAL_FRAME) < 0)
		return cut(walk, TDT_CUT_NO_INFO);
	if (unw_get_reg(cursor, UNW_REG_IP, &pc) < 0 || unw_get_reg(cursor, REG_FP, &fp) < 0)
		return cut(walk, TDT_CUT_NO_INFO);
	if (walk->first)
		pc++;
	walk->first = false;
	know_module(walk, pc);
	*frame = (struct tdt__frame){ .pc = pc, .cfa = walk->sp, .fp = fp };
	if (FP_IS_CHAIN && (fp < walk->sp || fp > walk->top))
		return cut(walk, TDT_CUT_CORRUPT);
	/* Never step a PC without unwind information: libunwind would guess, and validate addresses by a pipe. */
	if (unw_get_proc_info(cursor, &info) < 0 || info.end_ip - info.start_ip <= 1)
		return cut(walk, TDT_CUT_NO_INFO);
	more = unw_step(cursor);
	if (more < 0)
		return cut(walk, TDT_CUT_CORRUPT);
	if (unw_get_reg(cursor, UNW_REG_SP, &sp) < 0 || sp <= walk->sp)
		return cut(walk, more == 0 ? TDT_CUT_STACK : TDT_CUT_CORRUPT);
	if (sp > walk->top && !tdt__is_top(sp, walk->top))
		return cut(walk, TDT_CUT_CORRUPT);
	frame->cfa = sp;
	walk->sp = sp;
	if (tdt__is_top(sp, walk->top))
		return TDT__WALK_TOP;
	if (more == 0)
		return cut(walk, TDT_CUT_STACK);
	return TDT__WALK_FRAME;
}

enum tdt__walked tdt__walk_step_next(struct tdt__walk_step *walk, struct tdt__frame *frame)
{
	enum tdt__walked walked;

	pthread_mutex_lock(&tdt__unwind_lock);
	walked = step(walk, frame);
	pthread_mutex_unlock(&tdt__unwind_lock);
	return walked;
}
