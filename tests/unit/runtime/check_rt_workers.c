// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers runtime/worker, runtime/idle.  What workers report to libtdt (tdt/integrate/hooks.h), so
 * that all probes fire and tasks are stamped; and from these reports, how many workers wake for
 * what.  The calls are seen by ld's --wrap.
 */

#include <sys/eventfd.h>

#include <tdt/integrate/hooks.h>
#include <tdt/rt/net.h>

#include "lib/leaf.h"
#include "lib/options.h"
#include "lib/rt.h"
#include "lib/test.h"
#include "runtime/driver.h"
#include "runtime/rt.h"
#include "runtime/task.h"

/* --- What is told ------------------------------------------------------------------ */

#define WORKERS 4
#define ROUNDS 100

enum stage { OUTSIDE, STARTED, PARKED, STOPPED };

static __thread enum stage stage; /* of this thread */
static __thread uint64_t told_ns; /* last */
static __thread uint64_t parked_ns; /* last */
static __thread int polls_since_told;

static atomic_int started, stopped, parks, unparks;
static pthread_t threads[WORKERS];
static atomic_int turns;

void __real_tdt_worker_thread_start(const struct tdt_worker_attr *attr);
void __real_tdt_worker_thread_stop(void);
void __real_tdt_worker_thread_park(void);
void __real_tdt_worker_thread_unpark(void);
void __real_tdt_worker_now(uint64_t ns);
void __real_tdt_task_woken(struct tdt_handle *handle);
void __real_tdt__idle_park(struct tdt_rt *rt, struct tdt__worker *worker);

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void __wrap_tdt_worker_thread_start(const struct tdt_worker_attr *attr)
{
	MUST(stage == OUTSIDE);
	stage = STARTED;
	threads[atomic_fetch_add(&started, 1) % WORKERS] = pthread_self();
	__real_tdt_worker_thread_start(attr);
}

void __wrap_tdt_worker_thread_stop(void)
{
	MUST(stage == STARTED);
	stage = STOPPED;
	atomic_fetch_add(&stopped, 1);
	__real_tdt_worker_thread_stop();
}

static __thread bool blocks; /* in tdt_rt_block_on() */
static atomic_int blocked_parks;

void __wrap_tdt_worker_thread_park(void)
{
	MUST(stage == STARTED);
	stage = PARKED;
	parked_ns = now_ns();
	__real_tdt_worker_thread_park();
	atomic_fetch_add(blocks ? &blocked_parks : &parks, 1);
}

void __wrap_tdt_worker_thread_unpark(void)
{
	MUST(stage == PARKED);
	stage = STARTED;
	atomic_fetch_add(&unparks, 1);
	__real_tdt_worker_thread_unpark();
}

void __wrap_tdt_worker_now(uint64_t ns)
{
	MUST(stage == STARTED);
	MUST(ns >= told_ns && ns <= now_ns());
	told_ns = ns;
	polls_since_told = 0;
	atomic_fetch_add(&turns, 1);
	__real_tdt_worker_now(ns);
}

/* Were a task runnable before its wake-up is told, it would be polled in the pause. */
static atomic_int wakes;
static atomic_bool pause_in_wakes;
static struct tdt_handle *_Atomic woken;

void __wrap_tdt_task_woken(struct tdt_handle *handle)
{
	if (pause_in_wakes)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	woken = handle;
	atomic_fetch_add(&wakes, 1);
	__real_tdt_task_woken(handle);
}

/* A worker has looked everywhere, and is about to lie down. */
static void (*_Atomic on_lying_down)(void);

void __wrap_tdt__idle_park(struct tdt_rt *rt, struct tdt__worker *worker)
{
	void (*function)(void) = atomic_exchange(&on_lying_down, NULL);

	if (function != NULL)
		function();
	__real_tdt__idle_park(rt, worker);
}

/* --- What tests do -------------------------------------------------------------------- */

static bool all_parked(int workers)
{
	/* Read first: a worker that wakes and parks again meanwhile seems not to be parked. */
	int parked = parks;

	return parked - unparks == workers;
}

/* The watchdog looks no more until a worker wakes.  While it looks, it may wake one. */
static bool watchdog_rests(struct tdt_rt *rt)
{
	return !atomic_load(&rt->driver->watching);
}

/* And each woken worker has said so: a thread that wakes a worker first takes it off the stack. */
static bool all_sleep(struct tdt_rt *rt)
{
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	return all_parked(WORKERS) && atomic_load(&rt->idle.n_parked) == WORKERS &&
	       watchdog_rests(rt);
}

/* One of them in the driver's role. */
static bool sleeps_in_role(struct tdt_rt *rt, unsigned parked)
{
	return atomic_load(&rt->driver->held) == TDT__WORKER &&
	       atomic_load(&rt->idle.n_parked) == parked;
}

static void waits(struct tdt_rt *rt, struct leaf *leaf)
{
	tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(leaf), NULL));
	UNTIL(leaf->waker != NULL);
}

CASE(workers)

TEST(each_worker_tells_its_life)
{
	struct tdt_rt *rt = rt_of(WORKERS);
	struct leaf leaf = { 0 };

	waits(rt, &leaf);
	leaf_open(&leaf);
	UNTIL(leaf.drops == 1);
	UNTIL(all_parked(WORKERS));
	ck_assert_int_eq(started, WORKERS);
	ck_assert_int_eq(stopped, 0);
	tdt_rt_free(rt);
	ck_assert_int_eq(stopped, WORKERS);
	ck_assert_int_eq(unparks, parks);
}

/* The watchdog may wake one more at each of its looks, while not all are parked. */
TEST(one_task_that_is_woken_wakes_one_worker)
{
	struct leaf leaf = { 0 };
	uint64_t began_ns;
	int before, looked;
	RT(rt, rt_of(WORKERS));

	waits(rt, &leaf);
	UNTIL(all_parked(WORKERS));
	before = unparks;
	began_ns = now_ns();
	for (int round = 1; round <= ROUNDS; round++) {
		leaf_wake(&leaf);
		UNTIL(leaf.polls == 1 + round && leaf.waker != NULL);
		UNTIL(all_parked(WORKERS));
	}
	ck_assert_int_ge(unparks - before, ROUNDS);
	looked = (int)((now_ns() - began_ns) / (TDT__LOOK_MS * 1000000)) + 1;
	/* And each may have been about to wake when it began. */
	ck_assert_int_le(unparks - before, ROUNDS + WORKERS + looked);
}

static void nothing(int signal_number)
{
}

TEST(signals_wake_no_worker)
{
	struct leaf leaf = { 0 };
	int before;

	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = nothing }, NULL);
	RT(rt, rt_of(WORKERS));
	waits(rt, &leaf);
	for (int round = 1; round <= 10; round++) {
		UNTIL(all_sleep(rt));
		before = unparks;
		for (int i = 0; i < WORKERS; i++)
			pthread_kill(threads[i], SIGUSR1);
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
		ck_assert_int_eq(unparks, before);
		leaf_wake(&leaf);
		UNTIL(leaf.polls == 1 + round && leaf.waker != NULL);
	}
}

static struct leaf *late;

static void *wake_late(void *arg)
{
	leaf_wake(late);
	return arg;
}

static void have_it_woken(void)
{
	run_on_thread(wake_late, NULL);
}

/* A task is woken from outside just after the only worker has looked for the last time. */
TEST(a_wake_up_while_a_worker_lies_down_is_seen)
{
	struct leaf leaf = { 0 };
	RT(rt, rt_of(1));

	late = &leaf;
	waits(rt, &leaf);
	for (int round = 1; round <= 10; round++) {
		struct leaf other = { .open = true };

		UNTIL(all_parked(1));
		on_lying_down = have_it_woken;
		tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&other), NULL));
		UNTIL(leaf.polls == 1 + round && leaf.waker != NULL);
		UNTIL(other.drops == 1);
	}
}

static void yield(struct leaf *leaf, struct tdt_context *cx)
{
	tdt_waker_wake_by_ref(cx->waker);
}

TEST(a_task_that_keeps_yielding_does_not_shut_out_those_from_outside)
{
	struct leaf yielding = { .on_poll = yield };
	RT(rt, rt_of(1));

	waits(rt, &yielding);
	for (int round = 0; round < ROUNDS; round++) {
		struct leaf leaf = { .open = true };

		tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&leaf), NULL));
		UNTIL(leaf.drops == 1);
	}
	leaf_open(&yielding);
	UNTIL(yielding.drops == 1);
}

static void count_and_yield(struct leaf *leaf, struct tdt_context *cx)
{
	MUST(told_ns != 0);
	MUST(++polls_since_told <= 32);
	if (leaf->polls == 1000)
		leaf->open = true;
	tdt_waker_wake_by_ref(cx->waker);
}

CASE(time)

TEST(the_time_is_told_once_a_turn_of_at_most_32_polls)
{
	struct tdt_rt *rt = rt_of(1);
	struct leaf leaf = { .on_poll = count_and_yield };

	tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&leaf), NULL));
	UNTIL(leaf.drops == 1);
	tdt_rt_free(rt);
	ck_assert_int_ge(turns, 1000 / 32);
	ck_assert_int_lt(turns, 1000 / 4);
}

static void expect_told_since_parked(struct leaf *leaf, struct tdt_context *cx)
{
	MUST(told_ns >= parked_ns);
}

TEST(the_time_is_told_anew_when_a_worker_has_slept)
{
	struct leaf leaf = { .on_poll = expect_told_since_parked };
	RT(rt, rt_of(1));

	waits(rt, &leaf);
	for (int round = 1; round <= 10; round++) {
		UNTIL(all_parked(1));
		leaf_wake(&leaf);
		UNTIL(leaf.polls == 1 + round && leaf.waker != NULL);
	}
}

/* --- Wakers that are no tasks' ---------------------------------------------------------- */

static atomic_bool held, let_go;

static void hold(const struct tdt_waker *waker)
{
	held = true;
	UNTIL(let_go);
}

static const struct tdt_waker_vtable holding = { clone_itself, hold, hold, ignore_waker };
static const struct tdt_waker holds = { &holding };

/* What becomes ready when a test says so. */
static struct {
	int fd, error;
	struct tdt_tcp *tcp;
	struct tdt_future ready;
} event;

static void wait_for_event(struct leaf *leaf, struct tdt_context *cx)
{
	struct tdt_context own = { &holds };

	MUST(tdt_future_poll(&event.ready, &own) == TDT_PENDING);
}

/*
 * Of two workers, the one that was in the driver's role has an event that wakes no task, and is
 * held by the waker; the other one sleeps in the role.
 */
static struct tdt_rt *rt_with_one_held(void)
{
	struct tdt_rt *rt = rt_of(2);
	struct leaf leaf = { .open = true, .on_poll = wait_for_event };

	event.fd = eventfd(0, EFD_CLOEXEC);
	event.tcp = tdt_tcp_adopt(event.fd);
	ck_assert_ptr_nonnull(event.tcp);
	event.ready = tdt_tcp_ready(event.tcp, false, &event.error);
	ck_assert(!tdt_future_is_none(&event.ready));
	tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&leaf), NULL));
	UNTIL(leaf.drops == 1);
	UNTIL(sleeps_in_role(rt, 2) && watchdog_rests(rt));
	ck_assert_int_eq(eventfd_write(event.fd, 1), 0);
	UNTIL(held);
	UNTIL(sleeps_in_role(rt, 1));
	return rt;
}

static void free_event(void)
{
	tdt_future_drop(&event.ready);
	tdt_tcp_free(event.tcp);
}

CASE(wakers_of_no_task)

/* The one that was held sleeps next, and is the first to be woken. */
TEST(the_time_is_told_anew_after_a_sleep_that_followed_an_event_of_no_task)
{
	struct tdt_rt *rt = rt_with_one_held();
	struct leaf leaf = { .open = true, .on_poll = expect_told_since_parked };

	let_go = true;
	UNTIL(sleeps_in_role(rt, 2) && all_parked(2));
	tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&leaf), NULL));
	UNTIL(leaf.drops == 1);
	tdt_rt_free(rt);
	free_event();
}

TEST(a_worker_that_runs_a_waker_of_no_task_does_not_count_as_a_searcher)
{
	struct tdt_rt *rt = rt_with_one_held();
	struct leaf leaf = { .open = true };

	tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&leaf), NULL));
	UNTIL(leaf.drops == 1);
	let_go = true;
	tdt_rt_free(rt);
	free_event();
}

static void *wake_when_cancelled(void *leaf)
{
	pthread_cancel(pthread_self());
	leaf_wake(leaf);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return leaf;
}

/* Or else it would be cancelled with a lock. */
TEST(a_thread_is_not_cancelled_while_it_wakes_the_worker_in_the_role)
{
	struct leaf leaf = { 0 };
	pthread_t thread;
	void *result;
	RT(rt, rt_of(1));

	waits(rt, &leaf);
	UNTIL(sleeps_in_role(rt, 1));
	ck_assert_int_eq(pthread_create(&thread, NULL, wake_when_cancelled, &leaf), 0);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_ptr_eq(result, &leaf);
	UNTIL(leaf.polls == 2 && leaf.waker != NULL);
}

static void expect_wakes_before(struct leaf *leaf, struct tdt_context *cx)
{
	MUST(wakes == leaf->polls - 1);
}

CASE(wake_ups)

TEST(a_wake_up_is_told_before_the_poll_it_leads_to)
{
	struct leaf leaf = { .on_poll = expect_wakes_before };
	RT(rt, rt_of(2));
	HANDLE(handle, tdt_rt_spawn(rt, leaf_future(&leaf), NULL));

	pause_in_wakes = true;
	for (int round = 1; round <= 10; round++) {
		/* One that comes while its poll ends may be told twice. */
		UNTIL(leaf.polls == round && leaf.waker != NULL && all_parked(2));
		leaf_wake(&leaf);
		ck_assert_ptr_eq(woken, handle);
	}
}

static void wake_twice(struct leaf *leaf, struct tdt_context *cx)
{
	if (leaf->polls > 10)
		return;
	tdt_waker_wake_by_ref(cx->waker);
	tdt_waker_wake_by_ref(cx->waker);
}

TEST(each_wake_up_is_told_until_the_task_has_ended)
{
	struct tdt_rt *rt = rt_of(1);
	struct leaf leaf = { .on_poll = wake_twice };

	tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&leaf), NULL));
	UNTIL(leaf.polls == 11 && leaf.waker != NULL);
	ck_assert_int_eq(wakes, 20);
	tdt_rt_free(rt);
	leaf_wake(&leaf);
	ck_assert_int_eq(wakes, 20);
}

static struct leaf waking;

/* When the thread in tdt_rt_block_on() has parked. */
static void wake_parked(struct leaf *leaf, struct tdt_context *cx)
{
	UNTIL(blocked_parks == 1);
	leaf_wake(leaf->data);
}

/* It wakes itself; at its fifth poll another task does that. */
static void wake_until_open(struct leaf *leaf, struct tdt_context *cx)
{
	MUST(wakes == leaf->polls - 1);
	leaf->open = leaf->polls == 10;
	if (leaf->polls == 5) {
		waking = (struct leaf){ .open = true, .on_poll = wake_parked, .data = leaf };
		tdt_handle_unref(tdt_rt_spawn(tdt_rt_current(), leaf_future(&waking), NULL));
	} else if (!leaf->open) {
		tdt_waker_wake_by_ref(cx->waker);
	}
}

TEST(block_on_tells_wake_ups_and_is_a_worker_meanwhile)
{
	struct tdt_rt *rt = rt_of(1);
	struct leaf leaf = { .on_poll = wake_until_open };

	UNTIL(all_parked(1));
	blocks = true;
	ck_assert_int_eq(tdt_rt_block_on(rt, leaf_future(&leaf)), 0);
	ck_assert_int_eq(wakes, 9);
	ck_assert_int_eq(stage, STOPPED);
	ck_assert_int_eq(blocked_parks, 1);
	tdt_rt_free(rt);
	ck_assert_int_eq(started, 2);
}

/* --- Wakers that libtdt hands out in captured polls -------------------------------------- */

static atomic_int counted; /* clones that were not the runtime's own */

static void look_at_clone(struct leaf *leaf, struct tdt_context *cx)
{
	const struct tdt_waker *clone = tdt_waker_clone(cx->waker);

	MUST(tdt__task_has_waker(clone));
	counted += clone != tdt_waker_beneath(clone);
	tdt_waker_drop(clone);
}

/* The driver gathers the tasks it wakes by them, as by its own. */
TEST(a_counted_clone_of_a_tasks_waker_is_known_for_what_it_is)
{
	struct leaf leaf = { .on_poll = look_at_clone };
	RT(rt, rt_of(1));
	HANDLE(handle, tdt_rt_spawn(rt, leaf_future(&leaf), NULL));

	UNTIL(leaf.waker != NULL && all_parked(1)); /* no poll is in progress, to be read */
	ck_assert_int_eq(counted, 0);
	TRACE(trace, backtrace_timed(handle, INT64_C(30000000000)));
	/* If the poll takes long, the answer is what is read of it. */
	UNTIL(counted == 1);
	UNTIL(tdt__task_has_waker(leaf.waker) && leaf.waker != tdt_waker_beneath(leaf.waker));
	leaf_open(&leaf);
	UNTIL(leaf.drops == 1);
}
