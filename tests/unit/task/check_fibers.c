// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/fibers, capture/fiber, tdt/integrate/fiber.h.  The life of fibers: what their tasks
 * say while they run, are suspended and have ended; requests for them, from anywhere; their bounds;
 * and what a library may do wrong.
 */

#include <tdt/integrate/fiber.h>
#include <tdt/integrate/hooks.h>
#include <tdt/integrate/stack.h>

#include "lib/fibered.h"
#include "lib/futures.h"
#include "lib/gate.h"
#include "lib/options.h"
#include "lib/refused.h"
#include "lib/says.h"
#include "lib/stuck_task.h"
#include "lib/test.h"
#include "watch/last_tree.h"

/* --- What the fibers do ------------------------------------------------------------ */

static NOINLINE void inner(struct fibered *it)
{
	fibered_yield(it);
	USE(it);
}

static NOINLINE void outer(struct fibered *it)
{
	inner(it);
	USE(it);
}

static NOINLINE void other(struct fibered *it)
{
	char room[100]; /* or the compiler makes one function of this and inner() */

	USE(room);
	fibered_yield(it);
	USE(room);
}

/* Yields in outer() and then in other(). */
static void runs(struct fibered *it)
{
	outer(it);
	other(it);
	USE(it);
}

#define SECOND INT64_C(1000000000)

#define IN_OUTER "fibered_entry runs outer inner fibered_yield"
#define IN_OTHER "fibered_entry runs other fibered_yield"

static struct tdt_handle *handle_of(const struct fibered *it)
{
	return tdt_fiber_handle(it->fiber);
}

static void start(struct fibered *it, const char *name)
{
	fibered_init(it, TDT_TASK_ATTR(.name = name));
	fibered_resume(it);
}

/* Declare a fiber that is started here, and destroyed at the end of the block. */
#define STARTED(it, name, ...)                                                                     \
	__attribute__((cleanup(fibered_fini))) struct fibered it = { __VA_ARGS__ };                \
	const bool it##_begun __attribute__((unused)) = (start(&it, name), true)

static void expect_trace(struct tdt_trace *trace, enum tdt_task_state state, const char *path)
{
	ck_assert_ptr_nonnull(trace);
	ck_assert_int_eq(tdt_trace_info(trace)->state, state);
	TEXT(shown, stuck_path(trace));
	ck_assert_str_eq(shown, path);
	tdt_trace_free(trace);
}

static void expect_path(const struct fibered *it, const char *path)
{
	expect_trace(tdt_backtrace(handle_of(it)), TDT_TASK_WAITING, path);
}

/* The text of a dump, for the caller to free. */
static char *dump_text(const struct tdt_dump_options *options)
{
	return TEXT_WRITTEN(out, ck_assert_int_eq(tdt_dump_with(out, options), 0));
}

/* Whether the dump says that it had too little time, as on a busy machine. */
static bool is_late(const char *text)
{
	return strstr(text, "left out") != NULL || strstr(text, "did not answer") != NULL ||
	       strstr(text, "without a tree") != NULL || strstr(text, "not named in time") != NULL;
}

/* A dump that had too little time gets more. */
static void expect_dump(const char *part)
{
	struct tdt_dump_options options = { .size = sizeof options, .timeout_ns = SECOND };
	char *text;

	while (text = dump_text(&options), strstr(text, part) == NULL) {
		ck_assert_msg(is_late(text), "no '%s' in: %s", part, text);
		free(text);
		options.timeout_ns += SECOND;
	}
	free(text);
}

static void expect_misuse(enum tdt_misuse_kind kind)
{
	ck_assert_ptr_nonnull(tdt_misused());
	ck_assert_int_eq(tdt_misused()->kind, kind);
}

static enum tdt_task_state seen_state;

static int note_state(struct tdt_handle *handle, const struct tdt_task_info *info, void *arg)
{
	seen_state = info->state;
	return 0;
}

static enum tdt_task_state state_of(struct tdt_handle *handle)
{
	ck_assert_int_eq(tdt_task_inspect(handle, note_state, NULL), 0);
	return seen_state;
}

CASE(standing)

TEST(a_suspended_fiber_shows_where_it_stands)
{
	STARTED(it, "a", .run = runs);

	expect_path(&it, IN_OUTER);
	expect_path(&it, IN_OUTER); /* that has not resumed it */
	fibered_resume(&it);
	expect_path(&it, IN_OTHER);
	fibered_resume(&it);
	ck_assert(it.ended);
}

TEST(a_fiber_that_has_not_run_says_so)
{
	FIBER(it, TDT_TASK_ATTR(.name = "new"), .run = runs);
	TRACE(trace, tdt_backtrace(handle_of(&it)));

	ck_assert_uint_eq(tdt_trace_info(trace)->leaves, 0);
	ck_assert_uint_eq(tdt_trace_info(trace)->polls, 0);
	expect_dump("has not run yet");
}

TEST(a_dump_has_all_fibers)
{
	const struct tdt_dump_options unhurried = { .size = sizeof unhurried,
						    .timeout_ns = 60 * SECOND };
	struct fibered its[600];

	for (int i = 0; i < 600; i++) {
		its[i] = (struct fibered){ .run = runs };
		start(&its[i], NULL);
		if (i % 2 == 1)
			fibered_resume(&its[i]);
	}
	TEXT(text, dump_text(&unhurried));
	ck_assert_msg(strstr(text, "600 tasks: 600 answered") != NULL, "%s", text);
	if (strstr(text, "not named in time") == NULL) {
		ck_assert_ptr_nonnull(strstr(text, "outer"));
		ck_assert_ptr_nonnull(strstr(text, "other"));
	}
	for (int i = 0; i < 600; i++)
		fibered_fini(&its[i]);
}

/* --- Running --------------------------------------------------------------------------- */

static void notes_itself(struct fibered *it)
{
	struct tdt_handle *handle = handle_of(it);

	MUST(tdt_current_task_id() == tdt_handle_id(handle));
	MUST(state_of(handle) == TDT_TASK_RUNNING);
	errno = 0;
	MUST(tdt_backtrace(handle) == NULL && errno == EDEADLK);
	MUST(backtrace_timed(handle, 0) == NULL && errno == EDEADLK);
	fibered_yield(it);
	MUST(tdt_current_task_id() == tdt_handle_id(handle));
}

CASE(running)

TEST(a_running_fiber_is_the_current_task)
{
	FIBER(it, NULL, .run = notes_itself);
	HANDLE(handle, tdt_handle_ref(handle_of(&it)));

	ck_assert_int_eq(state_of(handle), TDT_TASK_WAITING);
	fibered_resume(&it);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	ck_assert_int_eq(state_of(handle), TDT_TASK_WAITING);
	fibered_resume(&it);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	ck_assert_int_eq(state_of(handle), TDT_TASK_READY);
	ck_assert_ptr_fails(tdt_backtrace(handle), ESRCH);
}

static void spawns(struct fibered *it)
{
	struct tdt_fiber *child = tdt_fiber_new(NULL, 0, TDT_TASK_ATTR(.name = "child"));

	it->arg = tdt_handle_ref(tdt_fiber_handle(child));
	tdt_fiber_end(child);
	fibered_yield(it);
}

static uint64_t parent;

static int note_parent(struct tdt_handle *handle, const struct tdt_task_info *info, void *arg)
{
	parent = info->parent;
	return 0;
}

TEST(a_running_fiber_is_the_parent_of_what_it_spawns)
{
	STARTED(it, NULL, .run = spawns);

	ck_assert_int_eq(tdt_task_inspect(it.arg, note_parent, NULL), 0);
	ck_assert_uint_eq(parent, tdt_handle_id(handle_of(&it)));
	tdt_handle_unref(it.arg);
}

/* Fibers that resume each other: the current one is always the last. */
static void resumes(struct fibered *it)
{
	struct fibered *next = it->arg;
	uint64_t id = tdt_handle_id(handle_of(it));

	if (next != NULL)
		fibered_resume(next);
	MUST(tdt_current_task_id() == id);
	fibered_yield(it);
	if (next != NULL)
		fibered_resume(next);
	MUST(tdt_current_task_id() == id);
}

TEST(fibers_that_run_inside_each_other_are_each_current_in_turn)
{
	struct fibered b = { .run = resumes }, a = { .run = resumes, .arg = &b };

	fibered_init(&a, NULL);
	fibered_init(&b, NULL);
	fibered_resume(&a);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	fibered_resume(&a);
	ck_assert(a.ended && b.ended);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	ck_assert_ptr_null(tdt_misused());
	fibered_fini(&a);
	fibered_fini(&b);
}

static void stays(struct fibered *it)
{
	gate_stay();
	USE(it);
}

static void *resume_on_thread(void *arg)
{
	fibered_resume(arg);
	return NULL;
}

/* Ask, when the fiber is at the gate. */
static struct tdt_trace *ask_at_gate(const struct fibered *it)
{
	return backtrace_timed(handle_of(it), 30 * SECOND);
}

static void expect_stays(const char *path)
{
	static const char stays_there[] = "fibered_entry stays gate_stay";

	if (SIGNALS_ARE_LATE)
		printf("# not tried: ThreadSanitizer delays signals: whether it is there\n");
	else
		ck_assert_msg(strncmp(path, stays_there, strlen(stays_there)) == 0, "%s", path);
}

CASE(outside, .skip = stuck_impossible)

TEST(a_running_fiber_is_read_where_it_runs, .to = 2)
{
	pthread_t thread;
	FIBER(it, NULL, .run = stays);

	gate_hold(&thread, _i, resume_on_thread, &it);
	TRACE(trace, ask_at_gate(&it));
	ck_assert_int_eq(tdt_trace_info(trace)->state, TDT_TASK_RUNNING);
	ck_assert_int_eq(gate_cut(trace), TDT_CUT_NOT);
	TEXT(path, stuck_path(trace));
	expect_stays(path);
	gate_release(thread);
	ck_assert(it.ended);
}

#define SMALL_STACK ((size_t)5120)
#define PAINT 0xa5

/* There is room for what the fiber does, and not for what the kernel writes before a handler. */
TEST(a_running_fiber_with_a_small_stack_is_sent_no_signal, .to = 2)
{
	struct tdt_stack entered = { 0 };
	char *low, *untouched;
	struct tdt_trace *trace;
	pthread_t thread;
	FIBER(it, NULL, .run = stays);

	low = it.stack + FIBERED_STACK - SMALL_STACK;
	tdt_fiber_end(it.fiber);
	it.fiber = _i == 0 ? tdt_fiber_new(low, SMALL_STACK, NULL) : tdt_fiber_new(NULL, 0, NULL);
	entered.low = low;
	entered.size = SMALL_STACK;
	tdt_stack_enter(_i == 1 ? &entered : NULL);
	tdt_stack_leave(_i == 1 ? &entered : NULL);
	gate_hold(&thread, true, resume_on_thread, &it);
	untouched = low + SMALL_STACK / 4;
	memset(it.stack, PAINT, (size_t)(untouched - it.stack));
	trace = backtrace_timed(handle_of(&it), 200000000);
	gate_release(thread);
	while (untouched > it.stack && (unsigned char)untouched[-1] == PAINT)
		untouched--;
	ck_assert_ptr_eq(untouched, it.stack);
	ck_assert_ptr_null(trace);
}

/* Resumes another fiber without having been suspended. */
static void resumes_one(struct fibered *it)
{
	fibered_resume(it->arg);
	USE(it);
}

TEST(a_fiber_whose_thread_is_on_the_stack_of_another_is_not_read, .to = 2)
{
	struct fibered b = { .run = stays }, a = { .run = resumes_one, .arg = &b };
	pthread_t thread;

	fibered_init(&a, NULL);
	fibered_init(&b, NULL);
	gate_hold(&thread, _i, resume_on_thread, &a);
	TRACE(trace, ask_at_gate(&b));
	SAYS(stuck_path(trace), "!resumes_one");
	ck_assert_ptr_fails(backtrace_timed(handle_of(&a), 100000000), ETIMEDOUT);
	if (!_i) /* on a busy machine the signal may come too late */
		expect_dump("on a stack that is not known as its own");
	gate_release(thread);
	fibered_fini(&a);
	fibered_fini(&b);
}

/* --- What it waits for ------------------------------------------------------------------ */

static void waits(struct fibered *it)
{
	tdt_leaf_waits_on_named(TDT_WAIT_IO, (void *)5, 0, "the door");
	fibered_yield(it);
	fibered_yield(it);
}

CASE(waiting)

TEST(a_suspended_fiber_says_what_it_waits_for)
{
	STARTED(it, NULL, .run = waits);
	struct tdt_trace *trace = tdt_backtrace(handle_of(&it));

	ck_assert_ptr_nonnull(trace);
	ck_assert_uint_eq(tdt_trace_info(trace)->n_waits, 1);
	ck_assert_int_eq(tdt_trace_info(trace)->waits[0]->kind, TDT_WAIT_IO);
	ck_assert_str_eq(tdt_trace_info(trace)->waits[0]->name, "the door");
	tdt_trace_free(trace);
	expect_dump("waits for descriptor 5 \"the door\"");
	fibered_resume(&it); /* the next time it does not say */
	trace = tdt_backtrace(handle_of(&it));
	ck_assert_ptr_nonnull(trace);
	ck_assert_uint_eq(tdt_trace_info(trace)->n_waits, 0);
	tdt_trace_free(trace);
}

TEST(a_fiber_that_was_woken_is_runnable_until_it_runs)
{
	STARTED(it, "a", .run = runs);

	tdt_task_woken(handle_of(&it));
	ck_assert_int_eq(state_of(handle_of(&it)), TDT_TASK_RUNNABLE);
	expect_trace(tdt_backtrace(handle_of(&it)), TDT_TASK_RUNNABLE, IN_OUTER);
	expect_dump("runnable");
	fibered_resume(&it);
	expect_path(&it, IN_OTHER);
}

static void waits_for(struct fibered *it)
{
	tdt_leaf_waits_on(TDT_WAIT_TASK, it->arg, tdt_handle_id(it->arg));
	fibered_yield(it);
}

/*
 * Without reports of wake-ups it is not known whether one of them is about to go on; with them it
 * is a deadlock.
 */
TEST(fibers_that_wait_for_each_other_are_a_deadlock_if_wake_ups_are_reported, .to = 2)
{
	struct fibered a = { .run = waits_for }, b = { .run = waits_for };

	fibered_init(&a, TDT_TASK_ATTR(.name = "a"));
	fibered_init(&b, TDT_TASK_ATTR(.name = "b"));
	a.arg = handle_of(&b);
	b.arg = handle_of(&a);
	for (int i = 0; i < 2 && _i; i++)
		tdt_task_woken(i ? a.arg : b.arg);
	fibered_resume(&a);
	fibered_resume(&b);
	expect_dump(_i ? "deadlock" : "ring of waits");
	tdt_task_woken(a.arg); /* it may be about to go on */
	TEXT(text, dump_text(NULL));
	ck_assert_msg(strstr(text, "deadlock") == NULL, "%s", text);
	fibered_fini(&a);
	fibered_fini(&b);
}

CASE(requests)

TEST(the_scheduler_itself_reads_its_suspended_fibers)
{
	struct fibered it = { .run = runs };

	tdt_worker_thread_start(NULL);
	start(&it, NULL);
	expect_path(&it, IN_OUTER); /* which would be EDEADLK for a future that it polls */
	expect_trace(backtrace_timed(handle_of(&it), 0), TDT_TASK_WAITING, IN_OUTER);
	fibered_fini(&it);
	tdt_worker_thread_stop();
}

static void reads_another(struct fibered *it)
{
	struct tdt_trace *trace = tdt_backtrace(it->arg);

	MUST(trace != NULL);
	TEXT(path, stuck_path(trace));
	MUST(strcmp(path, IN_OUTER) == 0);
	tdt_trace_free(trace);
}

TEST(a_fiber_reads_another_one)
{
	STARTED(other, NULL, .run = runs);
	struct fibered it = { .run = reads_another, .arg = handle_of(&other) };

	start(&it, NULL);
	ck_assert(it.ended);
	fibered_fini(&it);
}

static struct tdt_trace *answer;
static int answer_error;

static int wakes;

static void count_wake(const struct tdt_waker *waker)
{
	wakes++;
}

static const struct tdt_waker_vtable counting = { clone_itself, count_wake, count_wake,
						  ignore_waker };
static const struct tdt_waker counter = { &counting };
static struct tdt_context counting_cx = { &counter };

TEST(an_async_request_for_a_suspended_fiber_is_ready_at_once)
{
	STARTED(it, NULL, .run = runs);
	FUTURE(asks, tdt_backtrace_async(handle_of(&it), NULL, &answer, &answer_error));

	ck_assert_int_eq(tdt_future_poll(&asks, &counting_cx), TDT_READY);
	ck_assert_int_eq(answer_error, 0);
	expect_trace(answer, TDT_TASK_WAITING, IN_OUTER);
}

/* The answer is made in the suspend. */
static void asks_itself(struct fibered *it)
{
	struct tdt_future *asks = it->arg;

	*asks = tdt_backtrace_async(handle_of(it), NULL, &answer, &answer_error);
	MUST(tdt_future_poll(asks, &counting_cx) == TDT_PENDING);
	wakes = 0;
	inner(it);
	USE(it);
}

TEST(a_running_fiber_answers_when_it_is_suspended)
{
	struct tdt_future asks;
	STARTED(it, NULL, .run = asks_itself, .arg = &asks);

	ck_assert_int_eq(wakes, 1);
	fibered_resume(&it); /* it goes on and ends, and the answer stays what it was */
	ck_assert_int_eq(tdt_future_poll(&asks, &counting_cx), TDT_READY);
	expect_trace(answer, TDT_TASK_WAITING, "fibered_entry asks_itself inner fibered_yield");
	tdt_future_drop(&asks);
}

static void asks_and_ends(struct fibered *it)
{
	struct tdt_future *asks = it->arg;

	*asks = tdt_backtrace_async(handle_of(it), NULL, &answer, &answer_error);
	MUST(tdt_future_poll(asks, &counting_cx) == TDT_PENDING);
}

TEST(a_request_for_a_fiber_that_ends_fails)
{
	struct tdt_future asks;
	STARTED(it, NULL, .run = asks_and_ends, .arg = &asks);

	ck_assert_int_eq(tdt_future_poll(&asks, &counting_cx), TDT_READY);
	ck_assert_ptr_null(answer);
	ck_assert_int_eq(answer_error, -ESRCH);
	tdt_future_drop(&asks);
}

/* What a join of the fiber's task says. */
static int outcome_of(struct tdt_handle *handle)
{
	int outcome = 1;
	struct tdt_future joins = tdt_join(handle, &outcome);

	ck_assert_int_eq(tdt_future_poll(&joins, &counting_cx), TDT_READY);
	tdt_future_drop(&joins);
	return outcome;
}

CASE(end)

TEST(a_fiber_that_ends_while_it_runs_is_ready)
{
	STARTED(it, NULL, .run = runs);
	HANDLE(handle, tdt_handle_ref(handle_of(&it)));

	fibered_resume(&it);
	fibered_resume(&it);
	ck_assert_int_eq(outcome_of(handle), 0);
}

TEST(a_fiber_that_is_destroyed_while_suspended_was_dropped)
{
	struct fibered it = { .run = runs };
	struct tdt_handle *handle;

	start(&it, NULL);
	handle = tdt_handle_ref(handle_of(&it));
	fibered_fini(&it);
	ck_assert_int_eq(outcome_of(handle), -ECANCELED);
	tdt_handle_unref(handle);
	expect_dump("no tasks");
}

TEST(a_fiber_may_end_after_its_last_switch)
{
	struct fibered it = { .run = runs, .mute_end = true };

	start(&it, NULL);
	fibered_resume(&it);
	fibered_resume(&it);
	ck_assert(it.ended);
	ck_assert_uint_eq(tdt_current_task_id(), tdt_handle_id(handle_of(&it)));
	fibered_fini(&it);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	expect_dump("no tasks");
}

static void *fini_on_thread(void *arg)
{
	fibered_fini(arg);
	return NULL;
}

TEST(a_fiber_that_still_ran_here_may_be_destroyed_on_another_thread)
{
	struct fibered it = { .run = runs, .mute_end = true }, next = { .run = runs };

	start(&it, NULL);
	fibered_resume(&it);
	fibered_resume(&it);
	run_on_thread(fini_on_thread, &it);
	start(&next, NULL); /* forgets it */
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	expect_path(&next, IN_OUTER);
	fibered_fini(&next);
	expect_dump("no tasks");
	expect_misuse(TDT_MISUSE_FIBER_END);
}

/* --- What a library may do wrong ------------------------------------------------------------ */

static void resumed_twice(struct fibered *it)
{
	tdt_fiber_resume(it->fiber);
	MUST(tdt_current_task_id() == tdt_handle_id(handle_of(it)));
	outer(it);
	USE(it);
}

CASE(wrong)

TEST(a_second_resume_changes_nothing)
{
	struct fibered it = { .run = resumed_twice };

	start(&it, NULL);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	expect_path(&it, "fibered_entry resumed_twice outer inner fibered_yield");
	fibered_resume(&it);
	ck_assert(it.ended);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	fibered_fini(&it);
	expect_misuse(TDT_MISUSE_FIBER_RESUME);
}

static NOINLINE void suspends_twice(struct fibered *it)
{
	tdt_fiber_suspend(it->fiber);
	fibered_yield(it);
	USE(it);
}

TEST(a_second_suspend_counts)
{
	struct fibered it = { .run = suspends_twice };

	start(&it, NULL);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	expect_path(&it, "fibered_entry suspends_twice fibered_yield");
	fibered_fini(&it);
	expect_misuse(TDT_MISUSE_FIBER_SUSPEND);
}

TEST(a_suspend_on_another_stack_shows_no_frames)
{
	struct fibered it = { .run = fibered_switch_away };

	start(&it, NULL); /* it runs still, as far as it was reported */
	tdt_fiber_suspend(it.fiber);
	ck_assert_ptr_fails(tdt_backtrace(handle_of(&it)), ENOTSUP);
	expect_dump("1 without a tree");
	fibered_fini(&it);
	expect_misuse(TDT_MISUSE_FIBER_SUSPEND);
}

TEST(a_fiber_that_was_not_suspended_may_go_on_on_another_thread)
{
	struct fibered it = { .run = fibered_switch_away }, next = { .run = runs };

	start(&it, NULL);
	ck_assert_uint_eq(tdt_current_task_id(), tdt_handle_id(handle_of(&it)));
	tdt_fiber_resume(it.fiber); /* and here, where it is linked already */
	run_on_thread(resume_on_thread, &it);
	ck_assert(it.ended);
	start(&next, NULL);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	fibered_fini(&next);
	fibered_fini(&it);
	expect_dump("no tasks");
	expect_misuse(TDT_MISUSE_FIBER_RESUME);
}

TEST(a_stack_that_cannot_be_read_gives_the_record_only, .skip = reading_refused)
{
	STARTED(it, "gone", .run = runs);

	mprotect(it.stack, FIBERED_STACK, PROT_NONE);
	ck_assert_ptr_fails(tdt_backtrace(handle_of(&it)), EFAULT);
	expect_dump("did not answer");
	expect_dump("1 without a tree");
}

CASE(bounds)

TEST(bounds_that_cannot_be_are_refused)
{
	static char byte;

	ck_assert_ptr_fails(tdt_fiber_new(&byte, 0, NULL), EINVAL);
	ck_assert_ptr_fails(tdt_fiber_new(NULL, 1, NULL), EINVAL);
	ck_assert_ptr_fails(tdt_fiber_new(&byte, SIZE_MAX, NULL), EINVAL);
	ck_assert_ptr_fails(tdt_fiber_new(NULL, 0, &(struct tdt_task_attr){ .size = 0 }), EINVAL);
	expect_dump("no tasks");
}

TEST(without_a_base_the_tree_is_cut_at_the_end_of_the_stack)
{
	STARTED(it, NULL, .run = runs, .mute_base = true);
	TRACE(trace, tdt_backtrace(handle_of(&it)));

	ck_assert_int_ne(gate_cut(trace), TDT_CUT_NOT);
	TEXT(path, stuck_path(trace));
	ck_assert_msg(strstr(path, IN_OUTER) != NULL, "%s", path);
}

/* A fiber whose library does not say where its stack lies. */
static void init_boundless(struct fibered *it)
{
	fibered_init(it, NULL);
	tdt_fiber_end(it->fiber);
	it->fiber = tdt_fiber_new(NULL, 0, NULL);
	ck_assert_ptr_nonnull(it->fiber);
}

TEST(without_bounds_a_suspended_fiber_shows_the_same)
{
	struct fibered it = { .run = runs };

	init_boundless(&it);
	fibered_resume(&it);
	expect_path(&it, IN_OUTER);
	fibered_fini(&it);
}

CASE(outside)

TEST(without_bounds_a_running_fiber_is_read_if_its_stack_can_be_followed)
{
	struct fibered it = { .run = stays };
	pthread_t thread;
	char *path;

	init_boundless(&it);
	gate_hold(&thread, true, resume_on_thread, &it);
	TRACE(trace, ask_at_gate(&it));
	if (SIGNALS_ARE_LATE) {
		printf("# not tried: ThreadSanitizer delays signals: a stack without bounds\n");
	} else {
		ck_assert_ptr_nonnull(trace);
		path = stuck_path(trace);
		expect_stays(path);
		free(path);
	}
	gate_release(thread);
	fibered_fini(&it);
}

/* A future that runs on a coroutine, and is ready when that has ended. */
static tdt_poll_t coroutine_poll(void *state, struct tdt_context *cx)
{
	struct fibered *it = state;

	tdt_waker_drop(tdt_waker_clone(cx->waker));
	fibered_resume(it);
	TDT_KEEP_FRAME();
	return it->ended ? TDT_READY : TDT_PENDING;
}

static struct tdt_traced trace_coroutine(struct fibered *it)
{
	struct tdt_traced traced =
		tdt_traced(((struct tdt_future){ it, coroutine_poll, drop_nothing }));

	ck_assert_ptr_nonnull(traced.handle);
	fibered_init_of(it, traced.handle);
	return traced;
}

CASE(futures)

TEST(a_future_on_a_fiber_is_one_task_and_shows_its_stack_if_no_poll_answers)
{
	struct fibered it = { .run = runs };
	struct tdt_traced traced = trace_coroutine(&it);

	ck_assert_int_eq(tdt_future_poll(&traced.future, &counting_cx), TDT_PENDING);
	ck_assert_ptr_eq(handle_of(&it), traced.handle);
	/* Nobody polls it: the waker of this runtime only counts. */
	expect_trace(backtrace_timed(traced.handle, 50000000), TDT_TASK_WAITING, IN_OUTER);
	tdt_worker_thread_start(NULL); /* and here the poll could not come */
	expect_path(&it, IN_OUTER);
	tdt_worker_thread_stop();
	expect_dump("1 task: 1 answered");
	ck_assert_int_eq(tdt_future_poll(&traced.future, &counting_cx), TDT_PENDING);
	expect_trace(backtrace_timed(traced.handle, 50000000), TDT_TASK_WAITING, IN_OTHER);
	ck_assert_int_eq(tdt_future_poll(&traced.future, &counting_cx), TDT_READY);
	ck_assert(it.ended);
	end_traced(&traced);
	fibered_fini(&it);
}

TEST(a_poll_that_answers_is_preferred)
{
	struct fibered it = { .run = runs };
	struct tdt_traced traced = trace_coroutine(&it);
	struct tdt_future asks;

	ck_assert_int_eq(tdt_future_poll(&traced.future, &counting_cx), TDT_PENDING);
	asks = tdt_backtrace_async(traced.handle, NULL, &answer, &answer_error);
	ck_assert_int_eq(tdt_future_poll(&asks, &counting_cx), TDT_PENDING);
	ck_assert_int_eq(tdt_future_poll(&traced.future, &counting_cx), TDT_PENDING);
	ck_assert_int_eq(tdt_future_poll(&asks, &counting_cx), TDT_READY);
	ck_assert_ptr_nonnull(answer);
	TEXT(path, stuck_path(answer));
	ck_assert_msg(strncmp(path, "coroutine_poll", 14) == 0, "%s", path);
	tdt_trace_free(answer);
	tdt_future_drop(&asks);
	end_traced(&traced);
	fibered_fini(&it);
}

TEST(a_stack_that_has_ended_is_not_shown_for_its_future)
{
	struct fibered it = { .run = runs };
	TRACED(traced, trace_coroutine(&it));

	ck_assert_int_eq(tdt_future_poll(&traced.future, &counting_cx), TDT_PENDING);
	fibered_fini(&it);
	ck_assert_ptr_fails(backtrace_timed(traced.handle, 1000000), ETIMEDOUT);
	ck_assert_ptr_null(tdt_fiber_of(NULL, NULL, 0));
}

TEST(a_fiber_is_no_future_to_describe)
{
	FIBER(it, NULL, .run = runs);

	ck_assert_ptr_fails(tdt_fiber_of(handle_of(&it), NULL, 0), EINVAL);
}

static NOINLINE tdt_poll_t leaf_poll(void *state, struct tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

/* Polls a traced future as a block_on() would, and waits for it by yielding. */
static NOINLINE void blocks_on(struct fibered *it)
{
	struct tdt_traced *traced = it->arg;
	uint64_t id = tdt_current_task_id();

	*traced = tdt_traced(((struct tdt_future){ NULL, leaf_poll, drop_nothing }));
	MUST(tdt_future_poll(&traced->future, &counting_cx) == TDT_PENDING);
	MUST(tdt_current_task_id() == id);
	fibered_yield(it);
	MUST(tdt_future_poll(&traced->future, &counting_cx) == TDT_PENDING);
	fibered_yield(it);
	USE(it);
}

TEST(a_future_polled_in_a_fiber_ends_its_tree_as_ever)
{
	struct tdt_traced traced;
	struct tdt_future asks;
	STARTED(it, NULL, .run = blocks_on, .arg = &traced);

	expect_path(&it, "fibered_entry blocks_on fibered_yield");
	asks = tdt_backtrace_async(traced.handle, NULL, &answer, &answer_error);
	ck_assert_int_eq(tdt_future_poll(&asks, &counting_cx), TDT_PENDING);
	fibered_resume(&it);
	ck_assert_int_eq(tdt_future_poll(&asks, &counting_cx), TDT_READY);
	expect_trace(answer, TDT_TASK_WAITING, "leaf_poll +tdt_waker_clone");
	tdt_future_drop(&asks);
	end_traced(&traced);
}

/* A poll in the middle of which the library switches away. */
static NOINLINE tdt_poll_t yielding_poll(void *state, struct tdt_context *cx)
{
	uint64_t id = tdt_current_task_id();

	fibered_yield(state);
	MUST(tdt_current_task_id() == id);
	return TDT_READY;
}

static void polls_and_yields_inside(struct fibered *it)
{
	TRACED(traced, tdt_traced(((struct tdt_future){ it, yielding_poll, drop_nothing })));

	MUST(tdt_future_poll(&traced.future, &counting_cx) == TDT_READY);
	MUST(tdt_current_task_id() == tdt_handle_id(handle_of(it)));
}

TEST(a_poll_in_which_its_fiber_yields_goes_with_the_fiber)
{
	struct fibered a = { .run = polls_and_yields_inside }, b = a;

	start(&a, NULL);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	start(&b, NULL);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	run_on_thread(resume_on_thread, &a);
	fibered_resume(&b);
	ck_assert(a.ended && b.ended);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	fibered_fini(&a);
	fibered_fini(&b);
	expect_dump("no tasks");
	ck_assert_ptr_null(tdt_misused());
}

/* --- The library's own coroutines ---------------------------------------------------------- */

/* Waits `*arg` times, and then once more somewhere else. */
static tdt_poll_t wait_often(void *state, struct tdt_context *cx)
{
	int *times = state;

	tdt_waker_drop(tdt_waker_clone(cx->waker));
	return (*times)-- > 0 ? TDT_PENDING : TDT_READY;
}

static NOINLINE int waits_first(void *arg)
{
	int error = tdt_co_await((struct tdt_future){ arg, wait_often, drop_nothing });

	USE(arg);
	return error;
}

static int waits_inside(void *arg)
{
	int error = waits_first(arg);

	USE(arg);
	return error;
}

static int awaits_another(void *arg)
{
	int error = tdt_co_await(tdt_coroutine(waits_inside, arg, NULL));

	USE(arg);
	return error;
}

static struct tdt_traced trace_own(tdt_coroutine_fn *fn, int *times)
{
	struct tdt_traced traced = tdt_traced(tdt_coroutine(fn, times, NULL));

	ck_assert_ptr_nonnull(traced.handle);
	return traced;
}

/* Whether the suspended stack of the task, which nobody polls, shows `function`. */
static void expect_standing(struct tdt_handle *handle, const char *function)
{
	TRACE(trace, backtrace_timed(handle, 1000000));
	TEXT(path, stuck_path(trace));

	ck_assert_msg(strstr(path, function) != NULL, "no %s in: %s", function, path);
	ck_assert_int_eq(gate_cut(trace), TDT_CUT_NOT);
}

CASE(own)

TEST(a_coroutine_shows_where_it_waits_if_no_poll_answers, .to = 2)
{
	int times = 2;
	TRACED(traced, trace_own(_i ? awaits_another : waits_inside, &times));

	ck_assert_ptr_null(backtrace_timed(traced.handle, 0));
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(tdt_future_poll(&traced.future, &counting_cx), TDT_PENDING);
		expect_standing(traced.handle, "waits_inside waits_first");
	}
	ck_assert_int_eq(tdt_future_poll(&traced.future, &counting_cx), TDT_READY);
	ck_assert_ptr_fails(backtrace_timed(traced.handle, 0), ESRCH);
}

/* A task that hands its coroutine on to another one. */
static tdt_poll_t poll_it(void *state, struct tdt_context *cx)
{
	struct tdt_future *future = state;

	if (!tdt_future_is_none(future))
		tdt_future_poll(future, cx);
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

TEST(a_coroutine_that_goes_to_another_task_is_shown_there_alone)
{
	int times = 10;
	struct tdt_future co = tdt_coroutine(waits_inside, &times, NULL), here = co, there = co;
	TRACED(first, tdt_traced(((struct tdt_future){ &here, poll_it, drop_nothing })));
	TRACED(next, tdt_traced(((struct tdt_future){ &there, poll_it, drop_nothing })));

	tdt_future_poll(&first.future, &counting_cx);
	expect_standing(first.handle, "waits_inside waits_first");
	here = TDT_FUTURE_NONE;
	tdt_future_poll(&next.future, &counting_cx);
	expect_standing(next.handle, "waits_inside waits_first");
	ck_assert_ptr_null(backtrace_timed(first.handle, 0));
	tdt_future_poll(&co, &counting_cx); /* and to none */
	ck_assert_ptr_null(backtrace_timed(next.handle, 0));
	tdt_future_poll(&next.future, &counting_cx);
	expect_standing(next.handle, "waits_inside waits_first");
	tdt_future_drop(&co);
	ck_assert_ptr_null(backtrace_timed(next.handle, 0));
}

static void polls_a_coroutine(struct fibered *it)
{
	MUST(tdt_future_poll(it->arg, &counting_cx) == TDT_PENDING);
	fibered_yield(it);
	USE(it);
}

TEST(a_coroutine_polled_in_a_fiber_leaves_the_fiber_as_it_is)
{
	int times = 10;
	struct tdt_future co = tdt_coroutine(waits_inside, &times, NULL);
	STARTED(it, NULL, .run = polls_a_coroutine, .arg = &co);

	expect_path(&it, "fibered_entry polls_a_coroutine fibered_yield");
	tdt_future_drop(&co);
	expect_path(&it, "fibered_entry polls_a_coroutine fibered_yield");
}

CASE(process)

TEST(a_fiber_goes_on_on_another_thread)
{
	STARTED(it, NULL, .run = runs);

	run_on_thread(resume_on_thread, &it);
	expect_path(&it, IN_OTHER);
	run_on_thread(resume_on_thread, &it);
	ck_assert(it.ended);
	ck_assert_ptr_null(tdt_misused());
}

TEST(a_suspended_fiber_is_read_in_a_child_of_fork, .skip = no_threads_in_children)
{
	struct fibered it = { .run = runs };
	int status;
	pid_t child;

	fibered_init(&it, NULL);
	run_on_thread(resume_on_thread, &it); /* a thread that the child does not have */
	child = fork();
	ck_assert_int_ne(child, -1);
	if (child == 0) {
		struct tdt_trace *trace;
		char *path;

		alarm(TSAN ? 20 : 0);
		trace = tdt_backtrace(handle_of(&it));
		MUST(trace != NULL);
		path = stuck_path(trace);
		MUST(strcmp(path, IN_OUTER) == 0);
		free(path);
		tdt_trace_free(trace);
		fibered_resume(&it);
		fibered_resume(&it);
		MUST(it.ended);
		fibered_fini(&it);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(status == 0 || tsan_hung(status));
	fibered_fini(&it);
}

TEST(a_fiber_that_ran_elsewhere_at_a_fork_is_said_to_run_in_the_child,
     .skip = no_threads_in_children)
{
	pthread_t thread;
	int status;
	pid_t child;
	FIBER(it, NULL, .run = stays);

	gate_hold(&thread, false, resume_on_thread, &it);
	child = fork();
	ck_assert_int_ne(child, -1);
	if (child == 0) {
		char *text;

		alarm(TSAN ? 20 : 0);
		text = dump_text(NULL);
		MUST(strstr(text, "running") != NULL);
		MUST(strstr(text, "no stack could be read") != NULL);
		free(text);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(status == 0 || tsan_hung(status));
	gate_release(thread);
}

TEST(a_fiber_takes_no_room_for_a_last_tree)
{
	struct fibered it = { .run = runs };

	ck_assert_int_eq(tdt_watch(1000000, NULL), 0);
	start(&it, NULL);
	usleep(20000);
	fibered_resume(&it);
	ck_assert_ptr_null(tdt_backtrace_last(handle_of(&it)));
	ck_assert_uint_eq(tdt__last_tree_promises(), 0);
	expect_path(&it, IN_OTHER);
	ck_assert_int_eq(tdt_watch(0, NULL), 0);
	fibered_fini(&it);
}

CASE(memory)

TEST(without_memory_no_fiber_is_made)
{
	struct tdt_fiber *fiber;

	NEEDS_FAILING_MEMORY();
	for (int first = 0; first < 2; first++) {
		no_memory_begin(first); /* the chunk of fibers; that of records */
		fiber = tdt_fiber_new(NULL, 0, NULL);
		no_memory_end();
		ck_assert_ptr_null(fiber);
		ck_assert_int_eq(errno, ENOMEM);
	}
	expect_dump("no tasks");
	fiber = tdt_fiber_new(NULL, 0, NULL);
	ck_assert_ptr_nonnull(fiber);
	tdt_fiber_end(fiber);
}

static int read_it(void *arg)
{
	struct tdt_trace *trace = tdt_backtrace(arg);

	if (trace == NULL)
		return -errno;
	tdt_trace_free(trace);
	return 0;
}

TEST(without_memory_a_fiber_is_not_read)
{
	STARTED(it, NULL, .run = runs);

	expect_path(&it, IN_OUTER);
	no_memory_each(read_it, handle_of(&it), 3);
}

/* --- How much of its stack ------------------------------------------------------------ */

static NOINLINE void yields_after_a_while(struct fibered *it)
{
	for (;;) {
		fibered_switch_away(it); /* the library takes it for running */
		fibered_yield(it);
	}
}

static unsigned char *paint(struct fibered *it)
{
	unsigned char *sp = (unsigned char *)tdt__context_registers(&it->inside).sp;

	/* What the switch has left lies in between. */
	memset(it->stack, PAINT,
	       (size_t)((unsigned char *)it->inside.sp - (unsigned char *)it->stack));
	return sp;
}

/* How many bytes below `sp` were written to since paint(). */
static size_t deepest(const struct fibered *it, const unsigned char *sp)
{
	const unsigned char *low = (const unsigned char *)it->stack;

	while (*low == PAINT)
		low++;
	return (size_t)(sp - low);
}

/* Suspend the fiber, which answers a request then if there is one.  How deep does it get? */
static size_t suspend_painted(struct fibered *it, bool requested)
{
	struct tdt_future request = TDT_FUTURE_NONE;
	struct tdt_trace *trace = NULL;
	struct test_waker waker;
	struct tdt_context cx = { &waker.waker };
	unsigned char *sp;
	size_t depth;

	test_waker_init(&waker);
	fibered_resume(it);
	if (requested) {
		request = tdt_backtrace_async(handle_of(it), NULL, &trace, NULL);
		ck_assert_int_eq(tdt_future_poll(&request, &cx), TDT_PENDING);
	}
	sp = paint(it);
	fibered_resume(it);
	depth = deepest(it, sp);
	if (requested) {
		ck_assert_int_eq(tdt_future_poll(&request, &cx), TDT_READY);
		expect_trace(trace, TDT_TASK_WAITING, "fibered_entry yields_after_a_while "
						      "fibered_yield");
	}
	tdt_future_drop(&request);
	return depth;
}

static const char *larger_frames(void)
{
	if (in_valgrind())
		return "under valgrind nobody may write below the stack pointer";
#if defined(__OPTIMIZE__)
	return SANITIZED ? "sanitizers make frames larger" : NULL;
#else
	return "frames are larger without optimization";
#endif
}

CASE(small, .skip = larger_frames)

TEST(a_suspend_needs_little_of_the_stack, .to = 3)
{
	/* A poll is long as soon as another program takes its CPU: none may be. */
	const struct tdt_recorder_options options = { .size = sizeof options,
						      .long_poll_ns = UINT64_MAX };
	struct fibered it = { .run = yields_after_a_while };
	size_t without, first, later;
#if defined(__x86_64__)
	const size_t most = 1024;
#else
	const size_t most = 1280;
#endif

	if (_i == 1)
		ck_assert_int_eq(tdt_watch(1000000, NULL), 0);
	if (_i == 2)
		ck_assert_int_eq(tdt_recorder_start(&options), 0);
	start(&it, "small");
	fibered_resume(&it);
	without = suspend_painted(&it, false);
	first = suspend_painted(&it, true); /* of code that was not seen before */
	later = suspend_painted(&it, true);
	printf("# a suspend needs %zu bytes; %zu with a request, %zu with another one\n", without,
	       first, later);
	/* As tdt/integrate/fiber.h says; more if a poll was long. */
	ck_assert_uint_le(without, most);
	ck_assert_uint_le(first, most);
	ck_assert_uint_le(later, most);
	fibered_fini(&it);
}
