// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Recording the stacks of leaves.  This runs on polling threads, inside the clones of leaves.  It
 * takes a lock or makes a system call only where the walk does (walk_rules.h, readable.h), and
 * allocates only if the stacks need more room than in the task's previous capture.
 */

#include "capture/capture.h"

#include <stdlib.h>

#include <tdt/integrate/stack.h>

#include "base/clock.h"
#include "base/refs.h"
#include "capture/chain.h"
#include "capture/counted.h"
#include "capture/seal.h"
#include "facts/wait.h"
#include "host/readable.h"
#include "registry/handle.h"
#include "registry/task_info.h"
#include "tree/named.h"
#include "unwind/registers.h"

/* If more stacks than this are entered, each from the one before, they are not walked. */
#define MAX_LEVEL UINT16_MAX

static uint16_t level_of(const struct tdt_stack *stack)
{
	return stack != NULL ? (uint16_t)stack->level : 0;
}

bool tdt__capture_init_by(struct tdt__capture *capture, const struct tdt__walk *walk,
			  uint32_t frames, uint32_t max_frames)
{
	*capture = (struct tdt__capture){ .capacity = frames, .max_frames = max_frames };
	capture->stacks.frames = malloc(frames * sizeof capture->stacks.frames[0]);
	if (capture->stacks.frames == NULL)
		return false;
	tdt__walk_init_as(&capture->walk, walk);
	atomic_init(&capture->refs, 1);
	tdt__capture_clear(capture);
	return true;
}

struct tdt__capture *tdt__capture_new_by(const struct tdt__walk *walk, uint32_t frames,
					 uint32_t max_frames)
{
	struct tdt__capture *capture = malloc(sizeof *capture);

	if (capture == NULL)
		return NULL;
	if (!tdt__capture_init_by(capture, walk, frames, max_frames)) {
		free(capture);
		return NULL;
	}
	return capture;
}

struct tdt__capture *tdt__capture_new(uint32_t frames, uint32_t max_frames)
{
	struct tdt__capture *capture;
	struct tdt__walk walk;

	if (!tdt__walk_init(&walk))
		return NULL;
	capture = tdt__capture_new_by(&walk, frames, max_frames);
	tdt__walk_fini(&walk);
	return capture;
}

void tdt__capture_clear(struct tdt__capture *capture)
{
	capture->watched = false;
	capture->stacks.unloads = tdt__walk_modules(&capture->walk)->unloads;
	capture->stacks.n = 0;
	capture->stacks.leaves = 0;
	capture->stacks.lost = 0;
	capture->stacks.elsewhere = 0;
	capture->stacks.known = TDT_LEAVES_ALL;
	tdt__named_unref(capture->stacks.named);
	capture->stacks.named = NULL;
	capture->open = false;
	capture->last = TDT__NO_FRAME;
	capture->fresh = TDT__NO_FRAME;
	capture->common = NULL;
	capture->entries = 0;
	capture->seal = NULL;
	capture->given = NULL;
	capture->counts = false;
	tdt__counted_release(capture, false);
	capture->facts.n_waits = 0;
	capture->facts.recorded = false;
	capture->facts.moved = false;
	atomic_store_explicit(&capture->stacks.astray, false, memory_order_relaxed);
}

/* Acquire what earlier holders wrote.  Pairs with the release in tdt__capture_unref(). */
static bool is_sole(const struct tdt__capture *capture)
{
	return atomic_load_explicit(&capture->refs, memory_order_acquire) == 1;
}

static bool resize(struct tdt__capture *capture, uint32_t capacity)
{
	struct tdt__recorded *frames = realloc(capture->stacks.frames, capacity * sizeof frames[0]);

	if (frames == NULL)
		return false;
	capture->stacks.frames = frames;
	capture->capacity = capacity;
	return true;
}

bool tdt__capture_reuse(struct tdt__capture *capture, const struct tdt__walk *walk,
			uint32_t frames)
{
	if (!is_sole(capture))
		return false;
	if (capture->capacity < frames)
		resize(capture, frames);
	tdt__walk_share(&capture->walk, walk);
	tdt__capture_clear(capture);
	return true;
}

bool tdt__capture_expect_clones(struct tdt__capture *capture)
{
	struct tdt__clone *clones;

	if (capture->clones_room >= capture->capacity)
		return true;
	clones = realloc(capture->clones, capture->capacity * sizeof *clones);
	if (clones == NULL)
		return false;
	capture->clones = clones;
	capture->clones_room = capture->capacity;
	return true;
}

struct tdt__capture *tdt__capture_ref(struct tdt__capture *capture)
{
	atomic_fetch_add_explicit(&capture->refs, 1, memory_order_relaxed);
	return capture;
}

void tdt__capture_fini(struct tdt__capture *capture)
{
	tdt__walk_fini(&capture->walk);
	tdt__counted_release(capture, true);
	free(capture->clones);
	tdt__named_unref(capture->stacks.named);
	free(capture->facts.waits);
	free(capture->facts.wait_list);
	free(capture->stacks.frames);
}

void tdt__capture_unref(struct tdt__capture *capture)
{
	if (capture == NULL || !tdt__refs_drop(&capture->refs)) /* pairs with is_sole(), too */
		return;
	tdt__capture_fini(capture);
	free(capture);
}

/* False: the capture is fixed, or there is no memory, or there are no more indexes. */
static bool grow_capture(struct tdt__capture *capture)
{
	return !capture->fixed && capture->capacity <= TDT__PARENT_TOP / 2 &&
	       resize(capture, 2 * capture->capacity);
}

static struct tdt__recorded *new_frame(struct tdt__capture *capture)
{
	if (__builtin_expect(capture->stacks.n == capture->capacity, 0) && !grow_capture(capture))
		return NULL;
	return &capture->stacks.frames[capture->stacks.n++];
}

static void open_leaf(struct tdt__capture *capture)
{
	const struct tdt_stack *stack = tdt__thread.entered;

	while (stack != NULL && stack->entry > capture->entries)
		stack = stack->outer;
	capture->common = stack;
	capture->entries = tdt__thread.entries;
	capture->open = true;
	capture->fresh = TDT__NO_FRAME;
	capture->doubtful = false;
	capture->own = capture->stacks.n;
	capture->match = TDT__NO_FRAME;
}

/* Compare further frames with those of the previous leaf from `match` on. */
static inline void compare_from(struct tdt__capture *capture, uint32_t match)
{
	capture->match = match;
	capture->plain = capture->end;
	if (tdt__is_frame(match) && capture->stacks.frames[match].frame.cfa < capture->end)
		capture->plain = capture->stacks.frames[match].frame.cfa;
}

/* Frames of the previous leaf with a CFA below `cfa` need not be compared any more. */
static inline void compare_up_to(struct tdt__capture *capture, uintptr_t cfa)
{
	uint32_t match = capture->match;

	while (tdt__is_frame(match) && capture->stacks.frames[match].frame.cfa < cfa)
		match = capture->stacks.frames[match].parent;
	compare_from(capture, match);
}

/*
 * The walk for the leaf continues on `stack`.  Its frames are compared with those of the previous
 * leaf, beginning at the innermost stack that both leaves are on.  Stacks that were left since the
 * previous leaf may be unmapped by now.
 */
static void begin_stack(struct tdt__capture *capture, const struct tdt_stack *stack, uintptr_t end)
{
	uint32_t match = capture->match;

	if (stack == capture->common) {
		match = capture->last;
		while (tdt__is_frame(match) &&
		       capture->stacks.frames[match].frame.level > level_of(stack))
			match = capture->stacks.frames[match].parent;
	}
	capture->end = end;
	compare_from(capture, match);
}

/*
 * End the leaf's stack.  `parent` is what follows the leaf's last frame: a frame of an earlier
 * leaf, the traced future (TDT__PARENT_TOP), or a cut.
 */
static void close_leaf(struct tdt__capture *capture, uint32_t parent)
{
	uint32_t innermost = capture->own;

	capture->open = false;
	if (__builtin_expect(capture->doubtful, 0) && !tdt__is_frame(parent) &&
	    parent != TDT__PARENT_TOP) {
		capture->stacks.n = capture->own;
		return;
	}
	if (capture->stacks.n == capture->own) {
		if (!tdt__is_frame(parent)) { /* there was no room for a single frame */
			capture->stacks.lost++;
			return;
		}
		innermost = parent;
	} else {
		capture->stacks.frames[capture->stacks.n - 1].parent = parent;
	}
	capture->stacks.frames[innermost].leaves++;
	capture->stacks.leaves++;
	capture->last = innermost;
	capture->fresh = innermost;
}

/*
 * Whether frame `first` of an earlier leaf and all frames outside it are still on the stack,
 * unchanged.  If not, the frames up to the changed one need not be looked at again.
 */
static bool still_there(struct tdt__capture *capture, uint32_t first)
{
	struct tdt__seal *seal = capture->seal;
	uint32_t index = seal != NULL ? tdt__seal_skip(seal, capture->stacks.frames, first) : first,
		 parent;
	bool skipped = index != first;

	for (; tdt__is_frame(index); index = parent) {
		const struct tdt__recorded *captured = &capture->stacks.frames[index];
		const struct tdt__frame *caller = &capture->top;

		parent = captured->parent;
		if (tdt__is_frame(parent))
			caller = &capture->stacks.frames[parent].frame;
		else if (parent != TDT__PARENT_TOP && parent != TDT__PARENT_CUT(TDT_CUT_CORRUPT))
			break; /* a new walk would be cut here too */
		if (parent == TDT__PARENT_CUT(TDT_CUT_CORRUPT) ||
		    !tdt__walk_leads_to(&captured->frame, caller)) {
			if (tdt__is_frame(parent) && caller->level != captured->frame.level)
				/*
				 * The end of a stack.  The function that entered this stack waits
				 * there, and has not moved.
				 */
				break;
			compare_from(capture, parent);
			return false;
		}
	}
	if (seal != NULL && !skipped)
		tdt__seal_set(seal, capture, first);
	return true;
}

static inline bool is_same_activation(const struct tdt__frame *a, const struct tdt__frame *b)
{
	return a->cfa == b->cfa && a->pc == b->pc && a->fp == b->fp;
}

/*
 * The frame of the previous leaf that is the same activation as `frame`, as are then all its
 * callers; TDT__NO_FRAME: there is none.  CFAs rise along both stacks, so one pass over each is
 * enough.  (Where one stack ends and the walk goes over to the next, both leaves share the frame.)
 */
static uint32_t shared_with_last(struct tdt__capture *capture, const struct tdt__frame *frame)
{
	uint32_t index;

	compare_up_to(capture, frame->cfa);
	index = capture->match;
	if (!tdt__is_frame(index) ||
	    !is_same_activation(&capture->stacks.frames[index].frame, frame) ||
	    !still_there(capture, index))
		return TDT__NO_FRAME;
	return index;
}

static void append_frame(struct tdt__capture *capture, const struct tdt__frame *frame)
{
	struct tdt__recorded *captured;

	if (capture->stacks.n - capture->own == capture->max_frames) {
		close_leaf(capture, TDT__PARENT_CUT(TDT_CUT_LIMIT));
		return;
	}
	captured = new_frame(capture);
	if (captured == NULL) {
		close_leaf(capture,
			   TDT__PARENT_CUT(capture->fixed ? TDT_CUT_LIMIT : TDT_CUT_MEMORY));
		return;
	}
	if (&captured->frame != frame) /* walk_plain() has written it in place */
		captured->frame = *frame;
	captured->parent = capture->stacks.n; /* the next frame that is appended is the caller */
	captured->leaves = 0;
}

/* --- One walk for the captures of all polls in a chain ------------------- */

/* The next poll in the chain that has a capture.  It may be `poll` itself. */
static struct tdt__poll *next_capturing(struct tdt__poll *poll)
{
	while (poll != NULL && poll->capture == NULL)
		poll = poll->outer;
	return poll;
}

/*
 * Record a frame that the walk has yielded.  If it is the walk's last frame (TDT__WALK_CUT), `cut`
 * says why.
 */
static void take_frame(struct tdt__capture *capture, const struct tdt__frame *frame,
		       enum tdt__walked walked, enum tdt_cut cut)
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
	append_frame(capture, frame);
	if (!capture->open)
		return;
	/*
	 * A guessed step may lead exactly to the traced future's own frame.  A guessed or wrong
	 * step may lead beyond that frame.  If the walk has ended at a top that is not this
	 * capture's, the top is that of an outer poll on this stack, and this capture's poll is on
	 * another stack.
	 */
	if (frame->guessed && frame->cfa == capture->end)
		close_leaf(capture, TDT__PARENT_TOP);
	else if (frame->cfa > capture->end)
		close_leaf(capture,
			   TDT__PARENT_CUT(frame->guessed ? TDT_CUT_NO_INFO : TDT_CUT_CORRUPT));
	else if (walked == TDT__WALK_CUT)
		close_leaf(capture, TDT__PARENT_CUT(cut));
	else if (walked == TDT__WALK_TOP)
		close_leaf(capture, TDT__PARENT_CUT(TDT_CUT_STACK));
}

/*
 * Whether a frame that is not below capture->plain is nevertheless new: it is neither the last
 * frame nor shared with the previous leaf.  Updates capture->plain.
 */
static inline bool is_plain(struct tdt__capture *capture, const struct tdt__frame *frame)
{
	compare_up_to(capture, frame->cfa);
	return frame->cfa < capture->end &&
	       (frame->cfa < capture->plain ||
		!is_same_activation(&capture->stacks.frames[capture->match].frame, frame));
}

/* Returns whether some capture needs more frames. */
static bool take_frame_for_all(struct tdt__poll *first, const struct tdt__frame *frame,
			       enum tdt__walked walked, enum tdt_cut cut)
{
	bool more = false;

	for (struct tdt__poll *poll = first; poll != NULL; poll = next_capturing(poll->outer)) {
		if (poll->capture->open)
			take_frame(poll->capture, frame, walked, cut);
		more = more || poll->capture->open;
	}
	return more;
}

/*
 * Let the walk use the newest rules that any of the captures has; their PCs are then named by the
 * modules of those rules.  Returns how many PCs the walk may learn: the most that any of the
 * captures may, since what is learned serves all of them.
 */
static uint32_t share_rules(struct tdt__poll *first)
{
	struct tdt__walk *walk = &first->capture->walk;
	uint32_t most = walk->learns;

	for (struct tdt__poll *poll = next_capturing(first->outer); poll != NULL;
	     poll = next_capturing(poll->outer)) {
		tdt__walk_adopt(walk, &poll->capture->walk);
		if (poll->capture->walk.learns > most)
			most = poll->capture->walk.learns;
	}
	return most;
}

/* Give all captures the rules of the walk, which has learned `learned` PCs. */
static void spread_rules(struct tdt__poll *first, uint32_t learned)
{
	for (struct tdt__poll *poll = first; poll != NULL; poll = next_capturing(poll->outer)) {
		uint32_t *learns = &poll->capture->walk.learns;

		*learns -= learned < *learns ? learned : *learns;
		if (poll != first)
			tdt__walk_adopt(&poll->capture->walk, &first->capture->walk);
	}
}

/*
 * Let every capture begin a leaf, which has cloned the waker of `inner`.  A poll outside `inner`
 * certainly led to the leaf if it passed its own waker on to the poll inside it.  Otherwise a
 * coroutine may have switched away from that outer poll, on a stack that was not reported: then the
 * leaf does not belong to the outer poll.
 */
static void open_all(struct tdt__poll *first, const struct tdt__poll *inner)
{
	const struct tdt_waker *given = NULL;

	for (struct tdt__poll *poll = first; poll != NULL; poll = next_capturing(poll->outer)) {
		bool sure = poll == inner || given == &poll->task->substitute.waker;

		open_leaf(poll->capture);
		poll->capture->doubtful = !sure;
		if (sure)
			given = poll->capture->given;
	}
}

/*
 * Prepare to walk from `sp` on `stack`.  Returns where the walk of this stack ends: at the CFA of
 * the outermost poll's frame on it, or 0 if no poll's frame is on it.  Polls on other stacks are
 * cut there.
 */
static uintptr_t begin_all(struct tdt__poll *first, const struct tdt_stack *stack, uintptr_t sp)
{
	uintptr_t reach = 0;

	for (struct tdt__poll *poll = first; poll != NULL; poll = next_capturing(poll->outer)) {
		uintptr_t end = poll->top + TDT__TOP_RECORD;
		bool sure = tdt__stack_holds(stack, sp, end) || tdt__stack_is_own(sp, end);
		bool here = poll->stack == stack && (sure || tdt__stack_readable(sp, end));

		begin_stack(poll->capture, stack, here ? poll->top : UINTPTR_MAX);
		if (here && sure)
			poll->capture->doubtful = false;
		if (here && poll->top > reach)
			reach = poll->top;
	}
	return reach;
}

/* The number of frames up to which the capture can record the current leaf without growing. */
static uint32_t leaf_room(const struct tdt__capture *capture)
{
	uint32_t most = capture->max_frames, room = capture->capacity - capture->own;

	return capture->own + (most < room ? most : room);
}

/*
 * Continue the walk, and record all frames that need no further work: frames that are new, not the
 * last, not shared with the previous leaf, and below `room`.  Most frames are of this kind, and
 * most of the time is spent in this function.  Returns what the walk returned for the first other
 * frame.  `*captured` is where that frame was written: at the place where it would be recorded, or
 * in `elsewhere`.
 */
static inline enum tdt__walked walk_plain(struct tdt__capture *capture, uint32_t room,
					  struct tdt__registers *at, uint16_t level,
					  uintptr_t reach, struct tdt__recorded *elsewhere,
					  struct tdt__recorded **captured)
{
	uintptr_t plain = capture->plain < reach ? capture->plain : reach;
	struct tdt__recorded *next;
	enum tdt__walked walked;
	uint32_t n = capture->stacks.n;

	for (;;) {
		next = n < room ? &capture->stacks.frames[n] : elsewhere;
		walked = tdt__walk_next(&capture->walk, at, &next->frame);
		next->frame.level = level;
		if (walked != TDT__WALK_FRAME || n >= room)
			break;
		if (next->frame.cfa >= plain) {
			if (next->frame.cfa >= reach || !is_plain(capture, &next->frame))
				break;
			plain = capture->plain < reach ? capture->plain : reach;
		}
		next->parent = ++n;
		next->leaves = 0;
	}
	capture->stacks.n = n;
	*captured = next;
	return walked;
}

/*
 * One walk for all captures, from `at` to the end of `stack`.  Returns whether some capture needs
 * the frames outside this stack, from the place where the stack was entered.
 */
static bool walk_stack(struct tdt__poll *first, const struct tdt_stack *stack,
		       struct tdt__registers at)
{
	struct tdt__walk *walk = &first->capture->walk;
	struct tdt__recorded elsewhere = { .frame = { .pc = at.pc, .cfa = at.sp, .fp = at.fp } },
			     *captured;
	bool alone = next_capturing(first->outer) == NULL;
	uintptr_t reach = begin_all(first, stack, at.sp), base = 0;
	uint16_t level = level_of(stack);
	enum tdt__walked walked;
	bool over, more;

	if (stack != NULL && tdt__stack_holds(stack, at.sp, stack->base + TDT__TOP_RECORD))
		reach = base = stack->base;
	else if (tdt__stack_holds(stack, at.sp, tdt__stack_end(stack)))
		reach = tdt__stack_end(stack);
	if (reach == 0 || (stack != NULL && stack->level > MAX_LEVEL)) {
		tdt__walk_meet(walk, at.pc - 1); /* no walk meets this PC, but it needs a name */
		take_frame_for_all(first, &elsewhere.frame, TDT__WALK_CUT, TDT_CUT_STACK);
		return false;
	}
	tdt__walk_start(walk, at, reach);
	do {
		walked = walk_plain(first->capture, alone ? leaf_room(first->capture) : 0, &at,
				    level, reach, &elsewhere, &captured);
		over = base != 0 && walked != TDT__WALK_CUT &&
		       tdt__is_top(captured->frame.cfa, base);
		more = take_frame_for_all(first, &captured->frame, over ? TDT__WALK_FRAME : walked,
					  walk->cut);
	} while (more && !over);
	return more;
}

void tdt__capture_leaf(struct tdt__poll *poll, struct tdt__registers at)
{
	struct tdt__poll *first = next_capturing(poll);
	const struct tdt_stack *stack = tdt__thread.entered;
	struct tdt__walk *walk;
	uint32_t own, most, learned;

	if (first == NULL)
		return;
	walk = &first->capture->walk;
	open_all(first, poll);
	own = walk->learns;
	most = walk->learns = share_rules(first);
	while (walk_stack(first, stack, at)) {
		at = (struct tdt__registers){ .pc = stack->pc, .sp = stack->sp, .fp = stack->fp };
		stack = stack->outer;
	}
	learned = most - walk->learns;
	walk->learns = own;
	spread_rules(first, learned);
}

void tdt__capture_begin(struct tdt__capture *capture)
{
	open_leaf(capture);
}

bool tdt__capture_resume(struct tdt__capture *capture)
{
	struct tdt__recorded *frames = capture->stacks.frames;
	uint32_t n = capture->stacks.n;

	if (capture->stacks.leaves != 1 || frames[n - 1].parent != TDT__PARENT_TOP)
		return false;
	frames[n - 1].parent = n;
	frames[capture->own].leaves = 0;
	capture->stacks.leaves = 0;
	capture->open = true;
	return true;
}

bool tdt__capture_add(struct tdt__capture *capture, const struct tdt__frame *frame)
{
	append_frame(capture, frame);
	return capture->open;
}

void tdt__capture_end(struct tdt__capture *capture, enum tdt_cut cut)
{
	/* Without frames, the thread is in the wrapper itself, and there is no stack to show. */
	if (capture->stacks.n == capture->own)
		capture->open = false;
	else
		close_leaf(capture, TDT__PARENT_CUT(cut));
}

void tdt__capture_complete(struct tdt__capture *capture)
{
	capture->stacks.modules = tdt__walk_modules(&capture->walk);
}

void tdt__capture_wait(struct tdt__capture *capture, const struct tdt_wait *wait)
{
	if (capture->fixed)
		return;
	if (capture->facts.n_waits == capture->waits_room) {
		uint32_t room = capture->waits_room != 0 ? 2 * capture->waits_room : 4;
		struct tdt_wait *waits = realloc(capture->facts.waits, room * sizeof *waits);
		const struct tdt_wait **list =
			realloc(capture->facts.wait_list, room * sizeof *list);

		if (waits != NULL)
			capture->facts.waits = waits;
		if (list != NULL)
			capture->facts.wait_list = list;
		/* Waits that have moved are pointed to anew, also if there is no more room. */
		for (uint32_t i = 0; i < (list != NULL ? room : capture->waits_room); i++)
			capture->facts.wait_list[i] = &capture->facts.waits[i];
		if (waits == NULL || list == NULL)
			return;
		capture->waits_room = room;
	}
	tdt__add_wait(capture->facts.waits, &capture->facts.n_waits, wait);
}

void tdt__capture_recorded(struct tdt__capture *capture, const struct tdt_handle *task,
			   const struct tdt_task_record *record)
{
	struct tdt__facts *facts = &capture->facts;
	struct tdt__task_info said;

	tdt__task_info(&said, task, record, tdt__clock());
	facts->state = said.info.state;
	facts->state_ns = said.info.state_ns;
	facts->polls = said.info.polls;
	facts->woken_ns = said.info.woken_ns;
	facts->woken_by = said.info.woken_by;
	facts->thread = 0;
	facts->syscall = NULL;
	facts->recorded = true;
	if (said.info.n_waits != 0)
		tdt__capture_wait(capture, &said.wait);
}
