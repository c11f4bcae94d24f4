// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Threads that take tasks from a queue and poll them.  A task's waker is a member of the task, and
 * each clone is a reference of the task.  (The waker is not the first member: tdt/future.h says
 * why.)  A waker that outlives the future or the runtime does nothing.
 *
 * The runtime runs traced futures like all others.  Marked lines were inserted for tdt; the runtime
 * compiles and works without them, too (foreign-runtime.c says what they are for).
 */

#include "their_runtime.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>

#include <tdt/integrate/hooks.h> /* added for tdt */

enum state {
	IDLE,
	QUEUED,
	POLLED,
	POLLED_AND_WOKEN, /* will be polled once more */
	ENDED
};

struct task {
	atomic_uint refs; /* the runtime's until the task has ended, and one for each clone */
	struct tdt_waker waker;
	struct their_runtime *runtime;
	struct tdt_future future;
	enum state state;	  /* this and the rest: under the runtime's lock */
	TAILQ_ENTRY(task) queued; /* while QUEUED */
	TAILQ_ENTRY(task) listed; /* until ENDED */
};

struct their_runtime {
	atomic_uint refs;     /* the creator's, and one for each task */
	pthread_mutex_t lock; /* protects the members from here to `stopped` */
	pthread_cond_t changed;
	TAILQ_HEAD(, task) queue; /* the tasks to poll */
	TAILQ_HEAD(, task) tasks; /* all tasks that have not ended */
	bool stopped;
	unsigned n_threads; /* only the creator uses this and `threads` */
	pthread_t threads[];
};

static void runtime_unref(struct their_runtime *runtime)
{
	if (atomic_fetch_sub(&runtime->refs, 1) == 1)
		free(runtime);
}

static struct task *task_of(const struct tdt_waker *waker)
{
	return (struct task *)((uintptr_t)waker - offsetof(struct task, waker));
}

static const struct tdt_waker *clone_waker(const struct tdt_waker *waker)
{
	atomic_fetch_add(&task_of(waker)->refs, 1);
	return waker;
}

static void drop_waker(const struct tdt_waker *waker)
{
	struct task *task = task_of(waker);

	if (atomic_fetch_sub(&task->refs, 1) == 1) {
		runtime_unref(task->runtime);
		free(task);
	}
}

/* Call this with the lock held. */
static void enqueue(struct task *task)
{
	task->state = QUEUED;
	TAILQ_INSERT_TAIL(&task->runtime->queue, task, queued);
	pthread_cond_signal(&task->runtime->changed);
}

static void wake_by_ref(const struct tdt_waker *waker)
{
	struct task *task = task_of(waker);
	struct their_runtime *runtime = task->runtime;

	pthread_mutex_lock(&runtime->lock);
	if (task->state != ENDED && !runtime->stopped) {
		tdt_task_woken(tdt_future_handle(&task->future)); /* added for tdt */
		if (task->state == IDLE)
			enqueue(task);
		else if (task->state == POLLED)
			task->state = POLLED_AND_WOKEN;
	}
	pthread_mutex_unlock(&runtime->lock);
}

static void wake(const struct tdt_waker *waker)
{
	wake_by_ref(waker);
	drop_waker(waker);
}

static const struct tdt_waker_vtable waker_vtable = { clone_waker, wake, wake_by_ref, drop_waker };

static void poll_task(struct task *task)
{
	struct their_runtime *runtime = task->runtime;
	struct tdt_context cx = { &task->waker };
	tdt_poll_t result = tdt_future_poll(&task->future, &cx);

	pthread_mutex_lock(&runtime->lock);
	if (result != TDT_PENDING) {
		task->state = ENDED;
		TAILQ_REMOVE(&runtime->tasks, task, listed);
	} else if (task->state == POLLED_AND_WOKEN) {
		enqueue(task);
	} else {
		task->state = IDLE;
	}
	pthread_mutex_unlock(&runtime->lock);
	if (result == TDT_PENDING)
		return; /* the task may belong to another thread by now */
	tdt_future_drop(&task->future);
	drop_waker(&task->waker);
}

/* Wait for a task, and take it.  NULL: the runtime ends. */
static struct task *next_task(struct their_runtime *runtime)
{
	struct task *task = NULL;

	pthread_mutex_lock(&runtime->lock);
	while (TAILQ_EMPTY(&runtime->queue) && !runtime->stopped) {
		tdt_worker_thread_park(); /* added for tdt */
		pthread_cond_wait(&runtime->changed, &runtime->lock);
		tdt_worker_thread_unpark(); /* added for tdt */
	}
	if (!runtime->stopped) {
		task = TAILQ_FIRST(&runtime->queue);
		TAILQ_REMOVE(&runtime->queue, task, queued);
		task->state = POLLED;
	}
	pthread_mutex_unlock(&runtime->lock);
	return task;
}

static inline uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *work(void *argument)
{
	struct their_runtime *runtime = argument;
	struct task *task;

	tdt_worker_thread_start(NULL); /* added for tdt */
	while ((task = next_task(runtime)) != NULL) {
		tdt_worker_now(monotonic_ns()); /* added for tdt */
		poll_task(task);
	}
	tdt_worker_thread_stop(); /* added for tdt */
	return NULL;
}

struct their_runtime *their_runtime_new(unsigned threads)
{
	struct their_runtime *runtime =
	    calloc(1, sizeof(*runtime) + threads * sizeof(runtime->threads[0]));
	int error;

	if (runtime == NULL)
		return NULL;
	runtime->refs = 1;
	pthread_mutex_init(&runtime->lock, NULL);
	pthread_cond_init(&runtime->changed, NULL);
	TAILQ_INIT(&runtime->queue);
	TAILQ_INIT(&runtime->tasks);
	for (; runtime->n_threads < threads; runtime->n_threads++) {
		error = pthread_create(&runtime->threads[runtime->n_threads], NULL, work, runtime);
		if (error != 0) {
			their_runtime_free(runtime);
			errno = error;
			return NULL;
		}
	}
	return runtime;
}

int their_runtime_spawn(struct their_runtime *runtime, struct tdt_future future)
{
	struct task *task = malloc(sizeof(*task));

	if (task == NULL)
		return -1;
	*task = (struct task){
		.waker = { &waker_vtable }, .refs = 1, .runtime = runtime, .future = future
	};
	atomic_fetch_add(&runtime->refs, 1);
	pthread_mutex_lock(&runtime->lock);
	TAILQ_INSERT_TAIL(&runtime->tasks, task, listed);
	enqueue(task);
	pthread_mutex_unlock(&runtime->lock);
	return 0;
}

void their_runtime_free(struct their_runtime *runtime)
{
	struct task *task;

	if (runtime == NULL)
		return;
	pthread_mutex_lock(&runtime->lock);
	runtime->stopped = true; /* from here on wakers change nothing */
	pthread_cond_broadcast(&runtime->changed);
	pthread_mutex_unlock(&runtime->lock);
	for (unsigned i = 0; i < runtime->n_threads; i++)
		pthread_join(runtime->threads[i], NULL);
	while ((task = TAILQ_FIRST(&runtime->tasks)) != NULL) {
		TAILQ_REMOVE(&runtime->tasks, task, listed);
		tdt_future_drop(&task->future);
		drop_waker(&task->waker);
	}
	runtime_unref(runtime);
}
