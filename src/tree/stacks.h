/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_TREE_STACKS_H
#define TDT_SRC_TREE_STACKS_H

/*
 * Recorded stacks: where the leaves of a task wait.  They are a plain value, which a poll fills in (capture.h), a watched
 * tree in the registry (last_tree.h), or whoever reads another process.
 *
 * Leaves of one poll share their outer frames: not alike, but the very same activations.  So the stacks are kept as a
 * tree that grows from its leaves: each frame has the index of its caller's.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tdt/tree.h>

struct tdt__modules;

/* A frame as a walk yields it.  Of a frame that nobody walks any more only `pc` and `guessed` mean something. */
struct tdt__frame {
	uintptr_t pc;
	uintptr_t cfa;     /* the caller's sp */
	uintptr_t fp;      /* in this frame */
	uintptr_t fp_slot; /* where the caller's is saved; 0: in the register still, or unknown */
	int32_t cfa_at;    /* `cfa` was read from memory, at fp + cfa_at; 0: it was computed */
	bool guessed;      /* `cfa` was found by frame pointer */
	uint8_t sealed;    /* where to look for it in a seal (seal.h) */
	uint16_t level;    /* how many stacks were entered (tdt/coroutine.h) to get to the one it is on */
};

/* What comes after a stack's last frame, in place of a caller's index: the traced future, or why it was cut. */
#define TDT__PARENT_TOP (UINT32_MAX - 15)
#define TDT__PARENT_CUT(cut) (TDT__PARENT_TOP + (uint32_t)(cut))
#define TDT__NO_FRAME UINT32_MAX

static inline bool tdt__is_frame(uint32_t index)
{
	return index < TDT__PARENT_TOP;
}

struct tdt__recorded {
	struct tdt__frame frame;
	uint32_t parent;
	uint32_t leaves; /* how many clones were called just here */
};

struct tdt__stacks {
	struct tdt__recorded *frames;
	uint32_t n;
	uint32_t leaves;
	uint32_t lost;                /* leaves there was no memory for */
	uint32_t elsewhere;           /* leaves on other threads, which are not in the stacks */
	struct tdt__modules *modules; /* what the frames are named by */
	uint64_t unloads;             /* of modules, before the first frame was recorded; see judge.h */
	/*
	 * Modules went while the stacks were recorded, and no better ones could be had.  Relaxed: of several requesters who
	 * have the same stacks each finds out by itself.
	 */
	atomic_bool astray;
};

/*
 * Stacks with room for `room` frames and without modules; and a copy of stacks, with no more room than they take, and
 * with a reference of its own to the modules.  Both are for the caller to free.  NULL: no memory.
 */
struct tdt__stacks *tdt__stacks_new(uint32_t room);
struct tdt__stacks *tdt__stacks_copy(const struct tdt__stacks *stacks);

/* `stacks` may be NULL. */
void tdt__stacks_free(struct tdt__stacks *stacks);

#endif
