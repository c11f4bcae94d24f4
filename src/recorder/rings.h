/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Which thread writes to which ring.
 *
 * A thread takes a ring with its first event, and keeps it until it gets a larger one (block.h). It
 * gives the ring back when it is no worker any more; the ring of a thread that has ended is given
 * back by the recorder's thread.  The field `own` of a ring says whose it is:
 *
 *	TDT__RING_ABSENT   nobody may take it, because its memory is not there yet
 *	TDT__RING_FREE     any thread may take it
 *	TDT__RING_CLAIMED  a thread takes it: `thread` is not yet that thread
 *	TDT__RING_TAKEN    only `thread` writes to the ring.  While it polls a task, the address of
 *	                   the task's handle is added
 *
 *   thread that takes                        recorder's thread
 *     own: from free to claimed                own = taken, thread = t
 *     thread = its id                          is t gone, or is its tdt__thread.ring another one?
 *     tdt__thread.ring = this                  own = free
 *     own = taken
 *
 * Blocks come and go.  Each has a *generation*, a number that is never used again.  A thread may
 * access its ring, and `task` of its ring, only between tdt__ring_enter() and tdt__ring_leave(),
 * and only if the ring is of the current generation.
 *
 *   thread that writes                       recorder's thread
 *     writing = 1                              generation = another
 *     light barrier                            heavy barrier
 *     is the generation another one?           is any thread that has a ring of the block writing,
 *     write the event                          or any thread a user of the block?
 *     writing = 0                              free the block
 *
 * So a block is only freed when nobody accesses it.  Who takes a ring has none yet, and takes more
 * time anyway: it counts as a user of the block, as do those who copy the block.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/layout/recording.h>

#include "host/thread.h"
#include "registry/registry.h"

#define TDT__RING_ABSENT 0u
#define TDT__RING_FREE 1u
#define TDT__RING_TAKEN 2u
#define TDT__RING_CLAIMED 3u
#define TDT__RING_STATES 3u /* the bits of `own` that are a state */

/*
 * The current block; NULL: there was none yet.  Release: a thread that acquires the address sees
 * the table of rings.  Only recorder.c stores it.
 */
extern struct tdt_recording *_Atomic tdt__recording_block __attribute__((visibility("hidden")));

/* Of the current block.  Only tdt__rings_abandon() changes it. */
extern uint64_t tdt__recording_generation __attribute__((visibility("hidden")));

/*
 * Begin and end an access to the current block that takes more than some instructions.  The block
 * is not freed meanwhile.  NULL: there is none, and nothing is to be ended.
 */
struct tdt_recording *tdt__block_enter(void);
void tdt__block_leave(void);

/*
 * Whether nobody accesses the block, which is no longer the current one.  A false answer may be too
 * careful.  Called by the recorder's thread.
 */
bool tdt__block_is_left(const struct tdt_recording *block);

/*
 * Take a ring for this thread: one of polls, if it is about to poll.  NULL: there is none.  The
 * first call of a thread makes some system calls.
 */
struct tdt_recording_ring *tdt__ring_take(bool polls);

/*
 * This thread has come to `outgrown`: its ring becomes larger, or a larger one replaces it, if one
 * is ready.  Returns the ring to write to.
 */
struct tdt_recording_ring *tdt__ring_grow(struct tdt_recording_ring *ring);

/* Give back the ring of this thread, if it has one. */
void tdt__ring_give(void);

/*
 * Give back the rings of threads that have ended.  Looks at no more than `most` rings that are
 * taken, from the index `from` on; returns the index to go on from, which is 0 at the end of the
 * table.  Called by the recorder's thread.
 */
uint32_t tdt__rings_recycle(struct tdt_recording *block, uint32_t from, uint32_t most);

/* Let threads take the rings of the table from `from` up to `to`, which are ready. */
void tdt__rings_free(struct tdt_recording *block, uint32_t from, uint32_t to);

/* How many rings of polls or others are taken. */
uint32_t tdt__rings_taken(const struct tdt_recording *block);

/* Another block was published: tell the threads that their rings are not theirs any more. */
void tdt__rings_abandon(void);

/*
 * So many events were not recorded, because this thread got no ring, and so many of them are polls.
 * A poll counts when it begins.  When it ends without a ring, it is missed until then.
 */
void tdt__ring_missed(uint32_t events, uint32_t polls);

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first word has `kind` at its end");

/* The first word is put together here: the fields are narrow, and reading them as one is slow. */
static inline void tdt__slot_write(tdt__record_word *slot, const struct tdt_event *event)
{
	TDT__POKE(slot[0], event->kind | (uint64_t)event->detail << 8 | (uint64_t)event->b << 16 |
				   (uint64_t)event->a << 32);
	TDT__POKE(slot[1], event->time);
	TDT__POKE(slot[2], event->task);
	TDT__POKE(slot[3], event->c);
}

static inline void tdt__ring_advance(struct tdt_recording_ring *ring, uint64_t head)
{
	/*
	 * Release the slots to readers that see this head; and a reader that sees a slot of a later
	 * event sees this head.  Both pair with the reader's acquire between its steps
	 * (<tdt/layout/recording.h>).
	 */
	__atomic_store_n(&ring->head, head, __ATOMIC_RELEASE);
	atomic_thread_fence(memory_order_release);
}

/*
 * A ring is larger than the caches, and nothing else touches the slots that come next.  So they are
 * fetched ahead: in a server whose polls do something in between, this halves what an event costs.
 */
#define TDT__SLOTS_AHEAD 6

/* Write an event of one slot to a ring of this thread, whose slots begin at `slots`. */
static inline void tdt__ring_put(struct tdt_recording_ring *ring, void *slots,
				 const struct tdt_event *event)
{
	uint64_t head = TDT__PEEK(ring->head), mask = ring->room - 1;

	tdt__slot_write((tdt__record_word *)slots + 4 * (head & mask), event);
	__builtin_prefetch((tdt__record_word *)slots + 4 * ((head + TDT__SLOTS_AHEAD) & mask), 1);
	tdt__ring_advance(ring, head + 1);
}

/* The same, with a payload of `size` bytes, which is cut to what an event has room for. */
void tdt__ring_put_long(struct tdt_recording_ring *ring, void *slots, const struct tdt_event *event,
			const void *payload, size_t size);

static inline void tdt__ring_enter(void)
{
	TDT__POKE(tdt__thread.writing, 1);
	/* Without a heavy barrier, no block is freed: so no fence is needed instead of this one. */
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void tdt__ring_leave(void)
{
	/* Release what was written.  Pairs with tdt__block_is_left(). */
	__atomic_store_n(&tdt__thread.writing, 0, __ATOMIC_RELEASE);
}

/* The ring of this thread; NULL: it has none. */
static inline struct tdt_recording_ring *tdt__ring_mine(void)
{
	struct tdt_recording_ring *ring = (void *)(uintptr_t)tdt__thread.ring;

	if (__builtin_expect(tdt__thread.generation != TDT__PEEK(tdt__recording_generation), 0) ||
	    __builtin_expect(TDT__PEEK(ring->thread) != tdt__thread.id, 0))
		return NULL;
	return ring;
}

/* The same, taking one if necessary, or a larger one.  NULL: there is none. */
static inline struct tdt_recording_ring *tdt__ring_any(void)
{
	struct tdt_recording_ring *ring = tdt__ring_mine();

	if (__builtin_expect(ring == NULL, 0))
		return tdt__ring_take(false);
	if (__builtin_expect(TDT__PEEK(ring->head) >= tdt__thread.outgrown, 0))
		return tdt__ring_grow(ring);
	return ring;
}

static inline struct tdt_recording_ring *tdt__ring_of_polls(void)
{
	struct tdt_recording_ring *ring = tdt__ring_mine();

	if (__builtin_expect(ring == NULL, 0) || __builtin_expect(ring->kind != TDT_RING_POLLS, 0))
		return tdt__ring_take(true);
	if (__builtin_expect(TDT__PEEK(ring->head) >= tdt__thread.outgrown, 0))
		return tdt__ring_grow(ring);
	return ring;
}
