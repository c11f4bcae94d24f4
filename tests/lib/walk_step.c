// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The walk by libunwind's cursor.  It is slow, and takes a lock for each step: a frame takes some
 * 1 us if its PC is known, and 6 us otherwise.  Words of the stack are read where the unwind
 * information says, but only within the bounds of the walk.  All other addresses are read as unwind
 * information in the modules (pages.h).
 */

#include <config.h>

#include "lib/walk_step.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "capture/follow.h"
#include "host/loaded.h"
#include "host/pages.h"
#include "host/unloads.h"
#include "unwind/registers.h"
#include "unwind/unwinder.h"

#ifdef __aarch64__
#define UNWIND_PC UNW_AARCH64_PC
#define UNWIND_SP UNW_AARCH64_SP
#define UNWIND_FP UNW_AARCH64_X29
#else
#define UNWIND_PC UNW_X86_64_RIP
#define UNWIND_SP UNW_X86_64_RSP
#define UNWIND_FP UNW_X86_64_RBP
#endif

/* A word at any address: unwind information does not align its words. */
struct word {
	unw_word_t value;
} __attribute__((packed));

static __attribute__((no_sanitize("address", "thread"))) int
access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write, void *data)
{
	const struct tdt__walk_step *walk = data;

	(void)space;
	if (write)
		return -UNW_EINVAL;
	if (address < walk->low || address > walk->top + TDT__TOP_RECORD - sizeof *value)
		return tdt__unwinder_word(address, value);
	address += (uintptr_t)walk->shift;
	*value = ((const volatile struct word *)address)->value;
	return 0;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value, int write,
		      void *data)
{
	const struct tdt__walk_step *walk = data;

	(void)space;
	if (write)
		return -UNW_EREADONLYREG;
	switch (number) {
	case UNWIND_PC:
		*value = walk->from.pc;
		return 0;
	case UNWIND_SP:
		*value = walk->from.sp;
		return 0;
	case UNWIND_FP:
		*value = walk->from.fp;
		return 0;
	default:
		return -UNW_EBADREG;
	}
}

#define KNOWN 1024

/* Protected by tdt__unwind_lock. */
static unw_addr_space_t walk_space; /* NULL: not made yet */
/* The newest table; holds a reference; NULL: none yet. */
static struct tdt__modules *current_modules;
/* PCs that have unwind information, by PC % KNOWN; 0: none. */
static uintptr_t known_pcs[KNOWN];

/* Whether there is unwind information for the PC that the cursor is at: the walk's `pc`. */
static bool knows(struct tdt__walk_step *walk, uintptr_t pc)
{
	uintptr_t *place = &known_pcs[pc % KNOWN];

	if (*place == pc)
		return true;
	if (!tdt__unwinder_knows(&walk->cursor))
		return false;
	*place = pc;
	return true;
}

/*
 * Forget everything that libunwind reported: modules were unloaded, and other modules may lie at
 * the same addresses.
 */
static void forget_libunwind(void)
{
	unw_flush_cache(walk_space, 0, 0);
	memset(known_pcs, 0, sizeof known_pcs);
	tdt__pages_forget();
}

static bool make_first_modules(void)
{
	if (walk_space == NULL)
		walk_space = tdt__unwinder_new(access_mem, access_reg, UNW_CACHE_GLOBAL);
	if (current_modules == NULL)
		current_modules = tdt__modules_new(0);
	return walk_space != NULL && current_modules != NULL;
}

static bool renew_modules(uint64_t unloads)
{
	if (unloads <= current_modules->unloads)
		return true;
	forget_libunwind();
	return tdt__modules_renew(&current_modules, unloads);
}

/* Make sure that `current_modules` knows the module that `pc` lies in now.  False: no memory. */
static bool meet_module(uintptr_t pc)
{
	struct tdt__modules *before = tdt__modules_ref(current_modules);
	bool met = tdt__loaded_meet(&current_modules, pc) != -ENOMEM;

	if (tdt__modules_lost(before, current_modules))
		forget_libunwind();
	tdt__modules_unref(before);
	return met;
}

static void adopt_modules(struct tdt__walk_step *walk)
{
	struct tdt__modules *old = walk->modules;

	walk->modules = tdt__modules_ref(current_modules);
	tdt__modules_unref(old);
}

static bool modules_may_have_changed(void)
{
	bool may;

	pthread_mutex_lock(&tdt__unwind_lock);
	may = current_modules == NULL || !current_modules->lasting;
	pthread_mutex_unlock(&tdt__unwind_lock);
	return may;
}

bool tdt__walk_step_init(struct tdt__walk_step *walk)
{
	uint64_t unloads = 0;
	int saved = errno;
	bool ready;

	walk->modules = NULL;
	walk->learns = TDT__LEARNS_ALL;
	/* This call waits for the loader, so the lock must not be held. */
	if (modules_may_have_changed())
		tdt__unloads_now(&unloads, tdt__clock() + TDT__UNLOADS_SOON);
	pthread_mutex_lock(&tdt__unwind_lock);
	ready = make_first_modules() && renew_modules(unloads);
	if (ready)
		adopt_modules(walk);
	pthread_mutex_unlock(&tdt__unwind_lock);
	if (ready)
		errno = saved; /* libunwind sets errno to 0 when it is used for the first time */
	return ready;
}

void tdt__walk_step_meet(struct tdt__walk_step *walk, uintptr_t pc)
{
	pthread_mutex_lock(&tdt__unwind_lock);
	meet_module(pc);
	adopt_modules(walk);
	pthread_mutex_unlock(&tdt__unwind_lock);
}

void tdt__walk_step_fini(struct tdt__walk_step *walk)
{
	tdt__modules_unref(walk->modules);
}

void tdt__walk_step_start(struct tdt__walk_step *walk, struct tdt__registers from, uintptr_t top)
{
	walk->at = from;
	/*
	 * libunwind looks up the first PC without subtracting one.  But this PC is a return
	 * address, and has to be looked up at the call.
	 */
	from.pc--;
	walk->from = from;
	walk->top = top;
	walk->low = from.sp;
	walk->shift = 0;
	walk->first = true;
}

void tdt__walk_step_start_copied(struct tdt__walk_step *walk, struct tdt__registers from,
				 uintptr_t top, intptr_t shift)
{
	tdt__walk_step_start(walk, from, top);
	walk->low = from.sp - TDT__RED_ZONE;
	walk->shift = shift;
}

static enum tdt__walked cut(struct tdt__walk_step *walk, enum tdt_cut why)
{
	walk->cut = why;
	return TDT__WALK_CUT;
}

static enum tdt__walked step_cursor(struct tdt__walk_step *walk, struct tdt__frame *frame)
{
	struct tdt__registers *at = &walk->at;
	unw_word_t pc, sp, fp;
	int more;

	*frame = (struct tdt__frame){ .pc = at->pc, .cfa = at->sp, .fp = at->fp };
	if (!meet_module(at->pc - 1))
		return cut(walk, TDT_CUT_MEMORY);
	adopt_modules(walk);
	if (walk->first && unw_init_remote(&walk->cursor, walk_space, walk) < 0)
		return cut(walk, TDT_CUT_NO_INFO);
	walk->first = false;
	if (!knows(walk, at->pc))
		return cut(walk, TDT_CUT_NO_INFO);
	more = unw_step(&walk->cursor);
	if (more < 0) /* the step needs an unknown register, or a word out of bounds */
		return cut(walk, more == -UNW_EBADREG ? TDT_CUT_UNSUPPORTED : TDT_CUT_CORRUPT);
	if (unw_get_reg(&walk->cursor, UNW_REG_SP, &sp) < 0 || sp <= at->sp)
		return cut(walk, more == 0 ? TDT_CUT_STACK : TDT_CUT_CORRUPT);
	if (sp > walk->top && !tdt__is_top(sp, walk->top))
		return cut(walk, TDT_CUT_CORRUPT);
	frame->cfa = sp;
	if (tdt__is_top(sp, walk->top))
		return TDT__WALK_TOP;
	if (more == 0 || unw_get_reg(&walk->cursor, UNW_REG_IP, &pc) < 0)
		return cut(walk, TDT_CUT_STACK);
	if (unw_get_reg(&walk->cursor, UNWIND_FP, &fp) < 0)
		fp = 0;
	*at = (struct tdt__registers){ .pc = pc, .sp = sp, .fp = fp };
	return TDT__WALK_FRAME;
}

enum tdt__walked tdt__walk_step_next(struct tdt__walk_step *walk, struct tdt__frame *frame)
{
	enum tdt__walked walked;

	pthread_mutex_lock(&tdt__unwind_lock);
	walked = step_cursor(walk, frame);
	pthread_mutex_unlock(&tdt__unwind_lock);
	return walked;
}

#if !TDT_WALK_RULES
/* The cursor itself follows what it can. */
bool tdt__follow(const struct tdt__stack_copy *copy, const uintptr_t *registers,
		 struct tdt__walk *walk, struct tdt__registers at, struct tdt__frame *frame,
		 enum tdt__walked *walked)
{
	(void)copy;
	(void)registers;
	(void)walk;
	(void)at;
	(void)frame;
	(void)walked;
	return false;
}
#endif
