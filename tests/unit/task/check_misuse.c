// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/misuse.  Which misuses are noticed, and what is kept of the first one.  Each case is
 * a process of its own (CK_FORK).
 */

#include <tdt/integrate/fiber.h>

#include "lib/requester.h"
#include "lib/says.h"
#include "lib/switched.h"
#include "lib/test.h"

static void expect(enum tdt_misuse_kind kind, uint64_t task)
{
	const struct tdt_misuse *misuse = tdt_misused();

	ck_assert_ptr_nonnull(misuse);
	ck_assert_uint_eq(misuse->size, sizeof *misuse);
	ck_assert_int_eq(misuse->kind, kind);
	ck_assert_uint_eq(misuse->task, task);
	ck_assert_ptr_nonnull(misuse->poll);
	ck_assert_ptr_nonnull(misuse->reason);
	ck_assert_ptr_null(strpbrk(misuse->reason, "\n."));
}

/* --- Polls that are switched away from -------------------------------------------------- */

static void goes_away_once(struct switched *co, struct tdt_context *cx)
{
	switched_away(co);
	USE(cx);
}

static void start(struct switched *co, unsigned n)
{
	char *stacks = switched_stacks(n);

	for (unsigned i = 0; i < n; i++) {
		co[i] = (struct switched){ .act = goes_away_once, .result = TDT_READY };
		switched_init(&co[i], stacks + i * SWITCHED_STACK);
	}
}

CASE(misuse)

TEST(polls_that_end_out_of_order_are_a_misuse)
{
	struct switched co[2];
	const struct tdt_misuse *first;

	start(co, 2);
	switched_resume(&co[0]);
	switched_resume(&co[1]);
	ck_assert_ptr_null(tdt_misused());
	switched_resume(&co[0]);
	ck_assert(co[0].ended);
	expect(TDT_MISUSE_ORDER, tdt_handle_id(co[1].traced.handle));
	first = tdt_misused();
	switched_resume(&co[1]);
	ck_assert(co[1].ended);
	ck_assert_ptr_eq(tdt_misused(), first);
	switched_fini(&co[0]);
	switched_fini(&co[1]);
	expect(TDT_MISUSE_ORDER, first->task);
}

TEST(polls_that_end_in_order_are_none)
{
	struct switched co[2];

	start(co, 2);
	switched_resume(&co[0]);
	switched_resume(&co[1]);
	switched_resume(&co[1]);
	switched_resume(&co[0]);
	ck_assert(co[0].ended && co[1].ended);
	ck_assert_ptr_null(tdt_misused());
	switched_fini(&co[0]);
	switched_fini(&co[1]);
}

static void *resume(void *argument)
{
	switched_resume(argument);
	return NULL;
}

/* The thread that the poll began on is gone, and its chain of polls with it. */
TEST(a_poll_that_ends_on_another_thread_is_a_misuse)
{
	struct switched co;
	pthread_t thread;

	start(&co, 1);
	MUST(pthread_create(&thread, NULL, resume, &co) == 0 && pthread_join(thread, NULL) == 0);
	ck_assert_ptr_null(tdt_misused());
	switched_resume(&co);
	ck_assert(co.ended);
	expect(TDT_MISUSE_THREAD, tdt_handle_id(co.traced.handle));
	switched_fini(&co);
}

/* A poll on the stack of a fiber that goes on on another thread: no misuse, in any kind of poll. */
struct carried {
	struct tdt_fiber *fiber;
	struct switched co;
};

static void *carry(void *argument)
{
	struct carried *carried = argument;

	tdt_fiber_resume(carried->fiber);
	switched_resume(&carried->co);
	tdt_fiber_suspend(carried->fiber);
	return NULL;
}

TEST(a_poll_in_a_fiber_may_end_on_another_thread, .to = 6)
{
	const struct tdt_recorder_options small = { .size = sizeof small,
						    .ring_size = TDT_RING_SIZE_MIN };
	struct carried carried = { .fiber = tdt_fiber_new(NULL, 0, NULL) };
	struct tdt_handle *fiber = tdt_handle_ref(tdt_fiber_handle(carried.fiber));

	start(&carried.co, 1);
	carried.co.result = _i % 2 == 0 ? TDT_READY : TDT_PANICKED;
	if (_i / 2 == 1)
		MUST(tdt_recorder_start(&small) == 0);
	if (_i / 2 == 2)
		MUST(tdt_watch(1000000, NULL) == 0);
	run_on_thread(carry, &carried);
	carry(&carried);
	ck_assert(carried.co.ended);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	ck_assert_ptr_null(tdt_misused());
	tdt_fiber_end(carried.fiber);
	tdt_handle_unref(fiber);
	switched_fini(&carried.co);
}

/* --- A task in two polls ------------------------------------------------------------------ */

/* The first poll of a task polls the task. */
struct itself {
	struct tdt_future future;
	int polls;
};

static tdt_poll_t poll_itself(void *state, struct tdt_context *cx)
{
	struct itself *itself = state;

	if (itself->polls++ == 0)
		ck_assert_int_eq(tdt_future_poll(&itself->future, cx), TDT_PENDING);
	return TDT_PENDING;
}

/* Returns the id that the task had. */
static uint64_t nest(const char *name)
{
	struct itself itself = { 0 };
	struct tdt_traced task =
	    tdt_traced_with((struct tdt_future){ &itself, poll_itself, drop_nothing },
			    TDT_TASK_ATTR(.name = name));
	uint64_t id = tdt_handle_id(task.handle);
	struct test_waker waker;
	struct tdt_context cx = { &waker.waker };

	test_waker_init(&waker);
	itself.future = task.future;
	ck_assert_int_eq(tdt_future_poll(&task.future, &cx), TDT_PENDING);
	ck_assert_int_eq(itself.polls, 2);
	end_traced(&task);
	return id;
}

TEST(a_task_that_is_polled_in_its_own_poll_is_a_misuse)
{
	expect(TDT_MISUSE_NESTED, nest(NULL));
	ck_assert_ptr_eq(tdt_misused()->poll, (void *)poll_itself);
}

TEST(a_task_that_is_polled_after_its_end_is_none)
{
	struct test_task task = { .leaf.name = 'a' };

	test_task_init(&task, NULL);
	ck_assert_int_eq(test_task_poll(&task), TDT_READY);
	ck_assert_int_eq(test_task_poll(&task), TDT_PANICKED);
	ck_assert_ptr_null(tdt_misused());
	test_task_fini(&task);
}

/* --- What is kept -------------------------------------------------------------------------- */

TEST(the_name_of_the_task_outlives_the_task)
{
	nest("conn \"7\"");
	ck_assert_str_eq(tdt_misused()->name, "conn \"7\"");
}

static char *dump(void)
{
	return TEXT_WRITTEN(file, MUST(tdt_dump(file) == 0));
}

TEST(a_dump_has_a_line_for_it)
{
	char line[256];

	SAYS(dump(), "!misuse");
	snprintf(line, sizeof line,
		 "\nmisuse: a traced future was polled while a poll of it had not ended (task %d "
		 "\"conn\")\n",
		 (int)nest("conn"));
	SAYS(dump(), line);
}

TEST(a_child_of_a_fork_knows_the_misuse_of_its_parent)
{
	nest(NULL);
	ck_assert_str_eq(tdt_misused()->name, "");
	IN_A_CHILD
		MUST(tdt_misused() != NULL);
}
