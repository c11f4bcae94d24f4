// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers runtime/channel.  The channel for one value: which side has the
 * value in the end, whatever is dropped when; and with threads at random, from a seed that is
 * printed (TDT_TEST_SEED sets it).
 */

#include <tdt/rt/sync.h>

#include "lib/bell.h"
#include "lib/futures.h"
#include "lib/test.h"

#define RACES 3000

static struct test_waker waker, other;
static struct tdt_context cx = { &waker.waker }, other_cx = { &other.waker };

static void setup(void)
{
	test_waker_init(&waker);
	test_waker_init(&other);
}

static void teardown(void)
{
	ck_assert_int_eq(waker.alive, 0);
	ck_assert_int_eq(other.alive, 0);
}

static tdt_poll_t poll_once(const struct tdt_future *future)
{
	return tdt_future_poll(future, &cx);
}

/* --- One value ------------------------------------------------------------------ */

static struct tdt_oneshot_sender *sender;
static struct tdt_oneshot_receiver *receiver;
static void *received;
static int error, value, freed;

static void value_free(void *given)
{
	MUST(given == &value);
	freed++;
}

/* A channel, and the future that awaits it. */
static struct tdt_future channel(void)
{
	struct tdt_future future;

	ck_assert_int_eq(tdt_oneshot(&sender, &receiver, value_free), 0);
	received = &error; /* neither a value nor NULL */
	error = 99;
	freed = 0;
	future = tdt_oneshot_receive(receiver, &received, &error);
	ck_assert(!tdt_future_is_none(&future));
	return future;
}

/* Drop the future, and free the receiver. */
static void end_channel(struct tdt_future *receiving)
{
	tdt_future_drop(receiving);
	tdt_oneshot_receiver_free(receiver);
}

CASE(oneshot, .setup = setup, .teardown = teardown)

TEST(a_value_that_is_there_is_received_at_once)
{
	struct tdt_future receiving = channel();

	ck_assert_int_eq(tdt_oneshot_send(sender, &value), 0);
	ck_assert_uint_eq(poll_once(&receiving), TDT_READY);
	ck_assert_ptr_eq(received, &value);
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(waker.clones, 0);
	ck_assert_uint_eq(poll_once(&receiving), TDT_PANICKED);
	end_channel(&receiving);
	ck_assert_int_eq(freed, 0);
}

TEST(a_value_wakes_who_awaits_it)
{
	struct tdt_future receiving = channel();

	ck_assert_uint_eq(poll_once(&receiving), TDT_PENDING);
	ck_assert_uint_eq(poll_once(&receiving), TDT_PENDING);
	ck_assert_int_eq(waker.clones, 1);
	ck_assert_ptr_eq(received, &error); /* nothing is written before it is ready */
	ck_assert_int_eq(error, 99);
	ck_assert_int_eq(tdt_oneshot_send(sender, &value), 0);
	ck_assert_int_eq(waker.wakes, 1);
	ck_assert_uint_eq(poll_once(&receiving), TDT_READY);
	ck_assert_ptr_eq(received, &value);
	ck_assert_int_eq(error, 0);
	end_channel(&receiving);
	ck_assert_int_eq(freed, 0);
}

TEST(null_is_a_value)
{
	struct tdt_future receiving = channel();

	ck_assert_int_eq(tdt_oneshot_send(sender, NULL), 0);
	ck_assert_uint_eq(poll_once(&receiving), TDT_READY);
	ck_assert_ptr_null(received);
	ck_assert_int_eq(error, 0);
	end_channel(&receiving);
}

TEST(a_sender_that_is_freed_is_told, .to = 2)
{
	struct tdt_future receiving = channel();

	if (_i == 1) {
		ck_assert_uint_eq(poll_once(&receiving), TDT_PENDING);
		tdt_oneshot_sender_free(sender);
		ck_assert_int_eq(waker.wakes, 1);
	} else {
		tdt_oneshot_sender_free(sender);
	}
	ck_assert_uint_eq(poll_once(&receiving), TDT_READY);
	ck_assert_ptr_null(received);
	ck_assert_int_eq(error, -EPIPE);
	end_channel(&receiving);
	ck_assert_int_eq(freed, 0);
}

TEST(a_value_nobody_awaits_any_more_stays_the_sender_s, .to = 2)
{
	struct tdt_future receiving = channel();

	if (_i == 1)
		ck_assert_uint_eq(poll_once(&receiving), TDT_PENDING);
	end_channel(&receiving);
	ck_assert_int_eq(waker.alive, 0);
	ck_assert_fails(tdt_oneshot_send(sender, &value), EPIPE);
	ck_assert_int_eq(freed, 0);
	ck_assert_ptr_eq(received, &error);

	receiving = channel();
	end_channel(&receiving);
	tdt_oneshot_sender_free(sender);
	ck_assert_int_eq(freed, 0);
}

TEST(a_value_that_is_not_received_is_freed_once, .to = 2)
{
	struct tdt_future receiving = channel();

	if (_i == 1)
		ck_assert_uint_eq(poll_once(&receiving), TDT_PENDING);
	ck_assert_int_eq(tdt_oneshot_send(sender, &value), 0);
	ck_assert_int_eq(freed, 0);
	end_channel(&receiving);
	ck_assert_int_eq(freed, 1);

	ck_assert_int_eq(tdt_oneshot(&sender, &receiver, value_free), 0);
	ck_assert_int_eq(tdt_oneshot_send(sender, &value), 0);
	tdt_oneshot_receiver_free(receiver);
	ck_assert_int_eq(freed, 2);
}

TEST(the_receiver_is_woken_by_its_last_waker)
{
	struct tdt_future receiving = channel();

	ck_assert_uint_eq(poll_once(&receiving), TDT_PENDING);
	ck_assert_uint_eq(tdt_future_poll(&receiving, &other_cx), TDT_PENDING);
	ck_assert_int_eq(tdt_oneshot_send(sender, &value), 0);
	ck_assert_int_eq(waker.wakes, 0);
	ck_assert_int_eq(other.wakes, 1);
	end_channel(&receiving);
}

TEST(a_receiver_that_cannot_be_woken_tries_again)
{
	struct tdt_future receiving = channel();

	waker.fail_clone = true;
	ck_assert_uint_eq(poll_once(&receiving), TDT_PENDING);
	ck_assert_int_eq(waker.wakes, 1);
	waker.fail_clone = false;
	ck_assert_uint_eq(poll_once(&receiving), TDT_PENDING);
	ck_assert_int_eq(tdt_oneshot_send(sender, &value), 0);
	ck_assert_int_eq(waker.wakes, 2);
	end_channel(&receiving);
}

static void send_value(void)
{
	ck_assert_int_eq(tdt_oneshot_send(sender, &value), 0);
}

TEST(a_value_in_the_middle_of_a_poll_is_not_lost)
{
	struct tdt_future receiving = channel();

	waker.in_clone = send_value;
	ck_assert_uint_eq(poll_once(&receiving), TDT_READY);
	ck_assert_ptr_eq(received, &value);
	end_channel(&receiving);
}

TEST(neither_error_nor_value_free_need_be_given)
{
	struct tdt_future receiving;

	ck_assert_int_eq(tdt_oneshot(&sender, &receiver, NULL), 0);
	receiving = tdt_oneshot_receive(receiver, &received, NULL);
	tdt_oneshot_sender_free(sender);
	ck_assert_uint_eq(poll_once(&receiving), TDT_READY);
	ck_assert_ptr_null(received);
	end_channel(&receiving);

	ck_assert_int_eq(tdt_oneshot(&sender, &receiver, NULL), 0);
	ck_assert_int_eq(tdt_oneshot_send(sender, &value), 0);
	tdt_oneshot_receiver_free(receiver);
}

TEST(ends_that_are_missing_are_refused)
{
	struct tdt_future none;

	ck_assert_fails(tdt_oneshot(NULL, &receiver, NULL), EINVAL);
	ck_assert_int_eq(tdt_oneshot(&sender, NULL, NULL), -EINVAL);
	errno = 0;
	none = tdt_oneshot_receive(NULL, &received, NULL);
	ck_assert(tdt_future_is_none(&none));
	ck_assert_int_eq(errno, EINVAL);
	tdt_oneshot_sender_free(NULL);
	tdt_oneshot_receiver_free(NULL);

	ck_assert_int_eq(tdt_oneshot(&sender, &receiver, NULL), 0);
	none = tdt_oneshot_receive(receiver, NULL, NULL);
	ck_assert(tdt_future_is_none(&none));
	tdt_oneshot_receiver_free(receiver); /* it is still ours */
	tdt_oneshot_sender_free(sender);
}

/* --- Futures that are dropped, of a receiver that is not ------------------------------ */

/* A server, which works until it is stopped. */
struct server {
	struct tdt_async async;
	struct tdt_oneshot_receiver *stop;
	struct test_future work;
	size_t winner;
	int done;
	void *why;
	int error;
};

static struct tdt_future work_or_stop(struct server *server)
{
	struct tdt_future either[] = { test_future(&server->work),
				       tdt_oneshot_receive(server->stop, &server->why,
							   &server->error) };

	ck_assert(!tdt_future_is_none(&either[1]));
	return tdt_select(either, 2, &server->winner);
}

static tdt_poll_t serve(void *state, struct tdt_context *context)
{
	struct server *server = state;

	TDT_BEGIN(&server->async, context);
	for (;;) {
		server->work = (struct test_future){ .name = 'w', .pending = 1 };
		TDT_AWAIT(work_or_stop(server));
		if (server->winner == 1)
			break;
		server->done++;
	}
	TDT_END();
}

TEST(a_value_waits_for_the_next_future, .to = 2)
{
	struct tdt_future first = channel(), second;

	if (_i == 0)
		ck_assert_int_eq(tdt_oneshot_send(sender, &value), 0);
	else
		ck_assert_uint_eq(poll_once(&first), TDT_PENDING);
	tdt_future_drop(&first);
	ck_assert_int_eq(waker.alive, 0);
	if (_i == 1)
		ck_assert_int_eq(tdt_oneshot_send(sender, &value), 0);
	second = tdt_oneshot_receive(receiver, &received, &error);
	ck_assert_uint_eq(poll_once(&second), TDT_READY);
	ck_assert_ptr_eq(received, &value);
	end_channel(&second);
	ck_assert_int_eq(freed, 0);
}

TEST(a_value_is_received_once)
{
	struct tdt_future first = channel(), second;

	ck_assert_int_eq(tdt_oneshot_send(sender, &value), 0);
	ck_assert_uint_eq(poll_once(&first), TDT_READY);
	tdt_future_drop(&first);
	second = tdt_oneshot_receive(receiver, &received, &error);
	ck_assert_uint_eq(poll_once(&second), TDT_READY);
	ck_assert_ptr_null(received);
	ck_assert_int_eq(error, -EPIPE);
	end_channel(&second);
	ck_assert_int_eq(freed, 0);
}

TEST(of_several_futures_the_first_that_waits_gets_the_value)
{
	struct tdt_future first = channel(), second;
	void *other_received = &error;

	second = tdt_oneshot_receive(receiver, &other_received, NULL);
	ck_assert_uint_eq(tdt_future_poll(&second, &other_cx), TDT_PENDING);
	ck_assert_uint_eq(poll_once(&first), TDT_PENDING);
	ck_assert_int_eq(tdt_oneshot_send(sender, &value), 0);
	ck_assert_uint_eq(poll_once(&first), TDT_READY);
	ck_assert_ptr_null(received);
	ck_assert_uint_eq(tdt_future_poll(&second, &other_cx), TDT_READY);
	ck_assert_ptr_eq(other_received, &value);
	tdt_future_drop(&second);
	end_channel(&first);
	ck_assert_int_eq(freed, 0);
}

TEST(a_receiver_may_be_freed_before_its_future, .to = 2)
{
	struct tdt_future receiving = channel();

	ck_assert_uint_eq(poll_once(&receiving), TDT_PENDING);
	if (_i == 1)
		ck_assert_int_eq(tdt_oneshot_send(sender, &value), 0);
	tdt_oneshot_receiver_free(receiver);
	ck_assert_int_eq(waker.wakes, 1);
	ck_assert_uint_eq(poll_once(&receiving), TDT_READY);
	ck_assert_ptr_eq(received, _i == 1 ? &value : NULL);
	ck_assert_int_eq(error, _i == 1 ? 0 : -EPIPE);
	tdt_future_drop(&receiving);
	if (_i == 0)
		ck_assert_int_eq(tdt_oneshot_send(sender, &value), -EPIPE);
	ck_assert_int_eq(freed, 0);
}

TEST(work_or_stop_in_a_loop)
{
	struct server server = { .done = 0 };

	ck_assert_int_eq(tdt_oneshot(&sender, &server.stop, value_free), 0);
	freed = 0;
	for (int poll = 0; poll < 3; poll++) { /* each one ends one work, and begins another one */
		ck_assert_uint_eq(serve(&server, &cx), TDT_PENDING);
		ck_assert_int_eq(server.done, poll);
		ck_assert_int_eq(waker.alive, 2);
	}
	server.work.pending = 9;
	ck_assert_int_eq(tdt_oneshot_send(sender, &value), 0);
	ck_assert_uint_eq(serve(&server, &cx), TDT_READY);
	ck_assert_int_eq(server.done, 2);
	ck_assert_ptr_eq(server.why, &value);
	ck_assert_int_eq(server.error, 0);
	tdt_oneshot_receiver_free(server.stop);
	ck_assert_int_eq(freed, 0);
}

static int make(void *argument)
{
	int result = tdt_oneshot(&sender, &receiver, NULL);

	if (result == 0) {
		result = tdt_oneshot_set_name(receiver, "one");
		tdt_oneshot_sender_free(sender);
		tdt_oneshot_receiver_free(receiver);
	}
	return result;
}

CASE(memory)

TEST(a_lack_of_memory_is_told)
{
	no_memory_each(make, NULL, 2);
}

static unsigned seed;
static __thread unsigned choices;

static bool one_in(unsigned n)
{
	return random_below(&choices, n) == 0;
}

/* A value says how many it belongs to in the end. */
static atomic_int owners;
static pthread_barrier_t start, end;

static void own(void *given)
{
	atomic_fetch_add((atomic_int *)given, 1);
}

/* The sender's side of each race. */
static void *send_or_not(void *argument)
{
	choices = seed;
	for (int i = 0; i < RACES; i++) {
		pthread_barrier_wait(&start);
		if (one_in(4)) {
			tdt_oneshot_sender_free(sender);
			own(&owners); /* it never had another */
		} else if (tdt_oneshot_send(sender, &owners) != 0) {
			own(&owners);
		}
		pthread_barrier_wait(&end);
	}
	return argument;
}

static void receive_or_not(void)
{
	struct bell *bell = bell_new();
	struct tdt_context here = { &bell->waker };
	struct tdt_future receiving = tdt_oneshot_receive(receiver, &received, &error);
	bool patient = one_in(2);
	tdt_poll_t result = TDT_PENDING;

	while (patient || one_in(2)) {
		result = tdt_future_poll(&receiving, &here);
		if (result != TDT_PENDING)
			break;
		if (patient)
			bell_wait(bell);
	}
	if (result == TDT_READY && error == 0)
		own(received);
	end_channel(&receiving);
	tdt_waker_drop(&bell->waker);
}

CASE(threads, .setup = setup, .teardown = teardown)

TEST(a_value_has_one_owner_whoever_is_first)
{
	pthread_t thread;

	seed = seed_of_run();
	choices = seed + 1;
	pthread_barrier_init(&start, NULL, 2);
	pthread_barrier_init(&end, NULL, 2);
	ck_assert_int_eq(pthread_create(&thread, NULL, send_or_not, NULL), 0);
	for (int i = 0; i < RACES; i++) {
		ck_assert_int_eq(tdt_oneshot(&sender, &receiver, own), 0);
		atomic_store(&owners, 0);
		pthread_barrier_wait(&start);
		receive_or_not();
		pthread_barrier_wait(&end);
		ck_assert_int_eq(owners, 1);
	}
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&start);
	pthread_barrier_destroy(&end);
	ck_assert_int_eq(bells, 0);
}
