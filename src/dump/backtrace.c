// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Requesting a trace: the calls that block, and the future that does not. */

#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <tdt/hooks.h>
#include <tdt/trace.h>

#include "base/clock.h"
#include "base/options.h"
#include "capture/capture.h"
#include "capture/capture_trace.h"
#include "capture/chain.h"
#include "capture/judge.h"
#include "capture/running.h"
#include "host/thread.h"
#include "host/unloads.h"
#include "registry/handle.h"
#include "task/request.h"
#include "tree/trace.h"

#define SECOND INT64_C(1000000000)
#define MS INT64_C(1000000)
#define TRIES 3

/*
 * The stack of a poll is read if the poll lasts for so long after the request; again after twice as
 * long, and so on.
 */
#define GRACE_MIN (5 * MS)
#define GRACE_MAX (320 * MS)

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
static bool settle(struct answers *answers, struct tdt__capture *capture, int error,
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
	       capture->facts.state != TDT_TASK_WAITING || answers->tries == TRIES;
}

/* The trace made from the answers; NULL and errno. */
static struct tdt_trace *conclude(struct answers *answers, const struct tdt_handle *task)
{
	struct tdt__capture *capture = answers->capture;

	answers->capture = NULL;
	if (capture != NULL)
		return tdt__capture_trace(task, capture);
	errno = -answers->error;
	return NULL;
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

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void wait_answered(struct tdt__request *request, uint64_t deadline)
{
	const struct timespec until = { (time_t)(deadline / SECOND), (long)(deadline % SECOND) };
	int saved = errno;

	while (sem_clockwait(&request->answered, CLOCK_MONOTONIC, &until) != 0 && errno == EINTR)
		;
	errno = saved; /* the answer may still come, or the poll's stack be read */
}

struct question {
	struct tdt_handle *task;
	struct tdt__request *request; /* NULL: there is none any more */
};

/* Runs also if the thread is cancelled while it waits, or inside the runtime's waker. */
static void give_up(struct question *question)
{
	if (question->request != NULL)
		tdt__request_withdraw(question->task, question->request);
}

/*
 * Wait for the answer.  A poll that is in the middle of something gives no answer, but its stack
 * can be read.  Returns the capture of that stack; NULL: look at the request, which may be
 * answered.
 */
static struct tdt__capture *wait_or_look(struct tdt_handle *task, struct tdt__request *request,
					 uint64_t deadline, uint32_t max_frames)
{
	uint64_t poll = tdt__running_poll(task), now = tdt__clock();
	struct tdt__capture *running = NULL;
	int error;

	for (int64_t grace = GRACE_MIN; now < deadline && running == NULL;
	     grace = grace < GRACE_MAX ? 2 * grace : grace) {
		uint64_t was = poll;

		wait_answered(request, sooner(deadline, now + (uint64_t)grace));
		poll = tdt__running_poll(task);
		now = tdt__clock();
		if (tdt__request_answered(task, request))
			break;
		if (poll != 0 && poll == was && now < deadline)
			running = tdt__running(task, poll, max_frames,
					       sooner(deadline, now + (uint64_t)GRACE_MAX), &error);
	}
	return running;
}

static struct tdt__capture *ask(struct tdt_handle *task, uint64_t deadline, uint32_t max_frames,
				int *error)
{
	struct question question
	    __attribute__((cleanup(give_up))) = { task, tdt__request_new(task, max_frames) };
	struct tdt__capture *capture;

	if (question.request == NULL) {
		*error = -ENOMEM;
		return NULL;
	}
	tdt__request_ask(task, question.request);
	capture = wait_or_look(task, question.request, deadline, max_frames);
	if (capture != NULL)
		return capture;
	if (!tdt__request_answered(task, question.request)) {
		*error = -ETIMEDOUT;
		return NULL;
	}
	capture = tdt__request_result(question.request, error);
	question.request = NULL;
	return capture;
}

static struct tdt_trace *backtrace(struct tdt_handle *task, int64_t timeout_ns, uint32_t max_frames)
{
	uint64_t deadline = deadline_in(timeout_ns);
	struct answers answers __attribute__((cleanup(forget))) = { 0 };
	struct tdt__capture *capture;
	int error = 0;

	do
		capture = ask(task, deadline, max_frames, &error);
	while (!settle(&answers, capture, error, deadline));
	return conclude(&answers, task);
}

static struct tdt_trace *refuse(int error)
{
	errno = error;
	return NULL;
}

struct tdt_trace *tdt_backtrace(struct tdt_handle *handle)
{
	if (handle == NULL)
		return refuse(EINVAL);
	if (tdt__thread.poll != NULL || tdt__thread.worker)
		return refuse(EDEADLK);
	return backtrace(handle, SECOND, TDT_MAX_FRAMES);
}

struct tdt_trace *tdt_backtrace_timed(struct tdt_handle *handle, int64_t timeout_ns)
{
	if (handle == NULL || timeout_ns < 0)
		return refuse(EINVAL);
	if (tdt__polled_here(handle)) /* it can't be polled before this poll of it ends */
		return refuse(EDEADLK);
	return backtrace(handle, timeout_ns, TDT_MAX_FRAMES);
}

struct tdt_trace *tdt_backtrace_with(struct tdt_handle *handle,
				     const struct tdt_backtrace_options *options)
{
	struct tdt_backtrace_options ours;
	int error = tdt__options_read(&ours, sizeof ours, options);

	if (error != 0)
		return refuse(-error);
	if (handle == NULL || ours.timeout_ns < 0)
		return refuse(EINVAL);
	if (tdt__polled_here(handle)) /* it can't be polled before this poll of it ends */
		return refuse(EDEADLK);
	return backtrace(handle, ours.timeout_ns != 0 ? ours.timeout_ns : SECOND,
			 ours.max_frames != 0 ? ours.max_frames : TDT_MAX_FRAMES);
}

/* --- Async ------------------------------------------------------------------ */

struct asking {
	struct tdt_handle *task; /* a reference */
	struct tdt_trace **out;
	int *error;                   /* may be NULL */
	struct tdt__request *request; /* NULL: not made yet, or done */
	struct answers answers;
	bool done;
};

static tdt_poll_t finish(struct asking *asking)
{
	struct tdt_trace *trace = conclude(&asking->answers, asking->task);

	asking->done = true;
	*asking->out = trace;
	if (asking->error != NULL)
		*asking->error = trace != NULL ? 0 : -errno;
	return TDT_READY;
}

/* Have the answer wake `waker`.  False: the waker could not be cloned. */
static bool wake_by_answer(struct asking *asking, const struct tdt_waker *waker)
{
	const struct tdt_waker *clone = tdt_waker_clone(waker);

	tdt_waker_drop(tdt__request_set_waker(asking->task, asking->request, clone));
	return clone != NULL;
}

/*
 * Make the request unless it was made already, and have the answer wake `waker`.  Returns 0 or
 * -ENOMEM.
 */
static int ask_and_listen(struct asking *asking, const struct tdt_waker *waker)
{
	bool fresh = asking->request == NULL;

	if (fresh)
		asking->request = tdt__request_new(asking->task, TDT_MAX_FRAMES);
	if (asking->request == NULL)
		return -ENOMEM;
	if (!wake_by_answer(asking, waker)) { /* nothing could wake this future */
		tdt__request_withdraw(asking->task, asking->request);
		asking->request = NULL;
		return -ENOMEM;
	}
	if (fresh)
		tdt__request_ask(asking->task, asking->request);
	return 0;
}

static bool answered(const struct asking *asking)
{
	return asking->request != NULL && tdt__request_answered(asking->task, asking->request);
}

static tdt_poll_t tdt__backtrace_poll(void *state, struct tdt_context *cx)
{
	struct asking *asking = state;
	struct tdt__capture *capture;
	int error;

	if (asking->done)
		return TDT_PANICKED;
	do {
		capture = NULL;
		error = answered(asking) ? 0 : ask_and_listen(asking, cx->waker);
		if (error != 0)
			continue;
		if (!answered(asking)) {
			tdt_leaf_waits_on(TDT_WAIT_TASK, asking->task, tdt_handle_id(asking->task));
			return TDT_PENDING;
		}
		capture = tdt__request_result(asking->request, &error);
		asking->request = NULL;
	} while (!settle(&asking->answers, capture, error, 0)); /* 0: a poll must not wait */
	return finish(asking);
}

static void asking_drop(void *state)
{
	struct asking *asking = state;

	if (asking->request != NULL)
		tdt__request_withdraw(asking->task, asking->request);
	forget(&asking->answers);
	tdt_handle_unref(asking->task);
	free(asking);
}

struct tdt_future tdt_backtrace_async(struct tdt_handle *handle, struct tdt_trace **out, int *error)
{
	struct asking *asking;

	if (handle == NULL || out == NULL) {
		errno = EINVAL;
		return TDT_FUTURE_NONE;
	}
	asking = calloc(1, sizeof *asking);
	if (asking == NULL)
		return TDT_FUTURE_NONE;
	asking->task = tdt_handle_ref(handle);
	asking->out = out;
	asking->error = error;
	return (struct tdt_future){ asking, tdt__backtrace_poll, asking_drop };
}
