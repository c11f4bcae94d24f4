// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/task, task/wrapper, task/handle.  The wrapper changes nothing of a future but its
 * address.  Handles, ids, names, and what is stamped.
 */

#include <sys/time.h>

#include <tdt/integrate/hooks.h>

#include "lib/requester.h"
#include "lib/test.h"

static struct tdt_task_attr attr_of_size(size_t size)
{
	return (struct tdt_task_attr){
		.size = size, .id = 99, .name = "n", .file = "f.c", .line = 7, .column = 8
	};
}

CASE(wrapper)

TEST(each_poll_polls_the_child_once_and_passes_its_result_on)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 3);

	ck_assert_int_eq(task.leaf.polls, 0);
	for (int i = 1; i <= 3; i++) {
		ck_assert_int_eq(test_task_poll(&task), TDT_PENDING);
		ck_assert_int_eq(task.leaf.polls, i);
	}
	ck_assert_int_eq(test_task_poll(&task), TDT_READY);
	ck_assert_int_eq(task.leaf.polls, 4);
	ck_assert_int_eq(task.waker.wakes, 0);
}

TEST(the_child_is_dropped_when_the_wrapper_is_and_not_at_its_end)
{
	const tdt_poll_t results[] = { TDT_READY, TDT_PANICKED };

	for (int i = 0; i < 2; i++) {
		struct test_task task = { .leaf = {
					      .name = 'a', .pending = 1, .result = results[i] } };

		test_events_clear();
		test_task_init(&task, NULL);
		test_task_poll(&task);
		ck_assert_int_eq(test_task_poll(&task), results[i]);
		ck_assert_int_eq(task.leaf.drops, 0);
		test_task_fini(&task);
		ck_assert_int_eq(task.leaf.drops, 1);
		ck_assert_str_eq(test_events, i == 0 ? "a. a! a~ " : "a. a# a~ ");
	}
}

TEST(a_task_dropped_unpolled_or_pending_drops_its_child_once)
{
	for (int polls = 0; polls < 2; polls++) {
		struct test_task task = { .leaf = { .name = 'a', .pending = 9 } };

		test_task_init(&task, NULL);
		for (int i = 0; i < polls; i++)
			test_task_poll(&task);
		test_task_fini(&task);
		ck_assert_int_eq(task.leaf.drops, 1);
	}
}

static tdt_poll_t poll_to_seven(void *state, struct tdt_context *cx)
{
	++*(int *)state;
	return 7;
}

TEST(a_result_that_is_none_of_the_abi_counts_as_panicked_and_ends_the_task)
{
	int polls = 0;
	TEST_TASK(task, (&(struct tdt_future){ &polls, poll_to_seven, drop_nothing }));

	ck_assert_int_eq(test_task_poll(&task), TDT_PANICKED);
	ck_assert_int_eq(test_task_poll(&task), TDT_PANICKED);
	ck_assert_int_eq(polls, 1);
}

TEST(a_poll_after_the_end_panics_and_does_not_reach_the_child)
{
	const tdt_poll_t results[] = { TDT_READY, TDT_PANICKED };

	for (int i = 0; i < 2; i++) {
		TEST_TASK(task, NULL, .name = 'a', .result = results[i]);

		ck_assert_int_eq(test_task_poll(&task), results[i]);
		ck_assert_int_eq(test_task_poll(&task), TDT_PANICKED);
		ck_assert_int_eq(test_task_poll(&task), TDT_PANICKED);
		ck_assert_int_eq(task.leaf.polls, 1);
	}
}

TEST(a_leaf_is_given_the_runtimes_own_waker_while_nobody_asks)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);

	test_task_poll(&task);
	ck_assert_ptr_eq(task.leaf.waker, &task.waker.waker);
	test_future_wake(&task.leaf);
	ck_assert_int_eq(task.waker.wakes, 1);
}

TEST(a_runtime_whose_wakers_are_their_own_clones_pays_one_clone_a_task)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);

	for (int i = 0; i < 9; i++)
		test_task_poll(&task);
	ck_assert_int_eq(task.waker.clones, 2); /* the leaf's, and the one that is kept */
}

TEST(no_waker_is_kept_beyond_the_end)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 1);

	test_task_poll(&task);
	ck_assert_int_eq(task.waker.alive, 2);
	test_future_wake(&task.leaf);
	test_task_poll(&task);
	ck_assert_int_eq(task.waker.alive, 0);
}

TEST(a_waker_that_cannot_be_cloned_is_no_harm)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 3);

	task.waker.fail_clone = true;
	test_task_poll(&task);
	ck_assert_int_eq(test_task_poll(&task), TDT_PENDING);
	task.waker.fail_clone = false;
	ck_assert_int_eq(test_task_poll(&task), TDT_PENDING);
	ck_assert_int_eq(task.waker.clones, 2);
	ck_assert_int_eq(test_task_poll(&task), TDT_READY);
}

/* --- What tdt_traced_with() refuses ---------------------------------------------- */

static void expect_untraced(struct tdt_future future, const struct tdt_task_attr *attr, int error)
{
	struct tdt_traced traced;

	errno = 0;
	traced = tdt_traced_with(future, attr);
	ck_assert_int_eq(errno, error);
	ck_assert_ptr_null(traced.handle);
	ck_assert(traced.future.state == future.state && traced.future.poll == future.poll &&
		  traced.future.drop == future.drop);
}

TEST(what_cannot_be_traced_comes_back_as_it_was)
{
	struct test_future child = { .name = 'a' };
	struct tdt_future future = test_future(&child);
	struct {
		struct tdt_task_attr attr;
		char more[16]; /* no padding, which could be anything */
	} large = { .attr = attr_of_size(sizeof(large)) };

	expect_untraced(TDT_FUTURE_NONE, TDT_TASK_ATTR(), EINVAL);
	for (size_t size = 0; size < sizeof(size_t); size++) {
		struct tdt_task_attr attr = attr_of_size(size);

		expect_untraced(future, &attr, EINVAL);
	}
	large.more[15] = 1;
	expect_untraced(future, &large.attr, E2BIG);
	ck_assert(child.polls == 0 && child.drops == 0);
}

static int keep_parent(struct tdt_handle *handle, const struct tdt_task_info *info, void *parent)
{
	*(uint64_t *)parent = info->parent;
	return 0;
}

TEST(a_task_may_be_spawned_on_behalf_of_another)
{
	struct test_future child = { .name = 'a' }, other = { .name = 'b' };
	struct tdt_traced traced = tdt_traced_with(
	    test_future(&child), TDT_TASK_ATTR(.parent = 4711, .flags = TDT_ATTR_PARENT));
	uint64_t parent = 0;

	ck_assert_ptr_nonnull(traced.handle);
	ck_assert_int_eq(tdt_task_inspect(traced.handle, keep_parent, &parent), 0);
	ck_assert_uint_eq(parent, 4711);
	end_traced(&traced);
	/* Without the flag the field does not count, and unknown flags are refused. */
	traced = tdt_traced_with(test_future(&other), TDT_TASK_ATTR(.parent = 4711));
	ck_assert_int_eq(tdt_task_inspect(traced.handle, keep_parent, &parent), 0);
	ck_assert_uint_eq(parent, 0);
	end_traced(&traced);
	expect_untraced(test_future(&other), TDT_TASK_ATTR(.flags = 2), EINVAL);
}

/* What a trace of a task with these attributes says of it; for the caller to free. */
static struct tdt_trace *trace_with(const struct tdt_task_attr *attr)
{
	struct test_task task = { .leaf = { .name = 'a', .pending = 9 } };
	struct test_requester requester;
	struct tdt_traced traced = tdt_traced_with(test_future(&task.leaf), attr);
	struct tdt_trace *trace;

	ck_assert_ptr_nonnull(traced.handle);
	test_waker_init(&task.waker);
	task.cx.waker = &task.waker.waker;
	task.future = traced.future;
	task.handle = traced.handle;
	test_ask(&requester, task.handle);
	test_task_poll(&task);
	ck_assert_uint_eq(test_answer(&requester)->id, tdt_handle_id(task.handle));
	test_task_fini(&task);
	trace = requester.trace;
	requester.trace = NULL;
	test_requester_fini(&requester);
	return trace;
}

TEST(attributes_of_another_size_follow_the_size_rules)
{
	struct {
		struct tdt_task_attr attr;
		char more[16]; /* no padding, which could be anything */
	} large = { .attr = attr_of_size(sizeof(large)) };
	struct tdt_task_attr small = attr_of_size(offsetof(struct tdt_task_attr, line));
	struct tdt_trace *trace = trace_with(&small);
	const struct tdt_task_info *info = tdt_trace_info(trace);

	ck_assert_str_eq(info->name, "n");
	ck_assert_str_eq(info->file, "f.c");
	ck_assert(info->id == 99 && info->line == 0 && info->column == 0);
	tdt_trace_free(trace);

	trace = trace_with(&large.attr);
	info = tdt_trace_info(trace);
	ck_assert(info->line == 7 && info->column == 8);
	tdt_trace_free(trace);

	trace = trace_with(NULL);
	info = tdt_trace_info(trace);
	ck_assert(info->id != 0 && info->name == NULL && info->file == NULL && info->line == 0);
	tdt_trace_free(trace);
}

TEST(a_task_knows_where_it_was_traced)
{
	struct test_task task = { .leaf = { .name = 'a' } };
	struct tdt_traced traced = tdt_traced(test_future(&task.leaf));
	uint32_t line = __LINE__ - 1;
	const struct tdt_task_info *info;

	test_waker_init(&task.waker);
	task.cx.waker = &task.waker.waker;
	task.future = traced.future;
	task.handle = traced.handle;
	ASKED(requester, task.handle);
	test_task_poll(&task);
	info = test_answer(&requester);
	ck_assert_str_eq(info->file, __FILE__);
	ck_assert_uint_eq(info->line, line);
	test_task_fini(&task);
}

static void expect_name(const char *name, const char *kept)
{
	TRACE(trace, trace_with(TDT_TASK_ATTR(.name = name)));

	ck_assert_pstr_eq(tdt_trace_info(trace)->name, kept);
}

TEST(a_name_is_copied_and_cut_between_characters)
{
	char name[TDT_TASK_NAME_MAX + 10], kept[TDT_TASK_NAME_MAX + 1];

	expect_name("", NULL);
	expect_name("häh", "häh");
	for (size_t n = TDT_TASK_NAME_MAX - 1; n <= TDT_TASK_NAME_MAX + 2; n++) {
		memset(name, 'x', n);
		name[n] = '\0';
		memset(kept, 'x', sizeof(kept) - 1);
		kept[n < TDT_TASK_NAME_MAX ? n : TDT_TASK_NAME_MAX] = '\0';
		expect_name(name, kept);
	}
	/* A character of four bytes that begins before the limit, on it, and behind it. */
	for (size_t n = TDT_TASK_NAME_MAX - 5; n <= TDT_TASK_NAME_MAX; n++) {
		memset(name, 'x', n);
		strcpy(name + n, "\xf0\x9f\x8c\x8d");
		memset(kept, 'x', n);
		strcpy(kept + n, n + 4 <= TDT_TASK_NAME_MAX ? "\xf0\x9f\x8c\x8d" : "");
		expect_name(name, kept);
	}
	/* No text at all. */
	memset(name, '\xbf', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	expect_name(name, NULL);
}

CASE(handles)

TEST(null_handles_are_harmless)
{
	tdt_handle_unref(NULL);
	ck_assert_ptr_null(tdt_handle_ref(NULL));
	ck_assert_uint_eq(tdt_handle_id(NULL), 0);
}

TEST(only_traced_futures_have_a_handle)
{
	struct test_task task = { .leaf = { .name = 'a' } };
	struct tdt_future foreign = test_future(&task.leaf), none = TDT_FUTURE_NONE;

	ck_assert_ptr_null(tdt_future_handle(&foreign));
	ck_assert_ptr_null(tdt_future_handle(&none));
	test_task_init(&task, NULL);
	ck_assert_ptr_eq(tdt_future_handle(&task.future), task.handle);
	test_task_fini(&task);
}

TEST(a_handle_outlives_its_future_and_a_future_its_handle)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 1);
	uint64_t id = tdt_handle_id(task.handle);

	tdt_future_drop(&task.future);
	ck_assert_uint_eq(tdt_handle_id(task.handle), id);
	test_task_fini(&task);

	task = (struct test_task){ .leaf = { .name = 'a', .pending = 1 } };
	test_task_init(&task, NULL);
	ck_assert_ptr_eq(tdt_handle_ref(task.handle), task.handle);
	tdt_handle_unref(task.handle);
	tdt_handle_unref(task.handle);
	task.handle = NULL;
	test_task_poll(&task);
	ck_assert_int_eq(test_task_poll(&task), TDT_READY);
}

/* --- Ids --------------------------------------------------------------------------- */

static uint64_t pick_id(uint64_t id)
{
	struct tdt_traced traced = tdt_traced_with(
	    (struct tdt_future){ NULL, poll_to_seven, drop_nothing }, TDT_TASK_ATTR(.id = id));

	id = tdt_handle_id(traced.handle);
	end_traced(&traced);
	return id;
}

#define THREADS 4
#define TASKS 5000

static void *pick_ids(void *argument)
{
	uint64_t *ids = argument;

	for (int i = 0; i < TASKS; i++) {
		TRACED(traced,
		       tdt_traced(((struct tdt_future){ NULL, poll_to_seven, drop_nothing })));

		ids[i] = tdt_handle_id(traced.handle);
	}
	return NULL;
}

static int by_id(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

TEST(ids_picked_by_many_threads_count_up_without_gap_or_repeat)
{
	static uint64_t ids[THREADS * TASKS];
	pthread_t thread[THREADS];
	uint64_t first = pick_id(0) + 1;

	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, pick_ids, &ids[i * TASKS]), 0);
	threads_join(thread, THREADS);
	qsort(ids, THREADS * TASKS, sizeof(ids[0]), by_id);
	for (int i = 0; i < THREADS * TASKS; i++)
		ck_assert_uint_eq(ids[i], first + (uint64_t)i);
}

TEST(picked_ids_can_be_moved_up_and_never_down)
{
	uint64_t last = pick_id(0);

	ck_assert_uint_ge(last, 1);
	ck_assert_uint_eq(pick_id(UINT64_MAX), UINT64_MAX);
	ck_assert_uint_eq(pick_id(0), last + 1);
	ck_assert_int_eq(tdt_task_id_base(last + 2), 0);
	ck_assert_uint_eq(pick_id(0), last + 2);
	ck_assert_int_eq(tdt_task_id_base(UINT64_C(1) << 40), 0);
	ck_assert_uint_eq(pick_id(0), UINT64_C(1) << 40);
	ck_assert_fails(tdt_task_id_base(UINT64_C(1) << 40), EINVAL);
	ck_assert_fails(tdt_task_id_base(0), EINVAL);
	ck_assert_uint_eq(pick_id(0), (UINT64_C(1) << 40) + 1);
}

/* Notes which task is said to be polled, before, in and after the poll of `inner` (NULL: none). */
struct noting {
	struct tdt_future *inner;
	uint64_t before, after;
};

static tdt_poll_t note_id(void *state, struct tdt_context *cx)
{
	struct noting *noting = state;

	noting->before = tdt_current_task_id();
	if (noting->inner != NULL)
		tdt_future_poll(noting->inner, cx);
	noting->after = tdt_current_task_id();
	return TDT_PENDING;
}

TEST(the_current_task_is_the_innermost_that_is_polled_on_this_thread)
{
	struct noting note_inner = { 0 }, note_outer = { 0 };
	TEST_TASK(outer, (&(struct tdt_future){ &note_outer, note_id, drop_nothing }));
	TEST_TASK(inner, (&(struct tdt_future){ &note_inner, note_id, drop_nothing }));

	note_outer.inner = &inner.future;
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	test_task_poll(&outer);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	ck_assert_uint_eq(note_inner.before, tdt_handle_id(inner.handle));
	ck_assert_uint_eq(note_inner.after, tdt_handle_id(inner.handle));
	ck_assert_uint_eq(note_outer.before, tdt_handle_id(outer.handle));
	ck_assert_uint_eq(note_outer.after, tdt_handle_id(outer.handle));
}

static volatile sig_atomic_t signals, strangers;
static uint64_t only_id;

static void ask_for_id(int signal)
{
	uint64_t id = tdt_current_task_id();

	signals++;
	strangers += id != 0 && id != only_id;
}

TEST(a_signal_handler_may_ask_which_task_is_polled)
{
	const struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { 0 };
	struct noting noting = { 0 };
	TEST_TASK(task, (&(struct tdt_future){ &noting, note_id, drop_nothing }));

	only_id = tdt_handle_id(task.handle);
	signal(SIGALRM, ask_for_id);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 3000000 && signals < 2000; i++)
		test_task_poll(&task);
	setitimer(ITIMER_REAL, &never, NULL);
	ck_assert_int_eq(strangers, 0);
}

/*
 * Ask, have the task polled at `now` as a runtime would, and return how long it is said to have
 * waited.
 */
static uint64_t ask_at(struct test_task *task, uint64_t now, uint64_t polls)
{
	struct test_requester requester;
	const struct tdt_task_info *info;
	uint64_t waited;

	test_ask(&requester, task->handle);
	tdt_worker_now(now);
	ck_assert_int_eq(test_task_run(task), 1);
	info = test_answer(&requester);
	ck_assert_int_eq(info->state, TDT_TASK_WAITING);
	ck_assert_uint_eq(info->polls, polls);
	waited = info->state_ns;
	test_requester_fini(&requester);
	return waited;
}

CASE(stamps)

TEST(a_task_waits_since_the_last_poll_that_was_not_only_for_a_request)
{
	struct test_requester requester;

	tdt_worker_now(1000);
	TEST_TASK(task, NULL, .name = 'a', .pending = 99);
	test_task_poll(&task);
	tdt_worker_now(2000);
	test_task_poll(&task);
	ck_assert_uint_eq(ask_at(&task, 5000, 3), 3000);
	ck_assert_uint_eq(ask_at(&task, 6000, 4), 4000);
	ck_assert_uint_eq(ask_at(&task, 6500, 5), 4500);
	tdt_worker_now(7000);
	test_task_poll(&task);
	ck_assert_uint_eq(ask_at(&task, 7001, 7), 1);

	/* Nor does a request count whose requester has given up. */
	test_ask(&requester, task.handle);
	test_requester_fini(&requester);
	tdt_worker_now(8000);
	ck_assert_int_eq(test_task_run(&task), 1);
	ck_assert_uint_eq(ask_at(&task, 9000, 9), 2000);
	tdt_worker_now(0);
}

static const char *waits_at;

static void report_wait(void)
{
	tdt_leaf_waits_on(TDT_WAIT_CHANNEL, waits_at, 0);
}

/* Whether the poll that answers finds that the task has moved; it has waited for `waited`. */
static bool moves_at(struct test_task *task, uint64_t now, uint64_t waited)
{
	struct test_requester requester;
	const struct tdt_task_info *info;
	bool moved;

	test_ask(&requester, task->handle);
	tdt_worker_now(now);
	ck_assert_int_eq(test_task_run(task), 1);
	info = test_answer(&requester);
	ck_assert_uint_eq(info->state_ns, waited);
	moved = info->moved != 0;
	test_requester_fini(&requester);
	return moved;
}

TEST(a_task_that_moves_because_it_was_asked_begins_another_wait)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 99);

	task.waker.in_clone = report_wait;
	waits_at = "here";
	tdt_worker_now(1000);
	test_task_poll(&task);
	ck_assert(!moves_at(&task, 4000, 3000));
	waits_at = "there";
	ck_assert(moves_at(&task, 5000, 4000));
	ck_assert(!moves_at(&task, 6000, 1000));
	/* A task that was woken would have gone on anyway. */
	waits_at = "here";
	tdt_task_woken(task.handle);
	ck_assert(!moves_at(&task, 7000, 2000));
	ck_assert(!moves_at(&task, 8000, 1000));
	tdt_worker_now(0);
}

TEST(before_its_first_poll_a_task_is_pending_since_it_was_spawned)
{
	struct test_requester requester;

	tdt_worker_now(1000);
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);
	test_ask(&requester, task.handle);
	tdt_worker_now(5000);
	test_task_poll(&task);
	ck_assert_uint_eq(test_answer(&requester)->state_ns, 4000);
	ck_assert_uint_eq(tdt_trace_info(requester.trace)->polls, 1);
	test_requester_fini(&requester);
	/* The poll was due anyway. */
	ck_assert_uint_eq(ask_at(&task, 5500, 2), 500);
	tdt_worker_now(0);
}

TEST(time_that_runs_backwards_is_no_wait)
{
	tdt_worker_now(5000);
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);
	test_task_poll(&task);
	ck_assert_uint_eq(ask_at(&task, 4000, 2), 0);
	tdt_worker_now(0);
}
