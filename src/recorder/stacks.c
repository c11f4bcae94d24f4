// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Adding stacks to the table, and the events that refer to them. */

#include "recorder/stacks.h"

#include <string.h>

#include "recorder/block.h"
#include "tree/named.h"
#include "tree/stacks.h"
#include "watch/spare_captures.h"

#define STACK_UNIT 8u

static uint64_t stack_hash(const uint64_t *pc, uint32_t n, uint8_t cut)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ cut;

	for (uint32_t i = 0; i < n; i++) {
		hash = (hash ^ pc[i]) * UINT64_C(0x100000001b3);
		hash ^= hash >> 29;
	}
	return hash;
}

static struct tdt_recording_stacks *stacks_of(struct tdt_recording *block)
{
	return (void *)((char *)block + block->stacks);
}

static struct tdt_recording_stack *stack_at(struct tdt_recording_stacks *table, uint32_t number)
{
	return (void *)((char *)table + (uint64_t)number * STACK_UNIT);
}

static bool is_stack(const struct tdt_recording_stack *stack, uint64_t hash, const uint64_t *pc,
		     uint32_t n, uint8_t cut)
{
	return stack->hash == hash && stack->n == n && stack->cut == cut &&
	       memcmp(stack + 1, pc, n * sizeof *pc) == 0;
}

/* The number of the stack among those of a bucket whose newest one is `number`; 0: it is not. */
static uint32_t find_recorded(struct tdt_recording_stacks *table, uint32_t number, uint64_t hash,
			   const uint64_t *pc, uint32_t n, uint8_t cut)
{
	while (number != 0 && !is_stack(stack_at(table, number), hash, pc, n, cut))
		number = stack_at(table, number)->next;
	return number;
}

/*
 * Reserve room for a stack, and none if there is not enough: the table may become larger.  Relaxed:
 * the room belongs to this thread alone.  0: there is none.
 */
static uint32_t reserve_stack(struct tdt_recording_stacks *table, uint64_t size)
{
	/* Acquire the memory of the table.  Pairs with tdt__block_extend_stacks(). */
	uint64_t at = TDT__PEEK(table->used),
		 bytes = __atomic_load_n(&table->bytes, __ATOMIC_ACQUIRE);

	while (at + size <= bytes)
		if (__atomic_compare_exchange_n(&table->used, &at, at + size, true,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return (uint32_t)(at / STACK_UNIT);
	return 0;
}

static uint32_t write_stack(struct tdt_recording_stacks *table, uint64_t hash, const uint64_t *pc,
			    uint32_t n, uint8_t cut)
{
	uint32_t number = reserve_stack(table, sizeof(struct tdt_recording_stack) + n * sizeof *pc);
	struct tdt_recording_stack *stack = stack_at(table, number);

	if (number == 0) {
		__atomic_fetch_add(&table->lost, 1, __ATOMIC_RELAXED);
		return 0;
	}
	/* Nobody uses the stack yet, but a snapshot may copy it: so each word is stored at once. */
	TDT__POKE(stack->cut, cut);
	TDT__POKE(stack->hash, hash);
	for (uint32_t i = 0; i < n; i++)
		TDT__POKE(((uint64_t *)(void *)(stack + 1))[i], pc[i]);
	/* Release the addresses to the recorder's thread.  Pairs with meet_stacks(). */
	__atomic_store_n(&stack->n, (uint16_t)n, __ATOMIC_RELEASE);
	return number;
}

uint32_t tdt__stack_number(struct tdt_recording_stacks *table, const uint64_t *pc, uint32_t n,
			   uint8_t cut)
{
	uint64_t hash = stack_hash(pc, n, cut);
	uint32_t *bucket = (uint32_t *)(void *)(table + 1) + hash % table->n_buckets;
	/* Acquire the stacks of the bucket.  Pairs with the release below. */
	uint32_t newest = __atomic_load_n(bucket, __ATOMIC_ACQUIRE),
		 number = find_recorded(table, newest, hash, pc, n, cut);

	if (number != 0)
		return number;
	number = write_stack(table, hash, pc, n, cut);
	if (number == 0)
		return 0;
	/*
	 * Release the stack.  If two threads add the same stack at once, it has two numbers, which
	 * does no harm.
	 */
	do
		TDT__POKE(stack_at(table, number)->next, newest);
	while (!__atomic_compare_exchange_n(bucket, &newest, number, true, __ATOMIC_RELEASE,
					    __ATOMIC_ACQUIRE));
	return number;
}

uint32_t tdt__stack_number_of(struct tdt_recording *block, const struct tdt__stacks *stacks,
			      uint32_t index)
{
	uint64_t pc[TDT__RECORD_STACK_MAX];
	uint32_t n = 0;
	bool named = false;

	for (; tdt__is_frame(index) && n < TDT__RECORD_STACK_MAX;
	     index = stacks->frames[index].parent)
		if (tdt__is_named(stacks->frames[index].frame.pc)) /* names are not recorded */
			named = true;
		else
			pc[n++] = stacks->frames[index].frame.pc;
	if (n == 0)
		return 0;
	return tdt__stack_number(stacks_of(block), pc, n,
				 tdt__is_frame(index) || named ? TDT_CUT_LIMIT
						      : (uint8_t)(index - TDT__PARENT_TOP));
}

/* Two leaves may wait at the same frame: each has an event. */
static void put_leaves(struct tdt_recording *block, struct tdt_recording_ring *ring, uint64_t id,
		       const struct tdt__stacks *stacks)
{
	struct tdt_event event = { .kind = TDT_EVENT_STACK, .task = id, .c = stacks->leaves };

	for (uint32_t i = 0; i < stacks->n; i++) {
		uint32_t leaves = stacks->frames[i].leaves;

		if (leaves != 0)
			event.a = tdt__stack_number_of(block, stacks, i);
		for (; leaves > 0 && event.b < TDT__RECORD_LEAVES_MAX; leaves--, event.b++)
			if (event.a != 0)
				tdt__ring_put(ring, tdt__thread.slots, &event);
		if (event.b == TDT__RECORD_LEAVES_MAX)
			return;
	}
}

void tdt__record_stacks(uint64_t id, const struct tdt__stacks *stacks)
{
	struct tdt_recording_ring *ring;

	tdt__ring_enter();
	ring = tdt__ring_mine();
	if (ring != NULL && TDT__PEEK(tdt__record_options.stacks))
		put_leaves(tdt__thread.recording, ring, id, stacks);
	tdt__ring_leave();
}

struct tdt__capture *tdt__record_capture(void)
{
	uint32_t every = TDT__PEEK(tdt__record_options.every);
	struct tdt_recording *block;
	struct tdt__capture *capture;

	if (every == 0 || tdt__thread.uncaptured < every)
		return NULL;
	capture = tdt__spare_take();
	if (capture != NULL) {
		tdt__thread.uncaptured = 0;
		return capture;
	}
	block = tdt__block_enter();
	if (block != NULL) {
		__atomic_fetch_add(&stacks_of(block)->lost, 1, __ATOMIC_RELAXED);
		tdt__block_leave();
	}
	return NULL;
}
