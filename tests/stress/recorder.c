// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Rings of the recorder are copied while threads write to them as fast as they can, by the rule
 * that <tdt/layout/recording.h> states.  Each event checks itself: its last word is computed from
 * the others and from its payload.  All events that the rule lets through must be right, and follow
 * each other.
 *
 *	tests/stress/recorder [EVENTS]
 *
 * Ends when so many events were checked; some hundred thousand by default.
 */

#include <config.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tdt/recorder.h>

#include "lib/must.h"
#include "lib/seeded.h"
#include "recorder/block.h"
#include "recorder/rings.h"

#define WRITERS 3
#define RING_SIZE 1048576

static atomic_bool over;
static struct tdt_recording_ring *_Atomic rings[WRITERS];
static uint64_t seed;

static uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= UINT64_C(0x9e3779b97f4a7c15);
	return x ^ x >> 29;
}

/* The payload's length and bytes follow from the event's number. */
static size_t size_of(uint64_t number)
{
	uint64_t random = mix(number ^ seed);

	return random % 4 == 0 ? (random >> 8) % (31 * TDT_EVENT_TEXT) : 0;
}

static uint64_t sum_of(uint64_t thread, uint64_t number, const unsigned char *payload, size_t size)
{
	uint64_t sum = mix(thread * 31 + number);

	for (size_t i = 0; i < size; i++)
		sum = mix(sum + payload[i]);
	return sum;
}

static void write_event(struct tdt_recording_ring *ring, uint64_t thread, uint64_t number)
{
	unsigned char payload[31 * TDT_EVENT_TEXT];
	struct tdt_event event = { .kind = TDT_EVENT_USER, .time = thread, .task = number };
	size_t size = size_of(number);

	for (size_t i = 0; i < size; i++)
		payload[i] = (unsigned char)(number + i);
	event.c = sum_of(thread, number, payload, size);
	if (size == 0)
		tdt__ring_put(ring, tdt__thread.slots, &event);
	else
		tdt__ring_put_long(ring, tdt__thread.slots, &event, payload, size);
}

/* Rings come and go, and become larger. */
static void *write_events(void *arg)
{
	uintptr_t thread = (uintptr_t)arg;

	for (uint64_t number = 0; !atomic_load_explicit(&over, memory_order_relaxed);) {
		struct tdt_recording_ring *ring;

		tdt__ring_enter();
		ring = tdt__ring_of_polls();
		if (ring != NULL)
			write_event(ring, thread, number++);
		tdt__ring_leave();
		atomic_store(&rings[thread], ring);
	}
	return NULL;
}

/* --- Reading -------------------------------------------------------------------------- */

static uint64_t copy[RING_SIZE / sizeof(uint64_t)];
static uint32_t room; /* of the ring that was copied */

/* Copy the ring, and find the slots that are whole: from `*first` up to `*end`. */
static void copy_ring(const struct tdt_recording_ring *ring, uint64_t *first, uint64_t *end)
{
	const uint64_t *slots = (const uint64_t *)TDT__PEEK(ring->address);
	/* Acquire the slots.  Pairs with tdt__ring_advance(). */
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

	/* Acquire the memory.  Pairs with grow_in_place(). */
	room = __atomic_load_n(&ring->room, __ATOMIC_ACQUIRE);
	for (size_t i = 0; i < room * sizeof(struct tdt_event) / sizeof copy[0]; i++)
		copy[i] = TDT__PEEK(slots[i]);
	/* Read all of them before `head` again.  Pairs with the fence in tdt__ring_advance(). */
	atomic_thread_fence(memory_order_acquire);
	*end = head;
	head = TDT__PEEK(ring->head) + TDT_EVENT_SLOTS_MAX;
	*first = head > room ? head - room : 0;
	if (TDT__PEEK(ring->first) > *first)
		*first = TDT__PEEK(ring->first);
	if (TDT__PEEK(ring->room) != room)
		*first = *end;
}

static const struct tdt_event *slot_of(uint64_t at)
{
	return (const struct tdt_event *)copy + (at & (room - 1));
}

/* The last event that was read, and its thread. */
struct last {
	uint64_t thread, number;
};

/* Read the event at `*at`, which moves behind it.  False: it is of another kind. */
static bool check_event(uint64_t *at, uint64_t end, struct last *last)
{
	const struct tdt_event *event = slot_of((*at)++);
	unsigned char payload[32 * TDT_EVENT_TEXT];
	size_t size = 0;

	for (; *at < end && slot_of(*at)->kind == TDT_EVENT_MORE; (*at)++) {
		const struct tdt_event_more *more = (const void *)slot_of(*at);

		memcpy(payload + size, more->text, more->n);
		size += more->n;
	}
	if (event->kind == TDT_EVENT_THREAD) {
		last->thread = UINT64_MAX;
		return false;
	}
	MUST(event->kind == TDT_EVENT_USER && event->time < WRITERS);
	MUST(last->thread == UINT64_MAX ||
	     (event->time == last->thread && event->task == last->number + 1));
	MUST(size == size_of(event->task));
	MUST(event->c == sum_of(event->time, event->task, payload, size));
	*last = (struct last){ event->time, event->task };
	return true;
}

static bool is_of(const struct tdt_recording *block, const struct tdt_recording_ring *ring)
{
	return ring >= tdt__block_ring(block, 0) && ring < tdt__block_ring(block, block->n_rings);
}

static uint64_t check_ring(uint64_t thread)
{
	const struct tdt_recording *block = tdt__block_enter();
	const struct tdt_recording_ring *ring = atomic_load(&rings[thread]);
	struct last last = { .thread = UINT64_MAX };
	uint64_t at = 0, end = 0, n = 0;

	if (is_of(block, ring))
		copy_ring(ring, &at, &end);
	tdt__block_leave();
	while (at < end && slot_of(at)->kind == TDT_EVENT_MORE)
		at++;
	while (at < end)
		n += check_event(&at, end, &last);
	return n;
}

#define COPIES_OF_A_BLOCK 100

int main(int argc, char **argv)
{
	struct tdt_recorder_options options = { .size = sizeof options,
						.ring_size = RING_SIZE,
						.total_size = 64 * RING_SIZE,
						.stacks = TDT_STACKS_OFF };
	uint64_t most = argc > 1 ? strtoull(argv[1], NULL, 10) : 300000, checked = 0, copies = 0;
	pthread_t threads[WRITERS];

	puts("1..1");
	seed = seed_of_run();
	MUST(tdt_recorder_start(&options) == 0);
	for (uintptr_t i = 0; i < WRITERS; i++)
		MUST(pthread_create(&threads[i], NULL, write_events, (void *)i) == 0);
	for (; checked < most; copies++) {
		checked += check_ring(copies % WRITERS);
		if (copies % COPIES_OF_A_BLOCK != COPIES_OF_A_BLOCK - 1)
			continue;
		/* Another block, while the threads write to this one, which is freed. */
		options.total_size += 65536;
		MUST(tdt_recorder_stop() == 0 && tdt_recorder_start(&options) == 0);
	}
	atomic_store(&over, true);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	printf("# %llu events in %llu copies\n", (unsigned long long)checked,
	       (unsigned long long)copies);
	printf("ok 1 - each event of a ring that is written to is whole\n");
	return EXIT_SUCCESS;
}
