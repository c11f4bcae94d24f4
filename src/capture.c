// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Recording the stacks of leaves.  This runs on polling threads, inside the clones of leaves: no lock, no system call,
 * and no allocation once the task's last capture has told how much room it takes.
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
	free(capture->frames);
	free(capture);
}

static struct tdt__captured *new_frame(struct tdt__capture *capture)
{
	if (__builtin_expect(capture->n == capture->capacity, 0)) {
		uint32_t capacity = 2 * capture->capacity;
		struct tdt__captured *frames = realloc(capture->frames, capacity * sizeof frames[0]);

		if (frames == NULL)
			return NULL;
		capture->frames = frames;
		capture->capacity = capacity;
	}
	return &capture->frames[capture->n++];
}

static void open_leaf(struct tdt__capture *capture)
{
	capture->open = true;
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

/* Whether frame `index`, recorded for an earlier leaf, and all outside it are on the stack still, as they were. */
static __attribute__((no_sanitize("address", "thread"))) bool still_there(const struct tdt__capture *capture,
									   uint32_t index)
{
	while (tdt__is_frame(index)) {
		const struct tdt__frame *frame = &capture->frames[index].frame, *caller = &capture->top;
		uint32_t parent = capture->frames[index].parent;

		if (tdt__is_frame(parent))
			caller = &capture->frames[parent].frame;
		else if (parent != TDT__PARENT_TOP)
			break; /* cut: nothing is known of the caller */
		if (tdt__word_at(frame->cfa - sizeof(uintptr_t)) != caller->pc ||
		    (frame->fp_slot != 0 && tdt__word_at(frame->fp_slot) != caller->fp))
			return false;
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

/* Take in a frame for a poll whose own frame begins at `top`. */
static void take(struct tdt__capture *capture, uintptr_t top, enum tdt__walked walked, const struct tdt__frame *frame,
		 enum tdt_cut cut)
{
	uint32_t shared;

	if (tdt__is_top(frame->cfa, top) && !frame->guessed) {
		capture->top = *frame;
		close_leaf(capture, TDT__PARENT_TOP);
		return;
	}
	if (frame->cfa > top) {
		close_leaf(capture, TDT__PARENT_CUT(TDT_CUT_CORRUPT));
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
	if (walked == TDT__WALK_CUT)
		close_leaf(capture, TDT__PARENT_CUT(cut));
	else if (frame->cfa == top) /* guessed: the chain of frame pointers leads to the traced future's own frame */
		close_leaf(capture, TDT__PARENT_TOP);
}

void tdt__capture_leaf(struct tdt__poll *chain, struct tdt__registers at)
{
	struct tdt__poll *first = asked(chain), *reach = NULL;
	struct tdt__frame frame = { .pc = at.pc, .cfa = at.sp, .fp = at.fp };
	enum tdt__walked walked = TDT__WALK_CUT;
	struct tdt__walk *walk;
	bool more;

	if (first == NULL)
		return;
	walk = &first->capture->walk;
	walk->cut = TDT_CUT_STACK;
	/* How far the stack goes on that the leaf is on: polls outside that get the frames up to there, and a cut. */
	for (struct tdt__poll *poll = first; poll != NULL; poll = asked(poll->outer)) {
		open_leaf(poll->capture);
		if (tdt__stack_readable(at.sp, poll->top))
			reach = poll;
	}
	if (reach != NULL)
		tdt__walk_start(walk, at, reach->top);
	do {
		bool beyond = reach == NULL;

		if (reach != NULL)
			walked = tdt__walk_next(walk, &frame);
		more = false;
		for (struct tdt__poll *poll = first; poll != NULL; poll = asked(poll->outer)) {
			struct tdt__capture *capture = poll->capture;

			if (capture->open && !beyond)
				take(capture, poll->top, walked, &frame, walk->cut);
			else if (capture->open)
				take(capture, UINTPTR_MAX, walked == TDT__WALK_TOP ? TDT__WALK_CUT : walked, &frame,
				     walked == TDT__WALK_TOP ? TDT_CUT_STACK : walk->cut);
			more = more || capture->open;
			beyond = beyond || poll == reach;
		}
	} while (more);
}
