// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Finding a frame pointer that is not reported.
 *
 * For a thread that is blocked in a system call, the kernel reports pc and sp.  The C library's
 * functions do not touch the frame pointer, so the frame pointer still is that of the function that
 * called them.  If that function's frame is described by the frame pointer (as all frames are in
 * code that is compiled with frame pointers), the walk cannot continue without it.
 *
 * But the frame lies on the stack.  Somewhere above its sp there is a *frame record*: the caller's
 * frame pointer, and the return address above it.  The frame pointer is the record's address.
 * Every place that could be the record is tried; its return address must come after a call.  Three
 * facts speak for a place:
 *
 *   it arrives   a walk from there leads to the traced future's own frame, with nothing guessed
 *   it is exact  it is as far above sp as the instructions that make the function's frame put it
 *   the call     is of this very function; or of a function that jumps to this one (a tail call);
 *                or by a pointer, which may be to any function (the traced future's pointer is to
 *                its poll)
 *
 * The stack has stale records too, of calls that are over, in locals that were not written since.
 * Whole chains of them can lead to the top.  But the true record arrives too.  So if only one place
 * arrives, it is the record.  If several arrive, a place is ruled out if it returns from a call of
 * another function that does not jump to this one, or if it leads to frames of which that is true.
 * An exact place is preferred to all others.
 *
 * If one place leads to another, the second may be the record of a caller of the first.  Then the
 * second is no rival, if the first returns from a call of this very function and the second does
 * not.  (A function that makes room at run time, and has called itself, may have left its own
 * records in that room.)  In all other cases the best place is a best guess.
 */

#include "capture/find_fp.h"

#include "capture/stack_copy.h"
#include "host/loaded.h"
#include "unwind/code.h"
#include "unwind/unwinder.h"

/* The limits of the search.  To look for a call takes one or two system calls. */
#define PLACES 1024		    /* so many places are looked at for a call */
#define TRIALS 256		    /* so many places are walked from */
#define STEPS_IN_ALL 16384	    /* so many steps are taken in all these walks together */
#define ARRIVED 64		    /* so many of the places may arrive */
#define LINKS 12		    /* so many calls on the way from a place are checked */
#define CODE ((uintptr_t)256 << 10) /* the code of larger functions is not searched */

/* How a return address fits the function that would return to it; the best is the last. */
enum link {
	LINK_NONE,	/* it is of a call of another function */
	LINK_ELSEWHERE, /* it is of a call of another function, which jumps to others */
	LINK_POINTER,	/* it is of a call by a pointer */
	LINK_JUMP,	/* it is of a call of a function that jumps to this one */
	LINK_CALL	/* it is of a call of this function */
};

struct function {
	uintptr_t start, end; /* both 0: unknown */
};

struct fp_place {
	uintptr_t fp;
	enum link link;
};

#define CACHED 64
#define JUMPERS 16

struct search {
	const struct tdt__stack_copy *copy;
	struct tdt__walk *walk;
	struct tdt__registers at;
	struct function function; /* the function of frame `at` */
	uintptr_t exact;	  /* where its code puts the frame pointer; 0: unknown */
	unsigned places;
	unsigned trials;
	unsigned steps;

	struct fp_place arrived[ARRIVED]; /* from the innermost on */
	unsigned n;
	/*
	 * The innermost place that does not arrive, but returns from a call of this function; or
	 * TDT__NO_FP.
	 */
	uintptr_t called;
	bool all; /* all places were tried */

	/* Facts found out about code.  The address determines the entry. */
	struct {
		uintptr_t pc;
		struct function function;
	} functions[CACHED];
	struct {
		uintptr_t called;
		struct function function;
		enum link link;
	} jumps[CACHED];
};

static struct function function_of(struct search *search, uintptr_t pc)
{
	struct function *function = &search->functions[pc % CACHED].function;

	if (search->functions[pc % CACHED].pc == pc)
		return *function;
	search->functions[pc % CACHED].pc = pc;
	*function = (struct function){ 0, 0 };
	function->start = tdt__unwinder_function(pc, &function->end);
	if (function->end - function->start > CODE)
		*function = (struct function){ 0, 0 };
	return *function;
}

static void start_walk(struct search *search, uintptr_t fp)
{
	struct tdt__registers at = search->at;

	at.fp = fp;
	tdt__stack_copy_walk(search->copy, search->walk, at);
}

static enum tdt__walked step_walk(struct search *search, struct tdt__frame *frame)
{
	search->steps++;
	return tdt__stack_copy_next(search->copy, search->walk, frame);
}

/*
 * Whether a walk from `fp` leads to the top; or to the end of a copy that is not whole.  The record
 * right below the top is that of the traced future's own function, whose instructions tell where it
 * is: it is no other function's.  (On a stack that was entered, any function may be the outermost.)
 */
static bool arrives(struct search *search, uintptr_t fp)
{
	enum tdt__walked walked = TDT__WALK_FRAME;
	struct tdt__frame frame = { 0 };
	unsigned steps = 0;

	start_walk(search, fp);
	while (walked == TDT__WALK_FRAME && !frame.guessed && search->steps < STEPS_IN_ALL) {
		steps++;
		walked = step_walk(search, &frame);
	}
	if (frame.guessed)
		return false;
	if (walked == TDT__WALK_TOP)
		return steps > 1 || fp == search->exact || search->copy->entered;
	if (walked != TDT__WALK_CUT || search->copy->end == TDT_CUT_NOT)
		return false;
	return search->walk->cut == TDT_CUT_STACK ||
	       (search->walk->cut == TDT_CUT_CORRUPT && steps > 4);
}

/*
 * Whether a walk from the place `from` leads to the place `to`: a frame further out has its record
 * there, or something that looks like one (many functions save the frame pointer right below their
 * return address).
 */
static bool leads_to(struct search *search, uintptr_t from, uintptr_t to)
{
	enum tdt__walked walked = TDT__WALK_FRAME;
	struct tdt__frame frame;

	start_walk(search, from);
	while (walked == TDT__WALK_FRAME && search->walk->at.sp <= to &&
	       search->steps < STEPS_IN_ALL) {
		if (search->walk->at.fp == to)
			return true;
		walked = step_walk(search, &frame);
	}
	return walked == TDT__WALK_FRAME && search->walk->at.sp == to + 2 * sizeof to;
}

/* The functions searched for jumps: one function, those that it jumps to, and so on. */
struct jumpers {
	uintptr_t start[JUMPERS];
	unsigned n;
};

static bool has_been(struct jumpers *jumpers, uintptr_t start)
{
	for (unsigned i = 0; i < jumpers->n; i++)
		if (jumpers->start[i] == start)
			return true;
	return false;
}

/* How `function` may have been reached by a call of `called`. */
static enum link look_for_jump(struct search *search, struct jumpers *jumpers, uintptr_t called,
			       struct function function)
{
	struct function caller = function_of(search, called);
	enum link best = LINK_NONE;
	struct tdt__jumps jumps;

	if (has_been(jumpers, caller.start))
		return LINK_NONE;
	if (caller.start == 0 || jumpers->n == JUMPERS)
		return LINK_ELSEWHERE;
	jumpers->start[jumpers->n++] = caller.start;
	tdt__code_jumps(caller.start, caller.end, &jumps);
	for (unsigned i = 0; i < jumps.n; i++) {
		if (jumps.to[i] >= function.start && jumps.to[i] < function.end)
			return LINK_JUMP;
		if (best == LINK_NONE)
			best = look_for_jump(search, jumpers, jumps.to[i], function);
		if (best == LINK_JUMP)
			return best;
	}
	return jumps.all ? best : LINK_ELSEWHERE;
}

static enum link by_jump(struct search *search, uintptr_t called, struct function function)
{
	size_t place = called % CACHED;

	if (search->jumps[place].called != called ||
	    search->jumps[place].function.start != function.start) {
		search->jumps[place].called = called;
		search->jumps[place].function = function;
		search->jumps[place].link = LINK_ELSEWHERE;
		if (called != 0 && function.start != 0)
			search->jumps[place].link = look_for_jump(
				search, &(struct jumpers){ .n = 0 }, called, function);
	}
	return search->jumps[place].link;
}

static enum link link_of(struct search *search, uintptr_t caller, struct function function)
{
	uintptr_t called;

	switch (tdt__code_call(caller, function.start, &called)) {
	case TDT__CALL_DIRECT:
		return LINK_CALL;
	case TDT__CALL_INDIRECT:
		return LINK_POINTER;
	case TDT__CALL_ANOTHER:
		return by_jump(search, called, function);
	case TDT__CALL_NONE:
		break;
	}
	return LINK_NONE;
}

/*
 * How `function` may have been called by the function whose frame the walk is at.  The traced
 * future calls by a pointer, but the pointer is known: it is the future's poll function.  The call
 * moves the walk one step further out.
 */
static enum link link_here(struct search *search, struct function function)
{
	uintptr_t caller = search->walk->at.pc, poll = search->copy->poll;
	struct tdt__frame frame;
	enum tdt__walked walked = step_walk(search, &frame);

	if (walked == TDT__WALK_TOP && !frame.guessed && poll != 0 &&
	    search->copy->end == TDT_CUT_NOT)
		return poll == function.start ? LINK_CALL : by_jump(search, poll, function);
	return link_of(search, caller, function);
}

/*
 * Whether the record at `fp` is that of the outermost function on an entered stack.  That function
 * has no caller, so its return address can be anything.  But the end of its frame was reported, and
 * its record lies right below that end.
 */
static bool is_outermost(const struct search *search, uintptr_t fp)
{
	return search->copy->entered && fp + 2 * sizeof fp == search->copy->top + TDT__TOP_RECORD;
}

/* The return address of the record at `fp`, which the function may have signed. */
static uintptr_t record_caller(const struct tdt__stack_copy *copy, uintptr_t fp)
{
	const void *at = copy->bytes + (fp + sizeof fp - copy->low);

	return tdt__unsigned_pc(*(const uintptr_t *)at);
}

static enum link link_at(struct search *search, uintptr_t fp)
{
	uintptr_t caller = record_caller(search->copy, fp);
	struct tdt__frame frame;

	if (is_outermost(search, fp))
		return fp == search->exact ? LINK_CALL : LINK_POINTER;
	start_walk(search, fp);
	if (step_walk(search, &frame) != TDT__WALK_FRAME || search->walk->at.pc != caller)
		return link_of(search, caller, search->function);
	return link_here(search, search->function);
}

static enum tdt__call call_at(struct search *search, uintptr_t fp)
{
	uintptr_t caller = record_caller(search->copy, fp), called;

	if (is_outermost(search, fp))
		return TDT__CALL_INDIRECT;
	if (!tdt__is_loaded(caller - 1))
		return TDT__CALL_NONE;
	search->places++;
	return tdt__code_call(caller, search->function.start, &called);
}

static void try(struct search *search, uintptr_t fp)
{
	enum tdt__call call;

	if (search->trials == TRIALS || search->places == PLACES || search->steps >= STEPS_IN_ALL) {
		search->all = false;
		return;
	}
	call = call_at(search, fp);
	if (call == TDT__CALL_NONE)
		return;
	search->trials++;
	if (arrives(search, fp)) {
		if (search->n == ARRIVED)
			search->all = false;
		else
			search->arrived[search->n++] = (struct fp_place){ fp, LINK_NONE };
	} else if (call == TDT__CALL_DIRECT && search->called == TDT__NO_FP) {
		search->called = fp;
	}
}

/* Whether each function on the way from `fp` may have been called where it would return to. */
static bool is_consistent(struct search *search, uintptr_t fp)
{
	enum tdt__walked walked;
	struct tdt__frame frame;

	start_walk(search, fp);
	walked = step_walk(search, &frame);
	for (unsigned i = 0; walked == TDT__WALK_FRAME && i < LINKS && search->steps < STEPS_IN_ALL;
	     i++) {
		struct function function = function_of(search, search->walk->at.pc - 1);
		struct tdt__registers here;

		walked = step_walk(search, &frame);
		if (walked != TDT__WALK_FRAME)
			break;
		here = search->walk->at;
		if (function.start != 0 && link_here(search, function) == LINK_NONE)
			return false;
		tdt__stack_copy_walk(search->copy, search->walk, here);
	}
	return true;
}

/*
 * Remove the places that return from a call of another function.  If several are left, also remove
 * those that lead to such a call.
 */
static void leave_out_the_inconsistent(struct search *search)
{
	unsigned n = 0;

	for (unsigned i = 0; i < search->n; i++) {
		struct fp_place place = { search->arrived[i].fp,
					  link_at(search, search->arrived[i].fp) };

		if (place.link != LINK_NONE)
			search->arrived[n++] = place;
	}
	if (n != 0)
		search->n = n;
	if (n < 2)
		return;
	n = 0;
	for (unsigned i = 0; i < search->n; i++)
		if (is_consistent(search, search->arrived[i].fp))
			search->arrived[n++] = search->arrived[i];
	if (n != 0)
		search->n = n;
}

/* The place with the best link; of several, the innermost. */
static const struct fp_place *best_of(const struct search *search)
{
	const struct fp_place *best = &search->arrived[0];

	for (unsigned i = 1; i < search->n; i++)
		if (search->arrived[i].link > best->link)
			best = &search->arrived[i];
	return best;
}

/*
 * Whether no other place can be the record.  On a damaged stack, it can also be a place that does
 * not arrive, but returns from a call of this function.
 */
static bool has_no_rival(struct search *search, const struct fp_place *best)
{
	if (best->link != LINK_CALL && (search->called != TDT__NO_FP || best->link < LINK_POINTER))
		return false;
	if (best->link == LINK_POINTER)
		return search->n == 1;
	for (unsigned i = 0; i < search->n; i++) {
		const struct fp_place *other = &search->arrived[i];

		if (other->fp == best->fp)
			continue;
		if (other->link >= LINK_JUMP || !leads_to(search, best->fp, other->fp))
			return false;
	}
	return true;
}

static uintptr_t choose_place(struct search *search, bool *sure)
{
	const struct fp_place *best;

	*sure = false;
	if (search->n == 0)
		return search->called;
	leave_out_the_inconsistent(search);
	best = best_of(search);
	/*
	 * If the end of the stack is not known, a place may lie on another stack.  An exact place
	 * lies on this stack, but if it is known here, it was rejected.
	 */
	if (search->all && !search->copy->doubtful && search->exact == 0)
		*sure = has_no_rival(search, best);
	return best->fp;
}

/*
 * Where the function's instructions put the frame pointer.  0: the function has no frame pointer at
 * this pc, or the place cannot be determined.
 */
static uintptr_t exact_place(const struct search *search)
{
	const struct tdt__registers *at = &search->at;
	bool innermost = at->pc == search->copy->at.pc + 1 && at->sp == search->copy->at.sp;
	intptr_t size;

	if (search->function.start == 0)
		return 0;
	size = tdt__code_frame_size(search->function.start, search->function.end,
				    innermost ? at->pc - 1 : at->pc);
	return size >= 0 ? at->sp + (uintptr_t)size : 0;
}

/*
 * Whether the exact place is the record.  If it does not arrive, but its call is right, the stack
 * is damaged further out.
 */
static bool is_exact(struct search *search, uintptr_t from, uintptr_t to)
{
	uintptr_t fp = search->exact;
	enum tdt__call call;

	if (fp < from || fp > to || fp % sizeof fp != 0)
		return false;
	call = call_at(search, fp);
	if (call == TDT__CALL_NONE || call == TDT__CALL_DIRECT)
		return call == TDT__CALL_DIRECT;
	return arrives(search, fp) && link_at(search, fp) != LINK_NONE;
}

uintptr_t tdt__find_fp(const struct tdt__stack_copy *copy, struct tdt__walk *walk,
		       struct tdt__registers at, bool *sure)
{
	struct search search = {
		.copy = copy, .walk = walk, .at = at, .called = TDT__NO_FP, .all = true
	};
	uintptr_t end = copy->low + copy->size - 2 * sizeof(uintptr_t),
		  sp = (at.sp + 7) & ~(uintptr_t)7;

	search.function = function_of(&search, at.pc - 1);
	search.exact = exact_place(&search);
	if (is_exact(&search, sp, end)) {
		*sure = true;
		return search.exact;
	}
	for (uintptr_t fp = sp; fp <= end; fp += sizeof fp)
		try(&search, fp);
	return choose_place(&search, sure);
}
