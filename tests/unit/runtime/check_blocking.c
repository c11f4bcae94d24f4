// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers runtime/blocking, runtime/rt.  Jobs that block have threads of their own, are tasks, and
 * keep their argument; what happens without threads, and if one is cancelled: pthread_create() and
 * pthread_cond_clockwait() are wrapped (--wrap).
 */

#include <tdt/rt/blocking.h>

#include "lib/leaf.h"
#include "lib/no_threads.h"
#include "lib/options.h"
#include "lib/request_waiting.h"
#include "lib/requester.h"
#include "lib/rt.h"
#include "lib/test.h"

#define THREADS 128

/* A thread without a job is cancelled while it waits for one; once. */
static atomic_bool cancels_idle;

int __real_pthread_cond_clockwait(pthread_cond_t *come, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *until);

int __wrap_pthread_cond_clockwait(pthread_cond_t *come, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *until)
{
	if (atomic_exchange(&cancels_idle, false))
		pthread_cancel(pthread_self());
	return __real_pthread_cond_clockwait(come, mutex, clock, until);
}

static struct tdt_rt *rt;

static void setup(void)
{
	rt = rt_of(1);
}

static void teardown(void)
{
	tdt_rt_free(rt);
}

/* The argument of a job, which waits in read() until the test lets it go. */
struct work {
	int gate[2];
	atomic_bool begun, done;
	atomic_int freed;
	bool exits;
	uint64_t id;
	pthread_t thread;
	struct tdt_rt *current;
};

static struct work work[THREADS + 1];

static void wait_in_read(void *arg)
{
	struct work *it = arg;
	char byte;

	it->id = tdt_current_task_id();
	it->thread = pthread_self();
	it->current = tdt_rt_current();
	it->begun = true;
	MUST(read(it->gate[0], &byte, 1) == 1);
	it->done = true;
	if (it->exits)
		pthread_exit(NULL);
}

static void count_free(void *arg)
{
	((struct work *)arg)->freed++;
}

static void init(struct work *it)
{
	ck_assert_int_eq(pipe(it->gate), 0);
}

static void let_go(struct work *it)
{
	MUST(write(it->gate[1], "", 1) == 1);
}

static struct tdt_future job(struct work *it)
{
	struct tdt_future future = tdt_spawn_blocking(wait_in_read, it, count_free);

	ck_assert(!tdt_future_is_none(&future));
	return future;
}

static struct tdt_handle *spawn(struct work *it)
{
	struct tdt_handle *handle;

	init(it);
	handle = tdt_rt_spawn(rt, job(it), NULL);
	ck_assert_ptr_nonnull(handle);
	return handle;
}

static int outcome_of(struct tdt_handle *handle)
{
	int outcome = 1;

	ck_assert_int_eq(tdt_rt_block_on(rt, tdt_join(handle, &outcome)), 0);
	tdt_handle_unref(handle);
	return outcome;
}

/* Until the task was polled, and waits for its job. */
static void await_wait(struct tdt_handle *handle)
{
	struct tdt_trace *trace;
	bool waits;

	do {
		trace = tdt_backtrace(handle);
		waits = trace != NULL && tdt_trace_info(trace)->n_waits == 1;
		tdt_trace_free(trace);
	} while (!waits);
}

/* The last job waits for a thread. */
static void spawn_one_too_many(struct tdt_handle *handle[THREADS + 1])
{
	for (int i = 0; i < THREADS; i++)
		handle[i] = spawn(&work[i]);
	for (int i = 0; i < THREADS; i++)
		UNTIL(work[i].begun);
	handle[THREADS] = spawn(&work[THREADS]);
	await_wait(handle[THREADS]);
}

CASE(jobs, .setup = setup, .teardown = teardown)

TEST(a_job_keeps_no_worker)
{
	struct tdt_handle *handle = spawn(&work[0]);

	UNTIL(work[0].begun);
	ck_assert_int_eq(tdt_rt_block_on(rt, tdt_sleep_ms(1)), 0);
	ck_assert_int_eq(outcome_of(tdt_rt_spawn(rt, tdt_yield_now(), NULL)), 0);
	ck_assert(!work[0].done);
	let_go(&work[0]);
	ck_assert_int_eq(outcome_of(handle), 0);
	ck_assert(work[0].done);
	ck_assert_ptr_eq(work[0].current, rt);
}

TEST(its_argument_is_the_callers_again)
{
	init(&work[0]);
	let_go(&work[0]);
	ck_assert_int_eq(tdt_rt_block_on(rt, job(&work[0])), 0);
	ck_assert(work[0].done);
	ck_assert(!pthread_equal(work[0].thread, pthread_self()));
	ck_assert_int_eq(work[0].freed, 0);
}

/* The text of a trace says so, and that of a dump; the parts of both lines are the same. */
static void expect_blocking(struct tdt_trace *trace)
{
	char *text = NULL, expected[64];
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(out);
	ck_assert_int_eq(tdt_trace_print(trace, out), 0);
	fclose(out);
	snprintf(expected, sizeof(expected), " on blocking thread %u",
		 tdt_trace_info(trace)->thread);
	ck_assert_ptr_nonnull(strstr(text, expected));
	free(text);
}

/* A tdt_task_fn. */
static int get_blocking(struct tdt_handle *task, const struct tdt_task_info *info, void *arg)
{
	(void)task;
	*(uint32_t *)arg = info->blocking;
	return 0;
}

static bool blocks(struct tdt_handle *task)
{
	uint32_t blocking = 0;

	ck_assert_int_eq(tdt_task_inspect(task, get_blocking, &blocking), 0);
	return blocking == 1;
}

TEST(who_awaits_it_waits_for_its_task_which_runs)
{
	struct tdt_handle *handle = spawn(&work[0]), *task;
	const struct tdt_task_info *info;
	struct tdt_trace *trace;

	UNTIL(work[0].begun);
	task = tdt_task_find(work[0].id);
	ck_assert_ptr_nonnull(task);
	ck_assert(blocks(task) && !blocks(handle));
	trace = request_waiting(handle);
	info = tdt_trace_info(trace);
	ck_assert_uint_eq(info->n_waits, 1);
	ck_assert_uint_eq(info->waits[0]->owner, work[0].id);
	tdt_trace_free(trace);
	if (!in_valgrind() && !is_emulated()) { /* there threads are not where the kernel says */
		trace = backtrace_timed(task, INT64_C(30000000000));
		ck_assert_ptr_nonnull(trace);
		ck_assert_int_eq(tdt_trace_info(trace)->state, TDT_TASK_RUNNING);
		expect_blocking(trace);
		ck_assert_int_eq(test_nodes_of(trace, "wait_in_read"), 1);
		tdt_trace_free(trace);
	}
	tdt_handle_unref(task);
	let_go(&work[0]);
	ck_assert_int_eq(outcome_of(handle), 0);
	ck_assert_ptr_null(tdt_task_find(work[0].id));
}

TEST(a_dropped_future_leaves_the_argument_to_the_job)
{
	struct tdt_handle *handle = spawn(&work[0]);

	UNTIL(work[0].begun);
	ck_assert_int_eq(tdt_task_abort(handle), 0);
	ck_assert_int_eq(outcome_of(handle), -ECANCELED);
	ck_assert_int_eq(work[0].freed, 0);
	let_go(&work[0]);
	UNTIL(work[0].freed == 1);
	ck_assert(work[0].done);
}

TEST(a_job_in_the_queue_never_begins_if_its_future_is_dropped)
{
	struct tdt_handle *handle[THREADS + 1];

	spawn_one_too_many(handle);
	ck_assert_int_eq(tdt_task_abort(handle[THREADS]), 0);
	ck_assert_int_eq(outcome_of(handle[THREADS]), -ECANCELED);
	ck_assert_int_eq(work[THREADS].freed, 1);
	ck_assert(!work[THREADS].begun);
	for (int i = 0; i < THREADS; i++)
		let_go(&work[i]);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(outcome_of(handle[i]), 0);
}

TEST(a_job_that_waits_for_a_thread_gets_the_next)
{
	struct tdt_handle *handle[THREADS + 1];

	spawn_one_too_many(handle);
	for (int i = THREADS; i >= 0; i--)
		let_go(&work[i]);
	for (int i = 0; i <= THREADS; i++)
		ck_assert_int_eq(outcome_of(handle[i]), 0);
}

TEST(a_job_may_exit_as_a_thread)
{
	struct tdt_handle *handle;

	work[0].exits = true;
	handle = spawn(&work[0]);
	let_go(&work[0]);
	ck_assert_int_eq(outcome_of(handle), -ENOTRECOVERABLE);
	UNTIL(work[0].freed == 1);
}

TEST(a_future_that_was_not_polled_frees_the_argument)
{
	struct tdt_future future = job(&work[0]);

	tdt_future_drop(&future);
	ck_assert_int_eq(work[0].freed, 1);
}

TEST(without_a_runtime_it_panics)
{
	struct tdt_future future = job(&work[0]);

	errno = 0;
	ck_assert_uint_eq(poll_idly(&future), TDT_PANICKED);
	ck_assert_int_eq(errno, ENOTSUP);
	tdt_future_drop(&future);
	ck_assert_int_eq(work[0].freed, 1);
}

TEST(without_a_thread_it_panics)
{
	threads_left = 0;
	ck_assert_int_eq(outcome_of(spawn(&work[0])), -ENOTRECOVERABLE);
	UNTIL(work[0].freed == 1);
	threads_left = -1;
	let_go(&work[0]);
	init(&work[1]);
	let_go(&work[1]);
	ck_assert_int_eq(tdt_rt_block_on(rt, job(&work[1])), 0);
}

TEST(without_another_thread_it_waits_for_one)
{
	struct tdt_handle *first = spawn(&work[0]), *second;

	UNTIL(work[0].begun);
	threads_left = 0;
	second = spawn(&work[1]);
	let_go(&work[0]);
	let_go(&work[1]);
	ck_assert_int_eq(outcome_of(first), 0);
	ck_assert_int_eq(outcome_of(second), 0);
	ck_assert(pthread_equal(work[0].thread, work[1].thread));
}

/* 0: another thread can be had by then; 1: none. */
TEST(who_waits_for_a_thread_that_exits_gets_another_or_fails, .to = 2)
{
	struct tdt_handle *first, *second;

	work[0].exits = true;
	first = spawn(&work[0]);
	UNTIL(work[0].begun);
	threads_left = 0;
	second = spawn(&work[1]);
	await_wait(second);
	threads_left = _i == 0 ? -1 : 0;
	let_go(&work[0]);
	let_go(&work[1]);
	ck_assert_int_eq(outcome_of(first), -ENOTRECOVERABLE);
	ck_assert_int_eq(outcome_of(second), _i == 0 ? 0 : -ENOTRECOVERABLE);
	ck_assert(work[1].begun == (_i == 0));
	UNTIL(work[1].freed == _i);
}

static int outcome_of_job(void (*call)(void *arg))
{
	struct tdt_future future = tdt_spawn_blocking(call, NULL, NULL);

	ck_assert(!tdt_future_is_none(&future));
	return outcome_of(tdt_rt_spawn(rt, future, NULL));
}

static void do_nothing(void *arg)
{
	(void)arg;
}

static void cancel_itself(void *arg)
{
	(void)arg;
	pthread_cancel(pthread_self());
}

/* Also if it returns before it comes to where a thread is cancelled. */
TEST(a_job_that_is_cancelled_fails_and_not_the_next)
{
	ck_assert_int_eq(outcome_of_job(cancel_itself), -ENOTRECOVERABLE);
	ck_assert_int_eq(outcome_of_job(do_nothing), 0);
}

/* Or else it would be cancelled with the lock of the queue.  The next job is what is cancelled. */
TEST(a_thread_without_a_job_is_not_cancelled)
{
	cancels_idle = true;
	ck_assert_int_eq(outcome_of_job(do_nothing), 0);
	UNTIL(!cancels_idle);
	ck_assert_int_eq(outcome_of_job(do_nothing), -ENOTRECOVERABLE);
	ck_assert_int_eq(outcome_of_job(do_nothing), 0);
}

TEST(bad_arguments_are_refused)
{
	struct tdt_future none = tdt_spawn_blocking(NULL, NULL, count_free);

	ck_assert(tdt_future_is_none(&none));
	ck_assert_int_eq(errno, EINVAL);
}

static int make_one(void *nothing)
{
	struct tdt_future future = tdt_spawn_blocking(wait_in_read, &work[0], NULL);

	(void)nothing;
	if (tdt_future_is_none(&future))
		return -errno;
	tdt_future_drop(&future);
	return 0;
}

TEST(without_memory_there_is_no_future)
{
	no_memory_each(make_one, NULL, 1);
}

CASE(free)

static void let_job_go(struct leaf *leaf)
{
	let_go(leaf->data);
}

/* The job is let go when the runtime drops its tasks, after their last poll. */
TEST(freeing_the_runtime_waits_for_the_job)
{
	static struct leaf leaf = { .on_drop = let_job_go, .data = &work[0] };

	setup();
	tdt_handle_unref(spawn(&work[0]));
	UNTIL(work[0].begun);
	tdt_handle_unref(spawn_on(rt, leaf_future(&leaf), NULL));
	teardown();
	ck_assert(work[0].done);
	ck_assert_int_eq(work[0].freed, 1);
}

static void free_runtime(void *arg)
{
	(void)arg;
	errno = 0;
	tdt_rt_free(rt);
	MUST(errno == EDEADLK);
}

TEST(a_job_does_not_free_its_runtime)
{
	setup();
	ck_assert_int_eq(tdt_rt_block_on(rt, tdt_spawn_blocking(free_runtime, NULL, NULL)), 0);
	teardown();
}
