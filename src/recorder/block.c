// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Laying out the block of a recording. */

#include <config.h>

#include "recorder/block.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tdt/recorder.h>

#include "recorder/rings.h"

_Static_assert(sizeof(struct tdt_recording) == 256, "the layout is public");
_Static_assert(sizeof(struct tdt_recording_ring) == 64, "the layout is public");
_Static_assert(sizeof(struct tdt_event) == 32, "the layout is public");
_Static_assert(sizeof(struct tdt_event_more) == 32, "the layout is public");
_Static_assert(sizeof(struct tdt_recording_stacks) == 24, "the layout is public");
_Static_assert(sizeof(struct tdt_recording_stack) == 16, "the layout is public");
_Static_assert(TDT_RING_SIZE_MIN / sizeof(struct tdt_event) > 2 * TDT_EVENT_SLOTS_MAX,
	       "the smallest ring holds some of the largest events");

#define BLOCK_PAGE 4096u
#define OTHERS_MOST 1024u
#define OTHERS_LEAST 16u
#define MODULES_SIZE 65536u

static uint64_t between_sizes(uint64_t size, uint64_t least, uint64_t most)
{
	return size < least ? least : size > most ? most : size;
}

/* All of these are powers of two, as `ring_size` is. */
static uint64_t others_size(const struct tdt__block_plan *plan)
{
	return between_sizes(plan->ring_size / 16, TDT_RING_SIZE_MIN, 16384);
}

static uint64_t remarkable_size(const struct tdt__block_plan *plan)
{
	return between_sizes(plan->ring_size / 64, TDT_RING_SIZE_MIN, 131072);
}

static uint64_t service_size(const struct tdt__block_plan *plan, enum tdt__service_ring ring)
{
	if (ring == TDT__RING_CLOCKS)
		return between_sizes(plan->ring_size / 16, 16384, 1048576);
	if (ring == TDT__RING_MODULES)
		return MODULES_SIZE;
	return plan->is_file ? between_sizes(plan->ring_size, 65536, 16777216) : 0;
}

static uint64_t stacks_size(const struct tdt__block_plan *plan)
{
	return between_sizes(plan->ring_size / 4, 65536, 4194304);
}

static uint32_t ring_count(const struct tdt__block_plan *plan)
{
	return TDT__SERVICE_RINGS + 2 * plan->n_polls + plan->n_others;
}

static uint64_t whole_pages(uint64_t size)
{
	return (size + BLOCK_PAGE - 1) & ~(uint64_t)(BLOCK_PAGE - 1);
}

/* The header, the table of rings, the stacks, and the rings of the service. */
uint64_t tdt__block_plan_fixed(const struct tdt__block_plan *plan)
{
	uint64_t size = sizeof(struct tdt_recording) +
			ring_count(plan) * sizeof(struct tdt_recording_ring);

	size = whole_pages(size) + stacks_size(plan);
	for (int i = 0; i < TDT__SERVICE_RINGS; i++)
		size += service_size(plan, i);
	return size;
}

bool tdt__block_plan(struct tdt__block_plan *plan)
{
	uint64_t others = plan->total_size / 16, left;

	plan->n_polls = 0;
	plan->n_others =
		(uint32_t)between_sizes(others / others_size(plan), OTHERS_LEAST, OTHERS_MOST);
	left = tdt__block_plan_fixed(plan) + plan->n_others * others_size(plan);
	if (plan->total_size <= left)
		return false;
	left = (plan->total_size - left) / (plan->ring_size + remarkable_size(plan) +
					    2 * sizeof(struct tdt_recording_ring));
	plan->n_polls = left < UINT16_MAX ? (uint32_t)left : UINT16_MAX;
	return plan->n_polls > 0;
}

uint64_t tdt__block_size(const struct tdt__block_plan *plan)
{
	return tdt__block_plan_fixed(plan) + plan->n_others * others_size(plan) +
	       plan->n_polls * (plan->ring_size + remarkable_size(plan));
}

/* --- Filling in ------------------------------------------------------------ */

/* Describe the next ring of the table, whose slots begin at `*at`. */
static struct tdt_recording_ring *fill_ring(struct tdt_recording_ring *ring, uint32_t kind,
					    uint64_t size, uint64_t *at)
{
	ring->kind = kind;
	ring->slots = *at;
	ring->room = (uint32_t)(size / sizeof(struct tdt_event));
	*at += size;
	return ring + 1;
}

static void fill_rings(struct tdt_recording *block, const struct tdt__block_plan *plan)
{
	struct tdt_recording_ring *ring = tdt__block_ring(block, 0);
	uint64_t at = tdt__block_plan_fixed(plan);

	for (int i = TDT__SERVICE_RINGS; i-- > 0;)
		at -= service_size(plan, i);
	for (int i = 0; i < TDT__SERVICE_RINGS; i++)
		ring = fill_ring(ring, TDT_RING_SERVICE, service_size(plan, i), &at);
	for (uint32_t i = 0; i < plan->n_polls; i++) {
		ring = fill_ring(ring, TDT_RING_POLLS, plan->ring_size, &at);
		ring = fill_ring(ring, TDT_RING_REMARKABLE, remarkable_size(plan), &at);
	}
	for (uint32_t i = 0; i < plan->n_others; i++)
		ring = fill_ring(ring, TDT_RING_OTHERS, others_size(plan), &at);
}

static void fill_stacks(struct tdt_recording *block, const struct tdt__block_plan *plan)
{
	struct tdt_recording_stacks *stacks = (void *)((char *)block + block->stacks);

	stacks->bytes = stacks_size(plan);
	stacks->n_buckets = (uint32_t)(stacks->bytes / 512);
	stacks->used = tdt__stacks_first(stacks);
}

void tdt__block_fill(struct tdt_recording *block, const struct tdt__block_plan *plan)
{
	memcpy(block->magic, TDT_RECORDING_MAGIC, sizeof block->magic);
	block->version = TDT_RECORDING_VERSION;
	block->size = sizeof *block;
	block->bytes = tdt__block_size(plan);
	block->rings = sizeof *block;
	block->n_rings = ring_count(plan);
	block->ring_size = sizeof(struct tdt_recording_ring);
	block->stacks = whole_pages(block->rings + (uint64_t)block->n_rings * block->ring_size);
	block->pid = (uint32_t)getpid();
	strcpy(block->library, PACKAGE_VERSION);
	fill_rings(block, plan);
	fill_stacks(block, plan);
}

/* --- Memory ---------------------------------------------------------------- */

#define EMPTY_FLAGS (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

void *tdt__block_map(uint64_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, EMPTY_FLAGS, -1, 0);

	/* A child that is made without the handlers of fork() gets zeros, in which no ring is. */
	if (memory != MAP_FAILED)
		madvise(memory, size, MADV_WIPEONFORK);
	return memory != MAP_FAILED ? memory : NULL;
}

bool tdt__block_renew(struct tdt_recording *block, const struct tdt__block_plan *plan)
{
	struct tdt__block_plan ours = *plan;
	uint64_t size;

	ours.is_file = false;
	size = tdt__block_size(&ours);
	if (mmap(block, size, PROT_READ | PROT_WRITE, EMPTY_FLAGS | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		return false;
	madvise(block, size, MADV_WIPEONFORK);
	tdt__block_fill(block, &ours);
	return true;
}

/* Without room for another mapping, the slots stay as they are. */
void tdt__block_drop_slots(struct tdt_recording *block)
{
	uint64_t from = tdt__block_ring(block, TDT__SERVICE_RINGS)->slots;

	mmap((char *)block + from, block->bytes - from, PROT_READ | PROT_WRITE,
	     EMPTY_FLAGS | MAP_FIXED, -1, 0);
}
