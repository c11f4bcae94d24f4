// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers capture/counted.  Which leaves of a captured poll wait is known from the holders of their
 * wakers when the poll has ended.  A counted clone is as good as the runtime's own waker, wherever
 * it is used and whatever has ended by then.
 */

#include <config.h>

#include <tdt/integrate/hooks.h>

#include "capture/counted.h"
#include "lib/requester.h"
#include "lib/test.h"
#include "probes/probes.h"

#define MOST 100

/* --- A task that goes from leaf to leaf ------------------------------------------------- */

struct leaf {
	enum { WAITS, GOES_ON, GOES_ON_AND_IS_KEPT, IS_WOKEN, GOES_ON_WOKEN, YIELDS } does;
	const struct tdt_waker *slot; /* what somebody else has of it */
};

struct leaves {
	struct leaf leaf[MOST];
	int n;
	int begun;   /* polls */
	tdt_poll_t result;
};

/* Each leaf registers in its slot; then it finds that it waits, or that it does not. */
static NOINLINE void leaf_poll(struct leaf *leaf, struct tdt_context *cx)
{
	const struct tdt_waker *clone;

	if (leaf->does == YIELDS) {
		tdt_waker_wake_by_ref(cx->waker);
		return;
	}
	clone = tdt_waker_clone(cx->waker);
	tdt_waker_drop(leaf->slot);
	leaf->slot = clone;
	if (leaf->does == GOES_ON) {
		tdt_waker_drop(leaf->slot);
		leaf->slot = NULL;
	} else if (leaf->does == IS_WOKEN) {
		tdt_waker_wake(leaf->slot);
		leaf->slot = NULL;
	}
}

static tdt_poll_t leaves_poll(void *state, struct tdt_context *cx)
{
	struct leaves *leaves = state;

	leaves->begun++;
	for (int i = 0; i < leaves->n; i++)
		leaf_poll(&leaves->leaf[i], cx);
	return leaves->result;
}

static void leaves_drop(void *state)
{
	struct leaves *leaves = state;

	for (int i = 0; i < leaves->n; i++)
		if (leaves->leaf[i].does != GOES_ON_AND_IS_KEPT) {
			tdt_waker_drop(leaves->leaf[i].slot);
			leaves->leaf[i].slot = NULL;
		}
}

static struct tdt_future leaves_future(struct leaves *leaves)
{
	return (struct tdt_future){ leaves, leaves_poll, leaves_drop };
}

static struct leaves two(int first, int second)
{
	return (struct leaves){ .leaf = { { .does = first }, { .does = second } },
				.n = 2,
				.result = TDT_PENDING };
}

/* How many leaves the raw stacks of a backtrace show. */
static uint32_t ask(struct test_task *task)
{
	struct test_requester requester;
	uint32_t n;

	test_ask(&requester, task->handle);
	test_task_poll(task);
	test_answer(&requester);
	n = tdt_trace_stacks(requester.trace);
	test_requester_fini(&requester);
	return n;
}

static uint32_t leaves_of(struct leaves *leaves)
{
	struct tdt_future future = leaves_future(leaves);
	struct test_task task = { 0 };
	uint32_t n;

	test_task_init(&task, &future);
	n = ask(&task);
	for (int i = 0; i < leaves->n; i++)
		if (leaves->leaf[i].does == GOES_ON_AND_IS_KEPT)
			tdt_waker_drop(leaves->leaf[i].slot);
	test_task_fini(&task);
	return n;
}

static uint32_t leaves_of_two(int first, int second)
{
	struct leaves leaves = two(first, second);

	return leaves_of(&leaves);
}

CASE(leaves)

TEST(a_leaf_that_gave_its_waker_up_beside_one_that_keeps_it_does_not_wait)
{
	ck_assert_uint_eq(leaves_of_two(GOES_ON, WAITS), 1);
	ck_assert_uint_eq(leaves_of_two(WAITS, GOES_ON), 1);
	ck_assert_uint_eq(leaves_of_two(WAITS, WAITS), 2);
}

TEST(if_all_gave_their_wakers_up_nothing_is_known_and_all_stay)
{
	ck_assert_uint_eq(leaves_of_two(GOES_ON, GOES_ON), 2);
	ck_assert_uint_eq(leaves_of_two(GOES_ON, YIELDS), 2);
}

TEST(a_leaf_whose_waker_was_woken_did_wait)
{
	ck_assert_uint_eq(leaves_of_two(IS_WOKEN, WAITS), 2);
	ck_assert_uint_eq(leaves_of_two(GOES_ON, IS_WOKEN), 1);
}

TEST(a_leaf_whose_waker_is_kept_by_a_resource_stays)
{
	ck_assert_uint_eq(leaves_of_two(GOES_ON_AND_IS_KEPT, WAITS), 2);
}

TEST(of_many_leaves_at_one_place_as_many_stay_as_wait)
{
	struct leaves leaves = { .n = MOST, .result = TDT_PENDING };
	uint32_t wait = 0;

	for (int i = 0; i < MOST; i++) {
		leaves.leaf[i].does = i % 3 == 0 ? WAITS : GOES_ON;
		wait += i % 3 == 0;
	}
	/*
	 * In the first capture there is no room for all; the task has told by then how much it
	 * takes.
	 */
	leaves_of(&leaves);
	{
		struct tdt_future future = leaves_future(&leaves);
		TEST_TASK(task, &future);

		ask(&task);
		ck_assert_uint_eq(ask(&task), wait);
	}
}

TEST(a_poll_that_ends_the_task_shows_all_that_registered)
{
	struct leaves leaves = two(GOES_ON, WAITS);

	leaves.result = TDT_READY;
	ck_assert_uint_eq(leaves_of(&leaves), 2);
}

static tdt_poll_t outer_poll(void *state, struct tdt_context *cx)
{
	struct tdt_future *inner = state;
	static struct leaf own;
	tdt_poll_t result;

	own.does = GOES_ON;
	leaf_poll(&own, cx);
	result = tdt_future_poll(inner, cx);
	TDT_KEEP_FRAME();
	return result;
}

static void outer_drop(void *state)
{
	tdt_future_drop(state);
}

TEST(a_traced_future_inside_another_shares_its_clones_with_it)
{
	struct leaves leaves = two(GOES_ON, WAITS);
	struct tdt_traced inner = tdt_traced(leaves_future(&leaves));
	struct tdt_future outer = { &inner.future, outer_poll, outer_drop };
	struct test_requester of_inner, of_outer;
	struct test_task task = { 0 };

	test_task_init(&task, &outer);
	test_ask(&of_inner, inner.handle);
	test_ask(&of_outer, task.handle);
	test_task_poll(&task);
	test_answer(&of_inner);
	test_answer(&of_outer);
	ck_assert_uint_eq(tdt_trace_stacks(of_inner.trace), 1);
	ck_assert_uint_eq(tdt_trace_stacks(of_outer.trace), 1);
	test_requester_fini(&of_inner);
	test_requester_fini(&of_outer);
	test_task_fini(&task);
	tdt_handle_unref(inner.handle);
}

/* --- Which polls give them -------------------------------------------------------------------- */

static const struct tdt_waker *seen; /* what the leaf got */

static tdt_poll_t look_poll(void *state, struct tdt_context *cx)
{
	const struct tdt_waker **slot = state;

	seen = tdt_waker_clone(cx->waker);
	tdt_waker_drop(*slot);
	*slot = seen;
	return TDT_PENDING;
}

static void look_drop(void *state)
{
	const struct tdt_waker **slot = state;

	tdt_waker_drop(*slot);
	*slot = NULL;
}

static struct tdt_future look(const struct tdt_waker **slot)
{
	*slot = NULL;
	return (struct tdt_future){ slot, look_poll, look_drop };
}

static bool is_counted(const struct test_task *task)
{
	ck_assert_ptr_eq(tdt_waker_beneath(seen), &task->waker.waker);
	return seen != &task->waker.waker;
}

CASE(polls)

TEST(only_polls_made_for_a_request_give_counted_clones)
{
	const struct tdt_waker *slot;
	struct tdt_future future = look(&slot);
	TEST_TASK(task, &future);

	test_task_poll(&task);
	ck_assert(!is_counted(&task));
	ask(&task);
	ck_assert(is_counted(&task));
	test_task_poll(&task);
	ck_assert(!is_counted(&task));
}

TEST(watched_polls_do_when_they_are_told_to)
{
	const struct tdt_waker *slot;
	struct tdt_future future = look(&slot);
	struct test_task task = { 0 }, other = { 0 };

	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	test_task_init(&task, &future);
	test_task_poll(&task);
	ck_assert(!is_counted(&task));
	test_task_fini(&task);

	tdt_leaf_wakers(true);
	ck_assert_int_eq(tdt_watch(0, NULL), 0);
	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	future = look(&slot);
	test_task_init(&other, &future);
	test_task_poll(&other);
	ck_assert(is_counted(&other));
	ck_assert_int_eq(tdt_watch(0, NULL), 0);
	test_task_fini(&other);
}

TEST(none_do_when_that_is_turned_off)
{
	const struct tdt_waker *slot;
	struct tdt_future future = look(&slot);

	tdt_leaf_wakers(false);
	TEST_TASK(task, &future);
	ask(&task);
	ck_assert(!is_counted(&task));
	ck_assert_uint_eq(leaves_of_two(GOES_ON, WAITS), 2);
}

#if TDT_PROBES
TEST(a_poll_that_only_a_tracer_wants_gives_none)
{
	const struct tdt_waker *slot;
	struct tdt_future future = look(&slot);
	TEST_TASK(task, &future);

	TDT__SEMAPHORE(task__waker__clone)++;
	test_task_poll(&task);
	TDT__SEMAPHORE(task__waker__clone)--;
	ck_assert(!is_counted(&task));
}
#endif

TEST(a_waker_of_the_runtimes_own_has_nothing_beneath_it_but_itself)
{
	struct test_waker waker;

	test_waker_init(&waker);
	ck_assert_ptr_eq(tdt_waker_beneath(&waker.waker), &waker.waker);
	ck_assert_ptr_null(tdt_waker_beneath(NULL));
}

/* --- As good as the runtime's ----------------------------------------------------------------- */

/* A counted clone, which the task's future no longer has. */
static const struct tdt_waker *take_counted(struct test_task *task, const struct tdt_waker **slot)
{
	const struct tdt_waker *waker;

	ask(task);
	ck_assert(is_counted(task));
	waker = *slot;
	*slot = NULL;
	return waker;
}

CASE(wakers)

TEST(each_way_to_use_it_reaches_the_runtime_at_once_and_its_clone_goes_with_the_last_holder)
{
	const struct tdt_waker *slot, *waker, *second;
	struct tdt_future future = look(&slot);
	int wakes, alive;
	TEST_TASK(task, &future);

	test_task_poll(&task);
	waker = take_counted(&task, &slot);
	alive = task.waker.alive;
	second = tdt_waker_clone(waker);
	ck_assert_ptr_eq(second, waker);
	ck_assert_int_eq(task.waker.alive, alive);

	wakes = task.waker.wakes;
	tdt_waker_wake_by_ref(waker);
	ck_assert_int_eq(task.waker.wakes, wakes + 1);
	tdt_waker_wake(second); /* not the last: the runtime's stays */
	ck_assert_int_eq(task.waker.wakes, wakes + 2);
	ck_assert_int_eq(task.waker.alive, alive);
	tdt_waker_wake(waker);
	ck_assert_int_eq(task.waker.wakes, wakes + 3);
	ck_assert_int_eq(task.waker.alive, alive - 1);

	waker = take_counted(&task, &slot);
	alive = task.waker.alive;
	tdt_waker_drop(waker);
	ck_assert_int_eq(task.waker.alive, alive - 1);
}

TEST(it_outlives_the_task_and_the_trace)
{
	const struct tdt_waker *slot, *waker;
	struct tdt_future future = look(&slot);
	struct test_task task = { 0 };

	test_task_init(&task, &future);
	waker = take_counted(&task, &slot);
	tdt_future_drop(&task.future);
	tdt_handle_unref(task.handle);
	ck_assert_int_eq(task.waker.alive, 1);
	tdt_waker_wake_by_ref(waker);
	tdt_waker_drop(waker);
	ck_assert_int_eq(task.waker.alive, 0);
}

TEST(while_a_trace_is_kept_its_clones_are_used_again)
{
	const struct tdt_waker *slot;
	struct tdt_future future = look(&slot);
	struct test_requester requester[64];
	const struct tdt_waker *few[2] = { NULL, NULL };
	unsigned others = 0;
	TEST_TASK(task, &future);

	for (int i = 0; i < 64; i++) {
		test_ask(&requester[i], task.handle);
		test_task_poll(&task);
		test_answer(&requester[i]);
		if (few[0] == NULL || seen == few[0])
			few[0] = seen;
		else if (few[1] == NULL || seen == few[1])
			few[1] = seen;
		else
			others++;
	}
	ck_assert_uint_lt(others, 64 - 2);
	for (int i = 0; i < 64; i++)
		test_requester_fini(&requester[i]);
}

TEST(a_child_of_fork_may_use_what_its_parent_was_given)
{
	const struct tdt_waker *slot, *waker;
	struct tdt_future future = look(&slot);
	TEST_TASK(task, &future);

	waker = take_counted(&task, &slot);
	IN_A_CHILD {
		tdt_waker_wake(waker);
		MUST(ask(&task) == 1);
		MUST(task.waker.wakes > 0);
	}
	tdt_waker_drop(waker);
}

/* --- Other threads ---------------------------------------------------------------------------- */

#define SLOTS 16
#define HANDS 3

static const struct tdt_waker *_Atomic slots[SLOTS];
static atomic_bool over;
static atomic_int woken;

static const struct tdt_waker *many_clone(const struct tdt_waker *waker);
static atomic_long alive;

static void many_wake_by_ref(const struct tdt_waker *waker)
{
	atomic_fetch_add(&woken, 1);
}

static void many_drop(const struct tdt_waker *waker)
{
	atomic_fetch_sub(&alive, 1);
}

static void many_wake(const struct tdt_waker *waker)
{
	many_wake_by_ref(waker);
	many_drop(waker);
}

static const struct tdt_waker_vtable many_vtable = { many_clone, many_wake, many_wake_by_ref,
						     many_drop };

static const struct tdt_waker *many_clone(const struct tdt_waker *waker)
{
	atomic_fetch_add(&alive, 1);
	return waker;
}

static const struct tdt_waker *_Atomic handed;

static void on_signal(int signal)
{
	tdt_waker_wake(atomic_exchange(&handed, NULL));
}

/* Its runtime's waker may be used in a handler, too. */
TEST(it_may_be_woken_and_dropped_in_a_signal_handler)
{
	struct sigaction action = { .sa_handler = on_signal }, old;
	struct tdt_waker waker = { &many_vtable };
	struct tdt_context cx = { &waker };
	const struct tdt_waker *slot;
	struct tdt_traced traced = tdt_traced(look(&slot));
	struct test_requester requester;
	long before;

	sigaction(SIGUSR1, &action, &old);
	test_ask(&requester, traced.handle);
	tdt_future_poll(&traced.future, &cx);
	test_answer(&requester);
	test_requester_fini(&requester);
	ck_assert_ptr_ne(slot, &waker);
	atomic_store(&handed, slot);
	slot = NULL;
	before = alive;
	raise(SIGUSR1);
	ck_assert_int_eq(woken, 1);
	ck_assert_int_eq(alive, before - 1);
	end_traced(&traced);
	ck_assert_int_eq(alive, 0);
	sigaction(SIGUSR1, &old, NULL);
}

static unsigned seed;

/* Take wakers out of slots and do any of what may be done to them. */
static void *use_wakers(void *arg)
{
	unsigned state = seed + (unsigned)(uintptr_t)arg;

	while (!atomic_load(&over)) {
		const struct tdt_waker *waker =
		    atomic_exchange(&slots[random_below(&state, SLOTS)], NULL);

		if (waker == NULL)
			continue;
		switch (random_below(&state, 4)) {
		case 0:
			tdt_waker_wake(waker);
			break;
		case 1:
			tdt_waker_drop(waker);
			break;
		case 2:
			tdt_waker_drop(tdt_waker_clone(waker));
			tdt_waker_wake_by_ref(waker);
			tdt_waker_drop(waker);
			break;
		default:
			tdt_waker_wake(tdt_waker_clone(waker));
			tdt_waker_drop(waker);
		}
	}
	return NULL;
}

static tdt_poll_t slots_poll(void *state, struct tdt_context *cx)
{
	for (int i = 0; i < SLOTS; i++)
		tdt_waker_drop(atomic_exchange(&slots[i], tdt_waker_clone(cx->waker)));
	return TDT_PENDING;
}

TEST(other_threads_may_wake_and_drop_them_while_they_are_counted)
{
	struct tdt_future future = { NULL, slots_poll, drop_nothing };
	struct tdt_waker waker = { &many_vtable };
	struct tdt_context cx = { &waker };
	struct tdt_traced traced = tdt_traced(future);
	pthread_t thread[HANDS];

	seed = seed_of_run();
	for (uintptr_t i = 0; i < HANDS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, use_wakers, (void *)i), 0);
	for (unsigned i = times_here(3000); i > 0; i--) {
		struct tdt_trace *trace = NULL;
		int error;
		struct tdt_future requester = tdt_backtrace_async(traced.handle, NULL, &trace,
								  &error);

		tdt_future_poll(&requester, &cx);
		tdt_future_poll(&traced.future, &cx);
		ck_assert_int_eq(tdt_future_poll(&requester, &cx), TDT_READY);
		ck_assert_uint_ge(tdt_trace_stacks(trace), 1);
		ck_assert_uint_le(tdt_trace_stacks(trace), SLOTS);
		tdt_future_drop(&requester);
		tdt_trace_free(trace);
	}
	atomic_store(&over, true);
	threads_join(thread, HANDS);
	for (int i = 0; i < SLOTS; i++)
		tdt_waker_drop(atomic_exchange(&slots[i], NULL));
	end_traced(&traced);
	ck_assert_int_eq(alive, 0);
}

/* --- How many there are ----------------------------------------------------------------------- */

#define HOLDERS 2000
#define PASSERS 20000

CASE(number)

/* Others hold all of them, so each of these misses one: but only one task at a time is there. */
TEST(for_tasks_that_come_and_go_no_more_are_made_than_there_are)
{
	static struct test_task holder[HOLDERS];
	static const struct tdt_waker *held[HOLDERS], *slot;
	struct tdt_future future;
	uint32_t made;
	int n = 0;

	tdt_leaf_wakers(true);
	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	do {
		ck_assert_int_lt(n, HOLDERS);
		future = look(&held[n]);
		test_task_init(&holder[n], &future);
		test_task_poll(&holder[n]);
	} while (is_counted(&holder[n++]));
	for (int i = 0; i < PASSERS; i++) {
		future = look(&slot);
		TEST_TASK(passer, &future);
		test_task_poll(&passer);
		ck_assert(!is_counted(&passer));
	}
	made = tdt__counted_made();
	tdt__counted_stock(1);
	ck_assert_uint_gt(tdt__counted_made(), made);
	ck_assert_uint_le(tdt__counted_made(), 2 * made + 1);
	while (n-- > 0)
		test_task_fini(&holder[n]);
	ck_assert_int_eq(tdt_watch(0, NULL), 0);
}
