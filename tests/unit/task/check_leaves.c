// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/substitute.  What counts as a leaf, what a leaf may do wrong with the waker it
 * borrows, and tasks inside of tasks.
 */

#include <tdt/integrate/hooks.h>

#include "lib/requester.h"
#include "lib/test.h"

/* A future whose poll is `poll`, and stays pending. */
static struct tdt_future leaf_of(tdt_poll_t (*poll)(void *state, struct tdt_context *cx),
				 void *state)
{
	return (struct tdt_future){ state, poll, drop_nothing };
}

/* Have the task polled while it is requested, and return the answer; the caller frees it. */
static struct tdt_trace *captured(struct test_task *task)
{
	struct test_requester requester;
	struct tdt_trace *trace;

	test_ask(&requester, task->handle);
	test_task_poll(task);
	test_answer(&requester);
	trace = requester.trace;
	requester.trace = NULL;
	test_requester_fini(&requester);
	return trace;
}

static void expect_leaves(const struct tdt_trace *trace, uint32_t leaves)
{
	uint32_t in_tree = 0;

	ck_assert_uint_eq(tdt_trace_info(trace)->leaves_lost, 0);
	for (const struct tdt_node *node = tdt_trace_root(trace); node != NULL;
	     node = tdt_node_next(node)) {
		ck_assert_int_ne(tdt_node_frame(node)->kind, TDT_NODE_CUT);
		in_tree += tdt_node_leaves(node);
	}
	ck_assert_uint_eq(in_tree, leaves);
	ck_assert_uint_eq(tdt_trace_info(trace)->leaves, leaves);
}

/* Each of these requests the leaf twice, and expects the same again. */
static void expect_each_time(tdt_poll_t (*poll)(void *state, struct tdt_context *cx), void *state,
			     const char *function, uint32_t leaves)
{
	struct tdt_future child = leaf_of(poll, state);
	TEST_TASK(task, &child);

	for (int i = 0; i < 2; i++) {
		TRACE(trace, captured(&task));

		expect_leaves(trace, leaves);
		ck_assert_int_eq(test_nodes_of(trace, function), leaves > 0);
		ck_assert_int_eq(tdt_trace_info(trace)->state, TDT_TASK_WAITING);
	}
}

/* --- What is a leaf ----------------------------------------------------------- */

static tdt_poll_t clone_one(void *state, struct tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

CASE(leaves)

TEST(who_clones_the_waker_is_a_leaf)
{
	expect_each_time(clone_one, NULL, "clone_one", 1);
}

static tdt_poll_t yield(void *state, struct tdt_context *cx)
{
	tdt_waker_wake_by_ref(cx->waker);
	return TDT_PENDING;
}

TEST(who_yields_is_a_leaf)
{
	struct tdt_future child = leaf_of(yield, NULL);

	expect_each_time(yield, NULL, "yield", 1);
	TEST_TASK(task, &child);
	tdt_trace_free(captured(&task));
	ck_assert_int_eq(task.waker.wakes, 1);
}

static tdt_poll_t do_nothing(void *state, struct tdt_context *cx)
{
	return TDT_PENDING;
}

TEST(a_poll_that_clones_nothing_has_no_leaf)
{
	expect_each_time(do_nothing, NULL, "do_nothing", 0);
}

static tdt_poll_t clone_many(void *state, struct tdt_context *cx)
{
	for (int i = 0; i < *(int *)state; i++)
		tdt_waker_drop(tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

static tdt_poll_t clone_twice(void *state, struct tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

TEST(a_leaf_that_clones_again_is_one_leaf)
{
	int n = 1000;

	expect_each_time(clone_twice, NULL, "clone_twice", 1);
	expect_each_time(clone_many, &n, "clone_many", 1);
}

static tdt_poll_t poll_many(void *state, struct tdt_context *cx)
{
	static tdt_poll_t (*volatile const child)(void *state, struct tdt_context *cx) = clone_one;

	for (int i = 0; i < *(int *)state; i++) {
		child(NULL, cx);
		TDT_KEEP_FRAME();
	}
	return TDT_PENDING;
}

TEST(identical_leaves_are_counted)
{
	int n = 1000;

	expect_each_time(poll_many, &n, "clone_one", 1000);
}

TEST(the_clone_a_leaf_gets_stands_for_the_runtimes)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);
	TRACE(trace, captured(&task));

	expect_leaves(trace, 1);
	ck_assert_ptr_eq(tdt_waker_beneath(task.leaf.waker), &task.waker.waker);
	test_future_wake(&task.leaf);
	ck_assert_int_eq(task.waker.wakes, 1);
}

/* --- What a leaf may do wrong ---------------------------------------------------- */

static tdt_poll_t wake_borrowed(void *state, struct tdt_context *cx)
{
	tdt_waker_wake(cx->waker);
	return TDT_PENDING;
}

CASE(misuse)

TEST(waking_the_borrowed_waker_for_good_counts_as_a_yield)
{
	struct tdt_future child = leaf_of(wake_borrowed, NULL);
	TEST_TASK(task, &child);
	TRACE(trace, captured(&task));

	expect_leaves(trace, 1);
	ck_assert_int_eq(test_nodes_of(trace, "wake_borrowed"), 1);
	ck_assert_int_eq(task.waker.wakes, 1);
}

static tdt_poll_t drop_borrowed(void *state, struct tdt_context *cx)
{
	tdt_waker_drop(cx->waker);
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	tdt_waker_drop(cx->waker);
	return TDT_PENDING;
}

TEST(dropping_the_borrowed_waker_does_nothing)
{
	expect_each_time(drop_borrowed, NULL, "drop_borrowed", 1);
}

static tdt_poll_t keep_borrowed(void *state, struct tdt_context *cx)
{
	*(const struct tdt_waker **)state = cx->waker;
	return TDT_PENDING;
}

TEST(a_borrowed_waker_that_is_kept_is_dead_after_the_poll)
{
	const struct tdt_waker *kept = NULL;
	struct tdt_future child = leaf_of(keep_borrowed, &kept);
	TEST_TASK(task, &child);
	TRACE(trace, captured(&task));

	expect_leaves(trace, 0);
	ck_assert_ptr_ne(kept, &task.waker.waker);
	ck_assert_ptr_null(tdt_waker_clone(kept));
	tdt_waker_wake_by_ref(kept);
	tdt_waker_wake(kept);
	tdt_waker_drop(kept);
	ck_assert_int_eq(task.waker.wakes, 0);

	/* Nor is another task deceived that is polled with it, requested or not. */
	{
		TEST_TASK(other, NULL, .name = 'a', .pending = 9);

		other.cx.waker = kept;
		ck_assert_int_eq(test_task_poll(&other), TDT_PENDING);
		ASKED(requester, other.handle);
		ck_assert_int_eq(test_task_poll(&other), TDT_PENDING);
		ck_assert_uint_eq(test_answer(&requester)->leaves, 0);
	}
}

static tdt_poll_t clone_failing(void *state, struct tdt_context *cx)
{
	const struct tdt_waker *clone = tdt_waker_clone(cx->waker);

	*(int *)state += clone == NULL;
	return TDT_PENDING;
}

TEST(a_clone_that_fails_is_passed_on_and_is_a_leaf)
{
	int failures = 0;
	struct tdt_future child = leaf_of(clone_failing, &failures);
	TEST_TASK(task, &child);

	task.waker.fail_clone = true;
	TRACE(trace, captured(&task));
	expect_leaves(trace, 1);
	ck_assert_int_eq(failures, 1);
}

/* --- Other threads ------------------------------------------------------------------- */

static void *clone_here(void *argument)
{
	const struct tdt_context *cx = argument;

	tdt_waker_drop(tdt_waker_clone(cx->waker));
	tdt_waker_wake_by_ref(cx->waker);
	return NULL;
}

static tdt_poll_t clone_elsewhere(void *state, struct tdt_context *cx)
{
	run_on_thread(clone_here, cx);
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

CASE(leaves)

TEST(a_leaf_on_another_thread_is_counted_apart)
{
	struct tdt_future child = leaf_of(clone_elsewhere, NULL);
	TEST_TASK(task, &child);

	for (int i = 0; i < 2; i++) {
		TRACE(trace, captured(&task));

		expect_leaves(trace, 1);
		ck_assert_uint_eq(tdt_trace_info(trace)->leaves_elsewhere, 2);
		ck_assert_int_eq(test_nodes_of(trace, "clone_here"), 0);
	}
}

/* --- The host's errno --------------------------------------------------------------------- */

static tdt_poll_t clone_with_errno(void *state, struct tdt_context *cx)
{
	int *seen = state;

	errno = 4711;
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	*seen = errno;
	return TDT_PENDING;
}

TEST(a_capture_leaves_errno_alone)
{
	int seen = 0;
	struct tdt_future child = leaf_of(clone_with_errno, &seen);
	TEST_TASK(task, &child);

	for (int i = 0; i < 2; i++) {
		tdt_trace_free(captured(&task));
		ck_assert_int_eq(seen, 4711);
	}
}

/* --- Tasks inside of tasks ------------------------------------------------------------------ */

static tdt_poll_t poll_inner(void *state, struct tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	return tdt_future_poll(state, cx);
}

static tdt_poll_t poll_middle(void *state, struct tdt_context *cx)
{
	return tdt_future_poll(state, cx);
}

/*
 * Three tasks, each but the innermost with a function round the next; the outermost has a leaf of
 * its own as well.
 */
struct nest {
	struct test_task task[3]; /* the innermost first */
	struct tdt_future child[3];
};

static void nest_init(struct nest *nest)
{
	*nest = (struct nest){ 0 };
	nest->child[0] = leaf_of(clone_one, NULL);
	nest->child[1] = leaf_of(poll_middle, &nest->task[0].future);
	nest->child[2] = leaf_of(poll_inner, &nest->task[1].future);
	for (int i = 0; i < 3; i++)
		test_task_init(&nest->task[i], &nest->child[i]);
}

static void nest_fini(struct nest *nest)
{
	for (int i = 0; i < 3; i++)
		test_task_fini(&nest->task[i]);
}

/* What a trace of the task `level` must say, whichever others were requested. */
static void expect_level(const struct tdt_trace *trace, int level)
{
	expect_leaves(trace, level == 2 ? 2 : 1);
	ck_assert_int_eq(test_nodes_of(trace, "clone_one"), 1);
	ck_assert_int_eq(test_nodes_of(trace, "poll_middle"), level >= 1);
	ck_assert_int_ge(test_nodes_of(trace, "poll_inner"), level >= 2);
	if (level < 2)
		ck_assert_int_eq(test_nodes_of(trace, "poll_inner"), 0);
}

CASE(nested)

/* Every choice of tasks that are requested at once. */
TEST(each_of_three_nested_tasks_answers_with_its_own_part)
{
	for (int asked = 1; asked < 8; asked++) {
		struct nest nest;
		struct test_requester requester[3];

		nest_init(&nest);
		for (int round = 0; round < 2; round++) {
			for (int i = 0; i < 3; i++)
				if (asked & 1 << i)
					test_ask(&requester[i], nest.task[i].handle);
			ck_assert_int_eq(nest.task[2].waker.wakes,
					 round > 0 ? __builtin_popcount((unsigned)asked) : 0);
			nest.task[2].waker.wakes = 0;
			test_task_poll(&nest.task[2]);
			for (int i = 0; i < 3; i++) {
				if ((asked & 1 << i) == 0)
					continue;
				test_answer(&requester[i]);
				expect_level(requester[i].trace, i);
				test_requester_fini(&requester[i]);
			}
			ck_assert_int_eq(nest.task[2].waker.wakes, 0);
		}
		nest_fini(&nest);
	}
}

TEST(what_leaves_of_nested_tasks_clone_stands_for_the_runtimes_waker)
{
	struct test_requester requester[2];
	NESTED_TASKS(outer, inner, NULL, .name = 'a', .pending = 99);

	test_ask(&requester[0], inner.handle);
	test_ask(&requester[1], outer.handle);
	test_task_poll(&outer);
	ck_assert_ptr_eq(tdt_waker_beneath(inner.leaf.waker), &outer.waker.waker);
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(test_answer(&requester[i])->leaves, 1);
		test_requester_fini(&requester[i]);
	}
}

TEST(nested_tasks_in_a_join_are_branches_of_the_outer_one)
{
	struct test_task inner[2], outer = { 0 };
	struct tdt_future child = leaf_of(clone_one, NULL), joined[2], join;
	struct test_requester requester[3];

	for (int i = 0; i < 2; i++) {
		inner[i] = (struct test_task){ 0 };
		test_task_init(&inner[i], &child);
		joined[i] = inner[i].future;
	}
	join = tdt_join_all(joined, 2);
	test_task_init(&outer, &join);
	test_ask(&requester[0], inner[0].handle);
	test_ask(&requester[1], inner[1].handle);
	test_ask(&requester[2], outer.handle);
	test_task_poll(&outer);
	for (int i = 0; i < 3; i++) {
		test_answer(&requester[i]);
		expect_leaves(requester[i].trace, i < 2 ? 1 : 2);
		test_requester_fini(&requester[i]);
	}
	tdt_handle_unref(inner[0].handle);
	tdt_handle_unref(inner[1].handle);
	test_task_fini(&outer);
}

TEST(a_nested_task_that_ends_says_so_and_the_outer_one_goes_on)
{
	struct test_task inner = { .leaf = { .name = 'a' } };
	struct tdt_future joined[2] = { TDT_FUTURE_NONE, leaf_of(clone_one, NULL) }, join;

	test_task_init(&inner, NULL);
	joined[0] = inner.future;
	join = tdt_join_all(joined, 2);
	TEST_TASK(outer, &join);
	ASKED(ask_inner, inner.handle);
	ASKED(ask_outer, outer.handle);
	ck_assert_int_eq(test_task_poll(&outer), TDT_PENDING);
	ck_assert_int_eq(inner.leaf.drops, 1);
	ck_assert_int_eq(test_answer(&ask_inner)->state, TDT_TASK_READY);
	ck_assert_int_eq(test_answer(&ask_outer)->state, TDT_TASK_WAITING);
	tdt_handle_unref(inner.handle);
}
