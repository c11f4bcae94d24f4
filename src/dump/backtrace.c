// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Requesting a trace: the calls that block, and the future that does not. */

#include <errno.h>
#include <stdlib.h>

#include <tdt/integrate/hooks.h>
#include <tdt/trace.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/result.h"
#include "capture/capture.h"
#include "capture/capture_trace.h"
#include "capture/chain.h"
#include "capture/fiber.h"
#include "capture/judge.h"
#include "capture/leaf_list.h"
#include "capture/running.h"
#include "capture/suspended.h"
#include "host/thread.h"
#include "host/unloads.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "task/request.h"
#include "tree/trace.h"

#define MS INT64_C(1000000)

/*
 * The stack of a poll is read if the poll lasts for so long after the request; again after twice as
 * long, and so on.
 */
#define GRACE_MIN (5 * MS)
#define GRACE_MAX (320 * MS)

#define FLAGS (TDT_BACKTRACE_NO_WAIT | TDT_BACKTRACE_ON_WORKER)

/* So long a list is tried that was just in force. */
#define LIST_TIME (10 * MS)

/* The answers so far: the best capture, or else an error. */
struct answers {
	struct tdt__capture *capture;
	int error;
	unsigned tries;
};

/*
 * Note an answer: a capture, or NULL and `error`.  Returns whether the answer will do.  If not,
 * another request is worthwhile: the capture may have gone astray, and is kept in case no better
 * one comes.
 */
static bool note_answer(struct answers *answers, struct tdt__capture *capture, int error,
			uint64_t deadline)
{
	struct tdt__unloads count = { .deadline = deadline };

	answers->tries++;
	if (capture == NULL) {
		answers->error = error;
		return true;
	}
	tdt__capture_unref(answers->capture);
	answers->capture = capture;
	if (capture->facts.state == TDT_TASK_RUNNING) /* it was judged when it was made */
		return true;
	return tdt__judge(&capture->stacks, &count) != -EAGAIN ||
	       (capture->facts.state != TDT_TASK_WAITING &&
		capture->facts.state != TDT_TASK_RUNNABLE) ||
	       answers->tries == TDT__REQUEST_TRIES;
}

/* The trace made from the answers; NULL and errno. */
static struct tdt_trace *trace_of_answers(struct answers *answers, const struct tdt_handle *task)
{
	struct tdt__capture *capture = answers->capture;

	answers->capture = NULL;
	if (capture != NULL)
		return tdt__capture_trace(task, capture);
	return tdt__nothing(answers->error);
}

/* The stack of a suspended fiber.  NULL: `*error` is -EAGAIN if it is none. */
static struct tdt__capture *read_fiber(struct tdt_handle *task, uint32_t max_frames,
				       uint64_t deadline, int *error)
{
	*error = -EAGAIN;
	return tdt__is_fiber(task) ? tdt__suspended_capture(task, max_frames, deadline, error)
				   : NULL;
}

static void forget(struct answers *answers)
{
	tdt__capture_unref(answers->capture);
}

/* --- Blocking -------------------------------------------------------------- */

/* In nanoseconds of CLOCK_MONOTONIC.  Within 290 years of uptime there is no overflow. */
static uint64_t deadline_in(int64_t timeout_ns)
{
	return tdt__clock() + (uint64_t)timeout_ns;
}

static void wait_answered(struct tdt__request *request, uint64_t deadline)
{
	const struct timespec until = tdt__timespec(deadline);
	int saved = errno;

	while (sem_clockwait(&request->answered, CLOCK_MONOTONIC, &until) != 0 && errno == EINTR)
		;
	errno = saved; /* the answer may still come, or the poll's stack be read */
}

struct outstanding {
	struct tdt_handle *task;
	struct tdt__request *request; /* NULL: there is none any more */
};

/* Runs also if the thread is cancelled while it waits, or inside the runtime's waker. */
static void give_up_request(struct outstanding *outstanding)
{
	if (outstanding->request != NULL)
		tdt__request_withdraw(outstanding->task, outstanding->request);
}

/*
 * Wait for the answer.  A poll that is in the middle of something gives no answer, but its stack
 * can be read, and so can that of a fiber which was suspended before it could see the request.
 * Returns the capture of that stack; NULL: look at the request, which may be answered.
 */
static struct tdt__capture *wait_or_look(struct tdt_handle *task, struct tdt__request *request,
					 uint64_t deadline, uint32_t max_frames)
{
	uint64_t poll = tdt__running_poll(task), now = tdt__clock();
	int error;
	struct tdt__capture *running = read_fiber(task, max_frames, deadline, &error);

	for (int64_t grace = GRACE_MIN; now < deadline && running == NULL;
	     grace = grace < GRACE_MAX ? 2 * grace : grace) {
		uint64_t was = poll;

		wait_answered(request, tdt__earlier(deadline, now + (uint64_t)grace));
		poll = tdt__running_poll(task);
		now = tdt__clock();
		if (tdt__request_answered(task, request))
			break;
		if (poll != 0 && poll == was && now < deadline)
			running = tdt__running(
				task, poll, max_frames,
				tdt__earlier(deadline, now + (uint64_t)GRACE_MAX), &error);
	}
	return running;
}

static struct tdt__capture *request_once(struct tdt_handle *task, uint64_t deadline,
					 uint32_t max_frames, int *error)
{
	struct outstanding outstanding
	    __attribute__((cleanup(give_up_request))) = { task,
							  tdt__request_new(task, max_frames) };
	struct tdt__capture *capture;

	if (outstanding.request == NULL) {
		*error = -ENOMEM;
		return NULL;
	}
	tdt__request_send(task, outstanding.request);
	capture = wait_or_look(task, outstanding.request, deadline, max_frames);
	if (capture != NULL)
		return capture;
	if (!tdt__request_answered(task, outstanding.request)) {
		/* No poll comes, but the task may be a future that runs on a fiber. */
		capture = tdt__suspended_capture(task, max_frames, deadline, error);
		*error = -ETIMEDOUT;
		return capture;
	}
	capture = tdt__request_result(outstanding.request, error);
	outstanding.request = NULL;
	return capture;
}

static struct tdt_trace *backtrace(struct tdt_handle *task, int64_t timeout_ns, uint32_t max_frames)
{
	uint64_t deadline = deadline_in(timeout_ns);
	struct answers answers __attribute__((cleanup(forget))) = { 0 };
	struct tdt__capture *capture;
	int error = 0;

	do {
		capture = read_fiber(task, max_frames, deadline, &error);
		if (error == -EAGAIN)
			capture = request_once(task, deadline, max_frames, &error);
	} while (!note_answer(&answers, capture, error, deadline));
	return trace_of_answers(&answers, task);
}

/*
 * If a list is in force, request a trace by it: any thread may do this, since nothing has to be
 * polled.  False: no list is in force, or not any more.
 */
static bool backtrace_at_list(struct tdt_handle *task, uint32_t max_frames,
			      struct tdt_trace **trace)
{
	if (!tdt__waits_at_list(task))
		return false;
	*trace = backtrace(task, LIST_TIME, max_frames);
	return *trace != NULL || errno != ETIMEDOUT;
}

/* The caller may be the thread that polls the task, so only a suspended stack can be read. */
static struct tdt_trace *backtrace_suspended(struct tdt_handle *task, uint32_t max_frames)
{
	int error;
	struct tdt__capture *capture = tdt__suspended_capture(task, max_frames,
							      deadline_in(TDT__SECOND), &error);

	if (capture != NULL)
		return tdt__capture_trace(task, capture);
	return tdt__nothing(error == -EAGAIN ? -EDEADLK : error);
}

/*
 * Whether this thread is a worker that runs tasks: whether it is the last thread that polled some
 * live task.  A thread of a pool for blocking calls polls none, though some runtimes report it as a
 * worker.
 */
static bool runs_tasks(void)
{
	struct tdt__cursor cursor = { 0 };
	const struct tdt_handle *task;
	struct tdt_task_record record;
	bool runs = false;

	if (!tdt__thread.worker)
		return false;
	while (!runs && (task = tdt__registry_next(&cursor)) != NULL)
		runs = TDT__PEEK(task->record.thread) == tdt__thread_id() &&
		       tdt__registry_read(task, &record) && tdt__record_is_live(&record);
	return runs;
}

/* Read a caller's options.  Returns 0 or a negative errno. */
static int read_backtrace_options(struct tdt_backtrace_options *ours,
				  const struct tdt_backtrace_options *theirs)
{
	int error = tdt__options_read(ours, sizeof *ours, theirs);

	if (error == 0 && (ours->timeout_ns < 0 || (ours->flags & ~(uint32_t)FLAGS) != 0))
		error = -EINVAL;
	if (ours->max_frames == 0)
		ours->max_frames = TDT_MAX_FRAMES;
	return error;
}

struct tdt_trace *tdt_backtrace(struct tdt_handle *handle)
{
	return tdt_backtrace_with(handle, NULL);
}

struct tdt_trace *tdt_backtrace_with(struct tdt_handle *handle,
				     const struct tdt_backtrace_options *options)
{
	struct tdt_backtrace_options ours;
	struct tdt_trace *trace;
	int error = read_backtrace_options(&ours, options);

	if (error != 0)
		return tdt__nothing(error);
	if (handle == NULL)
		return tdt__nothing(-EINVAL);
	if ((ours.flags & FLAGS) != 0) {
		if (tdt__polled_here(handle)) /* it can't be polled before this poll of it ends */
			return tdt__nothing(-EDEADLK);
	} else {
		if (backtrace_at_list(handle, ours.max_frames, &trace))
			return trace;
		if (tdt__thread.poll != NULL || runs_tasks())
			return backtrace_suspended(handle, ours.max_frames);
	}
	if ((ours.flags & TDT_BACKTRACE_NO_WAIT) != 0)
		return backtrace(handle, 0, ours.max_frames);
	return backtrace(handle, ours.timeout_ns != 0 ? ours.timeout_ns : TDT__SECOND,
			 ours.max_frames);
}

/* --- Async ------------------------------------------------------------------ */

struct async_request {
	struct tdt_handle *task; /* a reference */
	struct tdt_trace **out;
	int *error;                   /* may be NULL */
	uint32_t max_frames;
	struct tdt__request *request; /* NULL: not made yet, or done */
	struct answers answers;
	bool done;
};

static tdt_poll_t finish(struct async_request *async)
{
	struct tdt_trace *trace = trace_of_answers(&async->answers, async->task);

	async->done = true;
	*async->out = trace;
	if (async->error != NULL)
		*async->error = trace != NULL ? 0 : -errno;
	return TDT_READY;
}

/* Have the answer wake `waker`.  False: the waker could not be cloned. */
static bool wake_by_answer(struct async_request *async, const struct tdt_waker *waker)
{
	const struct tdt_waker *clone = tdt_waker_clone(waker);

	tdt_waker_drop(tdt__request_set_waker(async->task, async->request, clone));
	return clone != NULL;
}

/*
 * Make the request unless it was made already, and have the answer wake `waker`.  Returns 0 or
 * -ENOMEM.
 */
static int request_and_listen(struct async_request *async, const struct tdt_waker *waker)
{
	bool fresh = async->request == NULL;

	if (fresh)
		async->request = tdt__request_new(async->task, async->max_frames);
	if (async->request == NULL)
		return -ENOMEM;
	if (!wake_by_answer(async, waker)) { /* nothing could wake this future */
		tdt__request_withdraw(async->task, async->request);
		async->request = NULL;
		return -ENOMEM;
	}
	if (fresh)
		tdt__request_send(async->task, async->request);
	return 0;
}

static bool answered(const struct async_request *async)
{
	return async->request != NULL && tdt__request_answered(async->task, async->request);
}

/*
 * Look for the answer: that of the request, or the stack of a fiber that is suspended now.  Returns
 * whether there is one: `*capture`, or NULL and `*error`.
 */
static bool find_answer(struct async_request *async, struct tdt__capture **capture, int *error)
{
	bool is_answered = answered(async);

	/* 0 for the deadline: a poll must not wait. */
	*capture = is_answered ? tdt__request_result(async->request, error)
			       : read_fiber(async->task, async->max_frames, 0, error);
	if (!is_answered && *error == -EAGAIN)
		return false;
	if (!is_answered && async->request != NULL)
		tdt__request_withdraw(async->task, async->request);
	async->request = NULL;
	return true;
}

static tdt_poll_t tdt__backtrace_poll(void *state, struct tdt_context *cx)
{
	struct async_request *async = state;
	struct tdt__capture *capture;
	int error;

	if (async->done)
		return TDT_PANICKED;
	do {
		if (find_answer(async, &capture, &error))
			continue;
		error = request_and_listen(async, cx->waker);
		if (error == 0 && !find_answer(async, &capture, &error)) {
			tdt_leaf_waits_on(TDT_WAIT_TASK, async->task, tdt_handle_id(async->task));
			return TDT_PENDING;
		}
	} while (!note_answer(&async->answers, capture, error, 0)); /* 0: a poll must not wait */
	return finish(async);
}

static void async_drop(void *state)
{
	struct async_request *async = state;

	if (async->request != NULL)
		tdt__request_withdraw(async->task, async->request);
	forget(&async->answers);
	tdt_handle_unref(async->task);
	free(async);
}

struct tdt_future tdt_backtrace_async(struct tdt_handle *handle,
				      const struct tdt_backtrace_options *options,
				      struct tdt_trace **out, int *error)
{
	struct tdt_backtrace_options ours;
	struct async_request *async;
	int wrong = read_backtrace_options(&ours, options);

	if (wrong == 0 &&
	    (handle == NULL || out == NULL || ours.timeout_ns != 0 || ours.flags != 0))
		wrong = -EINVAL;
	if (wrong != 0)
		return tdt__no_future(wrong);
	async = calloc(1, sizeof *async);
	if (async == NULL)
		return TDT_FUTURE_NONE;
	async->task = tdt_handle_ref(handle);
	async->out = out;
	async->error = error;
	async->max_frames = ours.max_frames;
	return (struct tdt_future){ async, tdt__backtrace_poll, async_drop };
}
