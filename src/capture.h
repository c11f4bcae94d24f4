/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_CAPTURE_H
#define TDT_SRC_CAPTURE_H

/*
 * What one poll of a task left behind while it was asked: the stacks of its leaves.
 *
 * Leaves of one poll share their outer frames: not alike, but the very same activations.  So the stacks are kept as a
 * tree that grows from its leaves: each frame has the index of its caller's.  A walk for the next leaf goes only to the
 * first frame it shares with the leaf before.
 *
 * The asker makes it and gets it back; in between it belongs to the poll that took the request, and to its thread.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tdt/tree.h>

#include "walk.h"

struct tdt__poll;

/* What comes after a stack's last frame, in place of a caller's index: the traced future, or why it was cut. */
#define TDT__PARENT_TOP (UINT32_MAX - 15)
#define TDT__PARENT_CUT(cut) (TDT__PARENT_TOP + (uint32_t)(cut))
#define TDT__NO_FRAME UINT32_MAX

static inline bool tdt__is_frame(uint32_t index)
{
	return index < TDT__PARENT_TOP;
}

struct tdt__captured {
	struct tdt__frame frame;
	uint32_t parent;
	uint32_t leaves; /* how many clones were called just here */
};

struct tdt__capture {
	atomic_uint refs;
	uint32_t max_frames;
	struct tdt__walk walk;
	uint64_t unloads;          /* of modules, before it was begun; see walked_well() in backtrace.c */

	/* The stacks. */
	struct tdt__captured *frames;
	uint32_t n;
	uint32_t capacity;
	uint32_t leaves;
	uint32_t lost;             /* leaves there was no memory for */
	uint32_t elsewhere;        /* leaves on other threads, which are not in the stacks */
	struct tdt__frame top;     /* the traced future's own frame, as every complete stack has met it */

	/* The leaf that is being recorded. */
	bool open;
	uintptr_t end;             /* where the traced future's own frame begins; UINTPTR_MAX: on another stack */
	uint32_t own;              /* index of its first frame */
	uint32_t last;             /* innermost frame of the leaf before, TDT__NO_FRAME: none */
	uint32_t match;            /* how far that leaf's frames were compared */

	atomic_bool astray;        /* modules went while it was made, and no better could be had; set by askers */

	/* What the leaves say they wait for. */
	struct tdt_wait *waits;
	uint32_t n_waits;
	uint32_t waits_room;

	/* What the poll was. */
	enum tdt_task_state state;
	uint64_t state_ns;
	uint64_t polls;
	uint64_t woken_ns;         /* how long before the task was last woken, 0: unknown; and which task did it */
	uint64_t woken_by;

	/* Of the stack of a poll that runs. */
	uint32_t thread;
	const char *syscall;
};

/*
 * A capture with one reference and room for `frames` frames (it grows; `frames` is what the task needed last time, so
 * that it need not).  NULL: no memory.
 */
struct tdt__capture *tdt__capture_new(uint32_t frames, uint32_t max_frames);
struct tdt__capture *tdt__capture_ref(struct tdt__capture *capture);
void tdt__capture_unref(struct tdt__capture *capture);

/*
 * Record a leaf whose clone was called with registers `at` into every capture of the chain of polls, by one walk.  May
 * set errno.
 */
void tdt__capture_leaf(struct tdt__poll *chain, struct tdt__registers at);

/* Note what a leaf waits for.  Without memory it is lost. */
void tdt__capture_wait(struct tdt__capture *capture, struct tdt_wait wait);

#endif
