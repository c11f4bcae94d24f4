/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Recorded stacks: where the leaves of a task wait.  They are a plain value.  A poll fills it in
 * (capture.h), or a watched tree in the registry (last_tree.h), or the reader of another process.
 *
 * The leaves of one poll share their outer frames: these frames are not only alike, they are the
 * same activations.  So the stacks are kept as a tree that grows from its leaves: each frame has
 * the index of its caller's frame.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tdt/tree.h>

struct tdt__modules;
struct tdt__named;

/*
 * A frame as a walk yields it.  When no walk needs the frame any more, only `pc` and `guessed` have
 * a meaning.
 */
struct tdt__frame {
	uintptr_t pc;
	uintptr_t cfa; /* the caller's stack pointer */
	uintptr_t fp;  /* the frame pointer in this frame */
	/* Where the caller's `fp` is saved; 0: still in the register, or unknown. */
	uintptr_t fp_slot;
	union {
		/* On x86-64: `cfa` was read from memory, at fp + cfa_at; 0: it was computed. */
		int32_t cfa_at;
		/* On aarch64: the return address is at cfa + pc_at; 0: it was in x30. */
		int32_t pc_at;
	};
	bool guessed;   /* `cfa` was found by the frame pointer */
	uint8_t sealed; /* where to look for the frame in a seal (seal.h) */
	/* How many stacks were entered (tdt/integrate/stack.h) to get to the one it is on. */
	uint16_t level;
};

/*
 * What stands after a stack's outermost frame in place of a caller's index: that the traced future
 * was reached, or why the stack was cut.
 */
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
	uint32_t leaves; /* how many clones were called at this frame */
};

struct tdt__stacks {
	struct tdt__recorded *frames;
	uint32_t n;
	uint32_t leaves;
	uint32_t lost;                /* leaves for which there was no memory */
	uint32_t elsewhere;           /* leaves on other threads, which are not in the stacks */
	enum tdt_leaves_known known;  /* of the poll that they are of, but for the two above */
	struct tdt__modules *modules; /* by which the frames are named */
	struct tdt__named *named;     /* frames that have names instead of PCs; NULL: none */
	/* How many unloads of modules came before the first frame was recorded: see judge.h. */
	uint64_t unloads;
	/*
	 * Modules were unloaded while the stacks were recorded, and no better stacks could be had.
	 * Relaxed: if several requesters have the same stacks, each finds this out by itself.
	 */
	atomic_bool astray;
};

/*
 * Make stacks with room for `room` frames and without modules; or a copy of stacks, with no more
 * room than they take, and with references of its own to the modules and the named frames.  The
 * caller frees both.  NULL: no memory.
 */
struct tdt__stacks *tdt__stacks_new(uint32_t room);
struct tdt__stacks *tdt__stacks_copy(const struct tdt__stacks *stacks);

/* Say what is known of the leaves.  `polls_since` and `state` of `info` are set by then. */
static inline void tdt__stacks_count(const struct tdt__stacks *stacks, struct tdt_task_info *info)
{
	info->leaves = stacks->leaves;
	info->leaves_elsewhere = stacks->elsewhere;
	info->leaves_lost = stacks->lost;
	info->leaves_known = stacks->known;
	if (info->polls_since != 0 || info->state == TDT_TASK_RUNNING)
		info->leaves_known = TDT_LEAVES_UNKNOWN;
	else if (stacks->elsewhere != 0 || stacks->lost != 0)
		info->leaves_known = TDT_LEAVES_PART;
}

/* Remove the frames that belong to no leaf.  No walk needs the frames any more. */
void tdt__stacks_prune(struct tdt__stacks *stacks);

/* `stacks` may be NULL. */
void tdt__stacks_free(struct tdt__stacks *stacks);
