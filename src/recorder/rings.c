// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Taking rings and giving them back, and what is written at once into a new one. */

#include "recorder/rings.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "host/barrier.h"
#include "recorder/block.h"
#include "recorder/clock.h"

struct tdt_recording *_Atomic tdt__recording_block;

uint64_t tdt__recording_generation = 1;

/* Threads that access some block, not for their own ring alone. */
static atomic_uint users;

/*
 * Sequentially consistent: either the recorder's thread, which publishes another block and then
 * reads `users`, sees this one, or this call sees the other block.  Also acquires the table of
 * rings.
 */
struct tdt_recording *tdt__block_enter(void)
{
	struct tdt_recording *block;

	atomic_fetch_add_explicit(&users, 1, memory_order_seq_cst);
	block = atomic_load_explicit(&tdt__recording_block, memory_order_seq_cst);
	if (block == NULL)
		tdt__block_leave();
	return block;
}

/* Release what was done with the block.  Pairs with tdt__block_is_left(). */
void tdt__block_leave(void)
{
	atomic_fetch_sub_explicit(&users, 1, memory_order_release);
}

/* --- Writing events of several slots --------------------------------------- */

static void write_more(tdt__record_word *slot, const char *payload, size_t size)
{
	struct tdt_event_more more = { .kind = TDT_EVENT_MORE };
	struct tdt_event event;

	more.n = (uint8_t)(size < TDT_EVENT_TEXT ? size : TDT_EVENT_TEXT);
	memcpy(more.text, payload, more.n);
	memcpy(&event, &more, sizeof event);
	tdt__slot_write(slot, &event);
}

void tdt__ring_put_long(struct tdt_recording_ring *ring, void *slots, const struct tdt_event *event,
			const void *payload, size_t size)
{
	const size_t most = (size_t)(TDT_EVENT_SLOTS_MAX - 1) * TDT_EVENT_TEXT;
	uint64_t head = TDT__PEEK(ring->head), mask = ring->room - 1;
	tdt__record_word *words = slots;

	tdt__slot_write(words + 4 * (head++ & mask), event);
	size = size < most ? size : most;
	for (size_t done = 0; done < size; done += TDT_EVENT_TEXT)
		write_more(words + 4 * (head++ & mask), (const char *)payload + done, size - done);
	tdt__ring_advance(ring, head);
}

/* --- Taking ---------------------------------------------------------------- */

static bool is_taken(const struct tdt_recording_ring *ring)
{
	/* Acquire whose it is.  Pairs with begin_ring(). */
	uint64_t own = __atomic_load_n(&ring->own, __ATOMIC_ACQUIRE);

	return (ring->kind == TDT_RING_POLLS || ring->kind == TDT_RING_OTHERS) &&
	       (own & TDT__RING_STATES) == TDT__RING_TAKEN;
}

static void put_thread(struct tdt_recording_ring *ring, uint32_t previous)
{
	struct tdt_event event = { .kind = TDT_EVENT_THREAD,
				   .detail = tdt__thread.worker,
				   .a = tdt__thread.id,
				   .time = tdt__ticks(),
				   .c = previous };
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	tdt__ring_put_long(ring, tdt__ring_slots(ring), &event, name, strnlen(name, sizeof name));
}

/* Release `thread` and `tdt__thread.ring` to the recorder's thread.  Pairs with is_taken(). */
static void begin_ring(struct tdt_recording_ring *ring)
{
	uint32_t previous = TDT__PEEK(ring->thread);

	TDT__POKE(ring->task, 0);
	TDT__POKE(ring->since, 0);
	TDT__POKE(ring->thread, tdt__thread.id);
	__atomic_store_n(&ring->own, TDT__RING_TAKEN, __ATOMIC_RELEASE);
	put_thread(ring, previous);
}

/* Acquire what the ring's previous thread wrote.  Pairs with give_ring(). */
static bool try_ring(struct tdt_recording_ring *ring)
{
	uint64_t free = TDT__RING_FREE;

	return TDT__PEEK(ring->own) == TDT__RING_FREE &&
	       __atomic_compare_exchange_n(&ring->own, &free, TDT__RING_CLAIMED, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* How often a ring was given. */
static uint32_t given;

/*
 * Release what was written to the ring, or that it is ready, to the thread that takes it next; and
 * the free ring to threads that have found none.  Pairs with tdt__ring_take().
 */
static void give_ring(struct tdt_recording_ring *ring)
{
	TDT__POKE(ring->task, 0);
	TDT__POKE(ring->since, 0);
	__atomic_store_n(&ring->own, TDT__RING_FREE, __ATOMIC_RELEASE);
	__atomic_fetch_add(&given, 1, __ATOMIC_RELEASE);
}

/* Whether the ring of polls is one of the first ones, which a larger one is to replace. */
static bool is_first_ring(const struct tdt_recording_ring *ring)
{
	return TDT__PEEK(ring->ready) == 0 && TDT__PEEK(ring->room) < ring->most;
}

enum wanted_ring { ANY_SMALL, FIRST_OF_POLLS, LARGE };

static bool is_wanted_ring(const struct tdt_recording_ring *ring, enum wanted_ring wanted)
{
	if (wanted == ANY_SMALL)
		return ring->kind == TDT_RING_OTHERS;
	return ring->kind == TDT_RING_POLLS && is_first_ring(ring) == (wanted == FIRST_OF_POLLS);
}

/* Acquire the fields of a ring that is free.  Pairs with give_ring(). */
static bool is_free_ring(const struct tdt_recording_ring *ring)
{
	return __atomic_load_n(&ring->own, __ATOMIC_ACQUIRE) == TDT__RING_FREE;
}

/*
 * The first one in the table; of the first rings of polls the one with the fewest events, since a
 * thread that gets a large ring leaves in such a ring what it did before.
 */
static struct tdt_recording_ring *find_free_ring(struct tdt_recording *block,
						 enum wanted_ring wanted)
{
	struct tdt_recording_ring *found = NULL;

	for (uint32_t i = TDT__SERVICE_RINGS; i < block->n_rings; i++) {
		struct tdt_recording_ring *ring = tdt__block_ring(block, i);

		if (!is_free_ring(ring) || !is_wanted_ring(ring, wanted))
			continue;
		if (wanted != FIRST_OF_POLLS)
			return ring;
		if (found == NULL || TDT__PEEK(ring->head) < TDT__PEEK(found->head))
			found = ring;
	}
	return found;
}

/* NULL: there is none.  Another thread may be faster; then there is another ring, or none. */
static struct tdt_recording_ring *claim_free_ring(struct tdt_recording *block,
						  enum wanted_ring wanted)
{
	struct tdt_recording_ring *ring;

	do
		ring = find_free_ring(block, wanted);
	while (ring != NULL && !try_ring(ring));
	return ring;
}

/*
 * The head at which the thread looks for more room: before its ring begins to overwrite what is
 * there.  One that is to be replaced is full enough at its half, since it takes the recorder's
 * thread a while to see that.
 */
static uint64_t outgrown_at(const struct tdt_recording_ring *ring)
{
	uint64_t head = TDT__PEEK(ring->head) + 2 * TDT_EVENT_SLOTS_MAX;

	if (ring->kind == TDT_RING_POLLS && ring->room == ring->most)
		return UINT64_MAX;
	if (TDT__PEEK(ring->ready) == 0)
		return TDT__PEEK(ring->head) + ring->room / 2;
	return (head / ring->room + 1) * ring->room - 2 * TDT_EVENT_SLOTS_MAX;
}

static struct tdt_recording_ring *take_ring(struct tdt_recording *block, uint64_t generation,
					    enum wanted_ring wanted)
{
	struct tdt_recording_ring *ring = claim_free_ring(block, wanted);

	if (ring == NULL)
		return NULL;
	TDT__POKE(tdt__thread.ring, (uintptr_t)ring);
	tdt__thread.generation = generation;
	tdt__thread.recording = block;
	tdt__thread.slots = tdt__ring_slots(ring);
	tdt__thread.outgrown = outgrown_at(ring);
	begin_ring(ring);
	if (ring->kind == TDT_RING_POLLS)
		begin_ring(ring + 1);
	return ring;
}

/* Take a ring in the place of the one that the thread has.  NULL: it keeps that one. */
static struct tdt_recording_ring *change_ring(enum wanted_ring wanted)
{
	struct tdt_recording_ring *before = tdt__ring_mine(), *ring;
	/* Acquire: the block is that of this generation, or a later one.  See tdt__rings_abandon().
	 */
	uint64_t generation = __atomic_load_n(&tdt__recording_generation, __ATOMIC_ACQUIRE);
	struct tdt_recording *block;
	int saved = errno;

	tdt__thread_id();
	block = tdt__block_enter();
	ring = block != NULL ? take_ring(block, generation, wanted) : NULL;
	if (block != NULL && ring == NULL && wanted == FIRST_OF_POLLS)
		ring = take_ring(block, generation, LARGE);
	if (ring != NULL && before != NULL)
		give_ring(before);
	if (block != NULL)
		tdt__block_leave();
	errno = saved;
	return ring;
}

/* A thread that has found no ring looks again when one was given, or there is another block. */
struct tdt_recording_ring *tdt__ring_take(bool polls)
{
	/* Acquire the ring that was given last.  Pairs with give_ring(). */
	uint32_t now = __atomic_load_n(&given, __ATOMIC_ACQUIRE) +
		       (uint32_t)TDT__PEEK(tdt__recording_generation);
	struct tdt_recording_ring *ring;

	if (tdt__thread.no_ring == now)
		return NULL;
	ring = change_ring(polls ? FIRST_OF_POLLS : ANY_SMALL);
	/* Without a block nothing is missed: the recorder has just stopped. */
	if (ring != NULL ||
	    atomic_load_explicit(&tdt__recording_block, memory_order_relaxed) == NULL)
		now = 0;
	tdt__thread.no_ring = now;
	return ring;
}

/* Whether most large rings of polls are free, or can be made ready. */
static bool polls_have_rings(void)
{
	const struct tdt_recording *block = tdt__block_enter();
	uint32_t rings = 0, taken = 0;

	if (block == NULL)
		return false;
	for (uint32_t i = TDT__SERVICE_RINGS; i < block->n_rings; i++) {
		const struct tdt_recording_ring *ring = tdt__block_ring(block, i);
		/* Acquire whether it is ready.  Pairs with give_ring(). */
		uint64_t own = __atomic_load_n(&ring->own, __ATOMIC_ACQUIRE);

		if (ring->kind != TDT_RING_POLLS ||
		    (own != TDT__RING_ABSENT && is_first_ring(ring)))
			continue;
		rings++;
		taken += is_taken(ring);
	}
	tdt__block_leave();
	return 2 * taken < rings;
}

/*
 * Have as many slots as are ready.  The slots that are left must lie where they belong in the
 * larger ring: those of this lap do, if it is an even one.
 */
static void grow_in_place(struct tdt_recording_ring *ring)
{
	/* Acquire the memory.  Pairs with tdt__block_extend_ring(). */
	uint32_t ready = __atomic_load_n(&ring->ready, __ATOMIC_ACQUIRE), room = ring->room;
	uint64_t head = TDT__PEEK(ring->head);

	while (room < ready && head / room % 2 == 0)
		room *= 2;
	if (room != ring->room && head >= room)
		TDT__POKE(ring->first, head / room * room);
	/* Release `first` to readers that see the room, and the room to those that see the head. */
	__atomic_store_n(&ring->room, room, __ATOMIC_RELEASE);
	tdt__thread.outgrown = outgrown_at(ring);
}

struct tdt_recording_ring *tdt__ring_grow(struct tdt_recording_ring *ring)
{
	struct tdt_recording_ring *large = NULL;

	if (TDT__PEEK(ring->ready) != 0) {
		grow_in_place(ring);
		return ring;
	}
	/* A poll that is in progress has this ring. */
	if (TDT__PEEK(ring->task) != 0)
		return ring;
	if (ring->kind == TDT_RING_POLLS || polls_have_rings())
		large = change_ring(LARGE);
	if (large != NULL)
		return large;
	tdt__thread.outgrown = outgrown_at(ring); /* the next attempt */
	return ring;
}

void tdt__ring_give(void)
{
	struct tdt_recording_ring *ring;

	tdt__ring_enter();
	ring = tdt__ring_mine();
	TDT__POKE(tdt__thread.ring, 0);
	tdt__thread.generation = 0;
	if (ring != NULL)
		give_ring(ring);
	tdt__ring_leave();
}

void tdt__ring_missed(uint32_t events, uint32_t polls)
{
	struct tdt_recording *block = tdt__block_enter();

	if (block == NULL)
		return;
	/* Of several threads at a time, any may be the last one. */
	TDT__POKE(block->missed_last, tdt__ticks());
	__atomic_fetch_add(&block->missed, events, __ATOMIC_RELAXED);
	__atomic_fetch_add(&block->missed_polls, polls, __ATOMIC_RELAXED);
	tdt__block_leave();
}

/* --- The recorder's thread ------------------------------------------------- */

/* Whether the thread that took the ring has ended, or has another ring. */
static bool is_left(const struct tdt_recording_ring *ring)
{
	uint32_t thread = TDT__PEEK(ring->thread);
	struct tdt__thread record;

	if (tgkill(getpid(), (pid_t)thread, 0) != 0 && errno == ESRCH)
		return true;
	return tdt__thread_peek(thread, &record) && record.ring != (uintptr_t)ring;
}

uint32_t tdt__rings_recycle(struct tdt_recording *block, uint32_t from, uint32_t most)
{
	uint32_t i = from, looked = 0;

	for (; i < block->n_rings && looked < most; i++) {
		struct tdt_recording_ring *ring = tdt__block_ring(block, i);

		if (!is_taken(ring))
			continue;
		looked++;
		if (is_left(ring))
			give_ring(ring);
	}
	return i < block->n_rings ? i : 0;
}

void tdt__rings_free(struct tdt_recording *block, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		struct tdt_recording_ring *ring = tdt__block_ring(block, i);

		if (TDT__PEEK(ring->own) == TDT__RING_ABSENT)
			give_ring(ring);
	}
}

uint32_t tdt__rings_taken(const struct tdt_recording *block)
{
	uint32_t n = 0;

	for (uint32_t i = TDT__SERVICE_RINGS; i < block->n_rings; i++)
		n += is_taken(tdt__block_ring(block, i));
	return n;
}

void tdt__rings_abandon(void)
{
	/* Release the new block: who sees this generation takes a ring there. */
	__atomic_store_n(&tdt__recording_generation, tdt__recording_generation + 1,
			 __ATOMIC_RELEASE);
}

/*
 * The record of a thread is read through the kernel, because it may end.  If its record is not
 * known (host/thread.h), it may be writing as long as it lives.
 */
static bool may_write(uint32_t thread)
{
	struct tdt__thread record;

	if (tdt__thread_peek(thread, &record))
		return record.writing != 0;
	return tgkill(getpid(), (pid_t)thread, 0) == 0 || errno != ESRCH;
}

bool tdt__block_is_left(const struct tdt_recording *block)
{
	/* Pairs with tdt__block_enter(), and the heavy barrier with tdt__ring_enter(). */
	if (atomic_load_explicit(&users, memory_order_seq_cst) != 0)
		return false;
	tdt__barrier_heavy();
	if (atomic_load_explicit(&tdt__barrier_fences, memory_order_relaxed))
		return false;
	for (uint32_t i = TDT__SERVICE_RINGS; i < block->n_rings; i++) {
		const struct tdt_recording_ring *ring = tdt__block_ring(block, i);

		if (is_taken(ring) && may_write(TDT__PEEK(ring->thread)))
			return false;
	}
	return true;
}
