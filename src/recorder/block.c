// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Laying out the block of a recording, and making its parts ready. */

#include <config.h>

#include "recorder/block.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tdt/recorder.h>

#include "recorder/rings.h"

_Static_assert(sizeof(struct tdt_recording) == 256, "the layout is public");
_Static_assert(sizeof(struct tdt_recording_ring) == 128, "the layout is public");
_Static_assert(sizeof(struct tdt_event) == 32, "the layout is public");
_Static_assert(sizeof(struct tdt_event_more) == 32, "the layout is public");
_Static_assert(sizeof(struct tdt_recording_stacks) == 24, "the layout is public");
_Static_assert(sizeof(struct tdt_recording_stack) == 16, "the layout is public");
_Static_assert(TDT_RING_SIZE_MIN / sizeof(struct tdt_event) > 2 * TDT_EVENT_SLOTS_MAX,
	       "the smallest ring holds some of the largest events");

#define SLOT_SIZE sizeof(struct tdt_event)
#define PART 65536u /* the parts of the base begin at multiples of this: no page is larger */
#define FIRST_SIZE 32768u
#define FIRST_MOST 64u
#define OTHERS_MOST 1024u
#define OTHERS_LEAST 16u
#define LARGE_READY 262144u   /* the bytes of a large ring that are ready at first */
#define EXTENDED_READY 65536u /* the same of live tasks, and of stacks */
#define CLOCKS_SIZE 65536u
#define MODULES_SIZE 65536u

static uint64_t between_sizes(uint64_t size, uint64_t least, uint64_t most)
{
	return size < least ? least : size > most ? most : size;
}

/* All of these are powers of two, as `ring_size` is, but for those of pairs. */
static void set_sizes(struct tdt__block_plan *plan)
{
	uint64_t size = plan->ring_size;

	plan->first = size <= FIRST_SIZE
			  ? size
			  : between_sizes(size / 16, TDT_RING_SIZE_MIN, FIRST_SIZE);
	plan->others = between_sizes(size / 16, TDT_RING_SIZE_MIN, 16384);
	plan->remarkable = between_sizes(size / 64, TDT_RING_SIZE_MIN, 131072);
	plan->clocks = between_sizes(size / 16, 16384, CLOCKS_SIZE);
	plan->tasks = plan->is_file ? between_sizes(size, 65536, 16777216) : 0;
	plan->stacks = between_sizes(size / 4, 65536, 4194304);
	plan->first_pair = plan->first + TDT_RING_SIZE_MIN;
	plan->large_pair = size + plan->remarkable;
}

static uint32_t ring_count(const struct tdt__block_plan *plan)
{
	return TDT__SERVICE_RINGS + 2 * plan->n_first + 2 * plan->n_large + plan->n_others;
}

/* --- Where the parts lie ---------------------------------------------------- */

/* The offsets of the parts of the base. */
struct places {
	uint64_t service, first, others, stacks, tasks, end;
};

static uint64_t part_after(uint64_t at, uint64_t size)
{
	return (at + size + PART - 1) & ~(uint64_t)(PART - 1);
}

static struct places places_of(const struct tdt__block_plan *plan)
{
	struct places places;

	places.service = part_after(sizeof(struct tdt_recording),
				    ring_count(plan) * sizeof(struct tdt_recording_ring));
	places.first = part_after(places.service, plan->clocks + MODULES_SIZE);
	places.others = part_after(places.first, plan->n_first * plan->first_pair);
	places.stacks = part_after(places.others, plan->n_others * plan->others);
	places.tasks = part_after(places.stacks, plan->stacks);
	places.end = part_after(places.tasks, plan->tasks);
	return places;
}

static uint32_t rings_within(uint64_t size, uint64_t each, uint64_t most)
{
	return (uint32_t)between_sizes(size / each, 0, most);
}

bool tdt__block_plan(struct tdt__block_plan *plan)
{
	const uint64_t entries = 2 * sizeof(struct tdt_recording_ring);
	bool alike = plan->ring_size <= FIRST_SIZE;
	uint64_t left, base;

	set_sizes(plan);
	plan->n_first = plan->n_large = 0;
	plan->n_others = (uint32_t)between_sizes(plan->total_size / 16 / plan->others,
						 OTHERS_LEAST, OTHERS_MOST);
	base = places_of(plan).end + 2 * (uint64_t)PART; /* what the parts are rounded up by */
	if (plan->total_size <= base)
		return false;
	left = plan->total_size - base;
	if (alike) {
		plan->n_first = rings_within(left, plan->first_pair + entries, UINT16_MAX);
		return plan->n_first > 0;
	}
	plan->n_first = rings_within(left / 4, plan->first_pair + entries, FIRST_MOST);
	left -= plan->n_first * (plan->first_pair + entries);
	plan->n_large = rings_within(left, plan->large_pair + entries, UINT16_MAX);
	return plan->n_first > 0 && plan->n_large > 0;
}

/* --- Making ready ----------------------------------------------------------- */

/*
 * Reserve address space.  Under mlockall(MCL_FUTURE) the kernel would fill the memory at once, and
 * each part later: it does not fill what cannot be accessed, nor what is not locked.
 */
static char *reserve_space(uint64_t size)
{
	char *memory =
	    mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	munlock(memory, size);
	madvise(memory, size, MADV_DONTDUMP);
	/* A child that is made without the handlers of fork() gets zeros, in which no ring is. */
	madvise(memory, size, MADV_WIPEONFORK);
	return memory;
}

/* Make `size` bytes at `memory`, whose offset is `offset`, ready, and what shares their pages. */
static int make_ready(struct tdt__block *block, char *memory, uint64_t offset, uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), before = (uintptr_t)memory % page;

	memory -= before;
	offset -= before;
	size = (size + before + page - 1) / page * page;
	if (block->plan.is_file)
		return tdt__record_file_map(&block->file, memory, offset, size);
	if (mprotect(memory, size, PROT_READ | PROT_WRITE) != 0)
		return -errno;
	madvise(memory, size, MADV_DODUMP);
	return 0;
}

static int ready_part(struct tdt__block *block, uint64_t offset, uint64_t size)
{
	return make_ready(block, (char *)block->base + offset, offset, size);
}

static void lengthen(struct tdt__block *block, uint64_t end)
{
	/* Release the slots to a reader that sees the length. */
	if (end > block->base->bytes)
		__atomic_store_n(&block->base->bytes, end, __ATOMIC_RELEASE);
}

int tdt__block_extend_ring(struct tdt__block *block, struct tdt_recording_ring *ring, uint64_t room)
{
	uint64_t have = ring->ready * SLOT_SIZE, want = room * SLOT_SIZE;
	int error = make_ready(block, (char *)tdt__ring_slots(ring) + have, ring->slots + have,
			       want - have);

	if (error != 0)
		return error;
	if (block->plan.is_file)
		lengthen(block, ring->slots + want);
	/* Release the memory.  Pairs with grow_in_place(). */
	__atomic_store_n(&ring->ready, (uint32_t)room, __ATOMIC_RELEASE);
	return 0;
}

int tdt__block_extend_stacks(struct tdt__block *block)
{
	struct tdt_recording_stacks *stacks = (void *)((char *)block->base + block->base->stacks);
	uint64_t have = stacks->bytes;
	int error;

	if (have >= block->plan.stacks || TDT__PEEK(stacks->used) < have / 2)
		return 0;
	error = ready_part(block, block->base->stacks + have, have);
	/* Release the memory.  Pairs with reserve_stack(). */
	if (error == 0)
		__atomic_store_n(&stacks->bytes, 2 * have, __ATOMIC_RELEASE);
	return error;
}

/* Release the address and the memory to those who see the room.  Pairs with read_current(). */
static void set_room(struct tdt_recording_ring *ring, uint64_t slots)
{
	__atomic_store_n(&ring->room, (uint32_t)slots, __ATOMIC_RELEASE);
}

/* Reserve a large pair.  The ring of what is remarkable comes first. */
static int ready_large(struct tdt__block *block, uint32_t index)
{
	struct tdt_recording_ring *ring = tdt__block_ring(block->base, index);
	uint64_t remarkable = block->plan.remarkable;
	uint64_t begin = between_sizes(block->plan.ring_size, 0, LARGE_READY);
	char *memory = reserve_space(block->plan.large_pair);
	int error;

	if (memory == NULL)
		return -ENOMEM;
	error = make_ready(block, memory, ring[1].slots, remarkable + begin);
	if (error != 0) {
		munmap(memory, block->plan.large_pair);
		return error;
	}
	if (block->plan.is_file)
		lengthen(block, ring->slots + begin);
	block->large[(index - TDT__BLOCK_LARGE) / 2] = memory;
	TDT__POKE(ring[1].address, (uintptr_t)memory);
	set_room(&ring[1], remarkable / SLOT_SIZE);
	TDT__POKE(ring->address, (uintptr_t)memory + remarkable);
	TDT__POKE(ring->ready, (uint32_t)(begin / SLOT_SIZE));
	set_room(ring, begin / SLOT_SIZE);
	return 0;
}

int tdt__block_ready_rings(struct tdt__block *block, uint32_t index, uint32_t n)
{
	struct tdt_recording_ring *ring = tdt__block_ring(block->base, index);
	bool is_first = index < tdt__block_others(block);
	int error;

	if (index < tdt__block_first(block))
		return ready_large(block, index);
	error =
	    ready_part(block, ring->slots,
		       is_first ? n / 2 * block->plan.first_pair : n * block->plan.others);
	for (uint32_t i = 0; i < n && error == 0; i++)
		set_room(&ring[i], ring[i].kind == TDT_RING_POLLS
					   ? block->plan.first / SLOT_SIZE
					   : ring[i].most);
	return error;
}

/* --- Filling in ------------------------------------------------------------- */

/* Describe the next ring of the table, whose slots begin at `*at`; it is not ready. */
static struct tdt_recording_ring *fill_ring(struct tdt__block *block,
					    struct tdt_recording_ring *ring, uint32_t kind,
					    uint64_t size, uint64_t *at)
{
	ring->kind = kind;
	ring->slots = *at;
	ring->address = (uintptr_t)block->base + *at;
	ring->most = (uint32_t)(size / SLOT_SIZE);
	*at += size;
	return ring + 1;
}

static void fill_service(struct tdt__block *block, const struct places *places)
{
	struct tdt_recording_ring *ring = tdt__block_ring(block->base, 0);
	uint64_t at = places->service, tasks = places->tasks;

	ring = fill_ring(block, ring, TDT_RING_SERVICE, block->plan.clocks, &at);
	ring[-1].room = ring[-1].most;
	ring = fill_ring(block, ring, TDT_RING_SERVICE, MODULES_SIZE, &at);
	ring[-1].room = ring[-1].most;
	fill_ring(block, ring, TDT_RING_SERVICE, block->plan.tasks, &tasks);
}

static void fill_rings(struct tdt__block *block, const struct places *places)
{
	const struct tdt__block_plan *plan = &block->plan;
	struct tdt_recording_ring *ring = tdt__block_ring(block->base, TDT__SERVICE_RINGS);
	uint64_t at = places->end;

	for (uint32_t i = 0; i < plan->n_large; i++) {
		uint64_t polls = at + plan->remarkable;

		fill_ring(block, ring, TDT_RING_POLLS, plan->ring_size, &polls);
		fill_ring(block, ring + 1, TDT_RING_REMARKABLE, plan->remarkable, &at);
		ring += 2;
		at = polls;
	}
	at = places->first;
	for (uint32_t i = 0; i < plan->n_first; i++) {
		ring = fill_ring(block, ring, TDT_RING_POLLS, plan->first, &at);
		ring[-1].most = (uint32_t)(plan->ring_size / SLOT_SIZE);
		ring = fill_ring(block, ring, TDT_RING_REMARKABLE, TDT_RING_SIZE_MIN, &at);
	}
	at = places->others;
	for (uint32_t i = 0; i < plan->n_others; i++)
		ring = fill_ring(block, ring, TDT_RING_OTHERS, plan->others, &at);
}

static void fill_stacks(struct tdt__block *block)
{
	struct tdt_recording_stacks *stacks = (void *)((char *)block->base + block->base->stacks);

	stacks->bytes = EXTENDED_READY;
	stacks->n_buckets = EXTENDED_READY / 512;
	stacks->used = tdt__stacks_first(stacks);
}

static void fill_header(struct tdt__block *block, const struct places *places)
{
	struct tdt_recording *base = block->base;

	memcpy(base->magic, TDT_RECORDING_MAGIC, sizeof base->magic);
	base->version = TDT_RECORDING_VERSION;
	base->size = sizeof *base;
	base->bytes = block->plan.is_file ? places->tasks : places->end;
	base->rings = sizeof *base;
	base->n_rings = ring_count(&block->plan);
	base->ring_size = sizeof(struct tdt_recording_ring);
	base->stacks = places->stacks;
	base->pid = (uint32_t)getpid();
	strcpy(base->library, PACKAGE_VERSION);
}

/* --- The whole -------------------------------------------------------------- */

static int ready_base(struct tdt__block *block, const struct places *places)
{
	int error = ready_part(block, 0, places->first);

	if (error == 0)
		error = ready_part(block, places->stacks, EXTENDED_READY);
	if (error != 0)
		return error;
	fill_header(block, places);
	fill_service(block, places);
	fill_rings(block, places);
	fill_stacks(block);
	if (block->plan.is_file)
		error = tdt__block_extend_ring(block, tdt__block_ring(block->base, TDT__RING_TASKS),
					       EXTENDED_READY / SLOT_SIZE);
	if (block->plan.is_file && error == 0)
		tdt__block_ring(block->base, TDT__RING_TASKS)->room = EXTENDED_READY / SLOT_SIZE;
	return error;
}

static size_t block_bytes(const struct tdt__block_plan *plan)
{
	return sizeof(struct tdt__block) + plan->n_large * sizeof(char *);
}

/*
 * Not from the heap: with its first allocation a thread makes glibc reserve 64 MiB of address space
 * for ever.  What makes and frees the blocks of readers does without.
 */
static struct tdt__block *map_block(const struct tdt__block_plan *plan)
{
	struct tdt__block *block = mmap(NULL, block_bytes(plan), PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return block != MAP_FAILED ? block : NULL;
}

static void unmap_block(struct tdt__block *block)
{
	munmap(block, block_bytes(&block->plan));
}

int tdt__block_make(struct tdt__block **made, const struct tdt__block_plan *plan, const char *dir,
		    uint64_t dir_size)
{
	struct tdt__block *block = map_block(plan);
	struct places places;
	int error;

	if (block == NULL)
		return -ENOMEM;
	block->plan = *plan;
	block->plan.is_file = dir[0] != '\0';
	set_sizes(&block->plan);
	places = places_of(&block->plan);
	block->file.descriptor = block->file.dir = -1;
	block->base = (void *)reserve_space(places.end);
	error = block->base != NULL ? 0 : -ENOMEM;
	if (error == 0 && block->plan.is_file)
		error = tdt__record_file_make(&block->file, dir, dir_size);
	if (error == 0)
		error = ready_base(block, &places);
	if (error == 0) {
		*made = block;
		return 0;
	}
	tdt__record_file_remove(&block->file);
	if (block->base != NULL)
		munmap(block->base, places.end);
	unmap_block(block);
	return error;
}

void tdt__block_free(struct tdt__block *block)
{
	for (uint32_t i = 0; i < block->plan.n_large; i++)
		if (block->large[i] != NULL)
			munmap(block->large[i], block->plan.large_pair);
	munmap(block->base, places_of(&block->plan).end);
	tdt__record_file_close(&block->file);
	unmap_block(block);
}
