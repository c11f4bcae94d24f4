// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tdt/tdt.h.  A call that succeeds leaves errno alone, also the first call of a process,
 * which sets up what the library needs.  So does a poll, and the clone of a waker in it, whether or
 * not its stack is captured there.
 *
 * Each case is a process of its own (CK_FORK).
 */

#include <tdt/integrate/hooks.h>

#include "lib/options.h"
#include "lib/poll_now.h"
#include "lib/test.h"

#define SENTINEL EXDEV /* the library has no use for it */
#define SECOND INT64_C(1000000000)

/* Evaluate `call`, and see that errno is as it was. */
#define KEEPS_ERRNO(call)                                                                          \
	do {                                                                                       \
		errno = SENTINEL;                                                                  \
		call;                                                                              \
		ck_assert_msg(errno == SENTINEL, "errno is %d after %s", errno, #call);            \
	} while (0)

/* --- Tasks ----------------------------------------------------------------------- */

static tdt_poll_t leaf_poll(void *state, struct tdt_context *cx)
{
	const struct tdt_waker *clone;
	int saved = errno;

	KEEPS_ERRNO(clone = tdt_waker_clone(cx->waker));
	KEEPS_ERRNO(tdt_waker_drop(clone));
	KEEPS_ERRNO(tdt_leaf_waits_on(TDT_WAIT_OTHER, NULL, 0));
	errno = saved;
	return TDT_PENDING;
}

static struct poll_now task;

static void start(void)
{
	KEEPS_ERRNO(poll_now_start(&task, future_of(leaf_poll, NULL)));
}

/* A task that is in the middle of a poll, on a thread that waits. */
static struct {
	struct tdt_traced traced;
	sem_t entered;
	sem_t leave;
	pthread_t thread;
} stuck;

static tdt_poll_t stuck_poll(void *state, struct tdt_context *cx)
{
	sem_post(&stuck.entered);
	while (sem_wait(&stuck.leave) != 0)
		;
	return TDT_READY;
}

static void *poll_stuck(void *arg)
{
	poll_now_start(&task, stuck.traced.future);
	return NULL;
}

static void start_stuck(void)
{
	sem_init(&stuck.entered, 0, 0);
	sem_init(&stuck.leave, 0, 0);
	stuck.traced = tdt_traced(future_of(stuck_poll, NULL));
	ck_assert_int_eq(pthread_create(&stuck.thread, NULL, poll_stuck, NULL), 0);
	while (sem_wait(&stuck.entered) != 0)
		;
}

static void end_stuck(void)
{
	sem_post(&stuck.leave);
	pthread_join(stuck.thread, NULL);
}

CASE(is_left_alone_by)

TEST(the_first_trace_of_a_task)
{
	struct tdt_traced traced;

	KEEPS_ERRNO(traced = tdt_traced(future_of(leaf_poll, NULL)));
	ck_assert_ptr_nonnull(traced.handle);
	KEEPS_ERRNO(tdt_future_drop(&traced.future));
	KEEPS_ERRNO(tdt_handle_unref(traced.handle));
}

TEST(the_first_backtrace)
{
	struct tdt_trace *trace;

	start();
	KEEPS_ERRNO(trace = tdt_backtrace(task.traced.handle));
	ck_assert_ptr_nonnull(trace);
	KEEPS_ERRNO(ck_assert_ptr_nonnull(tdt_trace_root(trace)));
	KEEPS_ERRNO(tdt_trace_free(trace));
}

TEST(the_first_backtrace_with_a_limit)
{
	struct tdt_trace *trace;

	start();
	KEEPS_ERRNO(trace = backtrace_timed(task.traced.handle, 30 * SECOND));
	ck_assert_ptr_nonnull(trace);
	tdt_trace_free(trace);
}

TEST(the_first_backtrace_with_options)
{
	const struct tdt_backtrace_options options = { .size = sizeof(options) };
	struct tdt_trace *trace;

	start();
	KEEPS_ERRNO(trace = tdt_backtrace_with(task.traced.handle, &options));
	ck_assert_ptr_nonnull(trace);
	tdt_trace_free(trace);
}

TEST(the_first_backtrace_as_a_future)
{
	struct tdt_trace *trace;
	struct tdt_future requester;
	int error;

	start();
	KEEPS_ERRNO(requester = tdt_backtrace_async(task.traced.handle, NULL, &trace, &error));
	KEEPS_ERRNO(tdt_future_poll(&requester, &(struct tdt_context){ &task.waker }));
	KEEPS_ERRNO(tdt_future_poll(&requester, &(struct tdt_context){ &task.waker }));
	ck_assert_ptr_nonnull(trace);
	KEEPS_ERRNO(tdt_future_drop(&requester));
	tdt_trace_free(trace);
}

TEST(the_first_backtrace_of_a_poll_that_goes_on)
{
	struct tdt_trace *trace;

	NOT_TRIED_IF(in_valgrind(), "under valgrind threads are not where the kernel says");
	start_stuck();
	KEEPS_ERRNO(trace = backtrace_timed(stuck.traced.handle, 30 * SECOND));
	ck_assert_ptr_nonnull(trace);
	tdt_trace_free(trace);
	end_stuck();
}

TEST(the_first_print, .to = 3)
{
	static const enum tdt_print_format formats[] = { TDT_PRINT_TEXT, TDT_PRINT_JSON,
							 TDT_PRINT_FOLDED };
	struct tdt_print_options options = { .size = sizeof(options), .format = formats[_i] };
	struct tdt_trace *trace;
	FILE *out = tmpfile();

	start();
	trace = backtrace_timed(task.traced.handle, 30 * SECOND);
	ck_assert(trace != NULL && out != NULL);
	KEEPS_ERRNO(ck_assert_int_eq(tdt_trace_print_with(trace, out, &options), 0));
	KEEPS_ERRNO(ck_assert_int_eq(tdt_trace_print(trace, out), 0));
	tdt_trace_free(trace);
	fclose(out);
}

TEST(the_first_snapshot)
{
	const struct tdt_snapshot *snapshot;
	FILE *out = tmpfile();

	start();
	KEEPS_ERRNO(snapshot = tdt_snapshot_take(NULL));
	ck_assert(snapshot != NULL && out != NULL);
	KEEPS_ERRNO(ck_assert_int_eq(tdt_snapshot_print(snapshot, out, NULL), 0));
	KEEPS_ERRNO(tdt_snapshot_free(snapshot));
	fclose(out);
}

TEST(the_first_dump)
{
	FILE *out = tmpfile();

	start();
	ck_assert_ptr_nonnull(out);
	KEEPS_ERRNO(ck_assert_int_eq(tdt_dump_with(out, NULL), 0));
	KEEPS_ERRNO(ck_assert_int_eq(tdt_dump(out), 0));
	fclose(out);
}

TEST(the_first_dump_of_a_poll_that_goes_on)
{
	FILE *out = tmpfile();

	start_stuck();
	ck_assert_ptr_nonnull(out);
	KEEPS_ERRNO(ck_assert_int_eq(tdt_dump(out), 0));
	end_stuck();
	fclose(out);
}

static int visit(struct tdt_handle *handle, const struct tdt_task_info *info, void *arg)
{
	++*(int *)arg;
	return 0;
}

TEST(the_first_look_at_all_tasks)
{
	int n = 0;

	KEEPS_ERRNO(ck_assert_int_eq(tdt_tasks(NULL, visit, &n), 0));
	start();
	KEEPS_ERRNO(ck_assert_int_eq(tdt_tasks(NULL, visit, &n), 0));
	KEEPS_ERRNO(ck_assert_int_eq(tdt_task_inspect(task.traced.handle, visit, &n), 0));
	ck_assert_int_eq(n, 2);
}

TEST(the_first_find)
{
	struct tdt_handle *found;

	start();
	KEEPS_ERRNO(found = tdt_task_find(tdt_handle_id(task.traced.handle)));
	ck_assert_ptr_eq(found, task.traced.handle);
	tdt_handle_unref(found);
}

TEST(the_first_watch)
{
	struct tdt_trace *trace;

	KEEPS_ERRNO(ck_assert_int_eq(tdt_watch(TDT_WATCH_MIN_NS, NULL), 0));
	start();
	do {
		usleep(1000);
		KEEPS_ERRNO(poll_now(&task));
		trace = tdt_backtrace_last(task.traced.handle);
	} while (trace == NULL && errno == ENODATA);
	tdt_trace_free(trace);
	KEEPS_ERRNO(trace = tdt_backtrace_last(task.traced.handle));
	ck_assert_ptr_nonnull(trace);
	tdt_trace_free(trace);
	KEEPS_ERRNO(ck_assert_int_eq(tdt_watch(0, NULL), 0));
}

TEST(the_first_trace_context)
{
	const struct tdt_trace_context context = { .trace_id = { 1 }, .span_id = { 1 } };

	KEEPS_ERRNO(ck_assert_int_eq(tdt_context_labels(true), 0));
	start();
	KEEPS_ERRNO(ck_assert_int_eq(tdt_task_context(task.traced.handle, &context), 0));
	KEEPS_ERRNO(poll_now(&task));
}

TEST(the_first_dump_on_signal)
{
	KEEPS_ERRNO(ck_assert_int_eq(tdt_dump_on_signal(SIGUSR2, NULL), 0));
	KEEPS_ERRNO(raise(SIGUSR2));
	KEEPS_ERRNO(ck_assert_int_eq(tdt_dump_on_signal(0, NULL), 0));
}

TEST(the_first_combinators)
{
	struct tdt_future futures[2] = { future_of(leaf_poll, NULL), future_of(leaf_poll, NULL) };
	struct tdt_future join, select;
	size_t winner;

	KEEPS_ERRNO(join = tdt_join_all(futures, 2));
	KEEPS_ERRNO(select = tdt_select(futures, 2, &winner));
	KEEPS_ERRNO(poll_now_start(&task, join));
	KEEPS_ERRNO(tdt_future_drop(&select));
	KEEPS_ERRNO(poll_now_end(&task));
}

static int co_main(void *arg)
{
	return 0;
}

TEST(the_first_coroutine)
{
	struct tdt_future future;

	KEEPS_ERRNO(future = tdt_coroutine(co_main, NULL, NULL));
	KEEPS_ERRNO(ck_assert_int_eq(tdt_future_poll(&future, &(struct tdt_context){ &task.waker }),
				     TDT_READY));
	KEEPS_ERRNO(tdt_future_drop(&future));
}

TEST(the_first_hooks)
{
	KEEPS_ERRNO(tdt_worker_thread_start(NULL));
	KEEPS_ERRNO(tdt_worker_thread_park());
	KEEPS_ERRNO(tdt_worker_thread_unpark());
	KEEPS_ERRNO(tdt_worker_now(1));
	KEEPS_ERRNO(tdt_worker_thread_stop());
	KEEPS_ERRNO(tdt_hook_spawn(TDT_TASK_ATTR(.id = 7)));
	start();
	KEEPS_ERRNO(tdt_task_woken(task.traced.handle));
}

TEST(the_first_built_trace)
{
	const struct tdt_task_info info = { .size = sizeof(info), .id = 1 };
	const struct tdt_frame frame = { .size = sizeof(frame), .kind = TDT_NODE_FRAME };
	struct tdt_trace *trace;

	KEEPS_ERRNO(trace = tdt_trace_new(&info));
	KEEPS_ERRNO(ck_assert_ptr_nonnull(tdt_trace_add(trace, NULL, &frame, 1)));
	KEEPS_ERRNO(tdt_trace_free(trace));
}
