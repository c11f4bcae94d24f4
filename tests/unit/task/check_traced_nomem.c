// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/task.  Each allocation fails in turn, from tracing a future to the answer: the future
 * completes all the same.
 */

#include "lib/test.h"

#define DEEP 200

/*
 * Check's own assertions allocate.  So within the calls that are made to fail what is broken is
 * only noted.
 */
static const char *broken;

#define WANT(condition) (broken = (condition) ? broken : #condition)

/* A leaf at the end of a deep stack, that is ready when told so. */
struct deep {
	bool ready;
	int polls;
};

static __attribute__((noinline)) void clone_deep(int depth, struct tdt_context *cx)
{
	if (depth > 0)
		clone_deep(depth - 1, cx);
	else
		tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
}

static tdt_poll_t poll_deep(void *state, struct tdt_context *cx)
{
	struct deep *deep = state;

	deep->polls++;
	clone_deep(DEEP, cx);
	return deep->ready ? TDT_READY : TDT_PENDING;
}

/*
 * A runtime that polls inside its wake, so that all is done by the thread whose allocations fail.
 */
struct runtime {
	struct tdt_waker waker;
	struct tdt_future future;
};

static tdt_poll_t poll_by(const struct runtime *runtime)
{
	struct tdt_context cx = { &runtime->waker };

	return tdt_future_poll(&runtime->future, &cx);
}

static void poll_now(const struct tdt_waker *waker)
{
	poll_by((const struct runtime *)(const void *)waker);
}

/* Whether the trace lacks nothing. */
static int complete(const struct tdt_trace *trace)
{
	enum tdt_cut cut;

	WANT(tdt_trace_info(trace)->state == TDT_TASK_WAITING);
	if (tdt_trace_info(trace)->leaves_lost > 0)
		return -ENOMEM;
	WANT(tdt_trace_info(trace)->leaves == 1);
	tdt_trace_stack(trace, 0, NULL, 0, &cut);
	if (cut == TDT_CUT_MEMORY)
		return -ENOMEM;
	WANT(cut == TDT_CUT_NOT);
	return 0;
}

static int ask_blocking(struct tdt_handle *handle)
{
	const struct tdt_backtrace_options options = { .size = sizeof(options),
						       .max_frames = 2 * DEEP };
	struct tdt_trace *trace;
	int error;

	errno = 0;
	trace = tdt_backtrace_with(handle, &options);
	if (trace == NULL)
		return -errno;
	error = complete(trace);
	tdt_trace_free(trace);
	return error;
}

static int ask_async(struct tdt_handle *handle)
{
	struct tdt_trace *trace = NULL;
	int error = 1;
	struct tdt_future requester;

	errno = 0;
	requester = tdt_backtrace_async(handle, NULL, &trace, &error);
	if (tdt_future_is_none(&requester))
		return -errno;
	WANT(poll_idly(&requester) == TDT_READY);
	if (trace != NULL)
		error = complete(trace);
	tdt_trace_free(trace);
	tdt_future_drop(&requester);
	return error;
}

/* Trace a future, ask, and let it end. */
static int whole_life(void *argument)
{
	static const struct tdt_waker_vtable vtable = { clone_itself, poll_now, poll_now,
							ignore_waker };
	int (*const *ask)(struct tdt_handle * handle) = argument;
	struct deep deep = { 0 };
	struct tdt_future child = { &deep, poll_deep, drop_nothing };
	struct tdt_traced traced;
	struct runtime runtime;
	int error;

	errno = 0;
	traced = tdt_traced_with(child, TDT_TASK_ATTR(.name = "deep"));
	error = traced.handle == NULL ? -errno : 0;
	runtime = (struct runtime){ { &vtable }, traced.future };
	WANT(poll_by(&runtime) == TDT_PENDING);
	if (error == 0)
		error = (*ask)(traced.handle);
	deep.ready = true;
	WANT(poll_by(&runtime) == TDT_READY);
	tdt_future_drop(&runtime.future);
	tdt_handle_unref(traced.handle);
	return error;
}

CASE(memory)

TEST(asking_and_blocking_reports_every_lack_of_memory)
{
	int (*ask)(struct tdt_handle *) = ask_blocking;

	no_memory_each(whole_life, &ask, 6);
	ck_assert_msg(broken == NULL, "not so: %s", broken);
}

TEST(asking_async_reports_every_lack_of_memory)
{
	int (*ask)(struct tdt_handle *) = ask_async;

	no_memory_each(whole_life, &ask, 7);
	ck_assert_msg(broken == NULL, "not so: %s", broken);
}
