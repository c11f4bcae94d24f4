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
 *   it is exact  it is as far above sp as the function's first instructions put it
 *   the call     is of this very function; or by a pointer, which may be to it.  A call of another function speaks
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

#define PLACES 1024 /* looked at for a call, at most: each is a system call or two */
#define TRIALS 64   /* walked from */
#define STEPS 8192  /* of all these walks together */

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

	start(search, search->best);
	while (walked == TDT__WALK_FRAME && search->walk->at.sp <= fp && search->steps < STEPS) {
		if (search->walk->at.fp == fp)
			return tdt__unwinder_start(search->walk->at.pc - 1) == search->function;
		search->steps++;
		walked = tdt__stack_copy_next(search->copy, search->walk, &frame);
	}
	return false;
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

uintptr_t tdt__find_fp(const struct tdt__stack_copy *copy, struct tdt__walk *walk, struct tdt__registers at, bool *sure)
{
	struct search search = { .copy = copy, .walk = walk, .at = at, .best = TDT__NO_FP };
	uintptr_t end = copy->low + copy->size - 2 * sizeof(uintptr_t), sp = (at.sp + 7) & ~(uintptr_t)7;
	intptr_t size;

	search.function = tdt__unwinder_start(at.pc - 1);
	size = search.function != 0 ? tdt__code_frame_size(search.function) : -1;
	if (size >= 0)
		search.exact = at.sp + (uintptr_t)size;
	for (uintptr_t fp = sp; fp <= end; fp += sizeof fp)
		try(&search, fp);
	*sure = search.sure;
	return search.best;
}
