// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/saved_waker, task/wrapper.  The saved waker, which requesters use, is the waker of
 * the last poll, whatever its address.  There are runtimes of two kinds: those whose wakers are
 * their own clones, and those that pass a temporary, at one address for every task (as crate
 * async-ffi does).
 *
 * This suite is built a second time with tests/lib/naive_kept.h, where the same requests must wake
 * the wrong task.
 */

#include "lib/requester.h"
#include "lib/test.h"
#include "task/saved_waker.h"

/* --- A runtime that passes temporaries ---------------------------------------- */

struct executor {
	int wakes;
	int clones;
};

struct temporary {
	struct tdt_waker waker;
	struct executor *executor;
};

static int owned; /* clones that are neither woken nor dropped */

static const struct temporary *temporary_of(const struct tdt_waker *waker)
{
	return (const struct temporary *)(const void *)waker;
}

static const struct tdt_waker *to_heap(const struct tdt_waker *waker)
{
	struct temporary *clone = malloc(sizeof(*clone));

	ck_assert_ptr_nonnull(clone);
	*clone = *temporary_of(waker);
	clone->executor->clones++;
	owned++;
	return &clone->waker;
}

static void wake_by_ref(const struct tdt_waker *waker)
{
	temporary_of(waker)->executor->wakes++;
}

static void drop_clone(const struct tdt_waker *waker)
{
	owned--;
	free((void *)(uintptr_t)waker);
}

static void wake(const struct tdt_waker *waker)
{
	wake_by_ref(waker);
	drop_clone(waker);
}

/* Poll with a waker that exists for this poll, and always in the same place. */
static tdt_poll_t poll_by(struct executor *executor, const struct tdt_future *future)
{
	static const struct tdt_waker_vtable vtable = { to_heap, wake, wake_by_ref, drop_clone };
	static struct temporary slot;
	struct tdt_context cx = { &slot.waker };
	tdt_poll_t result;

	slot = (struct temporary){ { &vtable }, executor };
	result = tdt_future_poll(future, &cx);
	slot = (struct temporary){ { NULL }, NULL };
	return result;
}

static struct tdt_traced new_task(void)
{
	return tdt_traced(((struct tdt_future){ NULL, stay_pending, drop_nothing }));
}

static void end(struct tdt_traced *task)
{
	tdt_future_drop(&task->future);
	tdt_handle_unref(task->handle);
	ck_assert_int_eq(owned, 0);
}

/* Ask, and give up. */
static void ask(struct tdt_handle *handle)
{
	ASKED(requester, handle);
}

/* --- A task that moves ------------------------------------------------------------ */

/* Two executors poll the task in turn.  Whom does a question wake? */
static const struct executor *woken_after_move(struct executor *first, struct executor *second)
{
	struct tdt_traced task = new_task();

	poll_by(first, &task.future);
	poll_by(second, &task.future);
	ask(task.handle);
	end(&task);
	ck_assert_int_eq(first->wakes + second->wakes, 1);
	return first->wakes > 0 ? first : second;
}

CASE(kept)

#ifdef TESTS_NAIVE_KEPT

TEST(pointer_equality_alone_wakes_an_executor_that_has_the_task_no_more)
{
	struct executor first = { 0 }, second = { 0 };

	ck_assert_ptr_eq(woken_after_move(&first, &second), &first);
}

#else

TEST(a_question_wakes_the_executor_that_polled_last)
{
	struct executor first = { 0 }, second = { 0 };

	ck_assert_ptr_eq(woken_after_move(&first, &second), &second);
}

TEST(a_runtime_of_temporaries_pays_one_clone_a_pending_poll)
{
	struct tdt_traced task = new_task();
	struct executor executor = { 0 };

	for (int i = 1; i <= 5; i++) {
		poll_by(&executor, &task.future);
		ck_assert_int_eq(executor.clones, i);
		ck_assert_int_eq(owned, 1);
	}
	end(&task);
}

TEST(a_task_may_move_between_runtimes_of_both_kinds)
{
	struct executor executor = { 0 };
	struct test_task task = { 0 };

	test_task_init(&task, &(struct tdt_future){ NULL, stay_pending, drop_nothing });
	for (int i = 0; i < 3; i++) {
		test_task_poll(&task);
		ck_assert_int_eq(owned, 0);
		poll_by(&executor, &task.future);
		ck_assert_int_eq(task.waker.alive, 0);
		ask(task.handle);
		ck_assert_int_eq(executor.wakes, i + 1);
		poll_by(&executor, &task.future);
		test_task_poll(&task);
		ask(task.handle);
		ck_assert_int_eq(test_task_run(&task), 1);
	}
	ck_assert_int_eq(executor.wakes, 3);
	test_task_fini(&task);
	ck_assert_int_eq(owned, 0);
}

TEST(what_is_kept_is_the_waker_beneath_when_the_task_is_polled_in_another_that_is_asked)
{
	struct test_requester requester;
	NESTED_TASKS(outer, inner, (&(struct tdt_future){ NULL, stay_pending, drop_nothing }));

	for (int i = 0; i < 4; i++) {
		bool asked = i % 2 == 0;

		if (asked)
			test_ask(&requester, outer.handle);
		test_task_poll(&outer);
		if (asked) {
			/* Neither was our own keeping of wakers taken for leaves. */
			ck_assert_uint_eq(test_answer(&requester)->leaves, 0);
			test_requester_fini(&requester);
		}
		ck_assert_uint_eq(inner.handle->record.waker, (uintptr_t)&outer.waker.waker);
		ck_assert_uint_eq(outer.handle->record.waker, (uintptr_t)&outer.waker.waker);
	}
	/*
	 * Whether given as it is or in a substitute, it was known again; a requester took one of
	 * the outer's.
	 */
	ck_assert_int_eq(outer.waker.clones, 3);
}

TEST(asking_the_inner_task_wakes_the_outer_ones_runtime)
{
	struct executor executor = { 0 };
	struct tdt_traced inner = new_task(), outer = tdt_traced(inner.future);

	poll_by(&executor, &outer.future);
	ask(inner.handle);
	ck_assert_int_eq(executor.wakes, 1);
	ask(outer.handle);
	ck_assert_int_eq(executor.wakes, 2);
	tdt_handle_unref(inner.handle);
	end(&outer);
}

TEST(a_request_waits_for_the_next_poll_where_no_waker_could_be_kept)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);

	task.waker.fail_clone = true;
	test_task_poll(&task);
	ASKED(requester, task.handle);
	ck_assert_int_eq(task.waker.wakes, 0);
	test_task_poll(&task);
	ck_assert_uint_eq(test_answer(&requester)->leaves, 1);
}

#endif
