// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers registry/counters.  Counters for metrics: that they are right while nothing happens, and
 * never decrease.
 */

#include <tdt/integrate/hooks.h>

#include "lib/test.h"

#define SECOND UINT64_C(1000000000)

/* The state is the result of each poll. */
static tdt_poll_t poll_result(void *state, struct tdt_context *cx)
{
	return (tdt_poll_t)(uintptr_t)state;
}

static struct tdt_traced trace(tdt_poll_t result)
{
	struct tdt_traced task =
	    tdt_traced((struct tdt_future){ (void *)(uintptr_t)result, poll_result, drop_nothing });

	MUST(task.handle != NULL);
	return task;
}

static tdt_poll_t poll_once(struct tdt_traced *task)
{
	return poll_idly(&task->future);
}

static struct tdt_counts count(void)
{
	struct tdt_counts counters = { .size = sizeof counters };

	MUST(tdt_counters(&counters) == 0);
	ck_assert_uint_eq(counters.size, sizeof counters);
	return counters;
}

CASE(counters)

TEST(without_tasks_all_is_zero)
{
	const struct tdt_counts zero = { .size = sizeof zero };
	struct tdt_counts counters = count();

	ck_assert_int_eq(memcmp(&counters, &zero, sizeof zero), 0);
}

TEST(tasks_are_counted_by_their_states)
{
	struct tdt_traced waiting[3] = { trace(TDT_PENDING), trace(TDT_PENDING),
					 trace(TDT_PENDING) };
	struct tdt_traced ready = trace(TDT_READY), panicked = trace(TDT_PANICKED);
	struct tdt_counts counters;

	for (int i = 0; i < 3; i++)
		poll_once(&waiting[i]);
	tdt_task_woken(waiting[0].handle);
	poll_once(&ready);
	poll_once(&panicked);
	counters = count();
	ck_assert_uint_eq(counters.waiting, 2);
	ck_assert_uint_eq(counters.runnable, 1);
	ck_assert_uint_eq(counters.running, 0);
	ck_assert_uint_eq(counters.spawned, 5);
	ck_assert_uint_eq(counters.ended, 2);
	ck_assert_uint_eq(counters.panicked, 1);
	ck_assert_uint_eq(counters.polls, 5);
	for (int i = 0; i < 3; i++)
		end_traced(&waiting[i]);
	end_traced(&ready);
	end_traced(&panicked);
	counters = count();
	ck_assert_uint_eq(counters.waiting, 0);
	ck_assert_uint_eq(counters.runnable, 0);
	ck_assert_uint_eq(counters.spawned, 5);
	ck_assert_uint_eq(counters.ended, 5);
	ck_assert_uint_eq(counters.panicked, 1);
	ck_assert_uint_eq(counters.polls, 5);
}

static struct tdt_counts inside; /* as seen in a poll */

static tdt_poll_t poll_counting(void *state, struct tdt_context *cx)
{
	inside = count();
	return TDT_PENDING;
}

TEST(the_longest_poll_and_the_longest_wait_are_those_that_last)
{
	struct tdt_traced task =
	    tdt_traced((struct tdt_future){ NULL, poll_counting, drop_nothing });
	struct tdt_traced older = trace(TDT_PENDING);
	struct timespec now;
	uint64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
	tdt_worker_now(ns - 20 * SECOND);
	poll_once(&older);
	tdt_worker_now(ns - 5 * SECOND);
	poll_once(&task);
	ck_assert_uint_eq(inside.running, 1);
	ck_assert_uint_ge(inside.longest_poll_ns, 5 * SECOND);
	ck_assert_uint_lt(inside.longest_poll_ns, 15 * SECOND);
	ck_assert_uint_ge(inside.longest_wait_ns, 20 * SECOND);
	end_traced(&older);
	ck_assert_uint_eq(count().longest_poll_ns, 0);
	ck_assert_uint_ge(count().longest_wait_ns, 5 * SECOND);
	ck_assert_uint_lt(count().longest_wait_ns, 15 * SECOND);
	tdt_worker_now(0);
	end_traced(&task);
	ck_assert_uint_eq(count().longest_wait_ns, 0);
}

static tdt_poll_t poll_leaf(void *state, struct tdt_context *cx)
{
	const struct tdt_waker **own = state;

	*own = tdt_waker_clone(cx->waker);
	return TDT_PENDING;
}

TEST(dumps_and_captures_are_counted)
{
	const struct tdt_waker *own = NULL;
	struct tdt_trace *none = NULL;
	TRACED(task, tdt_traced((struct tdt_future){ &own, poll_leaf, drop_nothing }));
	struct tdt_future requester = tdt_backtrace_async(task.handle, NULL, &none, NULL);

	poll_idly(&requester);
	poll_once(&task);
	tdt_waker_drop(own);
	ck_assert_uint_eq(poll_idly(&requester), TDT_READY);
	ck_assert_uint_eq(count().captures, 1);
	ck_assert_uint_eq(count().dumps, 0);
	poll_once(&task);
	tdt_waker_drop(own);
	ck_assert_uint_eq(count().captures, 1);
	tdt_snapshot_free(tdt_snapshot_take(
	    &(struct tdt_dump_options){ .size = sizeof(struct tdt_dump_options),
					.timeout_ns = 1000000 }));
	ck_assert_uint_eq(count().dumps, 1);
	tdt_future_drop(&requester);
	tdt_trace_free(none);
}

TEST(sizes_are_respected)
{
	struct {
		struct tdt_counts counters;
		uint64_t later, guard;
	} larger = { .counters.size = sizeof larger.counters + 8, .later = 1, .guard = 1 };
	struct tdt_counts smaller = { .size = offsetof(struct tdt_counts, longest_wait_ns),
					.longest_wait_ns = 1 };
	TRACED(task, trace(TDT_PENDING));

	ck_assert_int_eq(tdt_counters(&larger.counters), 0);
	ck_assert_uint_eq(larger.counters.waiting, 1);
	ck_assert_uint_eq(larger.later, 0);
	ck_assert_uint_eq(larger.guard, 1);
	ck_assert_int_eq(tdt_counters(&smaller), 0);
	ck_assert_uint_eq(smaller.waiting, 1);
	ck_assert_uint_eq(smaller.longest_wait_ns, 1);
	smaller.size = 0;
	ck_assert_fails(tdt_counters(&smaller), EINVAL);
	ck_assert_int_eq(tdt_counters(NULL), -EINVAL);
}

/* --- While tasks come and go ---------------------------------------------------------- */

#define CHURNERS 2
#define CHURNED 20000
#define POLLS 3

static atomic_int churning = CHURNERS;
static atomic_uint_fast64_t truly_spawned, truly_ended, truly_polled;

static void *churn(void *unused)
{
	for (int i = 0; i < CHURNED; i++) {
		struct tdt_traced task;

		atomic_fetch_add(&truly_spawned, 1);
		task = trace(TDT_PENDING);
		for (int k = 0; k < POLLS; k++) {
			atomic_fetch_add(&truly_polled, 1);
			poll_once(&task);
		}
		tdt_future_drop(&task.future);
		atomic_fetch_add(&truly_ended, 1);
		tdt_handle_unref(task.handle);
	}
	atomic_fetch_sub(&churning, 1);
	return unused;
}

TEST(counts_never_decrease_and_never_exceed_the_truth)
{
	struct tdt_counts before = count(), now;
	pthread_t thread[CHURNERS];

	threads_start(thread, CHURNERS, churn, NULL);
	do {
		now = count();
		ck_assert_uint_ge(now.spawned, before.spawned);
		ck_assert_uint_ge(now.ended, before.ended);
		ck_assert_uint_ge(now.polls, before.polls);
		ck_assert_uint_le(now.spawned, atomic_load(&truly_spawned));
		ck_assert_uint_le(now.polls, atomic_load(&truly_polled));
		/* The task of each thread may have ended, and not have been counted here yet. */
		ck_assert_uint_le(now.ended, atomic_load(&truly_ended) + CHURNERS);
		before = now;
	} while (atomic_load(&churning) != 0);
	threads_join(thread, CHURNERS);
	now = count();
	ck_assert_uint_eq(now.spawned, CHURNERS * CHURNED);
	ck_assert_uint_eq(now.ended, CHURNERS * CHURNED);
	ck_assert_uint_eq(now.polls, CHURNERS * CHURNED * POLLS);
}
