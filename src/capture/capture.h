/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_CAPTURE_CAPTURE_H
#define TDT_SRC_CAPTURE_CAPTURE_H

/*
 * Recording the stacks of the leaves of one poll (stacks.h), and what the poll says of its task (facts.h).  A walk for the
 * next leaf goes only to the first frame that it shares with the leaf before.
 *
 * The asker makes it and gets it back; in between it belongs to the poll that took the request, and to its thread.
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

struct tdt__capture {
	atomic_uint refs;
	uint32_t max_frames;
	bool fixed;                /* what room it has is all it gets: see spare_captures.h */
	bool watched;              /* it becomes the task's last tree: see watch.h */
	uint16_t promised;         /* what the task's `own_epoch` was then: see last_tree.h */
	struct tdt__walk walk;

	struct tdt__facts facts;
	uint64_t began;            /* when the poll did */

	/* Once it has ended `modules` are those of `walk`, which has the reference. */
	struct tdt__stacks stacks;
	uint32_t capacity;         /* of frames */
	struct tdt__frame top;     /* the traced future's own frame, as every complete stack has met it */

	/* The leaf that is being recorded. */
	bool open;
	bool doubtful;             /* it is this poll's only if the walk gets to `end` */
	uintptr_t end;             /* where the traced future's own frame begins; UINTPTR_MAX: on another stack */
	uint32_t own;              /* index of its first frame */
	uint32_t last;             /* innermost frame of the leaf before, TDT__NO_FRAME: none */
	uint32_t match;            /* how far that leaf's frames were compared */
	uintptr_t plain;           /* a frame whose CFA is below is none of those, nor the last */
	const struct tdt_stack *common; /* the innermost stack of that leaf that was not left since; NULL: not entered */
	uint64_t entries;          /* of stacks on this thread, before that leaf */
	uint32_t fresh;            /* the leaf that was recorded last; TDT__NO_FRAME: it was lost */
	struct tdt__seal *seal;    /* the poll's, while it goes on; NULL: it has none */
	const struct tdt_waker *given; /* to the poll; of use while it goes on */

	/* Counted clones: see counted.h. */
	bool counts;               /* leaves get them in this poll */
	struct tdt__counted *_Atomic prepared; /* which the poll may hand out, as a list */
	struct tdt__clone *clones; /* which it has handed out */
	_Atomic uint32_t n_clones;
	uint32_t clones_room;

	uint32_t waits_room;
};

/* Room to begin with, where nothing is known of the task or it took less: most stacks fit. */
#define TDT__FIRST_FRAMES 64

/*
 * A capture with one reference and room for `frames` frames (it grows; `frames` is what the task needed last time, so
 * that it need not).  NULL: no memory.
 */
struct tdt__capture *tdt__capture_new(uint32_t frames, uint32_t max_frames);

/* The same, to walk as `walk` is ready to. */
struct tdt__capture *tdt__capture_new_by(const struct tdt__walk *walk, uint32_t frames, uint32_t max_frames);

/*
 * The same in the caller's memory, where it stays: it is not for tdt__capture_unref().  False: no
 * memory.
 */
bool tdt__capture_init_by(struct tdt__capture *capture, const struct tdt__walk *walk, uint32_t frames,
			  uint32_t max_frames);
void tdt__capture_fini(struct tdt__capture *capture);

/*
 * Make it as new, to walk as `walk` is ready to, with room for `frames` frames if there is memory.  False: it can't be,
 * since others have a reference still.
 */
bool tdt__capture_reuse(struct tdt__capture *capture, const struct tdt__walk *walk, uint32_t frames);

struct tdt__capture *tdt__capture_ref(struct tdt__capture *capture);
void tdt__capture_unref(struct tdt__capture *capture);

/* Have room for as many counted clones as for frames.  False: no memory. */
bool tdt__capture_expect_clones(struct tdt__capture *capture);

/* Have it be as it was made, but for the room it has got. */
void tdt__capture_clear(struct tdt__capture *capture);

/*
 * Record a leaf whose clone was called with registers `at` into the captures of `poll`, whose waker
 * it cloned, and of the polls outside of that, by one walk.  May set errno.
 */
void tdt__capture_leaf(struct tdt__poll *poll, struct tdt__registers at);

/*
 * Record a stack that somebody else walks: begin, add its frames from the innermost on, end with why it ends before the
 * traced future, if it does.  No more is to be added, and it has ended, when tdt__capture_add() says false.
 */
void tdt__capture_begin(struct tdt__capture *capture);
bool tdt__capture_add(struct tdt__capture *capture, const struct tdt__frame *frame);
void tdt__capture_end(struct tdt__capture *capture, enum tdt_cut cut);

/* No more is going to be recorded: have the stacks be complete. */
void tdt__capture_complete(struct tdt__capture *capture);

/* The poll has ended: give up the frames that lead to no leaf. */
void tdt__capture_prune(struct tdt__capture *capture);

/* Note what a leaf waits for.  Without memory, or in a fixed one, it is lost. */
void tdt__capture_wait(struct tdt__capture *capture, struct tdt_wait wait);

#endif
