// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers runtime/gate, runtime/semaphore, runtime/channel.  Semaphores,
 * notifications and bounded channels: who goes on, in which order, and who owns what, whatever is
 * dropped when; and with threads at random, from a seed that is printed (TDT_TEST_SEED sets it).
 */

#include <malloc.h>

#include <tdt/rt/channel.h>
#include <tdt/rt/sync.h>

#include "lib/bell.h"
#include "lib/futures.h"
#include "lib/requester.h"
#include "lib/test.h"

#define WAITERS 3
#define SENDERS 3
#define RECEIVERS 3
#define EACH 3000 /* values of a sender */

static struct test_waker waker[WAITERS];
static struct tdt_future waiting[WAITERS];

static void setup(void)
{
	for (int i = 0; i < WAITERS; i++) {
		test_waker_init(&waker[i]);
		waiting[i] = TDT_FUTURE_NONE;
	}
}

static void teardown(void)
{
	for (int i = 0; i < WAITERS; i++)
		ck_assert_int_eq(waker[i].alive, 0);
}

static tdt_poll_t poll_as(int i, const struct tdt_future *future)
{
	struct tdt_context cx = { &waker[i].waker };

	return tdt_future_poll(future, &cx);
}

static void expect_pending(int i, struct tdt_future future)
{
	ck_assert(!tdt_future_is_none(&future));
	waiting[i] = future;
	ck_assert_uint_eq(poll_as(i, &future), TDT_PENDING);
}

static void expect_ready(struct tdt_future future)
{
	ck_assert(!tdt_future_is_none(&future));
	ck_assert_uint_eq(poll_as(0, &future), TDT_READY);
	ck_assert_uint_eq(poll_as(0, &future), TDT_PANICKED);
	tdt_future_drop(&future);
}

/* The one that waits has been woken so often, and now ends. */
static void expect_end(int i, int wakes)
{
	ck_assert_int_eq(waker[i].wakes, wakes);
	ck_assert_uint_eq(poll_as(i, &waiting[i]), TDT_READY);
	tdt_future_drop(&waiting[i]);
}

static struct tdt_semaphore *semaphore;

static void semaphore_setup(void)
{
	setup();
	semaphore = tdt_semaphore_new(1);
	ck_assert_ptr_nonnull(semaphore);
}

static void semaphore_teardown(void)
{
	tdt_semaphore_free(semaphore);
	teardown();
}

CASE(semaphores, .setup = semaphore_setup, .teardown = semaphore_teardown)

TEST(permits_are_given_in_turn)
{
	expect_ready(tdt_semaphore_acquire(semaphore));
	for (int i = 0; i < WAITERS; i++)
		expect_pending(i, tdt_semaphore_acquire(semaphore));
	ck_assert(!tdt_semaphore_try_acquire(semaphore));
	for (int i = 0; i < WAITERS; i++) {
		ck_assert_int_eq(tdt_semaphore_release(semaphore), 0);
		ck_assert(!tdt_semaphore_try_acquire(semaphore)); /* it belongs to the waiter */
		expect_end(i, 1);
	}
	ck_assert_int_eq(tdt_semaphore_release(semaphore), 0);
	ck_assert(tdt_semaphore_try_acquire(semaphore));
}

/* 0: in the line, 1: admitted */
TEST(who_is_dropped_passes_its_permit_on, .to = 2)
{
	ck_assert(tdt_semaphore_try_acquire(semaphore));
	expect_pending(0, tdt_semaphore_acquire(semaphore));
	expect_pending(1, tdt_semaphore_acquire(semaphore));
	if (_i == 1)
		ck_assert_int_eq(tdt_semaphore_release(semaphore), 0);
	tdt_future_drop(&waiting[0]);
	if (_i == 0)
		ck_assert_int_eq(tdt_semaphore_release(semaphore), 0);
	ck_assert_int_eq(waker[0].wakes, _i);
	expect_end(1, 1);
	ck_assert(!tdt_semaphore_try_acquire(semaphore));
}

TEST(the_last_one_that_is_dropped_gives_it_back)
{
	ck_assert(tdt_semaphore_try_acquire(semaphore));
	expect_pending(0, tdt_semaphore_acquire(semaphore));
	ck_assert_int_eq(tdt_semaphore_release(semaphore), 0);
	tdt_future_drop(&waiting[0]);
	ck_assert(tdt_semaphore_try_acquire(semaphore));
}

static void release_one(void)
{
	ck_assert_int_eq(tdt_semaphore_release(semaphore), 0);
}

TEST(a_release_in_the_middle_of_a_poll_is_not_lost)
{
	ck_assert(tdt_semaphore_try_acquire(semaphore));
	waker[0].in_clone = release_one;
	expect_ready(tdt_semaphore_acquire(semaphore));
}

static struct tdt_notify *notify;

static void notify_setup(void)
{
	setup();
	notify = tdt_notify_new();
	ck_assert_ptr_nonnull(notify);
}

static void notify_teardown(void)
{
	tdt_notify_free(notify);
	teardown();
}

CASE(notifications, .setup = notify_setup, .teardown = notify_teardown)

TEST(one_is_notified_then_the_next)
{
	expect_pending(0, tdt_notify_wait(notify));
	expect_pending(1, tdt_notify_wait(notify));
	ck_assert_int_eq(tdt_notify_one(notify), 0);
	ck_assert_int_eq(waker[1].wakes, 0);
	expect_end(0, 1);
	ck_assert_int_eq(tdt_notify_one(notify), 0);
	expect_end(1, 1);
}

TEST(a_notification_waits_for_the_next_one_once)
{
	ck_assert_int_eq(tdt_notify_one(notify), 0);
	ck_assert_int_eq(tdt_notify_one(notify), 0);
	expect_ready(tdt_notify_wait(notify));
	expect_pending(0, tdt_notify_wait(notify));
	tdt_future_drop(&waiting[0]);
}

TEST(all_that_wait_are_notified_and_nobody_else)
{
	for (int i = 0; i < WAITERS; i++)
		expect_pending(i, tdt_notify_wait(notify));
	ck_assert_int_eq(tdt_notify_all(notify), 0);
	tdt_future_drop(&waiting[0]); /* passes nothing on */
	for (int i = 1; i < WAITERS; i++)
		expect_end(i, 1);
	expect_pending(0, tdt_notify_wait(notify));
	ck_assert_int_eq(tdt_notify_all(notify), 0);
	expect_end(0, 2);
	ck_assert_int_eq(tdt_notify_all(notify), 0);
	expect_pending(0, tdt_notify_wait(notify));
	tdt_future_drop(&waiting[0]);
}

static pthread_mutex_t *in_its_place;

/* Whoever takes the lock of the notification now waits for ever. */
static void end_and_free_notification(void)
{
	size_t size = malloc_usable_size(notify);

	for (int i = 0; i < WAITERS; i++)
		expect_end(i, 1);
	tdt_notify_free(notify);
	notify = NULL;
	in_its_place = malloc(size);
	MUST(in_its_place != NULL && pthread_mutex_init(in_its_place, NULL) == 0 &&
	     pthread_mutex_lock(in_its_place) == 0);
}

TEST(the_last_one_that_is_woken_may_free_the_notification)
{
	for (int i = 0; i < WAITERS; i++)
		expect_pending(i, tdt_notify_wait(notify));
	waker[WAITERS - 1].in_wake = end_and_free_notification;
	ck_assert_int_eq(tdt_notify_all(notify), 0);
	ck_assert_ptr_null(notify);
	pthread_mutex_unlock(in_its_place);
	free(in_its_place);
}

/* --- Channels --------------------------------------------------------------------- */

static struct tdt_channel *channel;
static int values[8], freed, error;
static void *received;

static void value_freed(void *value)
{
	MUST((int *)value >= values && (int *)value < values + 8);
	freed++;
}

static void channel_setup(void)
{
	setup();
	freed = 0;
	error = 99;
	received = &error;
	channel = tdt_channel_new(2, value_freed);
	ck_assert_ptr_nonnull(channel);
}

static void channel_teardown(void)
{
	tdt_channel_unref(channel);
	teardown();
}

static void expect_value(int i)
{
	ck_assert_int_eq(tdt_channel_try_receive(channel, &received), 0);
	ck_assert_ptr_eq(received, &values[i]);
}

static void fill_channel(void)
{
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(tdt_channel_try_send(channel, &values[i]), 0);
	ck_assert_int_eq(tdt_channel_try_send(channel, &values[7]), -EAGAIN);
}

CASE(channels, .setup = channel_setup, .teardown = channel_teardown)

TEST(values_come_in_the_order_in_which_they_were_sent)
{
	for (int round = 0; round < 3; round++) {
		expect_ready(tdt_channel_send(channel, &values[0], &error));
		ck_assert_int_eq(error, 0);
		expect_ready(tdt_channel_send(channel, &values[1], NULL));
		expect_value(0);
		ck_assert_int_eq(tdt_channel_try_send(channel, &values[2]), 0);
		expect_value(1);
		expect_ready(tdt_channel_receive(channel, &received, &error));
		ck_assert_ptr_eq(received, &values[2]);
		ck_assert_int_eq(error, 0);
		ck_assert_int_eq(tdt_channel_try_receive(channel, &received), -EAGAIN);
	}
	ck_assert_int_eq(freed, 0);
}

TEST(senders_wait_in_turn_while_it_is_full)
{
	fill_channel();
	for (int i = 0; i < WAITERS; i++)
		expect_pending(i, tdt_channel_send(channel, &values[2 + i], NULL));
	for (int i = 0; i < WAITERS; i++) {
		expect_value(i);
		ck_assert_int_eq(tdt_channel_try_send(channel, &values[7]), -EAGAIN);
		expect_end(i, 1);
	}
	expect_value(3);
	expect_value(4);
	ck_assert_int_eq(freed, 0);
}

TEST(receivers_wait_in_turn_while_it_is_empty)
{
	void *got[WAITERS];

	for (int i = 0; i < WAITERS; i++)
		expect_pending(i, tdt_channel_receive(channel, &got[i], NULL));
	for (int i = 0; i < WAITERS; i++) {
		ck_assert_int_eq(tdt_channel_try_send(channel, &values[i]), 0);
		ck_assert_int_eq(tdt_channel_try_receive(channel, &received), -EAGAIN);
		expect_end(i, 1);
		ck_assert_ptr_eq(got[i], &values[i]);
	}
}

/* 0: in the line, 1: admitted */
TEST(a_sender_that_is_dropped_frees_its_value_and_lets_the_next_one_go, .to = 2)
{
	fill_channel();
	expect_pending(0, tdt_channel_send(channel, &values[2], &error));
	expect_pending(1, tdt_channel_send(channel, &values[3], NULL));
	if (_i == 1)
		expect_value(0);
	tdt_future_drop(&waiting[0]);
	ck_assert_int_eq(freed, 1);
	if (_i == 0)
		expect_value(0);
	expect_end(1, 1);
	expect_value(1);
	expect_value(3);
	ck_assert_int_eq(error, 99);
}

/* 0: another one waits, 1: none does */
TEST(a_receiver_that_is_dropped_loses_no_value, .to = 2)
{
	void *other;

	expect_pending(0, tdt_channel_receive(channel, &received, &error));
	if (_i == 0)
		expect_pending(1, tdt_channel_receive(channel, &other, NULL));
	ck_assert_int_eq(tdt_channel_try_send(channel, &values[0]), 0);
	tdt_future_drop(&waiting[0]);
	ck_assert_ptr_eq(received, &error);
	if (_i == 0) {
		expect_end(1, 1);
		ck_assert_ptr_eq(other, &values[0]);
	} else {
		expect_value(0);
	}
}

TEST(a_closed_channel_is_drained)
{
	fill_channel();
	expect_pending(0, tdt_channel_send(channel, &values[2], &error));
	ck_assert_int_eq(tdt_channel_close(channel), 0);
	ck_assert_int_eq(tdt_channel_close(channel), 0);
	expect_end(0, 1);
	ck_assert_int_eq(error, -EPIPE);
	ck_assert_int_eq(freed, 1);
	ck_assert_int_eq(tdt_channel_try_send(channel, &values[3]), -EPIPE);
	ck_assert_int_eq(freed, 1); /* it is still the caller's */
	expect_value(0);
	expect_value(1);
	expect_ready(tdt_channel_receive(channel, &received, &error));
	ck_assert_ptr_null(received);
	ck_assert_int_eq(error, -EPIPE);
	ck_assert_int_eq(tdt_channel_try_receive(channel, &received), -EPIPE);
}

TEST(closing_wakes_the_receivers_and_takes_no_value_from_them)
{
	void *got[2];
	int errors[2] = { 99, 99 };

	for (int i = 0; i < 2; i++)
		expect_pending(i, tdt_channel_receive(channel, &got[i], &errors[i]));
	ck_assert_int_eq(tdt_channel_try_send(channel, &values[0]), 0);
	ck_assert_int_eq(tdt_channel_close(channel), 0);
	expect_end(1, 1);
	ck_assert_ptr_null(got[1]);
	ck_assert_int_eq(errors[1], -EPIPE);
	expect_end(0, 1);
	ck_assert_ptr_eq(got[0], &values[0]);
	ck_assert_int_eq(errors[0], 0);
}

static void poll_the_second(void)
{
	ck_assert_uint_eq(poll_as(1, &waiting[1]), TDT_READY);
	ck_assert_int_eq(error, -EPIPE);
}

/* Its future may be freed by then, so it is in no line. */
TEST(who_sees_the_close_before_it_is_woken_is_not_woken, .to = 2)
{
	if (_i == 0)
		fill_channel();
	for (int i = 0; i < 2; i++)
		expect_pending(i, _i == 0 ? tdt_channel_send(channel, &values[2 + i], &error)
					  : tdt_channel_receive(channel, &received, &error));
	waker[0].in_wake = poll_the_second;
	ck_assert_int_eq(tdt_channel_close(channel), 0);
	expect_end(0, 1);
	ck_assert_int_eq(waker[1].wakes, 0);
	tdt_future_drop(&waiting[1]);
}

TEST(what_nobody_receives_is_freed_with_the_last_reference)
{
	struct tdt_channel *other = tdt_channel_new(3, value_freed);

	ck_assert_int_eq(tdt_channel_try_send(other, &values[0]), 0);
	ck_assert_int_eq(tdt_channel_try_send(other, &values[1]), 0);
	expect_pending(0, tdt_channel_receive(channel, &received, NULL));
	waiting[1] = tdt_channel_receive(other, &received, NULL);
	tdt_channel_unref(tdt_channel_ref(other));
	tdt_channel_unref(other);
	ck_assert_int_eq(freed, 0);
	tdt_future_drop(&waiting[1]);
	ck_assert_int_eq(freed, 2);
	tdt_future_drop(&waiting[0]);
}

TEST(what_is_missing_is_refused)
{
	struct tdt_future none;

	ck_assert_ptr_fails(tdt_channel_new(0, NULL), EINVAL);
	ck_assert_ptr_fails(tdt_channel_new(SIZE_MAX / 4, NULL), ENOMEM);
	none = tdt_channel_receive(channel, NULL, NULL);
	ck_assert(tdt_future_is_none(&none));
	none = tdt_channel_send(NULL, &values[0], NULL);
	ck_assert(tdt_future_is_none(&none));
	none = tdt_semaphore_acquire(NULL);
	ck_assert(tdt_future_is_none(&none));
	none = tdt_notify_wait(NULL);
	ck_assert(tdt_future_is_none(&none));
	ck_assert_int_eq(tdt_channel_close(NULL), -EINVAL);
	ck_assert_int_eq(tdt_channel_try_send(NULL, NULL), -EINVAL);
	ck_assert_int_eq(tdt_channel_try_receive(channel, NULL), -EINVAL);
	ck_assert_int_eq(tdt_notify_all(NULL), -EINVAL);
	ck_assert_int_eq(tdt_semaphore_release(NULL), -EINVAL);
	ck_assert(!tdt_semaphore_try_acquire(NULL));
}

/* --- What traces say -------------------------------------------------------------- */

static void expect_said(struct tdt_future future, const char *poll, enum tdt_wait_kind kind)
{
	const struct tdt_task_info *info;
	TEST_TASK(task, &future);

	ck_assert_uint_eq(test_task_poll(&task), TDT_PENDING);
	ASKED(requester, task.handle);
	ck_assert_int_eq(test_task_run(&task), 1);
	info = test_answer(&requester);
	ck_assert_uint_eq(info->n_waits, 1);
	ck_assert_uint_eq(info->waits[0]->kind, kind);
	ck_assert_str_eq(info->waits[0]->name, "its name");
	ck_assert_int_eq(test_nodes_of(requester.trace, poll), 1);
}

CASE(gate_said, .setup = channel_setup, .teardown = channel_teardown)

TEST(each_leaf_has_its_own_name_and_says_that_of_its_object)
{
	struct tdt_semaphore *permits = tdt_semaphore_new(0);
	struct tdt_notify *news = tdt_notify_new();
	struct tdt_oneshot_sender *sender;
	struct tdt_oneshot_receiver *receiver;

	ck_assert_int_eq(tdt_semaphore_set_name(permits, "its name"), 0);
	ck_assert_int_eq(tdt_notify_set_name(news, "its name"), 0);
	ck_assert_int_eq(tdt_channel_set_name(channel, "its name"), 0);
	ck_assert_int_eq(tdt_oneshot(&sender, &receiver, NULL), 0);
	ck_assert_int_eq(tdt_oneshot_set_name(receiver, "its name"), 0);
	expect_said(tdt_semaphore_acquire(permits), "tdt_semaphore_acquire", TDT_WAIT_SEMAPHORE);
	expect_said(tdt_notify_wait(news), "tdt_notify_wait", TDT_WAIT_NOTIFICATION);
	expect_said(tdt_channel_receive(channel, &received, NULL), "tdt_channel_receive",
		    TDT_WAIT_CHANNEL);
	expect_said(tdt_oneshot_receive(receiver, &received, NULL), "tdt_oneshot_receive",
		    TDT_WAIT_CHANNEL);
	fill_channel();
	expect_said(tdt_channel_send(channel, &values[2], NULL), "tdt_channel_send",
		    TDT_WAIT_CHANNEL);
	tdt_oneshot_sender_free(sender);
	tdt_oneshot_receiver_free(receiver);
	tdt_notify_free(news);
	tdt_semaphore_free(permits);
}

static int make_all(void *argument)
{
	struct tdt_semaphore *permits = tdt_semaphore_new(1);
	struct tdt_notify *news = tdt_notify_new();
	struct tdt_channel *queue = tdt_channel_new(2, NULL);
	int result = -ENOMEM;

	if (permits != NULL && news != NULL && queue != NULL &&
	    tdt_semaphore_set_name(permits, "p") == 0 && tdt_notify_set_name(news, "n") == 0 &&
	    tdt_channel_set_name(queue, "q") == 0) {
		struct tdt_future made[] = { tdt_semaphore_acquire(permits), tdt_notify_wait(news),
					     tdt_channel_send(queue, argument, NULL),
					     tdt_channel_receive(queue, &received, NULL) };

		result = 0;
		for (int i = 0; i < 4; i++) {
			result = tdt_future_is_none(&made[i]) ? -ENOMEM : result;
			tdt_future_drop(&made[i]);
		}
	}
	tdt_channel_unref(queue);
	tdt_notify_free(news);
	tdt_semaphore_free(permits);
	return result;
}

CASE(gate_memory)

TEST(each_lack_of_memory_is_told)
{
	no_memory_each(make_all, NULL, 10);
}

static unsigned seed;
static atomic_long sum_sent, sum_received, n_freed;
static long numbers[SENDERS * EACH + 1];

static void number_freed(void *value)
{
	atomic_fetch_add(&sum_received, *(long *)value);
	atomic_fetch_add(&n_freed, 1);
}

/* Poll until it is ready, or dropped by whim. */
static tdt_poll_t poll_or_drop(struct tdt_future future, struct bell *bell, unsigned *choices)
{
	struct tdt_context cx = { &bell->waker };
	tdt_poll_t result;

	MUST(!tdt_future_is_none(&future));
	while ((result = tdt_future_poll(&future, &cx)) == TDT_PENDING) {
		if (random_below(choices, 4) == 0)
			break;
		bell_wait(bell);
	}
	tdt_future_drop(&future);
	return result;
}

static void *send_many(void *argument)
{
	long *number = argument;
	unsigned choices = seed + (unsigned)(number - numbers);
	struct bell *bell = bell_new();

	for (int i = 0; i < EACH; i++) {
		atomic_fetch_add(&sum_sent, number[i]);
		poll_or_drop(tdt_channel_send(channel, &number[i], NULL), bell, &choices);
	}
	tdt_waker_drop(&bell->waker);
	return NULL;
}

static void *receive_many(void *argument)
{
	unsigned choices = seed - 1 - (unsigned)(uintptr_t)argument;
	struct bell *bell = bell_new();
	void *value = NULL;
	int result = 0;

	while (result != -EPIPE) {
		if (poll_or_drop(tdt_channel_receive(channel, &value, &result), bell, &choices) ==
			TDT_READY &&
		    result == 0)
			atomic_fetch_add(&sum_received, *(long *)value);
	}
	tdt_waker_drop(&bell->waker);
	return NULL;
}

CASE(gate_threads, .timeout = 60)

TEST(each_value_is_received_or_freed_once)
{
	pthread_t sender[SENDERS], receiver[RECEIVERS];

	seed = seed_of_run();
	channel = tdt_channel_new(4, number_freed);
	for (long i = 0; i <= SENDERS * EACH; i++)
		numbers[i] = i + 1;
	for (int i = 0; i < RECEIVERS; i++)
		pthread_create(&receiver[i], NULL, receive_many, (void *)(uintptr_t)i);
	for (int i = 0; i < SENDERS; i++)
		pthread_create(&sender[i], NULL, send_many, &numbers[i * EACH]);
	threads_join(sender, SENDERS);
	ck_assert_int_eq(tdt_channel_close(channel), 0);
	threads_join(receiver, RECEIVERS);
	tdt_channel_unref(channel);
	ck_assert_int_eq(sum_received, sum_sent);
	ck_assert_int_ne(n_freed, 0);
	ck_assert_int_eq(bells, 0);
}
