// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Taking rings and giving them back, and what is written at once into a new one. */

#include <config.h>

#include "recorder/rings.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "recorder/block.h"
#include "recorder/clock.h"

struct tdt_recording *_Atomic tdt__recording_block;

/* Acquire the table of rings.  Pairs with recorder.c's release. */
static struct tdt_recording *current_block(void)
{
	return atomic_load_explicit(&tdt__recording_block, memory_order_acquire);
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

static bool is_threads(const struct tdt_recording_ring *ring)
{
	return ring->kind == TDT_RING_POLLS || ring->kind == TDT_RING_OTHERS;
}

static bool is_taken(const struct tdt_recording_ring *ring)
{
	/* Acquire whose it is.  Pairs with begin_ring(). */
	uint64_t own = __atomic_load_n(&ring->own, __ATOMIC_ACQUIRE);

	return is_threads(ring) && (own & TDT__RING_STATES) == TDT__RING_TAKEN;
}

static void put_thread(struct tdt_recording *block, struct tdt_recording_ring *ring,
		       uint32_t previous)
{
	struct tdt_event event = { .kind = TDT_EVENT_THREAD,
				   .detail = tdt__thread.worker,
				   .a = tdt__thread.id,
				   .time = tdt__ticks(),
				   .c = previous };
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	tdt__ring_put_long(ring, tdt__block_slots(block, ring), &event, name,
			   strnlen(name, sizeof name));
}

/* Release `thread` and `tdt__thread.ring` to the recorder's thread.  Pairs with is_taken(). */
static void begin_ring(struct tdt_recording *block, struct tdt_recording_ring *ring)
{
	uint32_t previous = TDT__PEEK(ring->thread);

	TDT__POKE(ring->task, 0);
	TDT__POKE(ring->since, 0);
	TDT__POKE(ring->thread, tdt__thread.id);
	__atomic_store_n(&ring->own, TDT__RING_TAKEN, __ATOMIC_RELEASE);
	put_thread(block, ring, previous);
}

/* Acquire what the ring's previous thread wrote.  Pairs with give_ring(). */
static bool try_ring(struct tdt_recording_ring *ring)
{
	uint64_t free = TDT__RING_FREE;

	return TDT__PEEK(ring->own) == TDT__RING_FREE &&
	       __atomic_compare_exchange_n(&ring->own, &free, TDT__RING_CLAIMED, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Release what was written to the ring to the thread that takes it next. */
static void give_ring(struct tdt_recording_ring *ring)
{
	__atomic_store_n(&ring->own, TDT__RING_FREE, __ATOMIC_RELEASE);
}

static struct tdt_recording_ring *find_free_ring(struct tdt_recording *block, uint32_t kind)
{
	for (uint32_t i = TDT__SERVICE_RINGS; i < block->n_rings; i++) {
		struct tdt_recording_ring *ring = tdt__block_ring(block, i);

		if (ring->kind == kind && try_ring(ring))
			return ring;
	}
	return NULL;
}

static struct tdt_recording_ring *take_ring(bool polls)
{
	struct tdt_recording *block = current_block();
	struct tdt_recording_ring *ring;

	if (block == NULL)
		return NULL;
	ring = find_free_ring(block, polls ? TDT_RING_POLLS : TDT_RING_OTHERS);
	if (ring == NULL)
		return NULL;
	TDT__POKE(tdt__thread.ring, (uintptr_t)ring);
	tdt__thread.slots = tdt__block_slots(block, ring);
	tdt__thread.outgrown = TDT__PEEK(ring->head) + ring->room;
	begin_ring(block, ring);
	if (polls)
		begin_ring(block, ring + 1);
	/* If a new block came meanwhile, it may have missed that this ring was taken. */
	atomic_thread_fence(memory_order_seq_cst);
	if (current_block() == block)
		return ring;
	TDT__POKE(ring->thread, 0);
	return NULL;
}

#define RETRY_AFTER 64 /* a thread looks for a ring again when it has missed so many events */

struct tdt_recording_ring *tdt__ring_take(bool polls)
{
	struct tdt_recording_ring *small = tdt__ring_mine(), *ring;
	int saved = errno;

	if (tdt__thread.missed++ % RETRY_AFTER != 0)
		return NULL;
	tdt__thread_id();
	ring = take_ring(polls);
	TDT__POKE(tdt__thread.ring, (uintptr_t)(ring != NULL ? ring : small));
	if (ring != NULL)
		tdt__thread.missed = 0;
	if (ring != NULL && small != NULL)
		give_ring(small);
	errno = saved;
	return ring;
}

/* Whether most rings of polls are free, or can be allocated. */
static bool polls_have_rings(const struct tdt_recording *block)
{
	uint32_t rings = 0, taken = 0;

	for (uint32_t i = TDT__SERVICE_RINGS; i < block->n_rings; i++) {
		const struct tdt_recording_ring *ring = tdt__block_ring(block, i);

		rings += ring->kind == TDT_RING_POLLS;
		taken += ring->kind == TDT_RING_POLLS && is_taken(ring);
	}
	return 2 * taken < rings;
}

struct tdt_recording_ring *tdt__ring_grow(struct tdt_recording_ring *small)
{
	const struct tdt_recording *block = current_block();
	struct tdt_recording_ring *ring = NULL;

	tdt__thread.outgrown = TDT__PEEK(small->head) + small->room; /* the next attempt */
	tdt__thread.missed = 0;
	if (polls_have_rings(block))
		ring = tdt__ring_take(true);
	tdt__thread.missed = 0;
	return ring != NULL ? ring : small;
}

void tdt__ring_give(void)
{
	struct tdt_recording_ring *ring = tdt__ring_mine();

	TDT__POKE(tdt__thread.ring, 0);
	if (ring != NULL)
		give_ring(ring);
}

void tdt__ring_missed(bool poll)
{
	struct tdt_recording *block = current_block();

	if (block == NULL)
		return;
	/* Of several threads at a time, any may be the last one. */
	TDT__POKE(block->missed_last, tdt__ticks());
	__atomic_fetch_add(&block->missed, 1, __ATOMIC_RELAXED);
	if (poll)
		__atomic_fetch_add(&block->missed_polls, 1, __ATOMIC_RELAXED);
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

static void recycle_ring(struct tdt_recording_ring *ring)
{
	if (!is_left(ring))
		return;
	TDT__POKE(ring->task, 0);
	TDT__POKE(ring->since, 0);
	give_ring(ring);
}

uint32_t tdt__rings_recycle(struct tdt_recording *block, uint32_t from, uint32_t most)
{
	uint32_t i = from, looked = 0;

	for (; i < block->n_rings && looked < most; i++) {
		struct tdt_recording_ring *ring = tdt__block_ring(block, i);

		if (!is_taken(ring))
			continue;
		looked++;
		recycle_ring(ring);
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

void tdt__rings_abandon(struct tdt_recording *block)
{
	/* After the new block was published.  Pairs with the fence in take_ring(). */
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = TDT__SERVICE_RINGS; i < block->n_rings; i++)
		TDT__POKE(tdt__block_ring(block, i)->thread, 0);
}
