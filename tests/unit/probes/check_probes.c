// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers probes/probes.  Which probes fire, and in which order, without a tracer.  A semaphore is a
 * variable, raised here as the kernel would raise it.  The functions that hold the sites are
 * wrapped (ld's --wrap) by functions that write down which of them fired.
 *
 * Their notes go between those of the test futures (futures.h): `spawn1` is task-spawn of the first
 * task that was spawned while somebody listened.
 */

#include <config.h>

#include <tdt/integrate/fiber.h>
#include <tdt/integrate/hooks.h>

#include "lib/options.h"
#include "lib/requester.h"
#include "lib/test.h"
#include "lib/unwinding.h"
#include "probes/probes.h"
#include "registry/handle.h"

#if TDT_PROBES

/* --- The tracer --------------------------------------------------------------- */

static uint64_t first_id;
static bool quiet; /* events are not written down: threads fire */

static void note_event(const char *probe, uint64_t id)
{
	size_t length = strlen(test_events);
	const char *name = strrchr(probe, '_') + 1;

	if (quiet)
		return;
	if (first_id == 0)
		first_id = id;
	if (id != 0)
		snprintf(&test_events[length], sizeof test_events - length, "%s%d ", name,
			 (int)(id - first_id) + 1);
	else
		snprintf(&test_events[length], sizeof test_events - length, "%s ", name);
}

#define TASK_PROBE(probe)                                                                          \
	void __real_tdt_probe_##probe(const struct tdt_handle *task);                              \
	void __wrap_tdt_probe_##probe(const struct tdt_handle *task);                              \
	void __wrap_tdt_probe_##probe(const struct tdt_handle *task)                               \
	{                                                                                          \
		note_event(#probe, task->record.id);                                               \
		__real_tdt_probe_##probe(task);                                                    \
	}
TDT__TASK_PROBES(TASK_PROBE)

#define WORKER_PROBE(probe)                                                                        \
	void __real_tdt_probe_##probe(void);                                                       \
	void __wrap_tdt_probe_##probe(void);                                                       \
	void __wrap_tdt_probe_##probe(void)                                                        \
	{                                                                                          \
		note_event(#probe, 0);                                                             \
		__real_tdt_probe_##probe();                                                        \
	}
TDT__WORKER_PROBES(WORKER_PROBE)

/* Not seen by ThreadSanitizer, as the kernel's writes are not. */
static __attribute__((no_sanitize("thread"))) void add_to(volatile unsigned short *semaphore, int n)
{
	*semaphore = (unsigned short)(*semaphore + n);
}

#define ADD(name) add_to(&TDT__SEMAPHORE(name), n);

/* A tracer comes to (+1) or leaves (-1) all probes. */
static void listeners(int n)
{
	TDT__TASK_PROBES(ADD)
	TDT__WORKER_PROBES(ADD)
}

static void clone_listeners(int n)
{
	ADD(task__waker__clone)
}

static void start_listening(void)
{
	first_id = 0;
	quiet = false;
	test_events_clear();
	listeners(+1);
}

/* The semaphores are what tests leave them, in a process that runs several. */
static void stop_listening(void)
{
#define CLEAR(name) TDT__SEMAPHORE(name) = 0;
	TDT__TASK_PROBES(CLEAR)
	TDT__WORKER_PROBES(CLEAR)
}

/* What happened since the last call is `expected`. */
static void expect(const char *expected)
{
	ck_assert_str_eq(test_events, expected);
	test_events_clear();
}

/* --- Futures ---------------------------------------------------------------------- */

static struct tdt_future future_of(tdt_poll_t (*poll)(void *state, struct tdt_context *cx),
				   void *state)
{
	return (struct tdt_future){ state, poll, drop_nothing };
}

/* A leaf whose clone is dropped at once. */
static tdt_poll_t clone_and_drop(void *state, struct tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

CASE(life, .setup = start_listening, .teardown = stop_listening)

TEST(a_task_terminates_before_the_end_of_its_last_poll)
{
	struct test_task task = { .leaf = { .name = 'a', .pending = 1 } };

	test_task_init(&task, NULL);
	test_task_poll(&task);
	test_task_poll(&task);
	expect("spawn1 start1 clone1 a. end1 start1 a! terminate1 end1 ");
	test_task_fini(&task);
	expect("a~ ");
}

TEST(so_does_one_that_panics)
{
	struct test_task task = { .leaf = { .name = 'a', .result = TDT_PANICKED } };

	test_task_init(&task, NULL);
	test_task_poll(&task);
	test_task_fini(&task);
	expect("spawn1 start1 a# terminate1 end1 a~ ");
}

static tdt_poll_t return_nonsense(void *state, struct tdt_context *cx)
{
	return 7;
}

TEST(so_does_one_that_returns_nonsense)
{
	struct test_task task = { 0 };

	test_task_init(&task, &(struct tdt_future){ NULL, return_nonsense, drop_nothing });
	test_task_poll(&task);
	test_task_fini(&task);
	expect("spawn1 start1 terminate1 end1 ");
}

TEST(a_poll_after_the_end_fires_nothing)
{
	struct test_task task = { .leaf = { .name = 'a' } };

	test_task_init(&task, NULL);
	test_task_poll(&task);
	test_events_clear();
	ck_assert_int_eq(test_task_poll(&task), TDT_PANICKED);
	ck_assert_int_eq(test_task_poll(&task), TDT_PANICKED);
	expect("");
	test_task_fini(&task);
	expect("a~ ");
}

TEST(a_task_dropped_while_pending_terminates_and_no_more)
{
	struct test_task task = { .leaf = { .name = 'a', .pending = 9 } };
	struct tdt_handle *handle;

	test_task_init(&task, NULL);
	test_task_poll(&task);
	handle = tdt_handle_ref(task.handle);
	test_events_clear();
	test_task_fini(&task);
	expect("terminate1 a~ ");
	tdt_handle_unref(handle);
	expect("");
}

TEST(a_task_dropped_before_its_first_poll_terminates)
{
	struct test_task task = { .leaf = { .name = 'a' } };

	test_task_init(&task, NULL);
	test_task_fini(&task);
	expect("spawn1 terminate1 a~ ");
}

TEST(a_future_that_could_not_be_traced_fires_nothing)
{
	struct test_future leaf = { .name = 'a' };
	struct tdt_task_attr empty = { 0 };

	ck_assert_ptr_null(tdt_traced((struct tdt_future)TDT_FUTURE_NONE).handle);
	ck_assert_ptr_null(tdt_traced_with(test_future(&leaf), &empty).handle);
	expect("");
}

TEST(the_ids_are_the_handles)
{
	TEST_TASK(task, NULL, .name = 'a');

	ck_assert_uint_eq(first_id, tdt_handle_id(task.handle));
}

TEST(without_a_listener_nothing_fires)
{
	struct test_task task = { .leaf = { .name = 'a', .pending = 1 } };

	stop_listening();
	tdt_worker_thread_start(NULL);
	test_task_init(&task, NULL);
	tdt_task_woken(task.handle);
	test_task_poll(&task);
	test_task_poll(&task);
	test_task_fini(&task);
	tdt_worker_thread_park();
	tdt_worker_thread_unpark();
	tdt_worker_thread_stop();
	expect("a. a! a~ ");
}

TEST(each_probe_has_a_listener_of_its_own)
{
	struct test_task task = { .leaf = { .name = 'a', .pending = 1 } };

	stop_listening();
	TDT__SEMAPHORE(task__poll__end) = 2;
	TDT__SEMAPHORE(task__spawn) = 1;
	test_task_init(&task, NULL);
	test_task_poll(&task);
	test_task_poll(&task);
	test_task_fini(&task);
	expect("spawn1 a. end1 a! end1 a~ ");
}

/* --- Tasks inside of tasks --------------------------------------------------------------- */

TEST(a_task_inside_of_another_starts_and_ends_inside_of_its_poll)
{
	struct test_task inner = { .leaf = { .name = 'a', .pending = 1 } }, outer = { 0 };

	test_task_init(&inner, NULL);
	test_task_init(&outer, &inner.future);
	test_task_poll(&outer);
	test_task_poll(&outer);
	expect("spawn1 spawn2 start2 start1 clone1 a. end1 end2 start2 start1 a! terminate1 end1 "
	       "terminate2 end2 ");
	test_task_fini(&outer);
	expect("a~ ");
	tdt_handle_unref(inner.handle);
}

TEST(both_terminate_when_the_outer_one_is_dropped)
{
	struct test_task inner = { .leaf = { .name = 'a', .pending = 9 } }, outer = { 0 };

	test_task_init(&inner, NULL);
	test_task_init(&outer, &inner.future);
	test_task_poll(&outer);
	test_events_clear();
	test_task_fini(&outer);
	expect("terminate2 terminate1 a~ ");
	tdt_handle_unref(inner.handle);
}

CASE(unwound, .setup = start_listening, .teardown = stop_listening)

TEST(a_poll_that_throws_terminates_and_ends)
{
	struct test_task inner = { 0 }, outer = { 0 };

	test_task_init(&inner, &(struct tdt_future){ NULL, test_throwing_poll, drop_nothing });
	test_task_init(&outer, &inner.future);
	test_events_clear();
	ck_assert(test_throws(&outer.future, &outer.cx));
	expect("start2 start1 clone1 terminate1 end1 terminate2 end2 ");
	ck_assert_int_eq(test_task_poll(&outer), TDT_PANICKED);
	test_task_fini(&outer);
	tdt_handle_unref(inner.handle);
	expect("");
}

TEST(so_does_one_that_throws_unwatched)
{
	struct test_task task = { 0 };

	clone_listeners(-1);
	test_task_init(&task, &(struct tdt_future){ NULL, test_throwing_poll, drop_nothing });
	ck_assert(test_throws(&task.future, &task.cx));
	expect("spawn1 start1 terminate1 end1 ");
	test_task_fini(&task);
	expect("");
}

TEST(so_does_one_whose_waker_throws)
{
	for (int drop = 0; drop < 2; drop++) {
		struct test_task task = { .leaf = { .name = 'a', .pending = 1, .yield = true } };
		struct tdt_waker_vtable vtable;

		start_listening();
		test_task_init(&task, NULL);
		vtable = *task.waker.waker.vtable;
		if (drop) {
			test_task_poll(&task);
			vtable.drop = test_throwing_drop;
			task.waker.alive--;
		} else {
			vtable.clone = test_throwing_clone;
		}
		task.waker.waker.vtable = &vtable;
		test_events_clear();
		ck_assert(test_throws(&task.future, &task.cx));
		expect(drop ? "start1 a! terminate1 end1 " : "start1 clone1 a. terminate1 end1 ");
		test_task_fini(&task);
		expect("a~ ");
	}
}

/* The waker of a task that awaits the task's end. */
TEST(so_does_one_at_whose_end_another_tasks_waker_throws)
{
	struct test_waker joiner;
	struct tdt_context cx = { &joiner.waker };
	struct tdt_waker_vtable vtable;
	TEST_TASK(task, NULL, .name = 'a');
	FUTURE(join, tdt_join(task.handle, NULL));

	test_waker_init(&joiner);
	vtable = *joiner.waker.vtable;
	vtable.wake = test_throwing_drop;
	joiner.waker.vtable = &vtable;
	ck_assert_int_eq(tdt_future_poll(&join, &cx), TDT_PENDING);
	ck_assert(test_throws(&task.future, &task.cx));
	expect("spawn1 start1 a! terminate1 end1 ");
	ck_assert_int_eq(tdt_future_poll(&join, &cx), TDT_READY);
}

CASE(life)

TEST(what_a_worker_tells_fires_as_it_is_told)
{
	tdt_worker_thread_start(NULL);
	tdt_worker_now(123456789);
	tdt_worker_thread_park();
	tdt_worker_thread_unpark();
	tdt_worker_now(0);
	tdt_worker_thread_stop();
	expect("start park unpark stop ");
}

TEST(a_wake_up_fires_when_it_is_told_even_after_the_end)
{
	TEST_TASK(task, NULL, .name = 'a');

	tdt_task_woken(task.handle);
	test_task_poll(&task);
	tdt_task_woken(task.handle);
	tdt_task_woken(NULL);
	expect("spawn1 wake1 start1 a! terminate1 end1 wake1 ");
}

/* --- Questions ------------------------------------------------------------------------------- */

static void poll_while_asked(bool clones_listened, const char *expected)
{
	if (!clones_listened)
		clone_listeners(-1);
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);
	test_task_poll(&task);
	ASKED(requester, task.handle);
	test_events_clear();
	test_task_poll(&task);
	expect(expected);
	ck_assert_uint_eq(test_answer(&requester)->leaves, 1);
	ck_assert_uint_eq(tdt_trace_info(requester.trace)->leaves_elsewhere, 0);
	ck_assert_int_eq(test_nodes_of(requester.trace, "test_future_poll"), 1);
}

CASE(asked, .setup = start_listening, .teardown = stop_listening)

TEST(a_poll_that_is_asked_fires_as_any_other)
{
	poll_while_asked(false, "start1 a. end1 ");
}

TEST(a_question_and_a_tracer_at_once_get_both)
{
	poll_while_asked(true, "start1 clone1 a. end1 ");
}

TEST(a_question_to_the_outer_task_sees_through_a_poll_that_only_a_tracer_watches)
{
	NESTED_TASKS(outer, inner, NULL, .name = 'a', .pending = 9);
	ASKED(requester, outer.handle);

	test_events_clear();
	test_task_poll(&outer);
	expect("start2 start1 clone1 a. end1 end2 ");
	ck_assert_uint_eq(test_answer(&requester)->leaves, 1);
}

CASE(remote, .setup = start_listening, .teardown = stop_listening)

TEST(while_it_is_up_a_leaf_clones_on_every_poll_and_no_longer)
{
	int clones;
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);

	for (int i = 0; i < 3; i++)
		test_task_poll(&task);
	expect("spawn1 start1 clone1 a. end1 start1 clone1 a. end1 start1 clone1 a. end1 ");
	/* What the leaf keeps is the runtime's, each time a new one; and there is what we keep. */
	ck_assert_ptr_eq(task.leaf.waker, &task.waker.waker);
	ck_assert_int_eq(task.waker.clones, 4);
	ck_assert_int_eq(task.waker.alive, 2);
	clones = task.waker.clones;
	clone_listeners(-1);
	test_task_poll(&task);
	test_task_poll(&task);
	expect("start1 a. end1 start1 a. end1 ");
	ck_assert_int_eq(task.waker.clones, clones);
	ck_assert_int_eq(task.waker.wakes, 0);
}

TEST(two_tracers_come_and_one_leaves)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);

	clone_listeners(+1);
	clone_listeners(-1);
	test_events_clear();
	test_task_poll(&task);
	expect("start1 clone1 a. end1 ");
	clone_listeners(-1);
	test_task_poll(&task);
	expect("start1 a. end1 ");
}

TEST(a_leaf_that_yields_fires_too)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 9, .yield = true);

	test_events_clear();
	test_task_poll(&task);
	expect("start1 clone1 a. end1 ");
	ck_assert_int_eq(task.waker.wakes, 1);
}

TEST(each_leaf_fires_for_the_innermost_task_around_it)
{
	struct test_task inner = { .leaf = { .name = 'a', .pending = 1 } }, outer = { 0 };
	struct test_future beside = { .name = 'b', .pending = 1 };
	struct tdt_future both;

	test_task_init(&inner, NULL);
	both = tdt_join_all((struct tdt_future[]){ test_future(&beside), inner.future }, 2);
	test_task_init(&outer, &both);
	test_events_clear();
	test_task_poll(&outer);
	expect("start2 clone2 b. start1 clone1 a. end1 end2 ");
	ck_assert_ptr_eq(beside.waker, &outer.waker.waker);
	ck_assert_ptr_eq(inner.leaf.waker, &outer.waker.waker);
	test_task_poll(&outer);
	expect("start2 b! b~ start1 a! terminate1 end1 a~ terminate2 end2 ");
	test_task_fini(&outer);
	tdt_handle_unref(inner.handle);
}

TEST(what_tasks_inside_of_each_other_keep_is_known_again_through_substitutes)
{
	NESTED_TASKS(outer, inner, NULL, .name = 'a', .pending = 9);

	for (int i = 1; i <= 5; i++) {
		test_task_poll(&outer);
		/* One for each of the two, and the leaf's. */
		ck_assert_int_eq(outer.waker.clones, 2 + i);
		ck_assert_int_eq(outer.waker.alive, 3);
	}
}

/* Polls the child after having moved the semaphore. */
struct mover {
	const struct tdt_future *child;
	int before, after; /* by how much */
};

static tdt_poll_t move_and_poll(void *state, struct tdt_context *cx)
{
	struct mover *mover = state;
	tdt_poll_t result;

	clone_listeners(mover->before);
	result = tdt_future_poll(mover->child, cx);
	clone_listeners(mover->after);
	return result;
}

/* Poll a task, and one inside of it, with a mover in each. */
static void poll_nested(struct mover in_outer, struct mover in_inner, const char *expected)
{
	struct test_future leaf = { .name = 'a', .pending = 9 };
	struct tdt_future leaf_future = test_future(&leaf), child;
	struct test_task inner = { 0 }, outer = { 0 };

	first_id = 0;
	in_inner.child = &leaf_future;
	child = future_of(move_and_poll, &in_inner);
	test_task_init(&inner, &child);
	in_outer.child = &inner.future;
	child = future_of(move_and_poll, &in_outer);
	test_task_init(&outer, &child);
	test_events_clear();
	test_task_poll(&outer);
	expect(expected);
	ck_assert_ptr_eq(leaf.waker, &outer.waker.waker);
	leaf_future.drop(leaf_future.state);
	test_task_fini(&inner);
	test_task_fini(&outer);
	ck_assert_int_eq(outer.waker.wakes, 0);
	ck_assert_int_eq(outer.waker.alive, 0);
}

TEST(it_goes_up_in_the_middle_of_a_poll)
{
	clone_listeners(-1);
	poll_nested((struct mover){ 0 }, (struct mover){ .before = +1, .after = -1 },
		    "start2 start1 a. end1 end2 ");
	poll_nested((struct mover){ .before = +1, .after = -1 }, (struct mover){ 0 },
		    "start2 start1 clone1 a. end1 end2 ");
}

TEST(it_goes_down_in_the_middle_of_a_poll)
{
	poll_nested((struct mover){ 0 }, (struct mover){ .before = -1, .after = +1 },
		    "start2 start1 a. end1 end2 ");
	poll_nested((struct mover){ .before = -1, .after = +1 }, (struct mover){ 0 },
		    "start2 start1 a. end1 end2 ");
	poll_nested((struct mover){ .before = -1 }, (struct mover){ .before = +1 },
		    "start2 start1 clone2 a. end1 end2 ");
}

static const struct tdt_waker *borrowed;

static tdt_poll_t keep_borrowed(void *state, struct tdt_context *cx)
{
	borrowed = cx->waker;
	return TDT_PENDING;
}

TEST(a_borrowed_waker_that_is_kept_is_dead_after_the_poll)
{
	TEST_TASK(task, (&(struct tdt_future){ NULL, keep_borrowed, drop_nothing }));

	test_task_poll(&task);
	ck_assert_ptr_ne(borrowed, &task.waker.waker);
	test_events_clear();
	ck_assert_ptr_null(borrowed->vtable->clone(borrowed));
	borrowed->vtable->wake_by_ref(borrowed);
	ck_assert_int_eq(task.waker.wakes, 0);
	expect("");
	clone_listeners(-1);
	test_task_poll(&task);
	ck_assert_ptr_eq(borrowed, &task.waker.waker);
}

static void *clone_here(void *waker)
{
	tdt_waker_drop(tdt_waker_clone(waker));
	return NULL;
}

static tdt_poll_t clone_on_a_thread(void *state, struct tdt_context *cx)
{
	run_on_thread(clone_here, (void *)(uintptr_t)cx->waker);
	return TDT_PENDING;
}

TEST(a_leaf_on_another_thread_fires_and_is_not_counted_into_a_later_trace)
{
	TEST_TASK(task, (&(struct tdt_future){ NULL, clone_on_a_thread, drop_nothing }));

	test_events_clear();
	test_task_poll(&task);
	expect("start1 clone1 end1 ");
	ASKED(requester, task.handle);
	test_task_poll(&task);
	expect("start1 clone1 end1 ");
	ck_assert_uint_eq(test_answer(&requester)->leaves_elsewhere, 1);
}

/* --- What the remote control costs ------------------------------------------------------------ */

/*
 * Taken, and read, by this thread since the test began to count: the library's own threads may just
 * be starting.
 */
static __thread volatile int locks, clocks;

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	locks++;
	return __real_pthread_mutex_lock(lock);
}

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	clocks++;
	return __real_clock_gettime(clock, time);
}

TEST(it_takes_no_lock_and_no_memory_and_reads_no_clock)
{
	struct test_task task = { 0 };

	test_task_init(&task, &(struct tdt_future){ NULL, clone_and_drop, drop_nothing });
	task.waker.waker.vtable = idle_waker.vtable;
	for (int told = 0; told < 2; told++) {
		int allocations;

		tdt_worker_now(told ? 123456789 : 0);
		locks = 0;
		clocks = 0;
		no_memory_begin(-1);
		quiet = true;
		for (int i = 0; i < 10; i++)
			test_task_poll(&task);
		allocations = no_memory_end();
		ck_assert_int_eq(locks, 0);
		ck_assert_int_eq(allocations, 0);
		/* But for the stamp that any poll takes. */
		ck_assert_int_eq(clocks, told ? 0 : 10);
	}
	test_task_fini(&task);
	/* They can be counted. */
	locks = 0;
	test_task_init(&task, &(struct tdt_future){ NULL, clone_and_drop, drop_nothing });
	ck_assert_ptr_null(backtrace_timed(task.handle, 0));
	ck_assert_int_gt(locks, 0);
	test_task_fini(&task);
}

/* --- A tracer that comes and goes ------------------------------------------------------------- */

enum { ROUNDS = 20000 };

static atomic_bool done;

static void *come_and_go(void *nothing)
{
	while (!atomic_load(&done)) {
		clone_listeners(+1);
		sched_yield();
		clone_listeners(-1);
		sched_yield();
	}
	return nothing;
}

/* Makes requests time and again. */
static void *ask(void *handle)
{
	while (!atomic_load(&done))
		tdt_trace_free(backtrace_timed(handle, 100000));
	return NULL;
}

TEST(wakers_are_balanced_while_a_tracer_comes_and_goes)
{
	pthread_t tracer, requester;
	int polls = 0;

	stop_listening();
	NESTED_TASKS(outer, inner, NULL, .name = 'a', .pending = ROUNDS);
	quiet = true;
	MUST(pthread_create(&tracer, NULL, come_and_go, NULL) == 0);
	MUST(pthread_create(&requester, NULL, ask, inner.handle) == 0);
	do {
		polls++;
		test_events_clear();
	} while (test_task_poll(&outer) == TDT_PENDING);
	atomic_store(&done, true);
	pthread_join(tracer, NULL);
	pthread_join(requester, NULL);
	ck_assert_int_eq(polls, ROUNDS + 1);
	ck_assert_ptr_eq(tdt_waker_beneath(inner.leaf.waker), &outer.waker.waker);
	ck_assert_int_eq(outer.waker.alive, 1);
}

CASE(fibers, .setup = start_listening, .teardown = stop_listening)

TEST(a_resume_is_the_start_of_a_poll_and_a_suspend_its_end)
{
	struct tdt_fiber *fiber = tdt_fiber_new(NULL, 0, NULL);

	expect("spawn1 ");
	tdt_fiber_resume(fiber);
	expect("start1 ");
	tdt_fiber_suspend(fiber);
	expect("end1 ");
	tdt_task_woken(tdt_fiber_handle(fiber));
	tdt_fiber_resume(fiber);
	expect("wake1 start1 ");
	tdt_fiber_end(fiber);
	expect("terminate1 end1 ");
}

TEST(a_fiber_that_ends_while_suspended_terminates_and_no_more)
{
	struct tdt_fiber *fiber = tdt_fiber_new(NULL, 0, NULL);

	tdt_fiber_resume(fiber);
	tdt_fiber_suspend(fiber);
	test_events_clear();
	tdt_fiber_end(fiber);
	expect("terminate1 ");
}

TEST(a_fiber_of_a_future_fires_nothing)
{
	struct tdt_fiber *fiber;
	TEST_TASK(task, NULL, .name = 'a');

	test_events_clear();
	fiber = tdt_fiber_of(task.handle, NULL, 0);
	tdt_fiber_resume(fiber);
	tdt_fiber_suspend(fiber);
	tdt_fiber_end(fiber);
	expect("");
}

#else
SUITE_SKIP("built without probes")
#endif
