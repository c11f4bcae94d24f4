/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The block of a recording: how large its parts are, where they lie, and the memory or the file
 * that it is made of.  <tdt/layout/recording.h> has the layout.
 *
 *	header, table │ service │ first rings │ small rings │ stacks │ live tasks     the base
 *	large ring with its ring of what is remarkable                                each by itself
 *
 * The base is reserved as a whole, and so is each large ring when it is needed.  To reserve takes
 * address space alone.  A part is made *ready* before anybody writes to it: then it can be
 * accessed, and takes memory when it is written to, or it is allocated in the file.  A part that is
 * not ready is not in a core file.
 *
 * A thread that polls begins with one of the first rings, which are few and small, so all of them
 * are ready from the start.  When the thread has filled half of it, it takes a large ring, of which
 * the recorder's thread keeps some ready.  A large ring begins small, and becomes larger as its
 * thread writes.  So no thread waits for a ring, and what a recording takes follows from what is
 * written.
 */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/layout/recording.h>

#include "recorder/files.h"

/* What the block is made for: the options that decide about it. */
struct tdt__block_plan {
	uint64_t ring_size;
	uint64_t total_size;
	bool is_file;
	/* Set by tdt__block_plan(): in bytes, of a ring of each kind, of pairs, and of tables. */
	uint64_t first, others, remarkable, clocks, first_pair, large_pair, tasks, stacks;
	uint32_t n_first;  /* rings of polls that threads begin with */
	uint32_t n_large;  /* rings of polls that replace them; 0: the first ones are as large */
	uint32_t n_others; /* small rings */
};

/* The rings of the service, by their indexes in the table. */
enum tdt__service_ring {
	TDT__RING_CLOCKS,  /* START, STOP, CLOCK, STACK */
	TDT__RING_MODULES, /* MODULE */
	TDT__RING_TASKS,   /* TASK; only in a file */
	TDT__SERVICE_RINGS
};

struct tdt__block {
	struct tdt_recording *base; /* what other threads know of the block */
	struct tdt__block_plan plan;
	struct tdt__record_file file;
	bool names_modules;	 /* false: readers outside, who find them, want it alone.  It
				    becomes true while the recorder's thread reads it */
	struct tdt__block *next; /* of the blocks that are to be freed */
	char *large[];		 /* the memory of each large pair; NULL: it is not ready.  A
				    child of fork() cannot find it in the table */
};

/* Fill in the numbers of rings.  False: `total_size` has no room for one ring of polls. */
bool tdt__block_plan(struct tdt__block_plan *plan);

/*
 * Make a block, in a file of the directory `dir` if that is not "".  Its header and its tables are
 * filled in; the first rings, and some of the small ones, are ready.  Returns 0 or a negative
 * errno.
 */
int tdt__block_make(struct tdt__block **block, const struct tdt__block_plan *plan, const char *dir,
		    uint64_t dir_size);

/* Free the block, which no thread accesses.  A file stays. */
void tdt__block_free(struct tdt__block *block);

/*
 * The table has the rings of the service, pairs of large rings from the index TDT__BLOCK_LARGE on,
 * pairs of first rings, and small rings.  The second ring of a pair is of what is remarkable.  A
 * thread only changes to a ring that is further ahead, so who copies the rings in the order of the
 * table misses nothing that is older than what the copy has of the thread.
 */
#define TDT__BLOCK_LARGE ((uint32_t)TDT__SERVICE_RINGS)

static inline uint32_t tdt__block_first(const struct tdt__block *block)
{
	return TDT__BLOCK_LARGE + 2 * block->plan.n_large;
}

static inline uint32_t tdt__block_others(const struct tdt__block *block)
{
	return tdt__block_first(block) + 2 * block->plan.n_first;
}

/*
 * Make `n` entries of the table ready from the index `index` on: pairs of first rings, one large
 * pair, or small rings.  Returns 0 or a negative errno.  The recorder's thread.
 */
int tdt__block_ready_rings(struct tdt__block *block, uint32_t index, uint32_t n);

/*
 * Make so much of a ring ready that it may have `room` slots.  Its thread learns of that by
 * `ready`. Returns 0 or a negative errno.  The recorder's thread.
 */
int tdt__block_extend_ring(struct tdt__block *block, struct tdt_recording_ring *ring,
			   uint64_t room);

/*
 * Make more of the table of stacks ready, if half of what is ready is used.  Returns 0 or a
 * negative errno.  The recorder's thread.
 */
int tdt__block_extend_stacks(struct tdt__block *block);

static inline struct tdt_recording_ring *tdt__block_ring(const struct tdt_recording *block,
							 uint32_t index)
{
	return (struct tdt_recording_ring *)((uintptr_t)block + block->rings) + index;
}

/* Where the first stack of a table lies. */
static inline uint64_t tdt__stacks_first(const struct tdt_recording_stacks *stacks)
{
	uint64_t size = sizeof *stacks + stacks->n_buckets * sizeof(uint32_t);

	return (size + 7) & ~UINT64_C(7);
}

static inline void *tdt__ring_slots(const struct tdt_recording_ring *ring)
{
	return (void *)(uintptr_t)ring->address;
}
