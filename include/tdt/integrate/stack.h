/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_STACK_H
#define TDT_STACK_H /* stable from 1.0: docs/compatibility.md */

/*
 * A backtrace follows one stack.  Code that switches to another stack by itself, and polls there,
 * must report the switch.  Then the backtrace continues, from the end of that other stack, at the
 * place where the switch was made.  If the switch is not reported, the backtrace of a leaf on the
 * other stack is truncated at the end of that stack, and a poll that is in progress there cannot be
 * read from outside:
 *
 *	// The outermost function on the coroutine's stack.
 *	static void entry(struct their_coroutine *co)
 *	{
 *		TDT_STACK_BASE(&co->stack);
 *		co->function(co->arg);
 *		TDT_KEEP_FRAME();
 *	}
 *	...
 *	co->stack = (struct tdt_stack){ .low = memory, .size = size };
 *	...
 *	tdt_stack_enter(&co->stack);
 *	their_resume(co);
 *	tdt_stack_leave(&co->stack);
 *
 * Each of the two calls costs a few stores.
 */

#include <stddef.h>
#include <stdint.h>

#include <tdt/decls.h>

TDT_DECLS_BEGIN

/*
 * A stack that is reported to the library, in the storage of its owner.  Initially all fields but
 * `low` and `size` are zero.
 */
struct tdt_stack {
	void *low;      /* the lowest byte of the stack that can be read */
	size_t size;    /* in bytes, from `low` up to the end of the stack */
	uintptr_t base; /* set by TDT_STACK_BASE(); 0: not set */

	/* These fields belong to the library while the stack is entered. */
	struct tdt_stack *outer;
	uintptr_t pc, sp, fp;
	uint64_t entry;
	uint32_t level;
	uint32_t reserved0;
	uint64_t reserved[4];
};

/*
 * Report that the calling function is the outermost one on `stack`.  A backtrace continues from
 * this function at the place where the stack was entered.  The outermost function uses the macro
 * once, in its own body.  That function must stay on the stack while the coroutine runs, so it must
 * not end in a tail call.  Without the macro, backtraces are truncated at the stack's end.
 */
#if defined(__x86_64__)
#define TDT_STACK_BASE(stack) ((void)((stack)->base = (uintptr_t)__builtin_dwarf_cfa()))
#else
#define TDT_STACK_BASE(stack) ((void)((stack)->base = (uintptr_t)__builtin_frame_address(0)))
#endif

/*
 * tdt_stack_enter() reports that this thread is about to switch to `stack`, and tdt_stack_leave()
 * reports that the thread has switched back.  One function, on the stack that the thread comes
 * from, makes both calls: one directly before the switch, and one directly behind it.  The calls
 * nest: code on an entered stack may enter another stack, and leaves it before it switches back.
 * Between the two calls, the struct `stack` is neither changed nor moved.
 *
 * Do not switch away from a coroutine in the middle of a poll of a traced future that began on the
 * coroutine's stack.  Poll the awaited future, and switch away after that poll has returned
 * TDT_PENDING.  If a library switches away in the middle nevertheless, and the coroutine continues
 * later on the same thread, no harm is done: the polls of a thread may end in any order, and a poll
 * is read from outside only while its thread is on the poll's own stack.  However,
 * tdt_current_task_id(), tdt_leaf_waits_on() and the reported parents and wakers of tasks then
 * refer to the poll that began last on the thread and has not ended, and tdt_misused()
 * (tdt/misuse.h) and dumps report the misuse.  The behaviour is undefined if such a coroutine
 * continues on another thread, or is destroyed, before its poll has ended: the thread on which the
 * poll began keeps the poll in its list of polls for ever.
 *
 * NULL does nothing.  Owner thread only: the thread that resumes the coroutine.  Only one thread
 *      may enter a stack at a time.
 */
void tdt_stack_enter(struct tdt_stack *stack);
void tdt_stack_leave(struct tdt_stack *stack);

TDT_DECLS_END

#endif
