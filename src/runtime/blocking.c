// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Jobs that block, and the threads that do them.  A job belongs to its future until a thread takes
 * it out of the queue, and then to both: whichever comes last frees it.  Threads start when more
 * jobs wait than threads, and end when nothing has come for a while.
 */

#include "runtime/blocking.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <tdt/integrate/hooks.h>
#include <tdt/integrate/leaf.h>
#include <tdt/rt/blocking.h>

#include "base/hold.h"
#include "base/leaf_poll.h"
#include "base/result.h"
#include "runtime/rt.h"
#include "runtime/slot.h"

#define THREADS_MOST 128 /* tdt/rt/blocking.h says so */
#define IDLE_SECONDS 10

struct tdt__job {
	TAILQ_ENTRY(tdt__job) link;
	void (*call)(void *arg);
	void *arg;
	void (*arg_free)(void *arg);
	const char *name;
	struct tdt_rt *rt; /* a reference; NULL: the future was not polled yet */
	struct tdt__slot slot;
	struct tdt_handle *task; /* NULL: there was no memory for it */
	uint64_t id;		 /* of that task */
	struct tdt_leaf leaf;	 /* where that task waits */
	bool returned;		 /* the call has; its thread uses this */
	bool ended;		 /* the future has */

	/* Under the lock of the runtime's `blocking`. */
	enum { QUEUED, RUNS, RETURNED, FAILED, ABANDONED } at;
};

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
	const struct tdt_task_attr attr = { .size = sizeof attr,
					    .name = job->name,
					    .flags = TDT_ATTR_BLOCKING,
					    .entry = (uintptr_t)job->call };

	job->leaf = (struct tdt_leaf){
		.kind = TDT_LEAF_NAMED, .n = 1, .frames = &here, .waits = &thread, .n_waits = 1
	};
	job->task = tdt_task_new(&attr);
	job->id = tdt_handle_id(job->task);
	tdt_leaf_at(job->task, &job->leaf);
}

/* --- The queue; the caller has the lock -------------------------------------------- */

static void take_job(struct tdt__blocking *blocking, struct tdt__job *job, int at)
{
	TAILQ_REMOVE(&blocking->queue, job, link);
	blocking->queued--;
	job->at = at;
}

/* The jobs in the queue never begin.  This gives up the lock meanwhile. */
static void fail_queued(struct tdt__blocking *blocking)
{
	struct tdt__job *job;

	while ((job = TAILQ_FIRST(&blocking->queue)) != NULL) {
		const struct tdt_waker *waker = tdt__slot_take(&job->slot);
		struct tdt_handle *task = job->task;

		take_job(blocking, job, FAILED);
		pthread_mutex_unlock(&blocking->lock);
		tdt_task_end(task);
		tdt_waker_wake(waker);
		pthread_mutex_lock(&blocking->lock);
	}
}

static void *serve_jobs(void *arg);

/* Returns 0 or a negative errno. */
static int begin_thread(struct tdt_rt *rt)
{
	pthread_t thread;
	int error;

	tdt__rt_ref(rt);
	error = pthread_create(&thread, NULL, serve_jobs, rt);
	if (error != 0) {
		tdt__rt_unref(rt);
		return -error;
	}
	pthread_detach(thread);
	rt->blocking.threads++;
	return 0;
}

/* --- A thread --------------------------------------------------------------------- */

/* Wait for a job, and take it.  NULL: none has come, or the runtime stops. */
static struct tdt__job *next_job(struct tdt__blocking *blocking)
{
	struct tdt__job *job;
	struct timespec until;
	int error = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += IDLE_SECONDS;
	TDT__HOLD(&blocking->lock);
	blocking->idle++;
	while ((job = TAILQ_FIRST(&blocking->queue)) == NULL && !blocking->stopping && error == 0)
		error = pthread_cond_clockwait(&blocking->come, &blocking->lock, CLOCK_MONOTONIC,
					       &until);
	blocking->idle--;
	if (job != NULL)
		take_job(blocking, job, RUNS);
	return job;
}

/* Runs at the end of the thread, however that comes. */
static void end_thread(struct tdt_rt **rt)
{
	struct tdt__blocking *blocking = &(*rt)->blocking;

	pthread_mutex_lock(&blocking->lock);
	blocking->threads--;
	if (!TAILQ_EMPTY(&blocking->queue)) /* a job has exited as a thread, and others wait */
		begin_thread(*rt);
	if (blocking->threads == 0) {
		pthread_cond_broadcast(&blocking->gone);
		fail_queued(blocking); /* no thread will come to them */
	}
	pthread_mutex_unlock(&blocking->lock);
	tdt__rt_unref(*rt);
}

/* Runs also if the job exits as a thread, or is cancelled: then the thread ends here. */
static void end_call(struct tdt__job **ended)
{
	struct tdt__job *job = *ended;
	struct tdt__blocking *blocking = &job->rt->blocking;
	const struct tdt_waker *waker = NULL;
	bool abandoned;

	tdt_task_end(job->task);
	pthread_mutex_lock(&blocking->lock);
	abandoned = job->at == ABANDONED;
	job->at = job->returned ? RETURNED : FAILED;
	if (!abandoned)
		waker = tdt__slot_take(&job->slot); /* the job may be freed once it is unlocked */
	pthread_mutex_unlock(&blocking->lock);
	tdt_waker_wake(waker);
	if (abandoned)
		free_job(job);
}

static void do_job(struct tdt__job *begun)
{
	struct tdt__job *job __attribute__((cleanup(end_call))) = begun;

	tdt_task_enter(job->task);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	job->call(job->arg);
	pthread_testcancel(); /* this job was meant, not the next one */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	tdt_task_leave(job->task);
	job->returned = true;
}

static void *serve_jobs(void *arg)
{
	struct tdt_rt *rt __attribute__((cleanup(end_thread))) = arg;
	struct tdt__job *job;

	pthread_setname_np(pthread_self(), "tdt-blocking");
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); /* only jobs may be cancelled */
	tdt__current = (struct tdt__current){ .rt = rt };
	while ((job = next_job(&rt->blocking)) != NULL)
		do_job(job);
	return NULL;
}

/* --- The future --------------------------------------------------------------------- */

/* Returns 0 or a negative errno: the job never begins. */
static int queue_job(struct tdt__blocking *blocking, struct tdt__job *job)
{
	int error = 0;

	TDT__HOLD(&blocking->lock);
	if (blocking->stopping)
		return -ENOTSUP;
	if (blocking->queued >= blocking->idle && blocking->threads < THREADS_MOST)
		error = begin_thread(job->rt);
	if (error != 0 && blocking->threads == 0)
		return error;
	TAILQ_INSERT_TAIL(&blocking->queue, job, link); /* one of the threads will take it */
	blocking->queued++;
	pthread_cond_signal(&blocking->come);
	return 0;
}

/* The first poll.  Returns 0 or a negative errno: the job never begins. */
static int start_job(struct tdt__job *job)
{
	struct tdt_rt *rt = tdt__current.rt;
	int error;

	if (rt == NULL || !tdt__rt_is_here(rt))
		return -ENOTSUP;
	make_task(job);
	tdt__rt_ref(rt);
	job->rt = rt;
	error = queue_job(&rt->blocking, job);
	if (error != 0) {
		job->at = FAILED; /* no other thread knows of it */
		tdt_task_end(job->task);
	}
	return error;
}

TDT__LEAF_POLL(tdt_spawn_blocking);

tdt_poll_t tdt_spawn_blocking_poll(void *state, struct tdt_context *cx)
{
	struct tdt__job *job = state;
	int error, at = FAILED;

	if (job->ended)
		return TDT_PANICKED;
	tdt__slot_register(&job->slot, cx->waker);
	error = job->rt == NULL ? start_job(job) : 0;
	if (error == 0) {
		TDT__HOLD(&job->rt->blocking.lock);
		at = job->at;
	}
	if (at == QUEUED || at == RUNS) {
		/* The task has the name; `name` is freed with an abandoned job. */
		tdt_leaf_waits_on(job->id != 0 ? TDT_WAIT_TASK : TDT_WAIT_OTHER, job->task,
				  job->id);
		return TDT_PENDING;
	}
	job->ended = true;
	if (at == RETURNED) {
		job->arg_free = NULL; /* the argument is the caller's */
		return TDT_READY;
	}
	errno = error != 0 ? -error : ECANCELED;
	return TDT_PANICKED;
}

static void drop_job(void *state)
{
	struct tdt__job *job = state;
	int at = RETURNED;

	if (job->rt != NULL) {
		struct tdt__blocking *blocking = &job->rt->blocking;

		if (!tdt__rt_is_here(job->rt))
			return; /* in a child of fork(), the lock may be held for ever */
		pthread_mutex_lock(&blocking->lock);
		at = job->at;
		if (at == QUEUED)
			take_job(blocking, job, FAILED);
		else if (at == RUNS)
			job->at = ABANDONED;
		pthread_mutex_unlock(&blocking->lock);
	}
	if (at == QUEUED)
		tdt_task_end(job->task);
	if (at != RUNS) /* otherwise its thread frees it */
		free_job(job);
}

struct tdt_future tdt__blocking_new(void (*call)(void *arg), void *arg, void (*arg_free)(void *arg),
				    const char *name)
{
	const struct tdt__job job = {
		.call = call, .arg = arg, .arg_free = arg_free, .name = name
	};

	if (call == NULL)
		return tdt__no_future(-EINVAL);
	return tdt__future_new(&job, sizeof job, tdt_spawn_blocking_poll, drop_job);
}

struct tdt_future tdt_spawn_blocking(void (*call)(void *arg), void *arg,
				     void (*arg_free)(void *arg))
{
	return tdt__blocking_new(call, arg, arg_free, NULL);
}

/* --- The life of the threads -------------------------------------------------------- */

void tdt__blocking_init(struct tdt__blocking *blocking)
{
	pthread_mutex_init(&blocking->lock, NULL); /* default ones: this never fails */
	pthread_cond_init(&blocking->come, NULL);
	pthread_cond_init(&blocking->gone, NULL);
	TAILQ_INIT(&blocking->queue);
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
