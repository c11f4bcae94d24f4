// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Rings of the recorder are copied while threads write to them as fast as they can, by the rule
 * that <tdt/recording.h> states.  Each event checks itself: its last word is computed from the
 * others and from its payload.  All events that the rule lets through must be right, and follow
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
#include "recorder/rings.h"

#define WRITERS 3
#define RING_SIZE 65536

static atomic_bool over;
static atomic_uint ready;
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

static void *write_events(void *arg)
{
	uintptr_t thread = (uintptr_t)arg;
	struct tdt_recording_ring *ring = tdt__ring_of_polls();

	MUST(ring != NULL);
	atomic_store(&rings[thread], ring);
	atomic_fetch_add(&ready, 1);
	for (uint64_t number = 0; !atomic_load_explicit(&over, memory_order_relaxed); number++)
		write_event(ring, thread, number);
	return NULL;
}

/* --- Reading -------------------------------------------------------------------------- */

static uint64_t copy[RING_SIZE / sizeof(uint64_t)];

/* Copy the ring, and find the slots that are whole: from `*first` up to `*end`. */
static void copy_ring(const struct tdt_recording_ring *ring, uint64_t *first, uint64_t *end)
{
	const uint64_t *slots =
		(const uint64_t *)(tdt__registry.rings + TDT__PEEK(ring->slots));
	/* Acquire the slots.  Pairs with tdt__ring_advance(). */
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

	for (size_t i = 0; i < ring->room * sizeof(struct tdt_event) / sizeof copy[0]; i++)
		copy[i] = TDT__PEEK(slots[i]);
	/* Read all of them before `head` again.  Pairs with the fence in tdt__ring_advance(). */
	atomic_thread_fence(memory_order_acquire);
	*end = head;
	head = TDT__PEEK(ring->head) + TDT_EVENT_SLOTS_MAX;
	*first = head > ring->room ? head - ring->room : 0;
}

static const struct tdt_event *slot_of(const struct tdt_recording_ring *ring, uint64_t at)
{
	return (const struct tdt_event *)copy + (at & (ring->room - 1));
}

/* Read the event at `*at`, which moves behind it.  False: it is torn off at the end. */
static bool check_event(const struct tdt_recording_ring *ring, uint64_t thread, uint64_t *at,
			uint64_t end, uint64_t *last)
{
	const struct tdt_event *event = slot_of(ring, (*at)++);
	unsigned char payload[32 * TDT_EVENT_TEXT];
	size_t size = 0;

	for (; *at < end && slot_of(ring, *at)->kind == TDT_EVENT_MORE; (*at)++) {
		const struct tdt_event_more *more = (const void *)slot_of(ring, *at);

		memcpy(payload + size, more->text, more->n);
		size += more->n;
	}
	if (event->kind == TDT_EVENT_THREAD)
		return false;
	MUST(event->kind == TDT_EVENT_USER && event->time == thread);
	MUST(*last == UINT64_MAX || event->task == *last + 1);
	MUST(size == size_of(event->task));
	MUST(event->c == sum_of(thread, event->task, payload, size));
	*last = event->task;
	return true;
}

static uint64_t check_ring(uint64_t thread)
{
	const struct tdt_recording_ring *ring = atomic_load(&rings[thread]);
	uint64_t at, end, last = UINT64_MAX, n = 0;

	copy_ring(ring, &at, &end);
	while (at < end && slot_of(ring, at)->kind == TDT_EVENT_MORE)
		at++;
	while (at < end)
		n += check_event(ring, thread, &at, end, &last);
	return n;
}

int main(int argc, char **argv)
{
	const struct tdt_recorder_options options = { .size = sizeof options,
						      .ring_size = RING_SIZE,
						      .stacks = TDT_STACKS_OFF };
	uint64_t most = argc > 1 ? strtoull(argv[1], NULL, 10) : 300000, checked = 0, copies = 0;
	pthread_t threads[WRITERS];

	puts("1..1");
	seed = seed_of_run();
	MUST(tdt_recorder_start(&options) == 0);
	for (uintptr_t i = 0; i < WRITERS; i++)
		MUST(pthread_create(&threads[i], NULL, write_events, (void *)i) == 0);
	while (atomic_load(&ready) < WRITERS)
		usleep(1000);
	for (; checked < most; copies++)
		checked += check_ring(copies % WRITERS);
	atomic_store(&over, true);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	printf("# %llu events in %llu copies, while %llu slots were written\n",
	       (unsigned long long)checked, (unsigned long long)copies,
	       (unsigned long long)(rings[0]->head + rings[1]->head + rings[2]->head));
	printf("ok 1 - each event of a ring that is written to is whole\n");
	return EXIT_SUCCESS;
}
