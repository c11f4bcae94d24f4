// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Recording the stacks of leaves.  This runs on polling threads, inside the clones of leaves: no lock and no system
 * call where the walk takes none (walk_rules.h, stack.h), and no allocation once the task's last capture has told how
 * much room it takes.
 */

#include <config.h>

#include "capture.h"

#include <stdlib.h>

#include "poll.h"
#include "registers.h"
#include "stack.h"

struct tdt__capture *tdt__capture_new(uint32_t frames, uint32_t max_frames)
{
	struct tdt__capture *capture = calloc(1, sizeof *capture);

	if (capture == NULL)
		return NULL;
	capture->frames = malloc(frames * sizeof capture->frames[0]);
	if (capture->frames == NULL)
		goto free_capture;
	if (!tdt__walk_init(&capture->walk))
		goto free_frames;
	atomic_init(&capture->refs, 1);
	capture->unloads = tdt__walk_modules(&capture->walk)->unloads;
	capture->capacity = frames;
	capture->max_frames = max_frames;
	capture->last = TDT__NO_FRAME;
	return capture;

free_frames:
	free(capture->frames);
free_capture:
	free(capture);
	return NULL;
}

struct tdt__capture *tdt__capture_ref(struct tdt__capture *capture)
{
	atomic_fetch_add_explicit(&capture->refs, 1, memory_order_relaxed);
	return capture;
}

void tdt__capture_unref(struct tdt__capture *capture)
{
	/* Release what this holder did; acquire (by the last) what all others did: pairs with itself. */
	if (capture == NULL || atomic_fetch_sub_explicit(&capture->refs, 1, memory_order_acq_rel) != 1)
		return;
	tdt__walk_fini(&capture->walk);
	free(capture->waits);
	free(capture->frames);
	free(capture);
}

/* False: no memory, or no indexes left. */
static bool grow(struct tdt__capture *capture)
{
	uint32_t capacity = 2 * capture->capacity;
	struct tdt__captured *frames;

	if (capture->capacity > TDT__PARENT_TOP / 2)
		return false;
	frames = realloc(capture->frames, capacity * sizeof frames[0]);
	if (frames == NULL)
		return false;
	capture->frames = frames;
	capture->capacity = capacity;
	return true;
}

static struct tdt__captured *new_frame(struct tdt__capture *capture)
{
	if (__builtin_expect(capture->n == capture->capacity, 0) && !grow(capture))
		return NULL;
	return &capture->frames[capture->n++];
}

static void open_leaf(struct tdt__capture *capture, uintptr_t end)
{
	capture->open = true;
	capture->end = end;
	capture->own = capture->n;
	capture->match = capture->last;
}

/* End the leaf's stack: what follows its last frame is `parent`, a frame of an earlier leaf, the top or a cut. */
static void close_leaf(struct tdt__capture *capture, uint32_t parent)
{
	uint32_t innermost = capture->own;

	capture->open = false;
	if (capture->n == capture->own) {
		if (!tdt__is_frame(parent)) { /* not one frame could be kept */
			capture->lost++;
			return;
		}
		innermost = parent;
	} else {
		capture->frames[capture->n - 1].parent = parent;
	}
	capture->frames[innermost].leaves++;
	capture->leaves++;
	capture->last = innermost;
}

/*
 * Whether frame `index`, recorded for an earlier leaf, and all outside it are on the stack still, as they were.  If
 * not, frames up to the one that changed needn't be looked at again.
 */
static bool still_there(struct tdt__capture *capture, uint32_t index)
{
	while (tdt__is_frame(index)) {
		uint32_t parent = capture->frames[index].parent;
		const struct tdt__frame *caller = &capture->top;

		if (tdt__is_frame(parent))
			caller = &capture->frames[parent].frame;
		else if (parent != TDT__PARENT_TOP && parent != TDT__PARENT_CUT(TDT_CUT_CORRUPT))
			return true; /* cut: it would be again */
		if (parent == TDT__PARENT_CUT(TDT_CUT_CORRUPT) ||
		    !tdt__walk_leads_to(&capture->frames[index].frame, caller)) {
			capture->match = parent;
			return false;
		}
		index = parent;
	}
	return true;
}

/*
 * The frame of the leaf before that is this very activation, and its callers'; TDT__NO_FRAME: none.  CFAs rise along
 * both stacks, so that each is gone through once.
 */
static uint32_t shared_with_last(struct tdt__capture *capture, const struct tdt__frame *frame)
{
	const struct tdt__frame *last;
	uint32_t index = capture->match;

	while (tdt__is_frame(index) && capture->frames[index].frame.cfa < frame->cfa)
		index = capture->frames[index].parent;
	capture->match = index;
	if (!tdt__is_frame(index))
		return TDT__NO_FRAME;
	last = &capture->frames[index].frame;
	if (last->cfa != frame->cfa || last->pc != frame->pc || last->fp != frame->fp || !still_there(capture, index))
		return TDT__NO_FRAME;
	return index;
}

static void append(struct tdt__capture *capture, const struct tdt__frame *frame)
{
	struct tdt__captured *captured;

	if (capture->n - capture->own == capture->max_frames) {
		close_leaf(capture, TDT__PARENT_CUT(TDT_CUT_LIMIT));
		return;
	}
	captured = new_frame(capture);
	if (captured == NULL) {
		close_leaf(capture, TDT__PARENT_CUT(TDT_CUT_MEMORY));
		return;
	}
	/* The next that is appended is the caller. */
	*captured = (struct tdt__captured){ *frame, capture->n, 0 };
}

/* --- One walk for the captures of all polls in a chain ------------------- */

/* The next poll in the chain that has a capture, `poll` included. */
static struct tdt__poll *asked(struct tdt__poll *poll)
{
	while (poll != NULL && poll->capture == NULL)
		poll = poll->outer;
	return poll;
}

/* Take in a frame that the walk yielded; `cut` says why it is the last, if it is. */
static void take(struct tdt__capture *capture, const struct tdt__frame *frame, enum tdt__walked walked,
		 enum tdt_cut cut)
{
	uint32_t shared;

	if (tdt__is_top(frame->cfa, capture->end) && !frame->guessed) {
		capture->top = *frame;
		close_leaf(capture, TDT__PARENT_TOP);
		return;
	}
	shared = shared_with_last(capture, frame);
	if (shared != TDT__NO_FRAME) {
		close_leaf(capture, shared);
		return;
	}
	append(capture, frame);
	if (!capture->open)
		return;
	if (frame->cfa == capture->end) /* guessed: by frame pointers it leads to the traced future's own frame */
		close_leaf(capture, TDT__PARENT_TOP);
	else if (frame->cfa > capture->end) /* or past it */
		close_leaf(capture, TDT__PARENT_CUT(frame->guessed ? TDT_CUT_NO_INFO : TDT_CUT_CORRUPT));
	else if (walked == TDT__WALK_CUT)
		close_leaf(capture, TDT__PARENT_CUT(cut));
	else if (walked == TDT__WALK_TOP) /* of a poll outside, on this stack; this one is on another */
		close_leaf(capture, TDT__PARENT_CUT(TDT_CUT_STACK));
}

/* Returns whether some capture wants more frames. */
static bool take_all(struct tdt__poll *first, const struct tdt__frame *frame, enum tdt__walked walked,
		     enum tdt_cut cut)
{
	bool more = false;

	for (struct tdt__poll *poll = first; poll != NULL; poll = asked(poll->outer)) {
		if (poll->capture->open)
			take(poll->capture, frame, walked, cut);
		more = more || poll->capture->open;
	}
	return more;
}

/*
 * Open the leaf in all captures.  Returns how far the stack goes on that it is on, which is where polls on other stacks
 * are cut: the CFA of the outermost poll's frame there, or 0 for none.
 */
static uintptr_t open_all(struct tdt__poll *first, uintptr_t sp)
{
	uintptr_t reach = 0;

	for (struct tdt__poll *poll = first; poll != NULL; poll = asked(poll->outer)) {
		bool here = tdt__stack_readable(sp, poll->top);

		open_leaf(poll->capture, here ? poll->top : UINTPTR_MAX);
		if (here && poll->top > reach)
			reach = poll->top;
	}
	return reach;
}

/* One walk for all: by the newest of what they were made ready for, which is then what their PCs are named by. */
static void walk_all(struct tdt__poll *first, struct tdt__registers at, uintptr_t reach)
{
	struct tdt__walk *walk = &first->capture->walk;
	enum tdt__walked walked;
	struct tdt__frame frame;

	for (struct tdt__poll *poll = asked(first->outer); poll != NULL; poll = asked(poll->outer))
		tdt__walk_adopt(walk, &poll->capture->walk);
	tdt__walk_start(walk, at, reach);
	do
		walked = tdt__walk_next(walk, &frame);
	while (take_all(first, &frame, walked, walk->cut));
	for (struct tdt__poll *poll = asked(first->outer); poll != NULL; poll = asked(poll->outer))
		tdt__walk_adopt(&poll->capture->walk, walk);
}

void tdt__capture_leaf(struct tdt__poll *chain, struct tdt__registers at)
{
	struct tdt__poll *first = asked(chain);
	struct tdt__frame frame = { .pc = at.pc, .cfa = at.sp, .fp = at.fp };
	uintptr_t reach;

	if (first == NULL)
		return;
	reach = open_all(first, at.sp);
	if (reach != 0)
		walk_all(first, at, reach);
	else
		take_all(first, &frame, TDT__WALK_CUT, TDT_CUT_STACK);
}

void tdt__capture_wait(struct tdt__capture *capture, struct tdt_wait wait)
{
	if (capture->n_waits == capture->waits_room) {
		uint32_t room = capture->waits_room != 0 ? 2 * capture->waits_room : 4;
		struct tdt_wait *waits = realloc(capture->waits, room * sizeof *waits);

		if (waits == NULL)
			return;
		capture->waits = waits;
		capture->waits_room = room;
	}
	capture->waits[capture->n_waits++] = wait;
}
