// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers runtime/rt, runtime/task.  The runtime, one thing at a time: spawning,
 * polling and ending tasks; its own beginning and end.
 */

#include "lib/leaf.h"
#include "lib/options.h"
#include "lib/request_waiting.h"
#include "lib/rt.h"
#include "lib/test.h"
#include "lib/threads.h"

/* Spawn `leaf` for good. */
static void spawn(struct tdt_rt *rt, struct leaf *leaf)
{
	struct tdt_handle *handle = tdt_rt_spawn(rt, leaf_future(leaf), NULL);

	MUST(handle != NULL);
	tdt_handle_unref(handle);
}

static bool ended(struct tdt_handle *handle)
{
	struct tdt_trace *trace = backtrace_timed(handle, 1000000000);
	int error = errno;

	tdt_trace_free(trace);
	return trace == NULL && error == ESRCH;
}

/* --- Where tasks run ------------------------------------------------------------- */

static char name_seen[16];
static struct tdt_rt *current_seen;

static void look_around(struct leaf *leaf, struct tdt_context *cx)
{
	current_seen = tdt_rt_current();
	pthread_getname_np(pthread_self(), name_seen, sizeof name_seen);
}

CASE(run)

TEST(a_task_runs_on_a_worker)
{
	struct leaf leaf = { .open = true, .on_poll = look_around };
	RT(rt, rt_of(1));
	struct tdt_handle *handle =
	    tdt_rt_spawn(rt, leaf_future(&leaf), TDT_TASK_ATTR(.name = "x"));

	ck_assert_ptr_nonnull(handle);
	ck_assert_uint_ne(tdt_handle_id(handle), 0);
	UNTIL(leaf.drops == 1);
	ck_assert_int_eq(leaf.polls, 1);
	ck_assert_ptr_eq(current_seen, rt);
	ck_assert_str_eq(name_seen, "tdt-worker-0");
	ck_assert(ended(handle));
	ck_assert_ptr_null(tdt_rt_current());
	tdt_handle_unref(handle);
}

static void spawn_data(struct leaf *leaf)
{
	spawn(tdt_rt_current(), leaf->data);
}

static void spawn_data_polled(struct leaf *leaf, struct tdt_context *cx)
{
	spawn_data(leaf);
}

TEST(a_task_spawns_another)
{
	struct tdt_rt *rt = rt_of(2);
	struct leaf third = { .open = true };
	struct leaf second = { .open = true, .on_poll = spawn_data_polled, .data = &third };
	struct leaf first = { .open = true, .on_drop = spawn_data, .data = &second };

	spawn(rt, &first);
	UNTIL(third.drops == 1);
	/* The drops that have spawned may still be on their way out; free waits for them. */
	tdt_rt_free(rt);
	ck_assert_int_eq(first.drops, 1);
	ck_assert_int_eq(second.drops, 1);
}

TEST(a_task_waits_until_it_is_woken)
{
	struct leaf leaf = { 0 };
	RT(rt, rt_of(2));

	spawn(rt, &leaf);
	for (int polls = 1; polls <= 10; polls++) {
		UNTIL(leaf.polls == polls && leaf.waker != NULL);
		leaf_pause();
		ck_assert_int_eq(leaf.polls, polls);
		leaf_wake(&leaf);
	}
	UNTIL(leaf.polls == 11 && leaf.waker != NULL);
	leaf_open(&leaf);
	UNTIL(leaf.drops == 1);
	ck_assert_int_eq(leaf.polls, 12);
}

static void wake_itself(struct leaf *leaf, struct tdt_context *cx)
{
	for (int i = 0; i < 3; i++)
		tdt_waker_wake_by_ref(cx->waker);
	if (leaf->polls == 5)
		leaf->open = true;
}

TEST(a_task_woken_during_its_poll_is_polled_once_more)
{
	struct leaf leaf = { .on_poll = wake_itself };
	RT(rt, rt_of(2));

	spawn(rt, &leaf);
	UNTIL(leaf.drops == 1);
	ck_assert_int_eq(leaf.polls, 5);
}

static void note_thread(struct leaf *leaf, struct tdt_context *cx)
{
	*(pthread_t *)leaf->data = pthread_self();
}

TEST(with_one_worker_all_run_on_that)
{
	enum { N = 1000 };
	static struct leaf leaves[N];
	static pthread_t threads[N];
	RT(rt, rt_of(1));

	for (int i = 0; i < N; i++) {
		leaves[i] = (struct leaf){ .open = i % 2 == 0,
					   .on_poll = note_thread,
					   .data = &threads[i] };
		spawn(rt, &leaves[i]);
	}
	for (int i = 1; i < N; i += 2) {
		UNTIL(leaves[i].polls == 1 && leaves[i].waker != NULL);
		leaf_open(&leaves[i]);
	}
	for (int i = 0; i < N; i++) {
		UNTIL(leaves[i].drops == 1);
		ck_assert(pthread_equal(threads[i], threads[0]));
	}
}

static void yield(struct leaf *leaf, struct tdt_context *cx)
{
	tdt_waker_wake_by_ref(cx->waker);
}

/*
 * One yields all the time, which keeps the only worker's queue from running dry; the other comes
 * from outside.
 */
TEST(a_task_that_always_yields_shuts_out_nobody)
{
	struct leaf yielding = { .on_poll = yield }, other = { .open = true };
	struct tdt_rt *rt = rt_of(1);

	spawn(rt, &yielding);
	UNTIL(yielding.polls > 0);
	spawn(rt, &other);
	UNTIL(other.drops == 1);
	ck_assert_int_eq(tdt_rt_block_on(rt, tdt_sleep_ms(1)), 0);
	tdt_rt_free(rt);
	ck_assert_int_eq(yielding.drops, 1);
}

/* More tasks than a worker's queue holds: they take part in so many polls, each in how many? */
#define MANY 600

static atomic_int polls_left, polls_of_each[MANY];

static void yield_and_count(struct leaf *leaf, struct tdt_context *cx)
{
	if (atomic_load(&polls_left) > 0) {
		atomic_fetch_sub(&polls_left, 1);
		atomic_fetch_add((atomic_int *)leaf->data, 1);
	}
	tdt_waker_wake_by_ref(cx->waker);
}

TEST(of_tasks_that_always_yield_none_is_left_behind)
{
	static struct leaf leaves[MANY];
	struct tdt_rt *rt = rt_of(1);

	for (int i = 0; i < MANY; i++) {
		leaves[i] = (struct leaf){ .on_poll = yield_and_count, .data = &polls_of_each[i] };
		spawn(rt, &leaves[i]);
	}
	for (int i = 0; i < MANY; i++)
		UNTIL(leaves[i].polls > 0);
	/* In 60,000 polls each has been in the worker's own queue, half of which gives way. */
	atomic_store(&polls_left, 400 * MANY);
	UNTIL(polls_left == 0);
	tdt_rt_free(rt);
	for (int i = 0; i < MANY; i++) {
		ck_assert_int_ge(polls_of_each[i], 40);
		ck_assert_int_le(polls_of_each[i], 4000);
	}
}

CASE(end)

TEST(a_panicking_task_ends_and_the_runtime_goes_on)
{
	struct leaf panics = { .result = TDT_PANICKED, .open = true },
		    nonsense = { .result = 77, .open = true };
	struct leaf after = { .open = true };
	RT(rt, rt_of(1));
	HANDLE(handle, tdt_rt_spawn(rt, leaf_future(&panics), NULL));

	spawn(rt, &nonsense);
	spawn(rt, &after);
	UNTIL(after.drops == 1);
	ck_assert_int_eq(panics.drops, 1);
	ck_assert_int_eq(panics.polls, 1);
	ck_assert_int_eq(nonsense.drops, 1);
	ck_assert(ended(handle));
}

/* Take over the waker of `leaf`, whose drop then finds none. */
static const struct tdt_waker *steal_waker(struct leaf *leaf)
{
	UNTIL(atomic_load(&leaf->waker) != NULL);
	return atomic_exchange(&leaf->waker, NULL);
}

TEST(to_wake_a_task_that_ended_does_nothing)
{
	struct tdt_rt *rt = rt_of(2);
	struct leaf leaf = { 0 };
	const struct tdt_waker *waker;

	spawn(rt, &leaf);
	waker = steal_waker(&leaf);
	leaf.open = true;
	tdt_waker_wake_by_ref(waker);
	UNTIL(leaf.drops == 1);
	for (int i = 0; i < 3; i++) {
		tdt_waker_wake_by_ref(waker);
		leaf_pause();
	}
	tdt_rt_free(rt);
	ck_assert_int_eq(leaf.polls, 2);
	tdt_waker_wake(waker);
}

TEST(wakers_outlive_the_runtime)
{
	struct tdt_rt *rt = rt_of(2);
	struct leaf leaf = { 0 };
	const struct tdt_waker *waker, *clone;

	spawn(rt, &leaf);
	waker = steal_waker(&leaf);
	tdt_rt_free(rt);
	ck_assert_int_eq(leaf.polls, 1);
	ck_assert_int_eq(leaf.drops, 1);
	clone = tdt_waker_clone(waker);
	ck_assert_ptr_eq(clone, waker);
	tdt_waker_wake_by_ref(waker);
	tdt_waker_wake(waker);
	tdt_waker_drop(clone);
}

CASE(run)

TEST(a_traced_future_is_not_wrapped_twice)
{
	struct tdt_rt *rt = rt_of(1);
	struct leaf leaf = { 0 };
	struct tdt_traced traced =
	    tdt_traced_with(leaf_future(&leaf), TDT_TASK_ATTR(.name = "its own"));
	struct tdt_handle *handle =
	    tdt_rt_spawn(rt, traced.future, TDT_TASK_ATTR(.name = "not taken"));

	ck_assert_ptr_eq(handle, traced.handle);
	tdt_handle_unref(traced.handle); /* two references, then */
	TRACE(trace, request_waiting(handle));
	ck_assert_str_eq(tdt_trace_info(trace)->name, "its own");
	tdt_rt_free(rt);
	ck_assert(ended(handle));
	tdt_handle_unref(handle);
}

/* --- Spawning what can't be -------------------------------------------------------------- */

static void expect_not_spawned(struct tdt_rt *rt, struct tdt_future fut,
			       const struct tdt_task_attr *attr, int error)
{
	errno = 0;
	ck_assert_ptr_null(tdt_rt_spawn(rt, fut, attr));
	ck_assert_int_eq(errno, error);
}

TEST(wrong_spawns_are_refused)
{
	struct tdt_rt *rt = rt_of(1);
	struct leaf leaf = { 0 };
	struct tdt_future fut = leaf_future(&leaf), undroppable = fut;
	struct tdt_task_attr sizeless = { 0 };
	struct {
		struct tdt_task_attr attr;
		char more;
	} newer = { { .size = sizeof newer }, 1 };

	undroppable.drop = NULL;
	expect_not_spawned(NULL, fut, NULL, EINVAL);
	expect_not_spawned(rt, TDT_FUTURE_NONE, NULL, EINVAL);
	expect_not_spawned(rt, undroppable, NULL, EINVAL);
	expect_not_spawned(rt, fut, &sizeless, EINVAL);
	expect_not_spawned(rt, fut, &newer.attr, E2BIG);
	tdt_rt_free(rt);
	ck_assert_int_eq(leaf.polls, 0);
	ck_assert_int_eq(leaf.drops, 0);
}

/* --- The end of a runtime --------------------------------------------------------------------- */

static char dropped_in_order[64];

static void note_drop(struct leaf *leaf)
{
	strncat(dropped_in_order, leaf->data, 1);
}

/* Spawned on a worker, in the middle of the order. */
static void spawn_two(struct leaf *leaf, struct tdt_context *cx)
{
	struct leaf *two = leaf->data;

	spawn(tdt_rt_current(), &two[0]);
	spawn(tdt_rt_current(), &two[1]);
}

CASE(end)

TEST(free_drops_what_still_waits_in_the_order_of_spawning)
{
	struct tdt_rt *rt = rt_of(2);
	struct leaf leaves[6], spawner = { .open = true, .on_poll = spawn_two, .data = &leaves[2] };
	char names[] = "abcdef";

	for (int i = 0; i < 6; i++)
		leaves[i] = (struct leaf){ .on_drop = note_drop, .data = &names[i] };
	spawn(rt, &leaves[0]);
	HANDLE(handle, tdt_rt_spawn(rt, leaf_future(&leaves[1]), NULL));
	spawn(rt, &spawner);
	UNTIL(spawner.drops == 1);
	spawn(rt, &leaves[4]);
	spawn(rt, &leaves[5]);
	UNTIL(leaves[3].polls == 1);
	tdt_rt_free(rt);
	ck_assert_str_eq(dropped_in_order, "abcdef");
	for (int i = 0; i < 6; i++)
		ck_assert_int_eq(leaves[i].drops, 1);
	ck_assert(ended(handle));
}

#define MANY 600 /* more than a worker's own queue has room for */

static struct leaf many[MANY];
static int many_numbers[MANY], many_dropped;
static atomic_bool half_is_there, all_are_there;

static void note_number(struct leaf *leaf)
{
	MUST(*(int *)leaf->data == many_dropped);
	many_dropped++;
}

/*
 * Spawns hear first that the runtime ends, workers a little later: let them not get far meanwhile.
 */
static void dawdle(struct leaf *leaf, struct tdt_context *cx)
{
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
}

/*
 * On the only worker: half of them, then those that another thread spawns meanwhile; and keep the
 * worker until the end.
 */
static void spawn_half_and_stay(struct leaf *leaf, struct tdt_context *cx)
{
	for (int i = 0; i < MANY / 2; i++)
		spawn(tdt_rt_current(), &many[i]);
	half_is_there = true;
	UNTIL(all_are_there);
	do {
		usleep(1000);
		MUST(tdt_rt_spawn(tdt_rt_current(), TDT_FUTURE_NONE, NULL) == NULL);
	} while (errno != ESHUTDOWN);
}

TEST(free_drops_what_was_never_polled_too)
{
	struct tdt_rt *rt = rt_of(1);
	struct leaf busy = { .open = true, .on_poll = spawn_half_and_stay };

	for (int i = 0; i < MANY; i++) {
		many_numbers[i] = i;
		many[i] = (struct leaf){ .on_poll = dawdle,
					 .on_drop = note_number,
					 .data = &many_numbers[i] };
	}
	spawn(rt, &busy);
	UNTIL(half_is_there);
	for (int i = MANY / 2; i < MANY; i++)
		spawn(rt, &many[i]);
	all_are_there = true;
	tdt_rt_free(rt);
	ck_assert_int_eq(many_dropped, MANY);
	ck_assert_int_eq(many[MANY - 1].polls, 0);
}

/* The drop of one task wakes another one, still there; and one that is gone. */
static void wake_data(struct leaf *leaf)
{
	tdt_waker_wake(leaf->data);
}

TEST(drops_may_wake_tasks)
{
	struct tdt_rt *rt = rt_of(2);
	struct leaf leaves[3] = { { 0 }, { .on_drop = wake_data }, { 0 } },
		    last = { .on_drop = wake_data };

	for (int i = 0; i < 3; i++)
		spawn(rt, &leaves[i]);
	UNTIL(leaves[1].polls == 1);
	leaves[1].data = (void *)(uintptr_t)steal_waker(&leaves[2]);
	last.data = (void *)(uintptr_t)steal_waker(&leaves[0]);
	spawn(rt, &last);
	tdt_rt_free(rt);
	ck_assert_int_eq(last.drops, 1);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(leaves[i].polls, 1);
		ck_assert_int_eq(leaves[i].drops, 1);
	}
}

static struct tdt_rt *rt_of_drop;
static struct leaf refused;
static int refused_errno;

static void spawn_refused(struct leaf *leaf)
{
	errno = 0;
	MUST(tdt_rt_spawn(rt_of_drop, leaf_future(&refused), NULL) == NULL);
	refused_errno = errno;
}

TEST(a_drop_cannot_spawn_while_the_runtime_ends)
{
	struct leaf leaf = { .on_drop = spawn_refused };
	struct tdt_future fut = leaf_future(&refused);

	rt_of_drop = rt_of(2);
	spawn(rt_of_drop, &leaf);
	tdt_rt_free(rt_of_drop);
	ck_assert_int_eq(leaf.drops, 1);
	ck_assert_int_eq(refused_errno, ESHUTDOWN);
	ck_assert_int_eq(refused.polls, 0);
	ck_assert_int_eq(refused.drops, 0);
	tdt_future_drop(&fut); /* it is ours */
	ck_assert_int_eq(refused.drops, 1);
}

static int free_errno;

static void free_own(struct leaf *leaf, struct tdt_context *cx)
{
	errno = 0;
	tdt_rt_free(tdt_rt_current());
	free_errno = errno;
}

TEST(a_worker_cannot_free_its_runtime)
{
	struct leaf leaf = { .open = true, .on_poll = free_own }, after = { .open = true };
	RT(rt, rt_of(2));

	spawn(rt, &leaf);
	UNTIL(leaf.drops == 1);
	ck_assert_int_eq(free_errno, EDEADLK);
	free_errno = 0;
	leaf = (struct leaf){ .open = true, .on_poll = free_own };
	ck_assert_int_eq(tdt_rt_block_on(rt, leaf_future(&leaf)), 0);
	ck_assert_int_eq(free_errno, EDEADLK);
	spawn(rt, &after);
	UNTIL(after.drops == 1);
}

static void free_another(struct leaf *leaf, struct tdt_context *cx)
{
	tdt_rt_free(leaf->data);
}

/* The parent's runtime stays reachable there, as valgrind wants it. */
static struct tdt_rt *volatile kept;

/* In which the runtime has no threads, and its locks may be held for ever. */
TEST(a_child_of_fork_is_refused_its_parents_runtime)
{
	struct tdt_rt *rt = rt_of(1), *own;
	struct leaf leaf = { .open = true }, another = { .open = true };
	struct tdt_future fut = leaf_future(&leaf);

	IN_A_CHILD {
		kept = rt;
		MUST(tdt_rt_block_on(rt, fut) == -ESHUTDOWN);
		MUST(tdt_rt_spawn(rt, fut, NULL) == NULL && errno == ESHUTDOWN);
		MUST(leaf.polls == 0 && leaf.drops == 0);
		MUST(tdt_rt_go(rt, fut, NULL) == -ESHUTDOWN && leaf.drops == 1);
		errno = 0;
		tdt_rt_free(rt);
		MUST(errno == EDEADLK);
		if (TSAN || is_emulated()) /* a child can make no threads */
			_exit(0);
		own = rt_of(1);
		MUST(tdt_rt_block_on(own, leaf_future(&another)) == 0);
		tdt_rt_free(own);
	}
	tdt_future_drop(&fut);
	tdt_rt_free(rt);
}

TEST(a_worker_can_free_another_runtime)
{
	struct tdt_rt *rt = rt_of(1), *other = rt_of(1);
	struct leaf waits = { 0 }, leaf = { .open = true, .on_poll = free_another, .data = other };

	spawn(other, &waits);
	spawn(rt, &leaf);
	UNTIL(leaf.drops == 1);
	ck_assert_int_eq(waits.drops, 1);
	tdt_rt_free(rt);
	tdt_rt_free(NULL);
}

/* --- Its beginning ---------------------------------------------------------------------------- */

static void expect_no_rt(const struct tdt_rt_config *config, int error)
{
	errno = 0;
	ck_assert_ptr_null(tdt_rt_new(config));
	ck_assert_int_eq(errno, error);
}

CASE(rt)

TEST(wrong_configs_are_refused)
{
	struct tdt_rt_config sizeless = { .workers = 1 };
	struct tdt_rt_config absurd = { .size = sizeof absurd, .workers = TDT_RT_MAX_WORKERS + 1 };
	struct {
		struct tdt_rt_config config;
		char more[sizeof(size_t)]; /* no padding behind it */
	} newer = { { .size = sizeof newer, .workers = 1 }, { 1 } };

	expect_no_rt(&sizeless, EINVAL);
	expect_no_rt(&absurd, EINVAL);
	absurd.workers = -1u;
	expect_no_rt(&absurd, EINVAL);
	expect_no_rt(&newer.config, E2BIG);
	newer.more[0] = 0;
	tdt_rt_free(tdt_rt_new(&newer.config));
}

TEST(there_are_as_many_workers_as_asked_for)
{
	struct tdt_rt *rt;
	cpu_set_t all, one;

	ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
	rt = tdt_rt_new(NULL);
	ck_assert_ptr_nonnull(rt);
	UNTIL(threads_named("tdt-worker-") == CPU_COUNT(&all));
	tdt_rt_free(rt);
	UNTIL(threads_named("tdt-worker-") == 0);

	CPU_ZERO(&one);
	for (int i = 0; CPU_COUNT(&one) == 0; i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
	rt = rt_of(0);
	UNTIL(threads_named("tdt-worker-") == 1);
	tdt_rt_free(rt);
	UNTIL(threads_named("tdt-worker-") == 0);
	ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);

	rt = rt_of(64);
	UNTIL(threads_named("tdt-worker-") == 64);
	tdt_rt_free(rt);
}

static void note_mask(struct leaf *leaf, struct tdt_context *cx)
{
	pthread_sigmask(SIG_BLOCK, NULL, leaf->data);
}

TEST(workers_have_their_makers_signal_mask)
{
	struct leaf leaf = { .open = true, .on_poll = note_mask };
	sigset_t mask, seen;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &mask, NULL);
	RT(rt, rt_of(1));
	leaf.data = &seen;
	spawn(rt, &leaf);
	UNTIL(leaf.drops == 1);
	ck_assert(sigismember(&seen, SIGUSR2));
	ck_assert(!sigismember(&seen, SIGUSR1));
}
