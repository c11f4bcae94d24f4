// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers runtime/mutex.  The mutex: which task gets it in which order, whatever
 * is dropped when; and with threads at random, from a seed that is printed (TDT_TEST_SEED sets it).
 */

#include <tdt/rt/sync.h>

#include "lib/bell.h"
#include "lib/futures.h"
#include "lib/test.h"

#define THREADS 4

static struct test_waker waker, other;
static struct tdt_context cx = { &waker.waker }, other_cx = { &other.waker };
static struct tdt_mutex *mutex;

static void setup(void)
{
	test_waker_init(&waker);
	test_waker_init(&other);
	mutex = tdt_mutex_new();
	ck_assert_ptr_nonnull(mutex);
}

static void teardown(void)
{
	tdt_mutex_free(mutex);
	ck_assert_int_eq(waker.alive, 0);
	ck_assert_int_eq(other.alive, 0);
}

static tdt_poll_t poll_once(const struct tdt_future *future)
{
	return tdt_future_poll(future, &cx);
}

static struct tdt_future lock(void)
{
	struct tdt_future future = tdt_mutex_lock(mutex);

	ck_assert(!tdt_future_is_none(&future));
	return future;
}

/* A lock that waits. */
static struct tdt_future waiting(void)
{
	struct tdt_future future = lock();

	ck_assert_uint_eq(poll_once(&future), TDT_PENDING);
	return future;
}

static void expect_held(void)
{
	ck_assert(!tdt_mutex_try_lock(mutex));
}

static void expect_free(void)
{
	ck_assert(tdt_mutex_try_lock(mutex));
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
}

CASE(mutex, .setup = setup, .teardown = teardown)

TEST(a_free_mutex_is_taken_by_the_first_poll_and_nobody_to_wake)
{
	struct tdt_future first = lock();

	expect_free(); /* not polled yet */
	ck_assert_uint_eq(poll_once(&first), TDT_READY);
	ck_assert_int_eq(waker.clones, 0);
	expect_held();
	ck_assert_uint_eq(poll_once(&first), TDT_PANICKED);
	tdt_future_drop(&first);
	expect_held();
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	expect_free();
}

TEST(a_free_mutex_cannot_be_unlocked)
{
	ck_assert_fails(tdt_mutex_unlock(mutex), EPERM);
	expect_free();
}

TEST(there_is_no_lock_of_nothing)
{
	struct tdt_future none;

	errno = 0;
	none = tdt_mutex_lock(NULL);
	ck_assert(tdt_future_is_none(&none));
	ck_assert_int_eq(errno, EINVAL);
	tdt_mutex_free(NULL);
}

TEST(who_waits_gets_it_in_the_order_of_first_polls)
{
	struct tdt_future third = lock(), second = lock(), first = lock();
	struct tdt_future *const order[] = { &first, &second, &third };

	ck_assert(tdt_mutex_try_lock(mutex));
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(poll_once(order[i]), TDT_PENDING);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
		ck_assert_int_eq(waker.wakes, i + 1);
		expect_held(); /* nobody gets in between */
		for (int j = 2; j > i; j--)
			ck_assert_uint_eq(poll_once(order[j]), TDT_PENDING);
		ck_assert_uint_eq(poll_once(order[i]), TDT_READY);
		tdt_future_drop(order[i]);
	}
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	expect_free();
}

TEST(who_is_dropped_leaves_the_line, .to = 3)
{
	/* _i: which of them */
	struct tdt_future line[3];

	ck_assert(tdt_mutex_try_lock(mutex));
	for (int i = 0; i < 3; i++)
		line[i] = waiting();
	tdt_future_drop(&line[_i]);
	ck_assert_int_eq(waker.alive, 2);
	for (int i = 0; i < 3; i++) {
		if (i == _i)
			continue;
		ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
		ck_assert_uint_eq(poll_once(&line[i]), TDT_READY);
		tdt_future_drop(&line[i]);
	}
	ck_assert_int_eq(waker.wakes, 2);
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	expect_free();
}

TEST(what_was_handed_to_one_that_is_dropped_is_handed_on)
{
	struct tdt_future first, second;

	ck_assert(tdt_mutex_try_lock(mutex));
	first = waiting();
	second = waiting();
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	ck_assert_int_eq(waker.wakes, 1);
	tdt_future_drop(&first);
	ck_assert_int_eq(waker.wakes, 2);
	expect_held();
	tdt_future_drop(&second);
	expect_free();
}

TEST(a_lock_that_was_never_polled_holds_nothing)
{
	struct tdt_future unpolled = lock();

	ck_assert(tdt_mutex_try_lock(mutex));
	tdt_future_drop(&unpolled);
	expect_held();
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
}

TEST(spurious_polls_keep_the_place_and_the_clone)
{
	struct tdt_future first, second;

	ck_assert(tdt_mutex_try_lock(mutex));
	first = waiting();
	second = waiting();
	for (int i = 0; i < 5; i++)
		ck_assert_uint_eq(poll_once(&first), TDT_PENDING);
	ck_assert_int_eq(waker.clones, 2);
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	ck_assert_uint_eq(poll_once(&second), TDT_PENDING);
	ck_assert_uint_eq(poll_once(&first), TDT_READY);
	tdt_future_drop(&first);
	tdt_future_drop(&second);
}

TEST(the_waker_of_the_last_poll_is_woken)
{
	ck_assert(tdt_mutex_try_lock(mutex));
	FUTURE(moved, waiting());
	ck_assert_uint_eq(tdt_future_poll(&moved, &other_cx), TDT_PENDING);
	ck_assert_int_eq(waker.alive, 0);
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	ck_assert_int_eq(waker.wakes, 0);
	ck_assert_int_eq(other.wakes, 1);
	ck_assert_uint_eq(tdt_future_poll(&moved, &other_cx), TDT_READY);
}

TEST(who_cannot_be_woken_tries_again_and_keeps_the_place)
{
	struct tdt_future first = lock(), second;

	ck_assert(tdt_mutex_try_lock(mutex));
	waker.fail_clone = true;
	ck_assert_uint_eq(poll_once(&first), TDT_PENDING);
	ck_assert_int_eq(waker.wakes, 1);
	waker.fail_clone = false;
	second = waiting();
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	ck_assert_int_eq(waker.wakes, 1); /* it has been already */
	ck_assert_uint_eq(poll_once(&first), TDT_READY);
	tdt_future_drop(&first);
	tdt_future_drop(&second);
}

static void unlock(void)
{
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
}

/* When the clone is made, the poll has found the mutex held, and there is nobody to wake yet. */
TEST(an_unlock_in_the_middle_of_a_poll_is_not_lost)
{
	struct tdt_future locking = lock();

	ck_assert(tdt_mutex_try_lock(mutex));
	waker.in_clone = unlock;
	ck_assert_uint_eq(poll_once(&locking), TDT_READY);
	tdt_future_drop(&locking);
	expect_held();
	unlock();
}

/* A task of a runtime that polls inside its wake: it locks, unlocks, and by that wakes the next. */
struct eager {
	struct tdt_waker waker;
	struct tdt_future locking;
};

static const struct tdt_waker *eager_clone(const struct tdt_waker *eager)
{
	/* There is a call of the mutex's in each of a waker's functions. */
	ck_assert(!tdt_mutex_try_lock(mutex));
	return eager;
}

static void eager_wake(const struct tdt_waker *eager_waker)
{
	struct eager *eager = (struct eager *)(uintptr_t)eager_waker;
	struct tdt_context eager_cx = { eager_waker };

	if (tdt_future_poll(&eager->locking, &eager_cx) == TDT_READY) {
		tdt_future_drop(&eager->locking);
		ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	}
}

static void eager_drop(const struct tdt_waker *eager)
{
	ck_assert(!tdt_mutex_try_lock(mutex));
}

/* Else this hangs. */
TEST(wakers_are_called_with_nothing_locked_inside)
{
	static const struct tdt_waker_vtable vtable = { eager_clone, eager_wake, eager_wake,
							eager_drop };
	struct eager eager[8];

	ck_assert(tdt_mutex_try_lock(mutex));
	for (int i = 0; i < 8; i++) {
		eager[i] = (struct eager){ { &vtable }, lock() };
		eager_wake(&eager[i].waker);
	}
	tdt_future_drop(&eager[3].locking);
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	for (int i = 0; i < 8; i++)
		ck_assert(tdt_future_is_none(&eager[i].locking));
	expect_free();
}

static int make_all(void *argument)
{
	struct tdt_mutex *one;
	struct tdt_future locking;
	int result = 0;

	errno = 0;
	one = tdt_mutex_new();
	if (one == NULL)
		return -errno;
	locking = tdt_mutex_lock(one);
	if (tdt_future_is_none(&locking))
		result = -errno;
	else
		result = tdt_mutex_set_name(one, "one");
	tdt_future_drop(&locking);
	tdt_mutex_free(one);
	return result;
}

CASE(memory)

TEST(a_lack_of_memory_is_told)
{
	no_memory_each(make_all, NULL, 3);
}

static unsigned seed;
static __thread unsigned choices;

static bool one_in(unsigned n)
{
	return random_below(&choices, n) == 0;
}

static long in_order; /* what the mutex protects */
static atomic_long locked, given_up;

/* Take the mutex, or give up at some point on the way. */
static void lock_or_not(void)
{
	struct bell *bell[2] = { bell_new(), bell_new() };
	struct tdt_future locking = tdt_mutex_lock(mutex);
	bool patient = !one_in(4);
	tdt_poll_t result;

	MUST(!tdt_future_is_none(&locking));
	for (;;) {
		int now = one_in(2);
		struct tdt_context here = { &bell[now]->waker };

		result = tdt_future_poll(&locking, &here);
		if (result != TDT_PENDING || (!patient && one_in(2)))
			break;
		if (one_in(4))
			sched_yield(); /* the next poll comes without a wake-up */
		else
			bell_wait(bell[now]);
	}
	tdt_future_drop(&locking);
	if (result == TDT_READY) {
		in_order++;
		if (one_in(8))
			sched_yield();
		MUST(tdt_mutex_unlock(mutex) == 0);
		atomic_fetch_add(&locked, 1);
	} else {
		MUST(result == TDT_PENDING);
		atomic_fetch_add(&given_up, 1);
	}
	tdt_waker_drop(&bell[0]->waker);
	tdt_waker_drop(&bell[1]->waker);
}

static intptr_t least_rounds(void)
{
	return times_here(3000);
}

/* And on until a task gave up: a task that waits for no other never does.  Returns the rounds. */
static void *lock_often(void *number)
{
	intptr_t rounds;

	choices = seed + 7919 * (unsigned)(uintptr_t)number;
	for (rounds = 0; rounds < least_rounds() || given_up == 0; rounds++)
		lock_or_not();
	return (void *)rounds;
}

CASE(threads, .setup = setup, .teardown = teardown)

TEST(one_at_a_time_holds_the_mutex)
{
	pthread_t thread[THREADS];
	intptr_t rounds = 0;

	seed = seed_of_run();
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, lock_often, (void *)i), 0);
	for (int i = 0; i < THREADS; i++) {
		void *result;

		pthread_join(thread[i], &result);
		rounds += (intptr_t)result;
	}
	printf("# %ld locked, %ld gave up\n", locked, given_up);
	fflush(stdout);
	ck_assert_int_eq(in_order, locked);
	ck_assert_int_ge(rounds, THREADS * least_rounds());
	ck_assert_int_eq(locked + given_up, rounds);
	ck_assert_int_gt(given_up, 0);
	expect_free();
	ck_assert_int_eq(bells, 0);
}
