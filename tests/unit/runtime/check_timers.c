// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers runtime/timer.  tdt_sleep_ms(): when timers fire, in which order, and what
 * cancelling them leaves behind.
 */

#include <tdt/rt/runtime.h>

#include "lib/driven.h"
#include "lib/driver_thread.h"
#include "lib/futures.h"
#include "lib/test.h"
#include "runtime/timer.h"

#define MS UINT64_C(1000000)
#define HOUR UINT64_C(3600000)

static struct test_waker waker, other;
static struct tdt_context cx = { &waker.waker }, other_cx = { &other.waker };

static void setup(void)
{
	driven_setup();
	test_waker_init(&waker);
	test_waker_init(&other);
}

/* --- Holding the driver up: no timer fires meanwhile ------------------------------ */

static sem_t held, let_go;
static struct tdt_future holding;

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0)
		MUST(errno == EINTR);
}

static void wake_holding(const struct tdt_waker *holding_waker)
{
	sem_post(&held);
	wait_for(&let_go);
}

static void hold_driver(void)
{
	static const struct tdt_waker_vtable vtable = { clone_itself, wake_holding, wake_holding,
							ignore_waker };
	static const struct tdt_waker holding_waker = { &vtable };
	struct tdt_context holding_cx = { &holding_waker };

	sem_init(&held, 0, 0);
	sem_init(&let_go, 0, 0);
	holding = tdt_sleep_ms(1);
	ck_assert_uint_eq(tdt_future_poll(&holding, &holding_cx), TDT_PENDING);
	wait_for(&held);
}

static void let_driver_go(void)
{
	sem_post(&let_go);
	tdt_future_drop(&holding);
}

CASE(when, .setup = setup, .teardown = driven_teardown)

TEST(a_timer_never_fires_early, .from = 1, .to = 20)
{
	uint64_t ms = (uint64_t)_i, before = driven_now_ns();

	ck_assert_uint_eq(drive(tdt_sleep_ms(ms)), TDT_READY);
	ck_assert_uint_ge(driven_now_ns() - before, ms * MS);
}

TEST(it_counts_from_the_first_poll)
{
	struct tdt_future sleep = tdt_sleep_ms(20);
	uint64_t before;

	ck_assert_uint_eq(drive(tdt_sleep_ms(30)), TDT_READY);
	before = driven_now_ns();
	ck_assert_uint_eq(drive(sleep), TDT_READY);
	ck_assert_uint_ge(driven_now_ns() - before, 20 * MS);
}

TEST(no_time_is_ready_at_once)
{
	FUTURE(sleep, tdt_sleep_ms(0));

	ck_assert_uint_eq(tdt_future_poll(&sleep, &cx), TDT_READY);
	ck_assert_uint_eq(tdt_future_poll(&sleep, &cx), TDT_PANICKED);
	ck_assert_int_eq(waker.clones, 0);
}

TEST(a_time_beyond_the_clock_never_comes, .to = 3)
{
	static const uint64_t times[] = { UINT64_MAX, UINT64_MAX / 1000000,
					  UINT64_MAX / 1000000 - 1 };
	FUTURE(sleep, tdt_sleep_ms(times[_i]));

	ck_assert_uint_eq(tdt_future_poll(&sleep, &cx), TDT_PENDING);
	ck_assert_uint_eq(drive(tdt_sleep_ms(20)), TDT_READY);
	ck_assert_uint_eq(tdt_future_poll(&sleep, &cx), TDT_PENDING);
	ck_assert_int_eq(waker.wakes, 0);
}

TEST(a_timer_fires_while_a_later_one_is_waited_for)
{
	FUTURE(late, tdt_sleep_ms(HOUR));
	long switches = driver_thread_switches();

	ck_assert_uint_eq(tdt_future_poll(&late, &cx), TDT_PENDING);
	driver_thread_asleep(switches);
	ck_assert_uint_eq(drive(tdt_sleep_ms(10)), TDT_READY);
	ck_assert_int_eq(waker.wakes, 0);
}

/* --- In which order -------------------------------------------------------------- */

#define TIMERS 1000

/* A waker that writes down, on the driver's thread, which timer woke it. */
struct noting {
	struct tdt_waker waker;
	struct tdt_future sleep;
	uint64_t due_ms;
	int started; /* the how-manieth */
};

static struct noting noting[TIMERS];
static struct noting *woken[TIMERS];
static atomic_int n_woken;

static void wake_noting(const struct tdt_waker *noting_waker)
{
	woken[n_woken] = (struct noting *)(uintptr_t)noting_waker;
	n_woken++;
}

static void start_noting(int i, uint64_t ms)
{
	static const struct tdt_waker_vtable vtable = { clone_itself, wake_noting, wake_noting,
							ignore_waker };
	struct noting *one = &noting[i];
	struct tdt_context one_cx = { &one->waker };

	*one = (struct noting){ .waker = { &vtable }, .sleep = tdt_sleep_ms(ms), .started = i };
	ck_assert_uint_eq(tdt_future_poll(&one->sleep, &one_cx), TDT_PENDING);
	one->due_ms = ((struct tdt__timer *)one->sleep.state)->due_ms;
}

static void wait_until_woken(int n)
{
	while (n_woken < n)
		drive(tdt_sleep_ms(1));
}

/*
 * Wait until all were woken, and compare: the timer that was due first came first; of two that were
 * due together, the one that was started first.
 */
static void expect_in_order(int n)
{
	wait_until_woken(n);
	for (int i = 1; i < n; i++) {
		const struct noting *a = woken[i - 1], *b = woken[i];

		ck_assert_msg(
		    a->due_ms < b->due_ms || (a->due_ms == b->due_ms && a->started < b->started),
		    "%d (due %llu) fired before %d (due %llu)", a->started,
		    (unsigned long long)a->due_ms, b->started, (unsigned long long)b->due_ms);
	}
	for (int i = 0; i < n; i++)
		tdt_future_drop(&noting[i].sleep);
}

CASE(order, .setup = setup, .teardown = driven_teardown)

TEST(timers_fire_in_the_order_they_are_due)
{
	unsigned seed = seed_of_run();
	uint64_t before, least = 50;

	/* Until all are started before the first is due: a late timer can't be in order. */
	for (;; least *= 2) {
		before = driven_now_ns();
		for (int i = 0; i < TIMERS; i++)
			start_noting(i, least + rand_r(&seed) % least);
		if (driven_now_ns() - before < least * MS)
			break;
		wait_until_woken(TIMERS);
		for (int i = 0; i < TIMERS; i++)
			tdt_future_drop(&noting[i].sleep);
		n_woken = 0;
	}
	expect_in_order(TIMERS);
}

TEST(timers_due_together_fire_in_the_order_they_were_started)
{
	for (int i = 0; i < TIMERS; i++)
		start_noting(i, 30);
	expect_in_order(TIMERS);
}

/* --- A day, on a clock of the test's ----------------------------------------------- */

#define DAY (24 * HOUR)
#define AT_A_TIME 2000
#define STEPS 4000

static struct simulated {
	struct tdt_waker waker;
	struct tdt_future sleep; /* none: it is not used */
	uint64_t due_ms, number; /* of its timer */
	bool fired;
} simulated[AT_A_TIME];
static uint64_t virtual_ms;
static const struct simulated *fired_last; /* in this step */
static int n_fired;

static void wake_simulated(const struct tdt_waker *its_waker)
{
	struct simulated *it = (struct simulated *)(uintptr_t)its_waker;
	const struct simulated *last = fired_last;

	MUST(!it->fired && it->due_ms <= virtual_ms);
	MUST(last == NULL || last->due_ms < it->due_ms ||
	     (last->due_ms == it->due_ms && last->number < it->number));
	it->fired = true;
	fired_last = it;
	n_fired++;
}

static void start_simulated(struct simulated *it, uint64_t ms)
{
	static const struct tdt_waker_vtable vtable = { clone_itself, wake_simulated,
							wake_simulated, ignore_waker };
	struct tdt_context its_cx = { &it->waker };
	const struct tdt__timer *timer;

	*it = (struct simulated){ .waker = { &vtable }, .sleep = tdt_sleep_ms(ms) };
	MUST(tdt_future_poll(&it->sleep, &its_cx) == TDT_PENDING);
	timer = it->sleep.state;
	it->due_ms = timer->due_ms;
	it->number = timer->number;
}

static void fire_simulated(void)
{
	static struct tdt__turn turn;

	turn.now_ns = virtual_ms * MS;
	fired_last = NULL;
	do {
		turn.n_others = 0;
		tdt__timers_fire(driven_driver(), &turn);
		tdt__turn_end(&turn);
	} while (turn.n_others != 0);
}

/* Start, restart or drop one that is chosen at random. */
static void change_simulated(unsigned *seed)
{
	struct simulated *it = &simulated[random_below(seed, AT_A_TIME)];
	bool is_there = !tdt_future_is_none(&it->sleep);

	if (it->fired)
		MUST(tdt_future_poll(&it->sleep, &cx) == TDT_READY);
	tdt_future_drop(&it->sleep);
	it->fired = false;
	if (!is_there || random_below(seed, 4) != 0)
		start_simulated(it, 1000 + (uint64_t)random_below(seed, 60000) * 1440);
}

/* The driver's thread is held meanwhile, so that only the test fires timers. */
TEST(a_day_of_timers_fires_in_order)
{
	unsigned seed = seed_of_run();
	uint64_t begin = driven_now_ns() / MS;

	hold_driver();
	for (int step = 1; step <= STEPS; step++) {
		for (int i = 0; i < 25; i++)
			change_simulated(&seed);
		virtual_ms = begin + DAY * (uint64_t)step / STEPS;
		fire_simulated();
		for (int i = 0; i < AT_A_TIME; i++)
			MUST(tdt_future_is_none(&simulated[i].sleep) ||
			     simulated[i].fired == (simulated[i].due_ms <= virtual_ms));
	}
	ck_assert_int_gt(n_fired, STEPS);
	for (int i = 0; i < AT_A_TIME; i++)
		tdt_future_drop(&simulated[i].sleep);
	ck_assert_ptr_null(driven_driver()->timers);
	let_driver_go();
}

TEST(ten_thousand_timers_fire)
{
	static struct driven *tasks[10000];

	for (int i = 0; i < 10000; i++) {
		tasks[i] = driven_new(tdt_sleep_ms(1 + (uint64_t)i % 100));
		ck_assert_uint_eq(driven_poll(tasks[i]), TDT_PENDING);
	}
	for (int i = 0; i < 10000; i++) {
		driven_wait(tasks[i]);
		ck_assert_uint_eq(driven_poll(tasks[i]), TDT_READY);
		ck_assert_int_eq(driven_wakes(tasks[i]), 1);
		driven_end(tasks[i]);
	}
}

CASE(wakers, .setup = setup, .teardown = driven_teardown)

TEST(the_last_waker_is_the_one_woken)
{
	FUTURE(sleep, tdt_sleep_ms(20));

	hold_driver();
	ck_assert_uint_eq(tdt_future_poll(&sleep, &cx), TDT_PENDING);
	ck_assert_uint_eq(tdt_future_poll(&sleep, &other_cx), TDT_PENDING);
	ck_assert_int_eq(waker.alive, 0);
	ck_assert_int_eq(other.alive, 1);
	let_driver_go();
	while (other.alive != 0)
		drive(tdt_sleep_ms(1));
	ck_assert_int_eq(waker.wakes, 0);
	ck_assert_int_eq(other.wakes, 1);
	ck_assert_uint_eq(tdt_future_poll(&sleep, &cx), TDT_READY);
}

TEST(a_poll_too_many_clones_nothing)
{
	struct tdt_future sleep = tdt_sleep_ms(HOUR);

	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(tdt_future_poll(&sleep, &cx), TDT_PENDING);
	ck_assert_int_eq(waker.clones, 1);
	ck_assert_int_eq(waker.alive, 1);
	tdt_future_drop(&sleep);
	ck_assert_int_eq(waker.alive, 0);
}

TEST(a_waker_that_cannot_be_cloned_is_woken)
{
	FUTURE(sleep, tdt_sleep_ms(HOUR));

	waker.fail_clone = true;
	ck_assert_uint_eq(tdt_future_poll(&sleep, &cx), TDT_PENDING);
	ck_assert_int_eq(waker.wakes, 1);
}

/* --- Cancelled -------------------------------------------------------------------------- */

/* Start a timer, and drop it before the first poll; or before the driver's next turn; or later. */
static void start_and_drop(int when)
{
	FUTURE(sleep, tdt_sleep_ms(10));

	if (when > 0)
		ck_assert_uint_eq(tdt_future_poll(&sleep, &cx), TDT_PENDING);
	if (when > 1)
		drive(tdt_sleep_ms(1));
}

CASE(cancelled, .setup = setup, .teardown = driven_teardown)

TEST(a_timer_that_is_dropped_wakes_nobody, .to = 3)
{
	uint64_t before;
	int alive;
	FUTURE(late, tdt_sleep_ms(HOUR));

	ck_assert_uint_eq(tdt_future_poll(&late, &other_cx), TDT_PENDING);
	for (;;) { /* until it was dropped in time */
		before = driven_now_ns();
		start_and_drop(_i);
		alive = waker.alive;
		if (driven_now_ns() - before < 10 * MS)
			break;
		while (waker.alive != 0) /* the driver may be about to wake it */
			sched_yield();
		waker.wakes = 0;
	}
	ck_assert_int_eq(alive, 0);
	drive(tdt_sleep_ms(20));
	ck_assert_int_eq(waker.wakes, 0);
}

TEST(a_timer_may_be_dropped_after_it_fired_unpolled)
{
	DRIVEN(task, driven_new(tdt_sleep_ms(1)));

	ck_assert_uint_eq(driven_poll(task), TDT_PENDING);
	driven_wait(task);
}

static void *race_the_driver(void *driver)
{
	static atomic_uint seeds;
	unsigned seed = ++seeds;

	driven_use(driver);
	for (int i = 0; i < 2000; i++) {
		uint64_t ms = (uint64_t)rand_r(&seed) % 4;
		DRIVEN(task, driven_new(tdt_sleep_ms(ms == 3 ? HOUR : ms)));
		tdt_poll_t polled = driven_poll(task);

		MUST(polled == (ms == 0 ? TDT_READY : TDT_PENDING));
		if (ms % 3 != 0 && rand_r(&seed) % 2 == 0) {
			driven_wait(task);
			MUST(driven_poll(task) == TDT_READY);
		} else if (rand_r(&seed) % 4 == 0) {
			nanosleep(&(struct timespec){ .tv_nsec = rand_r(&seed) % 2000000 }, NULL);
		}
	}
	return NULL;
}

TEST(threads_start_and_cancel_timers_while_they_fire)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(
		    pthread_create(&threads[i], NULL, race_the_driver, driven_driver()), 0);
	threads_join(threads, 4);
}

CASE(asleep, .setup = setup, .teardown = driven_teardown)

TEST(timers_later_than_what_it_sleeps_for_leave_the_driver_asleep)
{
	struct tdt_future first = tdt_sleep_ms(HOUR), later[100];
	long switches = driver_thread_switches();

	ck_assert_uint_eq(tdt_future_poll(&first, &cx), TDT_PENDING);
	switches = driver_thread_asleep(switches);
	for (int i = 0; i < 100; i++) {
		later[i] = tdt_sleep_ms(2 * HOUR);
		ck_assert_uint_eq(tdt_future_poll(&later[i], &other_cx), TDT_PENDING);
	}
	for (int i = 0; i < 10000; i++) {
		FUTURE(sleep, tdt_sleep_ms(2 * HOUR));

		ck_assert_uint_eq(tdt_future_poll(&sleep, &other_cx), TDT_PENDING);
	}
	for (int i = 0; i < 100; i++)
		tdt_future_drop(&later[i]);
	tdt_future_drop(&first); /* it has that one; it need not hurry to forget it */
	nanosleep(&(struct timespec){ .tv_nsec = 50 * (long)MS }, NULL);
	ck_assert_int_eq(driver_thread_switches(), switches);
}

CASE(outside, .setup = setup, .teardown = driven_teardown)

TEST(without_a_runtime_it_panics)
{
	struct tdt__driver *driver = driven_driver();
	struct tdt_future sleep = tdt_sleep_ms(1);

	driven_use(NULL);
	errno = 0;
	ck_assert_uint_eq(tdt_future_poll(&sleep, &cx), TDT_PANICKED);
	ck_assert_int_eq(errno, ENOTSUP);
	ck_assert_uint_eq(tdt_future_poll(&sleep, &cx), TDT_PANICKED);
	tdt_future_drop(&sleep);
	ck_assert_int_eq(waker.alive, 0);
	driven_use(driver);
}

/*
 * Those that the driver has, those it has not heard of, those that were given up, and those that
 * are started now.
 */
TEST(timers_outlive_the_driver)
{
	struct tdt_future has = tdt_sleep_ms(HOUR), listed = tdt_sleep_ms(2 * HOUR),
			  late = tdt_sleep_ms(1);
	struct tdt_future cancelled = tdt_sleep_ms(HOUR);
	struct tdt_future *left[] = { &has, &listed, &late };

	ck_assert_uint_eq(tdt_future_poll(&has, &cx), TDT_PENDING);
	ck_assert_uint_eq(tdt_future_poll(&cancelled, &cx), TDT_PENDING);
	drive(tdt_sleep_ms(1));
	ck_assert_uint_eq(tdt_future_poll(&listed, &cx), TDT_PENDING);
	tdt_future_drop(&cancelled);
	driven_stop();
	for (int i = 0; i < 3; i++) {
		errno = 0;
		ck_assert_uint_eq(tdt_future_poll(left[i], &cx), TDT_PANICKED);
		ck_assert_int_eq(errno, ENOTSUP);
	}
	tdt__driver_unref(driven_driver());
	driven_use(NULL);
	for (int i = 0; i < 3; i++)
		tdt_future_drop(left[i]);
	ck_assert_int_eq(waker.alive, 0);
	driven_setup(); /* for the teardown */
}

/* A task of another runtime, say: it would wait for ever. */
TEST(who_waits_when_the_driver_stops_is_woken)
{
	struct driven *tasks[100];

	for (int i = 0; i < 100; i++) {
		tasks[i] =
		    driven_new(tdt_sleep_ms(i % 3 == 0 ? UINT64_MAX : HOUR + (unsigned)i % 10));
		ck_assert_uint_eq(driven_poll(tasks[i]), TDT_PENDING);
	}
	driven_stop();
	for (int i = 0; i < 100; i++) {
		driven_wait(tasks[i]);
		ck_assert_int_eq(driven_wakers(tasks[i]), 0);
		errno = 0;
		ck_assert_uint_eq(driven_poll(tasks[i]), TDT_PANICKED);
		ck_assert_int_eq(errno, ENOTSUP);
		driven_end(tasks[i]);
	}
	tdt__driver_unref(driven_driver());
	driven_setup(); /* for the teardown */
}

static int make_a_sleep(void *argument)
{
	struct tdt_future sleep = tdt_sleep_ms(HOUR);

	if (tdt_future_is_none(&sleep))
		return -errno;
	tdt_future_drop(&sleep);
	return 0;
}

TEST(without_memory_there_is_no_timer)
{
	no_memory_each(make_a_sleep, NULL, 1);
}
