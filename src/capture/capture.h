/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A capture: the stacks of the leaves of one poll (stacks.h), and what the poll reports about its
 * task (facts.h).  The walk for each further leaf goes only to the first frame that this leaf
 * shares with the previous one.
 *
 * The requester makes the capture and gets it back.  In between, the capture belongs to the poll
 * that took the request, and to that poll's thread.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tdt/tree.h>

#include "capture/facts.h"
#include "tree/stacks.h"
#include "unwind/walk.h"

struct tdt__clone;
struct tdt__counted;
struct tdt__poll;
struct tdt__seal;
struct tdt_stack;
struct tdt_task_record;

struct tdt__capture {
	atomic_uint refs;
	uint32_t max_frames;
	bool fixed;                /* it never grows: see spare_captures.h */
	bool watched;              /* it becomes the task's last tree: see watch.h */
	uint16_t promised;         /* the task's `own_epoch` when the poll began: see last_tree.h */
	struct tdt__walk walk;

	struct tdt__facts facts;
	uint64_t began;            /* when the poll began */

	/* In a complete capture, `modules` are those of `walk`, which holds the reference. */
	struct tdt__stacks stacks;
	uint32_t capacity;         /* the number of frames for which `stacks` has room */
	struct tdt__frame top;     /* the traced future's own frame, as each whole walk met it */

	/* The leaf that is being recorded. */
	bool open;
	bool doubtful;             /* it is a leaf of this poll only if the walk reaches `end` */
	/* Where the traced future's own frame begins; UINTPTR_MAX: on another stack. */
	uintptr_t end;
	uint32_t own;              /* the index of the leaf's first frame */
	uint32_t last;             /* the innermost frame of the previous leaf; or TDT__NO_FRAME */
	uint32_t match;            /* how far the frames of the previous leaf were compared */
	/*
	 * A frame with a CFA below this value is not shared with the previous leaf, and is not the
	 * last frame of the walk.
	 */
	uintptr_t plain;
	/*
	 * The innermost stack of the previous leaf that was not left since; NULL: that is the
	 * thread's own stack.
	 */
	const struct tdt_stack *common;
	uint64_t entries;          /* how often this thread had entered a stack, at that leaf */
	uint32_t fresh;            /* the leaf recorded last; TDT__NO_FRAME: that leaf was lost */
	struct tdt__seal *seal;    /* of the poll, while the poll lasts; NULL: it has none */
	const struct tdt_waker *given; /* the waker that the poll got; valid while the poll lasts */

	/* Counted clones: see counted.h. */
	bool counts;               /* leaves get counted clones in this poll */
	struct tdt__counted *_Atomic prepared; /* a list of those that the poll may hand out */
	struct tdt__clone *clones; /* those that the poll has handed out */
	_Atomic uint32_t n_clones;
	uint32_t clones_room;

	uint32_t waits_room;
};

/* The room to begin with if no more is known to be needed: most stacks fit. */
#define TDT__FIRST_FRAMES 64

/*
 * Make a capture with one reference and room for `frames` frames.  A capture grows; `frames` is
 * what the task needed last time, so that the capture need not grow.  NULL: no memory.
 */
struct tdt__capture *tdt__capture_new(uint32_t frames, uint32_t max_frames);

/* The same, for a capture that walks by the rules of `walk`. */
struct tdt__capture *tdt__capture_new_by(const struct tdt__walk *walk, uint32_t frames,
					 uint32_t max_frames);

/*
 * The same in the caller's memory, for tdt__capture_fini() instead of tdt__capture_unref().  False:
 * no memory.
 */
bool tdt__capture_init_by(struct tdt__capture *capture, const struct tdt__walk *walk,
			  uint32_t frames, uint32_t max_frames);
void tdt__capture_fini(struct tdt__capture *capture);

/*
 * Make the capture as good as new: it walks by the rules of `walk`, and has room for `frames`
 * frames if there is memory.  False: it cannot be reused, because there is another reference.
 */
bool tdt__capture_reuse(struct tdt__capture *capture, const struct tdt__walk *walk,
			uint32_t frames);

struct tdt__capture *tdt__capture_ref(struct tdt__capture *capture);
void tdt__capture_unref(struct tdt__capture *capture);

/* Make room for as many counted clones as there is room for frames.  False: no memory. */
bool tdt__capture_expect_clones(struct tdt__capture *capture);

/* Make the capture empty, as it was when it was made.  It keeps its room. */
void tdt__capture_clear(struct tdt__capture *capture);

/*
 * Record a leaf that has cloned the waker of `poll`; `at` are the registers of the call of clone.
 * One walk records the leaf into the captures of `poll` and of the polls outside it.  May set
 * errno.
 */
void tdt__capture_leaf(struct tdt__poll *poll, struct tdt__registers at);

/*
 * Record a stack that the caller walks: begin it, add its frames from the innermost on, and end it.
 * `cut` says why the stack ends before the traced future, if it does.  When tdt__capture_add()
 * returns false, the stack has ended: the caller adds no more frames, and does not end it.
 */
void tdt__capture_begin(struct tdt__capture *capture);
bool tdt__capture_add(struct tdt__capture *capture, const struct tdt__frame *frame);
void tdt__capture_end(struct tdt__capture *capture, enum tdt_cut cut);

/*
 * Go on with the only stack of the capture, whose outermost frame is known.  False: it has another
 * leaf, or was cut.
 */
bool tdt__capture_resume(struct tdt__capture *capture);

/* Nothing more will be recorded: give the stacks their modules. */
void tdt__capture_complete(struct tdt__capture *capture);

/* Note what a leaf waits for.  Nothing is noted in a fixed capture, or if there is no memory. */
void tdt__capture_wait(struct tdt__capture *capture, const struct tdt_wait *wait);

/* Have the facts of the capture be those of the record, which is a copy of the task's. */
void tdt__capture_recorded(struct tdt__capture *capture, const struct tdt_handle *task,
			   const struct tdt_task_record *record);
