// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers recorder/rings, recorder/clock.  Which thread gets which ring and when it
 * is given back, what is counted if there is none, events of any length at the end of a ring, and
 * the clocks.
 */

#include <tdt/integrate/hooks.h>
#include <tdt/layout/recording.h>

#include "lib/hand.h"
#include "lib/recorded.h"
#include "lib/test.h"
#include "recorder/block.h"
#include "recorder/clock.h"
#include "recorder/cpu.h"
#include "recorder/record.h"
#include "recorder/rings.h"
#include "registry/handle.h"

static void start(size_t ring_size, size_t total_size)
{
	const struct tdt_recorder_options options = { .size = sizeof options,
						      .ring_size = ring_size,
						      .total_size = total_size };

	ck_assert_int_eq(tdt_recorder_start(&options), 0);
}

static struct tdt_recording *block(void)
{
	return (struct tdt_recording *)(uintptr_t)recorded_block();
}

/* --- Events of several slots ----------------------------------------------- */

#define PAYLOAD_MOST ((TDT_EVENT_SLOTS_MAX - 1) * TDT_EVENT_TEXT)

static void put_pattern(struct tdt_recording_ring *ring, unsigned number, size_t size)
{
	const struct tdt_event event = { .kind = TDT_EVENT_USER, .a = number, .time = size };
	char payload[PAYLOAD_MOST + 10];

	memset(payload, 'a' + (int)(number % 26), sizeof payload);
	tdt__ring_put_long(ring, tdt__thread.slots, &event, payload, size);
}

/* All events that are still there are whole, and follow each other; the last one is `newest`. */
static void check_patterns(const struct tdt_recording_ring *ring, unsigned newest)
{
	struct recorded event;
	char pattern[PAYLOAD_MOST];
	unsigned expected = 0, n = 0;
	uint64_t at = 0;

	while (recorded_next(ring, &at, &event)) {
		size_t size = event.event.time < PAYLOAD_MOST ? event.event.time : PAYLOAD_MOST;

		if (event.event.kind != TDT_EVENT_USER)
			continue;
		ck_assert(n++ == 0 || event.event.a == expected);
		ck_assert(event.size == size);
		memset(pattern, 'a' + (int)(event.event.a % 26), sizeof pattern);
		ck_assert(memcmp(event.payload, pattern, size) == 0);
		expected = event.event.a + 1;
	}
	ck_assert_uint_eq(expected, newest + 1);
}

CASE(slots)

TEST(events_of_each_length_are_whole_where_the_ring_ends)
{
	struct tdt_recording_ring *ring;
	unsigned number = 0;

	start(TDT_RING_SIZE_MIN, 0);
	ring = tdt__ring_of_polls();
	ck_assert_ptr_nonnull(ring);
	for (size_t size = 0; size <= PAYLOAD_MOST; size += size % 30 < 29 ? 29 - size % 30 : 1)
		for (unsigned i = 0; i < ring->room; i++) {
			put_pattern(ring, number, size);
			if (number++ % 8 == 0)
				check_patterns(ring, number - 1);
		}
}

TEST(a_payload_is_cut_to_what_an_event_has_room_for)
{
	start(TDT_RING_SIZE_MIN, 0);
	put_pattern(tdt__ring_of_polls(), 0, PAYLOAD_MOST + 10);
	check_patterns(tdt__ring_mine(), 0);
}

TEST(the_oldest_polls_are_overwritten_and_the_newest_are_there)
{
	const struct tdt_recording_ring *ring;

	start(TDT_RING_SIZE_MIN, 0);
	HAND(hand, 1000, TDT_READY, NULL);
	for (int i = 0; i < 500; i++) {
		hand_poll(&hand);
		test_events_clear();
	}
	ring = recorded_ring_of((uint32_t)gettid(), TDT_RING_POLLS);
	ck_assert_uint_ge(ring->head, 501);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, 0), ring->room);
}

/* --- Threads --------------------------------------------------------------- */

static struct tdt_handle *woken; /* the task that threads wake */

/* Wake a task again that was not polled since it was woken. */
static void wake_again(struct tdt_handle *task)
{
	TDT__POKE(task->record.woken, 0);
	tdt_task_woken(task);
}

/* The event alone: of threads that wake a task at once, only the first has news. */
static void *wake_once(void *arg)
{
	tdt__record_wake(tdt_handle_id(woken));
	return NULL;
}

/* How many slots of small rings were overwritten, or are not sure to be whole. */
static uint64_t overwritten(void)
{
	uint64_t n = 0;

	for (uint32_t i = TDT__SERVICE_RINGS; i < block()->n_rings; i++) {
		const struct tdt_recording_ring *ring = tdt__block_ring(block(), i);

		if (ring->kind == TDT_RING_OTHERS && ring->head + TDT_EVENT_SLOTS_MAX > ring->room)
			n += ring->head + TDT_EVENT_SLOTS_MAX - ring->room;
	}
	return n;
}

CASE(threads)

TEST(a_thousand_threads_that_come_and_go_lose_nothing_unsaid)
{
	unsigned n = in_valgrind() || is_delayed() ? 100 : 1000;
	uint64_t said;

	start(TDT_RING_SIZE_MIN, 0);
	HAND(hand, 9, TDT_READY, NULL);
	woken = hand.task.handle;
	for (unsigned i = 0; i < n; i += 50) {
		pthread_t threads[50];

		threads_start(threads, 50, wake_once, NULL);
		threads_join(threads, 50);
	}
	said = recorded_count(TDT_RING_OTHERS, TDT_EVENT_WAKE, hand_id(&hand));
	ck_assert_uint_gt(said, 0);
	said += block()->missed;
	ck_assert_uint_le(said, n);
	/* If the threads run one after the other, all of them may have used one ring. */
	ck_assert_uint_ge(said + overwritten(), n);
	ck_assert_uint_eq(block()->missed_polls, 0);
}

TEST(the_ring_of_a_thread_that_has_ended_is_given_to_another_one)
{
	const struct tdt_recording_ring *ring;
	struct recorded last;
	uint32_t first;

	start(TDT_RING_SIZE_MIN, 0);
	HAND(hand, 9, TDT_READY, NULL);
	woken = hand.task.handle;
	run_on_thread(wake_once, NULL);
	ring = recorded_last(TDT_RING_OTHERS, TDT_EVENT_WAKE, hand_id(&hand)).ring;
	first = ring->thread;
	/* The recorder's thread may have done so already. */
	tdt__rings_recycle(block(), 0, UINT32_MAX);
	run_on_thread(wake_once, NULL);
	ck_assert_uint_ne(ring->thread, first);
	last = recorded_last(TDT_RING_OTHERS, TDT_EVENT_THREAD, 0);
	ck_assert_ptr_eq(last.ring, ring);
	ck_assert_uint_eq(last.event.c, first);
	ck_assert_uint_eq(recorded_count(TDT_RING_OTHERS, TDT_EVENT_WAKE, hand_id(&hand)), 2);
}

TEST(the_ring_of_a_live_thread_is_not_given_away)
{
	const struct tdt_recording_ring *ring;

	start(TDT_RING_SIZE_MIN, 0);
	HAND(hand, 9, TDT_READY, NULL);
	hand_poll(&hand);
	ring = recorded_ring_of((uint32_t)gettid(), TDT_RING_POLLS);
	tdt__rings_recycle(block(), 0, UINT32_MAX);
	ck_assert_uint_eq(ring->own, TDT__RING_TAKEN);
	hand_poll(&hand);
	ck_assert_ptr_eq(tdt__ring_mine(), ring);
}

TEST(a_worker_that_stops_gives_its_ring_back_at_once)
{
	const struct tdt_recording_ring *ring;

	start(TDT_RING_SIZE_MIN, 0);
	HAND(hand, 9, TDT_READY, NULL);
	tdt_worker_thread_start(NULL);
	hand_poll(&hand);
	ring = recorded_ring_of((uint32_t)gettid(), TDT_RING_POLLS);
	ck_assert_uint_eq(ring->own, TDT__RING_TAKEN);
	tdt_worker_thread_stop();
	ck_assert_uint_eq(ring->own, TDT__RING_FREE);
	ck_assert_ptr_null(tdt__ring_mine());
}

TEST(a_thread_that_woke_and_then_polls_changes_to_a_ring_of_polls)
{
	const struct tdt_recording_ring *small;

	start(65536, 0);
	HAND(hand, 9, TDT_READY, NULL);
	small = recorded_ring_of((uint32_t)gettid(), TDT_RING_OTHERS);
	ck_assert_ptr_eq(tdt__ring_mine(), small);
	hand_poll(&hand);
	ck_assert_ptr_eq(tdt__ring_mine(),
			 recorded_ring_of((uint32_t)gettid(), TDT_RING_POLLS));
	ck_assert_uint_eq(small->own, TDT__RING_FREE);
}

static const struct tdt_recording_ring *my_ring(void)
{
	const struct tdt_recording_ring *ring = tdt__ring_mine();

	MUST(ring != NULL);
	return ring;
}

TEST(a_thread_that_fills_its_small_ring_changes_to_a_ring_of_polls)
{
	const struct tdt_recording_ring *small;
	uint32_t n;

	start(65536, 0);
	HAND(hand, 9, TDT_READY, NULL);
	small = my_ring();
	ck_assert_uint_eq(small->kind, TDT_RING_OTHERS);
	n = small->room + 100;
	for (uint32_t i = 0; i < n; i++)
		wake_again(hand.task.handle);
	ck_assert_uint_eq(my_ring()->kind, TDT_RING_POLLS);
	ck_assert_uint_eq(small->own, TDT__RING_FREE);
	/* The slots of one event are no longer sure to be whole, and the first one was a SPAWN. */
	ck_assert_uint_ge(recorded_count(TDT_RING_OTHERS, TDT_EVENT_WAKE, hand_id(&hand)) +
				  recorded_count(TDT_RING_POLLS, TDT_EVENT_WAKE, hand_id(&hand)),
			  n - 2 * TDT_EVENT_SLOTS_MAX);
	ck_assert_uint_eq(block()->missed, 0);
}

static void *poll_once(void *hand)
{
	hand_poll(hand);
	return NULL;
}

/* As when one worker of two is faster: what it did first is in the first ring. */
TEST(a_ring_that_was_left_for_a_larger_one_is_not_the_next_to_be_taken)
{
	const struct tdt_recording_ring *left;
	uint32_t me = (uint32_t)gettid();
	struct hand hand;

	start(1 << 20, 0);
	test_waker_init(&hand.waker);
	hand.task = tdt_traced(((struct tdt_future){ NULL, stay_pending, drop_nothing }));
	HAND(other, 9, TDT_READY, NULL);
	hand_poll(&hand);
	left = my_ring();
	while (my_ring() == left)
		hand_poll(&hand);
	ck_assert_uint_eq(left->own, TDT__RING_FREE);
	run_on_thread(poll_once, &other);
	ck_assert_uint_eq(left->thread, me);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, hand_id(&other)), 1);
	hand_end(&hand);
}

TEST(small_rings_do_not_grow_while_most_rings_of_polls_are_taken)
{
	uint32_t n;

	start(65536, 0);
	HAND(hand, 9, TDT_READY, NULL);
	for (uint32_t i = TDT__SERVICE_RINGS; i < block()->n_rings; i++)
		if (tdt__block_ring(block(), i)->kind == TDT_RING_POLLS)
			TDT__POKE(tdt__block_ring(block(), i)->own, TDT__RING_TAKEN);
	n = 3 * my_ring()->room;
	for (uint32_t i = 0; i < n; i++)
		wake_again(hand.task.handle);
	ck_assert_uint_eq(my_ring()->kind, TDT_RING_OTHERS);
	ck_assert_uint_eq(block()->missed, 0);
}

static void *poll_five_times(void *arg)
{
	for (int i = 0; i < 5; i++)
		hand_poll(arg);
	return NULL;
}

TEST(a_poll_that_finds_no_ring_counts_as_missed)
{
	struct tdt__block_plan plan = { .ring_size = TDT_RING_SIZE_MIN };
	uint64_t before;

	/* As little as has room for one ring of polls. */
	do
		plan.total_size += 1024;
	while (!tdt__block_plan(&plan));
	start(TDT_RING_SIZE_MIN, plan.total_size);
	HAND(hand, 99, TDT_READY, NULL);
	hand_poll(&hand);
	ck_assert_uint_eq(block()->missed_last, 0);
	before = tdt__ticks();
	run_on_thread(poll_five_times, &hand);
	ck_assert_uint_ge(block()->missed_last, before);
	ck_assert_uint_le(block()->missed_last, tdt__ticks());
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, hand_id(&hand)), 1);
	ck_assert_uint_eq(block()->missed, 5);
	ck_assert_uint_eq(block()->missed_polls, 5);
}

static uint64_t polled_at;

static tdt_poll_t note_time(void *state, struct tdt_context *cx)
{
	ck_assert_uint_eq(block()->missed_polls, 1);
	while (tdt__ticks() == block()->missed_last)
		;
	polled_at = tdt__ticks();
	return TDT_PENDING;
}

/* A listing that found it between its two ends tells no reader that it goes on. */
TEST(a_poll_without_a_ring_is_missed_until_its_end)
{
	struct tdt__block_plan plan = { .ring_size = TDT_RING_SIZE_MIN };
	struct hand hand;

	do
		plan.total_size += 1024;
	while (!tdt__block_plan(&plan));
	start(TDT_RING_SIZE_MIN, plan.total_size);
	HAND(other, 9, TDT_READY, NULL);
	hand_poll(&other);
	test_waker_init(&hand.waker);
	hand.task = tdt_traced(((struct tdt_future){ NULL, note_time, drop_nothing }));
	run_on_thread(poll_once, &hand);
	ck_assert_uint_ge(block()->missed_last, polled_at);
	ck_assert_uint_eq(block()->missed, 1);
	ck_assert_uint_eq(block()->missed_polls, 1);
	hand_end(&hand);
}

static sem_t missed_one, ring_is_free;

static void *poll_before_and_after(void *arg)
{
	hand_poll(arg);
	sem_post(&missed_one);
	sem_wait(&ring_is_free);
	hand_poll(arg);
	return NULL;
}

TEST(a_thread_that_found_no_ring_takes_the_next_one_that_is_free)
{
	struct tdt__block_plan plan = { .ring_size = TDT_RING_SIZE_MIN };
	pthread_t thread;

	do
		plan.total_size += 1024;
	while (!tdt__block_plan(&plan));
	sem_init(&missed_one, 0, 0);
	sem_init(&ring_is_free, 0, 0);
	tdt_worker_thread_start(NULL);
	start(TDT_RING_SIZE_MIN, plan.total_size);
	HAND(hand, 99, TDT_READY, NULL);
	HAND(other, 99, TDT_READY, NULL);
	hand_poll(&other);
	ck_assert_int_eq(pthread_create(&thread, NULL, poll_before_and_after, &hand), 0);
	sem_wait(&missed_one);
	ck_assert_uint_eq(block()->missed_polls, 1);
	tdt_worker_thread_stop(); /* gives its ring back */
	sem_post(&ring_is_free);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(block()->missed_polls, 1);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, hand_id(&hand)), 1);
}

static tdt_poll_t stopping_poll(void *state, struct tdt_context *cx)
{
	tdt_worker_thread_stop();
	return TDT_PENDING;
}

TEST(a_ring_that_was_given_back_in_a_poll_is_not_written_to)
{
	struct test_waker waker;
	struct tdt_context cx = { &waker.waker };
	TRACED(task, tdt_traced(((struct tdt_future){ NULL, stopping_poll, drop_nothing })));

	test_waker_init(&waker);
	start(TDT_RING_SIZE_MIN, 0);
	tdt_future_poll(&task.future, &cx);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, 0), 0);
	ck_assert_uint_eq(block()->missed_polls, 1);
}

static tdt_poll_t restarting_poll(void *state, struct tdt_context *cx)
{
	ck_assert_int_eq(tdt_recorder_stop(), 0);
	start(2 * TDT_RING_SIZE_MIN, 0);
	return TDT_PENDING;
}

TEST(a_poll_that_began_in_an_earlier_recording_is_not_missed)
{
	struct test_waker waker;
	struct tdt_context cx = { &waker.waker };
	TRACED(task, tdt_traced(((struct tdt_future){ NULL, restarting_poll, drop_nothing })));

	test_waker_init(&waker);
	start(TDT_RING_SIZE_MIN, 0);
	tdt_future_poll(&task.future, &cx);
	ck_assert_uint_eq(block()->missed, 0);
}

CASE(clocks)

/* A clock without a constant counter is simulated: the choice is made before the first look. */
TEST(either_clock_can_be_converted_to_the_systems, .to = 2)
{
	struct timespec pause = { 0, 20000000 };
	struct tdt__moment from, to;
	struct recorded clock;
	double ticks, ns;

	if (_i == 0)
		tdt__record_options.clock = TDT_RECORDING_MONOTONIC;
	start(TDT_RING_SIZE_MIN, 0);
	if (_i == 0) {
		ck_assert_uint_eq(block()->clock, TDT_RECORDING_MONOTONIC);
		ck_assert_uint_eq(block()->hz, 1000000000);
		ck_assert_uint_eq(tdt__ticks_of_ns(12345), 12345);
	}
	tdt__moment_now(&from);
	nanosleep(&pause, NULL);
	tdt__moment_now(&to);
	ticks = (double)(to.ticks - from.ticks) / (double)block()->hz;
	ns = (double)(to.monotonic - from.monotonic) / 1e9;
	ck_assert_double_gt(ticks / ns, 0.9);
	ck_assert_double_lt(ticks / ns, 1.1);
	clock = recorded_last(TDT_RING_SERVICE, TDT_EVENT_CLOCK, 0);
	tdt__moment_now(&to);
	ck_assert_uint_le(clock.event.time, to.ticks);
	ck_assert_uint_le(clock.event.task, to.monotonic);
	ck_assert_uint_ge(clock.event.c, clock.event.task);
	ck_assert_uint_eq(clock.size, 8);
}

TEST(the_cpu_is_the_one_that_the_thread_may_run_on)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	tdt__ticks_begin();
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	ck_assert_int_eq(sched_setaffinity(0, sizeof set, &set), 0);
	if (tdt__cpu() == UINT16_MAX)
		puts("# not tried: rseq is not registered here");
	else
		ck_assert_uint_eq(tdt__cpu(), (unsigned)cpu);
}
