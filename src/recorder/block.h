/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_RECORDER_BLOCK_H
#define TDT_SRC_RECORDER_BLOCK_H

/*
 * The block of a recording: how large its parts are, where they lie, and the memory or the file
 * that it is made of.  <tdt/recording.h> has the layout.
 *
 * The table of rings begins with the rings of the service.  Then each ring of polls is followed by
 * its ring of what is remarkable, and the small rings are the last ones.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/recording.h>

/* What the block is made for: the options that decide about it. */
struct tdt__block_plan {
	uint64_t ring_size;
	uint64_t total_size;
	bool is_file;
	uint32_t n_polls;  /* the number of rings of polls; set by tdt__block_plan() */
	uint32_t n_others; /* the number of small rings */
};

/* The rings of the service, by their indexes in the table. */
enum tdt__service_ring {
	TDT__RING_CLOCKS,  /* START, STOP, CLOCK, STACK */
	TDT__RING_MODULES, /* MODULE */
	TDT__RING_TASKS,   /* TASK; only in a file */
	TDT__SERVICE_RINGS
};

/* Fill in the numbers of rings.  False: `total_size` has no room for one ring of polls. */
bool tdt__block_plan(struct tdt__block_plan *plan);

/* How many bytes the block has. */
uint64_t tdt__block_size(const struct tdt__block_plan *plan);

/*
 * Fill in the header and the table of rings of a block whose bytes are all zero.  No ring is ready,
 * except those of the service.
 */
void tdt__block_fill(struct tdt_recording *block, const struct tdt__block_plan *plan);

/* Memory for a block, all zero: address space; a page takes memory when it is written to. */
void *tdt__block_map(uint64_t size);

/*
 * In a child of fork: put an empty block in memory in the place of this one.  No ring is ready.
 * False: there is no memory.
 */
bool tdt__block_renew(struct tdt_recording *block, const struct tdt__block_plan *plan);

/*
 * Give up the memory of the slots that threads write to.  The threads that still do so do no harm:
 * they write to memory that is empty.  What the block has in a file stays there.
 */
void tdt__block_drop_slots(struct tdt_recording *block);

/* The bytes of the block up to the first slot that a thread may write to: they are always there. */
uint64_t tdt__block_plan_fixed(const struct tdt__block_plan *plan);

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

static inline void *tdt__block_slots(const struct tdt_recording *block,
				     const struct tdt_recording_ring *ring)
{
	return (char *)(uintptr_t)block + ring->slots;
}

#endif
