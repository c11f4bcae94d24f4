// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Finding the stacks that a running poll is on, copying them, and walking from one to the next. */

#include "capture/stack_pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/integrate/stack.h>

#include "capture/capture.h"
#include "capture/walk_copy.h"
#include "host/peek.h"
#include "host/readable.h"
#include "host/thread.h"

#define LEVELS_MAX 1024 /* so many entered stacks are looked at, each entered from the next outer */

/*
 * Find the innermost entered stack that `sp` is on, from `entered` outwards, and copy its struct to
 * `*found`.  It may not be the first one, because a thread enters a stack before it switches to the
 * stack.  False: `sp` is on none of them, or they cannot be read.
 */
static bool find_stack(const struct tdt_stack *entered, uintptr_t sp, struct tdt_stack *found)
{
	for (unsigned i = 0; entered != NULL && i < TDT__PIECES_MAX; i++) {
		if (tdt__peek(found, (uintptr_t)entered, sizeof *found) != sizeof *found)
			return false;
		if (tdt__stack_holds(found, sp, sp + 1))
			return true;
		entered = found->outer;
	}
	return false;
}

/* Whether [low, high) lies on the thread's own stack, if the thread is known. */
static bool lies_on_own(const struct tdt__thread *thread, uintptr_t low, uintptr_t high)
{
	return thread != NULL && low >= thread->stack_low && low < high &&
	       high <= thread->stack_high;
}

/*
 * Whether a thread whose stack pointer is `sp` is on the stack that `top` lies on, or on a stack
 * that was entered from there.  Nothing is known of stacks that were not reported.  `fiber`: see
 * tdt__pieces_plan().
 */
enum where { ELSEWHERE, THERE, UNKNOWN };

static enum where where_is(const struct tdt__thread *thread, uintptr_t sp, uintptr_t top,
			   const struct tdt_stack *fiber)
{
	const struct tdt_stack *entered = thread != NULL ? thread->entered : NULL;
	struct tdt_stack stack;

	for (unsigned i = 0; !tdt__stack_holds(fiber, sp, sp + 1) && i < LEVELS_MAX &&
			     find_stack(entered, sp, &stack);
	     i++) {
		if (tdt__stack_holds(&stack, sp, top + TDT__TOP_RECORD))
			return THERE;
		sp = stack.sp;
		entered = stack.outer;
	}
	if (fiber != NULL && fiber->size != 0)
		return tdt__stack_holds(fiber, sp, sp + 1) ? THERE : ELSEWHERE;
	if (lies_on_own(thread, sp, top + TDT__TOP_RECORD))
		return THERE;
	if (sp >= top + TDT__TOP_RECORD || lies_on_own(thread, sp, sp + 1) ||
	    lies_on_own(thread, top, top + 1))
		return ELSEWHERE;
	return UNKNOWN;
}

/* Make the last piece the rest of `stack`, whose base was not reported. */
static void end_with_stack(struct tdt__stack_copy *piece, const struct tdt_stack *stack,
			   size_t *size)
{
	if (*size > tdt__stack_end(stack) - piece->low)
		*size = (tdt__stack_end(stack) - piece->low) & ~(size_t)15;
	piece->end = TDT_CUT_STACK;
}

/* How many bytes of the buffer a piece takes.  Each piece is aligned as a stack is. */
static size_t room_of_piece(size_t size)
{
	return (size + 15) & ~(size_t)15;
}

/*
 * Plan one more piece.  Returns whether there is another piece outside it; then `*at` and
 * `*entered` are set for that one.
 */
static bool add_piece(struct tdt__pieces *pieces, struct tdt__registers *at, uintptr_t top,
		      const struct tdt_stack **entered, const struct tdt_stack *fiber)
{
	struct tdt__stack_copy *piece = &pieces->piece[pieces->n++];
	struct tdt_stack stack;
	bool on_fiber = tdt__stack_holds(fiber, at->sp, at->sp + 1), on_entered, last;

	on_entered = !on_fiber && find_stack(*entered, at->sp, &stack);
	last = !on_entered || tdt__stack_holds(&stack, at->sp, top + TDT__TOP_RECORD);
	if (on_fiber)
		stack = *fiber;
	*piece = (struct tdt__stack_copy){ .at = *at, .top = top, .of_fiber = on_fiber };
	if (on_entered)
		piece->level = (uint16_t)stack.level;
	if (on_fiber || !last)
		piece->top = tdt__stack_holds(&stack, at->sp, stack.base + TDT__TOP_RECORD)
				 ? stack.base
				 : 0;
	piece->entered = (fiber != NULL || !last) && piece->top != 0;
	piece->size = tdt__stack_copy_extent(piece, TDT__STACK_COPY_MAX - pieces->size);
	if (piece->top == 0) {
		end_with_stack(piece, &stack, &piece->size);
		last = true;
	}
	pieces->size += room_of_piece(piece->size);
	if (last || piece->end != TDT_CUT_NOT)
		return false;
	*at = (struct tdt__registers){ .pc = stack.pc, .sp = stack.sp, .fp = stack.fp };
	*entered = stack.outer;
	return true;
}

/* Plan all pieces, as far as there is room for them. */
static void plan(struct tdt__pieces *pieces, struct tdt__registers at, uintptr_t top,
		 const struct tdt_stack *entered, const struct tdt_stack *fiber)
{
	pieces->n = 0;
	pieces->size = 0;
	pieces->end = TDT_CUT_NOT;
	pieces->has_registers = false;
	while (add_piece(pieces, &at, top, &entered, fiber))
		if (pieces->n == TDT__PIECES_MAX ||
		    TDT__STACK_COPY_MAX - pieces->size < TDT__STACK_COPY_LEAST) {
			pieces->end = TDT_CUT_LIMIT;
			return;
		}
}

int tdt__pieces_plan(struct tdt__pieces *pieces, struct tdt__registers at, uintptr_t top,
		     const struct tdt__thread *thread, const struct tdt_stack *fiber)
{
	enum where where = where_is(thread, at.sp, top, fiber);

	if (where == ELSEWHERE)
		return -ENOTSUP;
	plan(pieces, at, top, thread != NULL ? thread->entered : NULL, fiber);
	pieces->doubtful = where == UNKNOWN;
	pieces->piece[pieces->n - 1].doubtful = where == UNKNOWN;
	return 0;
}

int tdt__pieces_read(struct tdt__pieces *pieces, unsigned char *bytes, tdt__pieces_read_fn *read)
{
	pieces->bytes = bytes;
	for (unsigned i = 0; i < pieces->n; i++) {
		struct tdt__stack_copy *piece = &pieces->piece[i];
		size_t wanted = piece->size;

		piece->bytes = bytes;
		bytes += room_of_piece(wanted);
		if (tdt__stack_copy_got(piece, wanted, read(piece->bytes, piece->low, wanted)) == 0)
			continue;
		if (i == 0)
			return -EFAULT;
		pieces->n = i;
		pieces->end = TDT_CUT_CORRUPT;
	}
	return 0;
}

int tdt__pieces_copy(struct tdt__pieces *pieces)
{
	unsigned char *bytes = malloc(pieces->size);
	int error;

	if (bytes == NULL)
		return -ENOMEM;
	error = tdt__pieces_read(pieces, bytes, tdt__peek);
	if (error != 0)
		free(bytes);
	return error;
}

int tdt__pieces_dup(struct tdt__pieces *to, const struct tdt__pieces *from)
{
	*to = *from;
	to->bytes = malloc(from->size);
	if (to->bytes == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < to->n; i++) {
		to->piece[i].bytes = to->bytes + (from->piece[i].bytes - from->bytes);
		memcpy(to->piece[i].bytes, from->piece[i].bytes, from->piece[i].size);
	}
	return 0;
}

static void walk(const struct tdt__pieces *pieces, struct tdt__capture *capture)
{
	struct tdt__registers at = pieces->piece[0].at;
	const uintptr_t *registers = pieces->has_registers ? pieces->registers : NULL;
	unsigned i = 0;

	at.pc++; /* walks take one less than a return address: see walk.h */
	tdt__capture_begin(capture);
	while (tdt__walk_copy(&pieces->piece[i], at, i == 0 ? registers : NULL,
			      i + 1 == pieces->n && pieces->end == TDT_CUT_NOT &&
				  !pieces->piece[i].entered,
			      capture)) {
		if (++i == pieces->n) {
			tdt__capture_end(capture, pieces->end);
			return;
		}
		at = pieces->piece[i].at;
	}
}

/* Whether the walk has reached the traced future without a guessed frame. */
static bool has_arrived(const struct tdt__capture *capture)
{
	for (uint32_t i = 0; i < capture->stacks.n; i++)
		if (capture->stacks.frames[i].frame.guessed)
			return false;
	return capture->stacks.n == 0 ||
	       capture->stacks.frames[capture->stacks.n - 1].parent == TDT__PARENT_TOP;
}

int tdt__pieces_capture(const struct tdt__pieces *pieces, struct tdt__capture *capture)
{
	walk(pieces, capture);
	tdt__capture_complete(capture);
	return !pieces->doubtful || has_arrived(capture) ? 0 : -ENOTSUP;
}
