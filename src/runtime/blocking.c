// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Jobs that block, and the threads that do them.  A job belongs to its future until a thread takes
 * it out of the queue, and then to both: whichever comes last frees it.  Threads start when more
 * jobs wait than threads, and end when nothing has come for a while.
 */

#include <config.h>

#include "runtime/blocking.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <tdt/integrate/hooks.h>
#include <tdt/integrate/leaf.h>
#include <tdt/rt/runtime.h>

#include "base/leaf_poll.h"
#include "base/result.h"
#include "runtime/current.h"
#include "runtime/rt.h"
#include "runtime/slot.h"

#define THREADS_MOST 128 /* tdt/rt/blocking.h says so */
#define IDLE_SECONDS 10

struct tdt__job {
	struct tdt__job *next;
	void (*call)(void *arg);
	void *arg;
	void (*arg_free)(void *arg);
	struct tdt_rt *rt; /* a reference; NULL: the future was not polled yet */
	struct tdt__slot slot;
	struct tdt_handle *task; /* NULL: there was no memory for it */
	uint64_t id;		 /* of that task */
	struct tdt_leaf leaf;	 /* where that task waits */
	bool ended;		 /* the future has */

	/* Under the lock of the runtime's `blocking`. */
	enum { QUEUED, RUNS, RETURNED, FAILED, ABANDONED } at;
};

/* --- A job ---------------------------------------------------------------------- */

static void free_job(struct tdt__job *job)
{
	if (job->arg_free != NULL)
		job->arg_free(job->arg);
	tdt__slot_clear(&job->slot);
	if (job->rt != NULL)
		tdt__rt_unref(job->rt);
	free(job);
}

/* The task of a job, which waits for a thread. */
static void make_task(struct tdt__job *job)
{
	static const struct tdt_leaf_frame here = { .function = "tdt_spawn_blocking" };
	static const struct tdt_leaf_wait thread = { .kind = TDT_WAIT_OTHER,
						     .name = "a blocking thread" };
	const struct tdt_task_attr attr = { .size = sizeof attr, .entry = (uintptr_t)job->call };

	job->leaf = (struct tdt_leaf){
		.kind = TDT_LEAF_NAMED, .n = 1, .frames = &here, .waits = &thread, .n_waits = 1
	};
	job->task = tdt_task_new(&attr);
	job->id = tdt_handle_id(job->task);
	tdt_leaf_at(job->task, &job->leaf);
}

/* --- A thread --------------------------------------------------------------------- */

static struct tdt__job *pop_job(struct tdt__blocking *blocking)
{
	struct tdt__job *job = blocking->first;

	blocking->first = job->next;
	if (blocking->first == NULL)
		blocking->last = &blocking->first;
	blocking->queued--;
	return job;
}

/* Wait for a job, and take it.  NULL: none has come, or the runtime stops.  Under the lock. */
static struct tdt__job *next_job(struct tdt__blocking *blocking)
{
	struct timespec until;
	int error = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += IDLE_SECONDS;
	blocking->idle++;
	while (blocking->first == NULL && !blocking->stopping && error == 0)
		error = pthread_cond_timedwait(&blocking->come, &blocking->lock, &until);
	blocking->idle--;
	return blocking->first != NULL ? pop_job(blocking) : NULL;
}

/* The jobs in the queue never begin.  Under the lock, which this gives up meanwhile. */
static void fail_queued(struct tdt__blocking *blocking)
{
	while (blocking->first != NULL) {
		struct tdt__job *job = pop_job(blocking);
		const struct tdt_waker *waker = tdt__slot_take(&job->slot);
		struct tdt_handle *task = job->task;

		job->at = FAILED;
		pthread_mutex_unlock(&blocking->lock);
		tdt_task_end(task);
		tdt_waker_wake(waker);
		pthread_mutex_lock(&blocking->lock);
	}
}

/* A thread has ended, or could not be started.  Under the lock. */
static void lose_thread(struct tdt__blocking *blocking)
{
	if (--blocking->threads != 0)
		return;
	pthread_cond_broadcast(&blocking->gone);
	fail_queued(blocking); /* no thread will come to them */
}

struct call {
	struct tdt__job *job;
	bool returned;
};

/* Runs also if the job exits as a thread, or is cancelled: then the thread ends here. */
static void end_call(struct call *call)
{
	struct tdt__job *job = call->job;
	struct tdt__blocking *blocking = &job->rt->blocking;
	const struct tdt_waker *waker = NULL;
	bool abandoned;

	tdt_task_end(job->task);
	pthread_mutex_lock(&blocking->lock);
	abandoned = job->at == ABANDONED;
	job->at = call->returned ? RETURNED : FAILED;
	if (!abandoned)
		waker = tdt__slot_take(&job->slot); /* the job may be freed once it is unlocked */
	pthread_mutex_unlock(&blocking->lock);
	tdt_waker_wake(waker);
	if (abandoned)
		free_job(job);
}

static void *serve_jobs(void *arg);

/* Returns 0 or a negative errno. */
static int begin_thread(struct tdt_rt *rt)
{
	pthread_attr_t attr;
	pthread_t thread;
	int error = pthread_attr_init(&attr);

	if (error != 0)
		return -error;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	tdt__rt_ref(rt);
	error = pthread_create(&thread, &attr, serve_jobs, rt);
	pthread_attr_destroy(&attr);
	if (error != 0)
		tdt__rt_unref(rt);
	return -error;
}

/* Runs at the end of the thread, however that comes. */
static void end_thread(struct tdt_rt **rt)
{
	struct tdt__blocking *blocking = &(*rt)->blocking;

	pthread_mutex_lock(&blocking->lock);
	/* If a job has exited as a thread, others may wait. */
	if (blocking->first == NULL || begin_thread(*rt) != 0)
		lose_thread(blocking);
	pthread_mutex_unlock(&blocking->lock);
	tdt__rt_unref(*rt);
}

static void do_job(struct tdt__job *job)
{
	struct call call __attribute__((cleanup(end_call))) = { .job = job };

	tdt_task_enter(job->task);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	job->call(job->arg);
	pthread_testcancel(); /* this job was meant, not the next one */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	tdt_task_leave(job->task);
	call.returned = true;
}

static void *serve_jobs(void *arg)
{
	struct tdt_rt *rt __attribute__((cleanup(end_thread))) = arg;
	struct tdt__blocking *blocking = &rt->blocking;
	struct tdt__job *job;

	pthread_setname_np(pthread_self(), "tdt-blocking");
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); /* only jobs may be cancelled */
	tdt__current = (struct tdt__current){ .rt = rt };
	for (;;) {
		pthread_mutex_lock(&blocking->lock);
		job = next_job(blocking);
		if (job != NULL)
			job->at = RUNS;
		pthread_mutex_unlock(&blocking->lock);
		if (job == NULL)
			return NULL;
		do_job(job);
	}
}

/* --- The queue ---------------------------------------------------------------------- */

/* Take the job out of the queue, if it is there. */
static void unqueue(struct tdt__blocking *blocking, const struct tdt__job *job)
{
	struct tdt__job **link = &blocking->first;

	while (*link != NULL && *link != job)
		link = &(*link)->next;
	if (*link == NULL)
		return;
	*link = job->next;
	if (blocking->last == &job->next)
		blocking->last = link;
	blocking->queued--;
}

/* Put the job into the queue.  False: there is no queue any more. */
static bool push_job(struct tdt__blocking *blocking, struct tdt__job *job, bool *needs_thread)
{
	bool open;

	pthread_mutex_lock(&blocking->lock);
	open = !blocking->stopping;
	if (open) {
		*blocking->last = job;
		blocking->last = &job->next;
		blocking->queued++;
		*needs_thread =
		    blocking->queued > blocking->idle && blocking->threads < THREADS_MOST;
		blocking->threads += *needs_thread;
		pthread_cond_signal(&blocking->come);
	}
	pthread_mutex_unlock(&blocking->lock);
	return open;
}

/* No thread could be started for the job.  Whether none is there that will take it. */
static bool fails_without_thread(struct tdt__blocking *blocking, struct tdt__job *job)
{
	bool fails;

	pthread_mutex_lock(&blocking->lock);
	fails = blocking->threads == 1 && job->at == QUEUED;
	if (fails)
		unqueue(blocking, job); /* the others fail without a reason */
	lose_thread(blocking);
	pthread_mutex_unlock(&blocking->lock);
	return fails;
}

/* Returns 0 or a negative errno: the job never begins. */
static int start_job(struct tdt__job *job)
{
	struct tdt_rt *rt = tdt__current.rt;
	bool needs_thread = false;
	int error = 0;

	if (rt == NULL || !tdt__rt_is_here(rt))
		return -ENOTSUP;
	make_task(job);
	tdt__rt_ref(rt);
	job->rt = rt;
	if (!push_job(&rt->blocking, job, &needs_thread))
		error = -ENOTSUP;
	if (needs_thread)
		error = begin_thread(rt);
	if (error == 0 || (needs_thread && !fails_without_thread(&rt->blocking, job)))
		return 0;
	job->at = FAILED; /* no other thread knows of it */
	tdt_task_end(job->task);
	return error;
}

/* --- The future --------------------------------------------------------------------- */

static int state_of(struct tdt__job *job)
{
	int at;

	pthread_mutex_lock(&job->rt->blocking.lock);
	at = job->at;
	pthread_mutex_unlock(&job->rt->blocking.lock);
	return at;
}

static tdt_poll_t end_future(struct tdt__job *job, int error)
{
	job->ended = true;
	if (error == 0) {
		job->arg_free = NULL; /* the argument is the caller's */
		return TDT_READY;
	}
	errno = -error;
	return TDT_PANICKED;
}

TDT__LEAF_POLL(tdt_spawn_blocking);

tdt_poll_t tdt_spawn_blocking(void *state, struct tdt_context *cx)
{
	struct tdt__job *job = state;
	int error;

	if (job->ended)
		return TDT_PANICKED;
	tdt__slot_register(&job->slot, cx->waker);
	error = job->rt == NULL ? start_job(job) : 0;
	if (error != 0)
		return end_future(job, error);
	switch (state_of(job)) {
	case RETURNED:
		return end_future(job, 0);
	case FAILED:
		return end_future(job, -ECANCELED);
	default:
		tdt_leaf_waits_on(job->id != 0 ? TDT_WAIT_TASK : TDT_WAIT_OTHER, job->task,
				  job->id);
		return TDT_PENDING;
	}
}

/* Whether a thread has the job, and frees it. */
static bool abandon(struct tdt__job *job)
{
	struct tdt__blocking *blocking = &job->rt->blocking;
	bool runs, queued;

	if (!tdt__rt_is_here(job->rt))
		return true; /* in a child of fork(), the lock may be held for ever */
	pthread_mutex_lock(&blocking->lock);
	runs = job->at == RUNS;
	queued = job->at == QUEUED;
	if (queued)
		unqueue(blocking, job);
	if (runs)
		job->at = ABANDONED;
	pthread_mutex_unlock(&blocking->lock);
	if (queued)
		tdt_task_end(job->task);
	return runs;
}

static void drop_job(void *state)
{
	struct tdt__job *job = state;

	if (job->rt == NULL || !abandon(job))
		free_job(job);
}

struct tdt_future tdt__spawn_blocking_new(void (*job)(void *arg), void *arg,
					  void (*arg_free)(void *arg))
    TDT__LEAF_CALL(tdt_spawn_blocking);

struct tdt_future tdt__spawn_blocking_new(void (*call)(void *arg), void *arg,
					  void (*arg_free)(void *arg))
{
	struct tdt__job *job;

	if (call == NULL)
		return tdt__no_future(-EINVAL);
	job = calloc(1, sizeof *job);
	if (job == NULL)
		return TDT_FUTURE_NONE;
	job->call = call;
	job->arg = arg;
	job->arg_free = arg_free;
	return (struct tdt_future){ job, tdt_spawn_blocking, drop_job };
}

/* --- The life of the threads -------------------------------------------------------- */

void tdt__blocking_init(struct tdt__blocking *blocking)
{
	pthread_condattr_t attr;

	/* Default ones, but for the clock: none of these fails. */
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&blocking->lock, NULL);
	pthread_cond_init(&blocking->come, &attr);
	pthread_cond_init(&blocking->gone, &attr);
	pthread_condattr_destroy(&attr);
	blocking->last = &blocking->first;
}

void tdt__blocking_fini(struct tdt__blocking *blocking)
{
	pthread_cond_destroy(&blocking->gone);
	pthread_cond_destroy(&blocking->come);
	pthread_mutex_destroy(&blocking->lock);
}

void tdt__blocking_stop(struct tdt__blocking *blocking)
{
	pthread_mutex_lock(&blocking->lock);
	blocking->stopping = true;
	pthread_cond_broadcast(&blocking->come);
	/* Futures that are left in the hands of others: their tasks, if any, are dropped by now. */
	fail_queued(blocking);
	while (blocking->threads > 0)
		pthread_cond_wait(&blocking->gone, &blocking->lock);
	pthread_mutex_unlock(&blocking->lock);
}
