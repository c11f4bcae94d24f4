// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/wrapper, task/hooked, capture/capture, probes/probes, recorder/record.  The suite
 * counts what is on the hot paths, instruction by instruction (stepped.h): no lock, no allocation,
 * no fence, no clock, no look-up of symbols, no system call.  It prints how many instructions there
 * are.
 */

#include <config.h>

#include <link.h>
#include <sys/syscall.h>

#include <tdt/integrate/fiber.h>
#include <tdt/integrate/hooks.h>
#include <tdt/integrate/leaf.h>
#include <tdt/rt/runtime.h>

#include "lib/rt.h"
#include "lib/stepped.h"
#include "lib/test.h"
#include "host/thread.h"
#include "probes/probes.h"
#include "registry/handle.h"
#include "task/wrapper.h"
#include "watch/watch.h"

/* --- Tasks, polled on this thread, also when they are woken ----------------------------------- */

static struct tdt_future polled;
static bool polling;

static void poll_polled(const struct tdt_waker *waker)
{
	struct tdt_context cx = { waker };

	if (polling)
		return;
	polling = true;
	MUST(tdt_future_poll(&polled, &cx) == TDT_PENDING);
	polling = false;
}

static const struct tdt_waker_vtable vtable = { clone_itself, poll_polled, poll_polled,
						ignore_waker };
static const struct tdt_waker waker = { &vtable };

static struct tdt_future future_of(tdt_poll_t (*poll)(void *state, struct tdt_context *cx))
{
	return (struct tdt_future){ NULL, poll, drop_nothing };
}

static struct tdt_future traced(struct tdt_future future)
{
	struct tdt_traced traced = tdt_traced(future);

	MUST(traced.handle != NULL);
	return traced.future;
}

static struct tdt_future forever(void)
{
	return future_of(stay_pending);
}

/* Poll it some times, so that all is known that will be, then once from mark to mark. */
static void mark_poll(struct tdt_future future)
{
	polled = future;
	for (int i = 0; i < 3; i++)
		poll_polled(&waker);
	steps_allow();
	STEPS_MARK();
	poll_polled(&waker);
	STEPS_MARK();
}

static void expect_nothing(const struct steps *steps)
{
	ck_assert_int_gt(steps->instructions, 0);
	ck_assert_int_eq(steps->locked, 0);
	ck_assert_int_eq(steps->fences, 0);
	ck_assert_int_eq(steps->system_calls, 0);
	ck_assert_int_eq(steps->clocks, 0);
	ck_assert_int_eq(steps->allocations, 0);
	ck_assert_int_eq(steps->locks, 0);
	ck_assert_int_eq(steps->look_ups, 0);
	ck_assert_int_eq(steps->searches, 0);
}

/* --- What is counted -------------------------------------------------------------------------- */

static atomic_int counter;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static tdt_poll_t allocate_poll(void *state, struct tdt_context *cx)
{
	void *volatile memory = malloc(100);

	free(memory);
	return TDT_PENDING;
}

static tdt_poll_t add_poll(void *state, struct tdt_context *cx)
{
	atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);
	return TDT_PENDING;
}

static tdt_poll_t exchange_poll(void *state, struct tdt_context *cx)
{
	/* What was there is wanted, or a compiler may make a plain store of it. */
	return atomic_exchange_explicit(&counter, 1, memory_order_relaxed) < 0 ? TDT_READY
									       : TDT_PENDING;
}

static tdt_poll_t fence_poll(void *state, struct tdt_context *cx)
{
#if defined(__x86_64__)
	__asm__ volatile("mfence\n\tlfence\n\tsfence" ::: "memory");
#endif
	return TDT_PENDING;
}

static tdt_poll_t call_poll(void *state, struct tdt_context *cx)
{
	syscall(SYS_getppid);
	return TDT_PENDING;
}

static tdt_poll_t clock_poll(void *state, struct tdt_context *cx)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
	return TDT_PENDING;
}

static tdt_poll_t counter_poll(void *state, struct tdt_context *cx)
{
#if defined(__x86_64__)
	__builtin_ia32_rdtsc();
#endif
	return TDT_PENDING;
}

static tdt_poll_t lock_poll(void *state, struct tdt_context *cx)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return TDT_PENDING;
}

static int first_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	return 1;
}

static tdt_poll_t look_up_poll(void *state, struct tdt_context *cx)
{
	dl_iterate_phdr(first_module, NULL);
	return TDT_PENDING;
}

static tdt_poll_t search_poll(void *state, struct tdt_context *cx)
{
	const char *volatile text = "some text";

	MUST(strchr(text, 'x') != NULL);
	return TDT_PENDING;
}

static void count_wait(void)
{
	mark_poll(future_of(stay_pending));
}

#define CONTROL(name)                                                                              \
	static void count_##name(void)                                                             \
	{                                                                                          \
		mark_poll(future_of(name##_poll));                                                 \
	}
CONTROL(allocate)
CONTROL(add)
CONTROL(exchange)
CONTROL(fence)
CONTROL(call)
CONTROL(clock)
CONTROL(counter)
CONTROL(lock)
CONTROL(look_up)
CONTROL(search)

static struct steps count(void (*run)(void))
{
	return steps_count(run, NULL);
}

SUITE_SKIP(steps_impossible())

CASE(paths)

TEST(what_a_hot_path_must_not_do_is_counted)
{
	struct steps steps = count(count_wait);

	steps_print("a bare poll", &steps);
	expect_nothing(&steps);
	ck_assert_int_lt(steps.instructions, 100);
	ck_assert_int_eq(count(count_allocate).allocations, 2);
	ck_assert_int_eq(count(count_add).locked, 1);
	ck_assert_int_eq(count(count_exchange).locked, 1);
	ck_assert_int_eq(count(count_fence).fences, 3);
	ck_assert_int_eq(count(count_call).system_calls, 1);
	ck_assert_int_eq(count(count_clock).clocks, 1);
	ck_assert_int_eq(count(count_counter).clocks, 1);
	ck_assert_int_eq(count(count_lock).locks, 2);
	ck_assert_int_eq(count(count_look_up).look_ups, 1);
	ck_assert_int_eq(count(count_search).searches, 1);
}

/* --- A task without a request --------------------------------------------------------------- */

struct await {
	struct tdt_async async;
};

static tdt_poll_t await_poll(void *state, struct tdt_context *cx)
{
	struct await *it = state;

	TDT_BEGIN(&it->async, cx);
	TDT_AWAIT(forever());
	TDT_END();
}

static struct tdt_future await(void)
{
	return TDT_ASYNC_NEW(await_poll, (struct await){ 0 });
}

static struct tdt_future joined(void)
{
	struct tdt_future all[] = { forever(), await(), traced(forever()) };

	return tdt_join_all(all, 3);
}

static struct tdt_future selected(void)
{
	struct tdt_future some[] = { joined(), traced(await()) };

	return tdt_select(some, 2, NULL);
}

static void poll_told_the_time(struct tdt_future future)
{
	tdt_worker_now(1);
	mark_poll(future);
}

static void poll_plain(void)
{
	poll_told_the_time(traced(forever()));
}

static void poll_nested(void)
{
	poll_told_the_time(traced(traced(forever())));
}

static void poll_async(void)
{
	poll_told_the_time(traced(await()));
}

static void poll_joined(void)
{
	poll_told_the_time(traced(joined()));
}

static void poll_selected(void)
{
	poll_told_the_time(traced(selected()));
}

/* A resume and a suspend of a fiber. */
static void run_fiber(void)
{
	struct tdt_fiber *fiber = tdt_fiber_new(NULL, 0, NULL);

	MUST(fiber != NULL);
	tdt_worker_now(1);
	for (int i = 0; i < 3; i++) {
		if (i == 2) {
			steps_allow();
			STEPS_MARK();
		}
		tdt_fiber_resume(fiber);
		tdt_fiber_suspend(fiber);
	}
	STEPS_MARK();
}

/* Callbacks of a task of tdt_task_new(), which waits at `leaf` again. */
static void run_callbacks(struct tdt_leaf *leaf)
{
	struct tdt_handle *task = tdt_task_new(NULL);

	MUST(task != NULL);
	for (int i = 0; i < 3; i++) {
		if (i == 2) {
			steps_allow();
			STEPS_MARK();
		}
		tdt_task_enter(task);
		if (leaf != NULL)
			tdt_leaf_at(task, leaf);
		tdt_task_leave(task);
	}
	STEPS_MARK();
}

static void run_callback(void)
{
	static const struct tdt_leaf_frame frame = { "wait", NULL, 0, 0 };
	static struct tdt_leaf leaf = { .kind = TDT_LEAF_NAMED, .n = 1, .frames = &frame };

	tdt_worker_now(1);
	run_callbacks(&leaf);
}

static void enter_and_leave(void)
{
	tdt_worker_now(1);
	run_callbacks(NULL);
}

static void enter_untold(void)
{
	run_callbacks(NULL);
}

/* A task that nobody traces, by the reports of its runtime. */
static const struct tdt_task_attr reported = { .size = sizeof reported, .id = 1 << 20 };

static void report_polls(void)
{
	tdt_hook_spawn(&reported);
	for (int i = 0; i < 3; i++) {
		if (i == 2) {
			steps_allow();
			STEPS_MARK();
		}
		tdt_hook_poll_start_at(&reported, (uintptr_t)__builtin_frame_address(0));
		tdt_hook_poll_end(&reported);
	}
	STEPS_MARK();
}

static void report_polls_and_the_time(void)
{
	tdt_worker_now(1);
	report_polls();
}

/* The first lives make memory, and find what a thread keeps for itself. */
static void report_lives(void)
{
	struct tdt_task_attr attr = reported;

	tdt_worker_now(1);
	for (attr.id = 1; attr.id <= 3; attr.id++) {
		if (attr.id == 3) {
			steps_allow();
			STEPS_MARK();
		}
		tdt_hook_spawn(&attr);
		tdt_hook_poll_start_at(&attr, (uintptr_t)__builtin_frame_address(0));
		tdt_hook_terminate(&attr);
		tdt_hook_poll_end(&attr);
	}
	STEPS_MARK();
}

TEST(a_poll_nobody_asks_about_does_nothing_that_takes_long)
{
	static const struct {
		const char *what;
		void (*run)(void);
	} polls[] = {
		{ "a traced poll", poll_plain },
		{ "one in another", poll_nested },
		{ "of an async function", poll_async },
		{ "of a join", poll_joined },
		{ "of a select", poll_selected },
		{ "a fiber resumed and suspended", run_fiber },
		{ "a callback task entered and left", enter_and_leave },
		{ "one that says where it waits, too", run_callback },
		{ "a poll that its runtime reports", report_polls_and_the_time },
	};

	for (size_t i = 0; i < sizeof polls / sizeof polls[0]; i++) {
		struct steps steps = count(polls[i].run);

		steps_print(polls[i].what, &steps);
		expect_nothing(&steps);
	}
}

static void poll_untold(void)
{
	mark_poll(traced(forever()));
}

TEST(without_a_runtime_that_tells_the_time_it_reads_the_coarse_clock_and_no_more)
{
	static const struct {
		const char *what;
		void (*run)(void);
	} runs[] = {
		{ "a traced poll that reads the coarse clock", poll_untold },
		{ "a callback task entered and left, with that clock", enter_untold },
		{ "a poll that its runtime reports, with that clock", report_polls },
	};

	for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
		struct steps steps = count(runs[i].run);

		steps_print(runs[i].what, &steps);
		ck_assert_int_eq(steps.clocks, 1);
		steps.clocks = 0;
		expect_nothing(&steps);
	}
}

/* The table gets the task and loses it, and the last reference is given back. */
TEST(the_life_of_a_task_that_its_runtime_reports_takes_three_exchanges_and_no_lock)
{
	struct steps steps = count(report_lives);

	steps_print("the life of a task that its runtime reports", &steps);
	ck_assert_int_eq(steps.locked, 3);
	steps.locked = 0;
	expect_nothing(&steps);
}

/* --- By a worker of libtdt-rt ----------------------------------------------------------------- */

static const struct tdt_waker *_Atomic sleeper;

/* Is woken once it has been polled often enough. */
static tdt_poll_t sleep_poll(void *state, struct tdt_context *cx)
{
	if (atomic_load(&sleeper) == NULL)
		atomic_store(&sleeper, tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

/* Comes back by itself; and wakes the other, the last time from the first mark on. */
static tdt_poll_t wake_poll(void *state, struct tdt_context *cx)
{
	int *turns = state;

	if (atomic_load(&sleeper) != NULL) {
		if (++*turns == 10) {
			steps_allow();
			STEPS_MARK();
		}
		tdt_waker_wake_by_ref(atomic_load(&sleeper));
	}
	tdt_waker_wake_by_ref(cx->waker);
	return TDT_PENDING;
}

/* The two take turns, so that the first poll that begins after the mark is the sleeper's. */
static void poll_by_a_worker(void)
{
	struct tdt_rt *rt = rt_of(1);
	int turns = 0;

	MUST(tdt_rt_spawn(rt, future_of(sleep_poll), NULL) != NULL);
	MUST(tdt_rt_spawn(rt, (struct tdt_future){ &turns, wake_poll, drop_nothing }, NULL) !=
	     NULL);
	pause();
}

TEST(neither_does_one_by_a_worker_of_the_runtime)
{
	struct steps steps =
	    steps_count(poll_by_a_worker, (void (*)(void))(uintptr_t)tdt__traced_poll);

	steps_print("a worker's poll", &steps);
	expect_nothing(&steps);
}

/* --- A capture -------------------------------------------------------------------------------- */

static int marked_leaf = -1, leaves; /* the one that is counted; how many came in this poll */

static tdt_poll_t leaf_poll(void *state, struct tdt_context *cx)
{
	bool marked = leaves++ == marked_leaf;
	const struct tdt_waker *clone;

	if (marked) {
		steps_allow();
		STEPS_MARK();
	}
	/*
	 * One call for both: a compiler that forgot which it is can't make two, of which one would
	 * be new to the walk.
	 */
	__asm__ volatile("" : "+r"(marked));
	clone = tdt_waker_clone(cx->waker);
	if (marked)
		STEPS_MARK();
	tdt_waker_drop(clone); /* a leaf that waits would keep it */
	return TDT_PENDING;
}

struct level {
	struct tdt_async async;
	int depth;
	struct tdt_future (*innermost)(void);
};

static struct tdt_future level(int depth, struct tdt_future (*innermost)(void));

static tdt_poll_t level_poll(void *state, struct tdt_context *cx)
{
	struct level *it = state;

	TDT_BEGIN(&it->async, cx);
	TDT_AWAIT(it->depth > 1 ? level(it->depth - 1, it->innermost) : it->innermost());
	TDT_END();
}

static struct tdt_future level(int depth, struct tdt_future (*innermost)(void))
{
	return TDT_ASYNC_NEW(level_poll, (struct level){ .depth = depth, .innermost = innermost });
}

static struct tdt_future one_leaf(void)
{
	return future_of(leaf_poll);
}

static struct tdt_future nested_leaf(void)
{
	return traced(level(4, one_leaf));
}

static struct tdt_future three_leaves(void)
{
	struct tdt_future all[] = { level(2, one_leaf), level(2, one_leaf), level(2, one_leaf) };

	return tdt_join_all(all, 3);
}

/*
 * Ask often enough that the walk knows the code, and the task how much room it takes; then once
 * more.
 */
static void capture(struct tdt_future future, int leaf)
{
	struct tdt_traced task = tdt_traced(future);

	tdt_worker_now(1);
	polled = task.future;
	poll_polled(&waker);
	for (int i = 0; i < 4; i++) {
		leaves = 0;
		marked_leaf = i == 3 ? leaf : -1;
		tdt_trace_free(tdt_backtrace(task.handle));
	}
}

static void capture_one(void)
{
	capture(level(24, one_leaf), 0);
}

static void capture_further(void)
{
	capture(level(24, three_leaves), 2);
}

static void capture_nested(void)
{
	capture(level(20, nested_leaf), 0);
}

TEST(a_capture_of_known_code_does_nothing_that_takes_long)
{
	static const struct {
		const char *what;
		void (*run)(void);
	} captures[] = {
		{ "a leaf in 24 async functions", capture_one },
		{ "the third leaf of a join in 24", capture_further },
		{ "a leaf in a traced future in another", capture_nested },
	};

	NOT_TRIED_IF(!TDT_WALK_RULES, "walks are not by rules");
	for (size_t i = 0; i < sizeof captures / sizeof captures[0]; i++) {
		struct steps steps = count(captures[i].run);

		steps_print(captures[i].what, &steps);
		expect_nothing(&steps);
	}
}

/* --- A poll that may show a lost wake-up ----------------------------------------------------- */

static struct tdt_handle *asked;

/* As a runtime that reports all wake-ups. */
static void report_and_poll(const struct tdt_waker *given)
{
	tdt_task_woken(asked);
	poll_polled(given);
}

static const struct tdt_waker_vtable reporting_vtable = { clone_itself, report_and_poll,
							  report_and_poll, ignore_waker };
static const struct tdt_waker reporting = { &reporting_vtable };

static tdt_poll_t named_poll(void *state, struct tdt_context *cx)
{
	const struct tdt_waker *clone = tdt_waker_clone(cx->waker);

	tdt_leaf_waits_on_named(TDT_WAIT_CHANNEL, state, 0, "jobs");
	tdt_waker_drop(clone);
	return TDT_PENDING;
}

static void ask_of_named_wait(void)
{
	struct tdt_traced task = tdt_traced((struct tdt_future){ &counter, named_poll,
								 drop_nothing });
	struct tdt_context cx = { &reporting };

	tdt__thread.all_wakes = true; /* a thread that says so by the call asks no task */
	tdt_worker_now(1);
	polled = task.future;
	asked = task.handle;
	MUST(tdt_future_poll(&polled, &cx) == TDT_PENDING);
	for (int i = 0; i < 4; i++) {
		MUST(tdt_future_poll(&polled, &cx) == TDT_PENDING);
		if (i == 3) {
			steps_allow();
			STEPS_MARK();
		}
		tdt_trace_free(tdt_backtrace(task.handle));
	}
}

/* The name of what it waits for is read by who asks, since the poll may be the end of it. */
TEST(a_poll_for_a_request_makes_no_system_call_whatever_the_task_waits_for)
{
	struct steps steps;

	NOT_TRIED_IF(!TDT_WALK_RULES, "walks are not by rules");
	NOT_TRIED_IF(is_delayed(), "random delays make system calls");
	steps = steps_count(ask_of_named_wait, (void (*)(void))(uintptr_t)tdt__traced_poll);
	steps_print("a poll for a request, of a task that waits for what has a name", &steps);
	ck_assert_int_gt(steps.instructions, 0);
	ck_assert_int_eq(steps.system_calls, 0);
}

/* --- A tracer --------------------------------------------------------------------------------- */

#if TDT_PROBES

/* A tracer is attached, as far as the program sees. */
static void poll_probed(void)
{
	TDT__SEMAPHORE(task__poll__start)++;
	TDT__SEMAPHORE(task__poll__end)++;
	poll_told_the_time(traced(level(4, forever)));
}

static void poll_clone_probed(void)
{
	TDT__SEMAPHORE(task__waker__clone)++;
	poll_told_the_time(traced(level(4, one_leaf)));
}

TEST(neither_does_an_enabled_probe)
{
	struct steps alone = count(poll_async), steps = count(poll_probed);

	steps_print("a poll with its two probes enabled", &steps);
	expect_nothing(&steps);
	ck_assert_int_gt(steps.instructions, alone.instructions);
	steps = count(poll_clone_probed);
	steps_print("one whose leaf's clone is probed", &steps);
	expect_nothing(&steps);
}

#endif

/* --- Watching --------------------------------------------------------------------------------- */

static void poll_watched(void)
{
	MUST(tdt_watch(INT64_MAX, NULL) == 0);
	tdt_worker_now(1);
	polled = traced(level(24, one_leaf));
	for (int i = 0; i < 4; i++) {
		poll_polled(&waker);
		tdt__watch_pass(TDT__WATCH_LONGEST);
	}
	steps_allow();
	STEPS_MARK();
	poll_polled(&waker);
	STEPS_MARK();
}

/*
 * Nothing but the exchanges by which it takes a capture, and gives it back, to pools that all
 * threads have.
 */
TEST(a_watched_poll_takes_and_gives_back_what_it_needs_and_no_more)
{
	struct steps steps;

	NOT_TRIED_IF(!TDT_WALK_RULES, "walks are not by rules");
	steps = count(poll_watched);
	steps_print("a watched poll in 24 async functions", &steps);
	ck_assert_int_gt(steps.locked, 0);
	ck_assert_int_le(steps.locked, 8);
	steps.locked = 0;
	expect_nothing(&steps);
}

/* Step by step, each poll would last long enough to be remarkable. */
static void poll_recorded(void)
{
	const struct tdt_recorder_options options = { .size = sizeof options,
						      .long_poll_ns = UINT64_C(1) << 50 };

	tdt_worker_now(1);
	MUST(tdt_recorder_start(&options) == 0);
	mark_poll(traced(forever()));
}

/* It reads the clock once, since the runtime has not read it after the previous poll. */
TEST(a_recorded_poll_reads_one_clock_and_does_no_more_that_takes_long)
{
	struct steps steps = count(poll_recorded);

	steps_print("a recorded poll", &steps);
	ck_assert_int_eq(steps.clocks, 1);
	steps.clocks = 0;
	expect_nothing(&steps);
}
