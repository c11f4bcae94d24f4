// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Finding a frame pointer that nobody tells.
 *
 * Of a thread that is blocked in a system call the kernel tells pc and sp.  The C library's functions don't touch the
 * frame pointer, so that it is the one of the function that called them; and if that one's frame is described by it (as
 * all are that are compiled with frame pointers), there is no way on.
 *
 * But that frame lies on the stack: somewhere above its sp there is a *frame record*, the caller's frame pointer with
 * the return address above it, and the frame pointer has its address.  Every place is tried that could be it: the word
 * at its return address must come after a call.  What speaks for a place:
 *
 *   it arrives   walked from there, the stack leads to the traced future's own frame, with nothing guessed
 *   it is exact  it is as far above sp as the function's instructions put it that make its frame
 *   the call     is of this very function (the traced future's is, of its poll); or by a pointer, which may be to it.  A call of another function speaks
 *                against it, but for a tail call
 *
 * The stack has stale records, too: of calls that are over, in locals that were not written since.  Whole chains of
 * them can lead to the top, and begin with the right call.  So a call alone proves nothing, if there are two such
 * places that don't lead to each other; one of them that is exact is the one.  Of equals the innermost is taken: what
 * is further out may belong to a caller, what is further in only to this frame's own locals.
 */

#include <config.h>

#include "find_fp.h"

#include "code.h"
#include "stack_copy.h"
#include "unwinder.h"

#define PLACES 1024		    /* looked at for a call, at most: each is a system call or two */
#define TRIALS 64		    /* walked from */
#define STEPS 8192		    /* of all these walks together */
#define CODE ((uintptr_t)256 << 10) /* larger functions are not looked through */

struct search {
	const struct tdt__stack_copy *copy;
	struct tdt__walk *walk;
	struct tdt__registers at;
	uintptr_t function; /* where it begins; 0: unknown */
	uintptr_t exact;    /* where its frame pointer should be; 0: unknown */
	unsigned places;
	unsigned trials;
	unsigned steps;

	uintptr_t best;
	unsigned score; /* 0: there is no best */
	bool sure;
};

static uintptr_t word_of(const struct tdt__stack_copy *copy, uintptr_t address)
{
	return *(const uintptr_t *)(const void *)(copy->bytes + (address - copy->low));
}

static void start(struct search *search, uintptr_t fp)
{
	struct tdt__registers at = search->at;

	at.fp = fp;
	tdt__stack_copy_walk(search->copy, search->walk, at);
}

/* Whether the stack leads to the top from there; or out of the copy, if that isn't whole. */
static bool arrives(struct search *search, uintptr_t fp)
{
	enum tdt__walked walked = TDT__WALK_FRAME;
	struct tdt__frame frame = { 0 };
	unsigned steps = 0;

	start(search, fp);
	while (walked == TDT__WALK_FRAME && !frame.guessed && search->steps < STEPS) {
		search->steps++;
		steps++;
		walked = tdt__stack_copy_next(search->copy, search->walk, &frame);
	}
	if (frame.guessed)
		return false;
	if (walked == TDT__WALK_TOP)
		return true;
	if (walked != TDT__WALK_CUT || search->copy->end == TDT_CUT_NOT)
		return false;
	return search->walk->cut == TDT_CUT_STACK || (search->walk->cut == TDT_CUT_CORRUPT && steps > 4);
}

/*
 * Whether the stack leads from the best place to `fp`, as one more frame of the same function: then that is no rival,
 * but the function has called itself.
 */
static bool leads_to(struct search *search, uintptr_t fp)
{
	enum tdt__walked walked = TDT__WALK_FRAME;
	struct tdt__frame frame;
	uintptr_t end;

	start(search, search->best);
	while (walked == TDT__WALK_FRAME && search->walk->at.sp <= fp && search->steps < STEPS) {
		if (search->walk->at.fp == fp)
			return tdt__unwinder_function(search->walk->at.pc - 1, &end) == search->function;
		search->steps++;
		walked = tdt__stack_copy_next(search->copy, search->walk, &frame);
	}
	return false;
}

/* Whether the frame there is the one of the poll itself: its caller is the traced future, by a pointer that is known. */
static bool is_poll(struct search *search, uintptr_t fp)
{
	struct tdt__frame frame;

	if (search->function != search->copy->poll || search->function == 0)
		return false;
	start(search, fp);
	return tdt__stack_copy_next(search->copy, search->walk, &frame) == TDT__WALK_FRAME &&
	       tdt__stack_copy_next(search->copy, search->walk, &frame) == TDT__WALK_TOP && !frame.guessed;
}

static void try(struct search *search, uintptr_t fp)
{
	const struct tdt__modules *modules = tdt__walk_modules(search->walk);
	bool exact = fp == search->exact, there;
	enum tdt__call call;
	unsigned score;

	if (search->places == PLACES || search->trials == TRIALS ||
	    tdt__modules_find(modules, word_of(search->copy, fp + sizeof fp) - 1) == NULL)
		return;
	search->places++;
	call = tdt__code_call(modules, word_of(search->copy, fp + sizeof fp), search->function);
	if (call == TDT__CALL_NONE)
		return;
	if (call == TDT__CALL_INDIRECT && is_poll(search, fp))
		call = TDT__CALL_DIRECT;
	search->trials++;
	there = arrives(search, fp);
	if (!there && call != TDT__CALL_DIRECT)
		return;
	score = (exact && call == TDT__CALL_DIRECT ? 16 : 0) + (there ? 8 : 0) + (exact ? 4 : 0) + (unsigned)call;
	if (score > search->score) {
		search->best = fp;
		search->score = score;
		search->sure = call != TDT__CALL_ANOTHER && (exact || (there && call == TDT__CALL_DIRECT));
	} else if (score == search->score && search->sure && !leads_to(search, fp)) {
		search->sure = false;
	}
}

/* Whether unwind information has a frame begin at `begin`, if code at `pc` has that `fp`, and the sp we know. */
static bool begins_above(struct search *search, uintptr_t pc, uintptr_t fp, uintptr_t begin)
{
	struct tdt__frame frame;

	/* What lies on the stack there is of no account. */
	tdt__stack_copy_walk(search->copy, search->walk, (struct tdt__registers){ pc + 1, search->at.sp, fp });
	return tdt__stack_copy_next(search->copy, search->walk, &frame) == TDT__WALK_FRAME && !frame.guessed &&
	       frame.cfa == begin;
}

/*
 * Whether the frame pointer is the function's own behind this: before, its frame is told by sp, which has been moved by
 * the caller's frame pointer alone.
 */
static bool is_framing(struct search *search, uintptr_t behind)
{
	uintptr_t sp = search->at.sp, elsewhere = sp + sizeof(uintptr_t);

	return begins_above(search, behind - TDT__FRAMING_LENGTH, TDT__NO_FP, sp + 2 * sizeof(uintptr_t)) &&
	       begins_above(search, behind, elsewhere, elsewhere + 2 * sizeof(uintptr_t));
}

/* How far the frame pointer is above sp.  -1: can't be told, or there are several answers. */
static intptr_t frame_size(struct search *search, uintptr_t end)
{
	uintptr_t behind = search->function;
	intptr_t size = -1;

	if (end - search->function > CODE)
		return -1;
	while ((behind = tdt__code_framing(behind, end)) != 0) {
		intptr_t one;

		if (!is_framing(search, behind))
			continue;
		one = tdt__code_frame_size(behind);
		if (one < 0 || (size >= 0 && one != size))
			return -1;
		size = one;
	}
	return size;
}

uintptr_t tdt__find_fp(const struct tdt__stack_copy *copy, struct tdt__walk *walk, struct tdt__registers at, bool *sure)
{
	struct search search = { .copy = copy, .walk = walk, .at = at, .best = TDT__NO_FP };
	uintptr_t end = copy->low + copy->size - 2 * sizeof(uintptr_t), sp = (at.sp + 7) & ~(uintptr_t)7;
	uintptr_t function_end = 0;
	intptr_t size;

	search.function = tdt__unwinder_function(at.pc - 1, &function_end);
	size = search.function != 0 ? frame_size(&search, function_end) : -1;
	if (size >= 0)
		search.exact = at.sp + (uintptr_t)size;
	for (uintptr_t fp = sp; fp <= end; fp += sizeof fp)
		try(&search, fp);
	*sure = search.sure;
	return search.best;
}
