// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The life of a runtime. */

#include "runtime/rt.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/options.h"
#include "base/refs.h"
#include "base/result.h"
#include "runtime/driver.h"
#include "runtime/task.h"

__thread __attribute__((tls_model("initial-exec"))) struct tdt__current tdt__current;

__attribute__((noinline)) void tdt__current_clear(void)
{
	tdt__current = (struct tdt__current){ 0 };
}

struct tdt_rt *tdt_rt_current(void)
{
	return tdt__current.rt;
}

void tdt__rt_ref(struct tdt_rt *rt)
{
	atomic_fetch_add_explicit(&rt->refs, 1, memory_order_relaxed);
}

void tdt__rt_unref(struct tdt_rt *rt)
{
	if (!tdt__refs_drop(&rt->refs))
		return;
	for (unsigned i = 0; i < rt->n_workers; i++)
		tdt__worker_fini(&rt->workers[i]);
	tdt__blocking_fini(&rt->blocking);
	pthread_mutex_destroy(&rt->idle.lock);
	pthread_mutex_destroy(&rt->inject.older_lock);
	pthread_mutex_destroy(&rt->inject.lock);
	tdt__driver_unref(rt->driver);
	free(rt);
}

/* --- Fork ----------------------------------------------------------------------- */

uint32_t tdt__rt_forks;

static void after_fork_in_child(void)
{
	tdt__rt_forks++;
}

static int fork_status;

static void fork_init(void)
{
	fork_status = -pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* --- The beginning -------------------------------------------------------------- */

/* The number of CPUs that this thread may run on. */
static unsigned cpus(void)
{
	cpu_set_t set;
	/* Those that are online, if there are more than a cpu_set_t can hold. */
	long n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
							     : sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n > TDT_RT_MAX_WORKERS ? TDT_RT_MAX_WORKERS : (unsigned)n;
}

static int read_config(unsigned *workers, const struct tdt_rt_config *config)
{
	struct tdt_rt_config ours;
	int error = tdt__options_read(&ours, sizeof ours, config);

	if (error == 0 && ours.workers > TDT_RT_MAX_WORKERS)
		error = -EINVAL;
	*workers = ours.workers != 0 ? ours.workers : cpus();
	return error;
}

/* Stop the first `n` workers, and wait for their threads. */
static void stop_workers(struct tdt_rt *rt, unsigned n)
{
	atomic_store_explicit(&rt->stopping, true, memory_order_relaxed);
	tdt__idle_stop(rt);
	for (unsigned i = 0; i < n; i++)
		pthread_join(rt->workers[i].thread, NULL);
}

/* Without a door for readers outside, the runtime is as good. */
static void let_readers_in(void)
{
	int saved = errno;

	tdt_listen(NULL);
	errno = saved;
}

struct tdt_rt *tdt_rt_new(const struct tdt_rt_config *config)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct tdt_rt *rt = NULL;
	unsigned workers;
	int error = read_config(&workers, config);

	if (error == 0) {
		pthread_once(&once, fork_init);
		error = fork_status;
	}
	if (error != 0)
		goto fail;
	error = -ENOMEM;
	rt = calloc(1, sizeof *rt + workers * sizeof rt->workers[0]);
	if (rt == NULL)
		goto fail;
	atomic_init(&rt->refs, 1);
	pthread_mutex_init(&rt->inject.lock, NULL); /* default ones: this never fails */
	pthread_mutex_init(&rt->inject.older_lock, NULL);
	pthread_mutex_init(&rt->idle.lock, NULL);
	tdt__blocking_init(&rt->blocking);
	rt->forks = tdt__rt_forks;
	rt->n_workers = workers;
	for (unsigned i = 0; i < workers; i++)
		tdt__worker_init(&rt->workers[i], rt, i);
	error = tdt__driver_new(&rt->driver, rt);
	if (error != 0)
		goto fail_driver;
	for (unsigned i = 0; i < workers; i++) {
		error = tdt__worker_start(&rt->workers[i]);
		if (error != 0) {
			stop_workers(rt, i);
			goto fail_start;
		}
	}
	let_readers_in();
	return rt;
fail_start:
	tdt__driver_stop(rt->driver);
fail_driver:
	tdt__rt_unref(rt);
fail:
	return tdt__nothing(error);
}

/* --- The end ---------------------------------------------------------------------- */

static struct tdt__task *merge(struct tdt__task *one, struct tdt__task *other)
{
	struct tdt__task *merged, **end = &merged;

	while (one != NULL && other != NULL) {
		struct tdt__task **first =
		    tdt_handle_id(one->handle) < tdt_handle_id(other->handle) ? &one : &other;

		*end = *first;
		end = &(*first)->next;
		*first = *end;
	}
	*end = one != NULL ? one : other;
	return merged;
}

/* Sort a chain by the ids of its tasks. */
static struct tdt__task *sort_chain(struct tdt__task *chain)
{
	struct tdt__task *middle = chain, *further;

	if (chain == NULL || chain->next == NULL)
		return chain;
	for (struct tdt__task *end = chain->next; end != NULL && end->next != NULL;
	     end = end->next->next)
		middle = middle->next;
	further = middle->next;
	middle->next = NULL;
	return merge(sort_chain(chain), sort_chain(further));
}

static void add_to_chain(struct tdt__task **chain, struct tdt__task *task)
{
	task->next = *chain;
	*chain = task;
}

/*
 * Take all tasks, linked by `next`, in the order of their ids.  The tasks that were polled are in
 * lists, all others in queues.  The workers have stopped.  Another thread may put a task into the
 * shared queue until it is closed; after that the push fails.
 */
static struct tdt__task *take_all_tasks(struct tdt_rt *rt)
{
	struct tdt__task *queued = tdt__inject_close(&rt->inject), *chain = NULL, *task;

	while ((task = queued) != NULL) {
		queued = task->next;
		if (task->live == NULL)
			add_to_chain(&chain, task);
	}
	for (unsigned i = 0; i < rt->n_workers; i++) {
		while ((task = tdt__run_queue_pop(&rt->workers[i].queue)) != NULL)
			if (task->live == NULL)
				add_to_chain(&chain, task);
		LIST_FOREACH(task, &rt->workers[i].live.tasks, entry)
			add_to_chain(&chain, task);
	}
	return sort_chain(chain);
}

void tdt_rt_free(struct tdt_rt *rt)
{
	struct tdt__task *task, *next;

	if (rt == NULL)
		return;
	if (tdt__current.rt == rt || !tdt__rt_is_here(rt)) {
		errno = EDEADLK;
		return;
	}
	/* Relaxed: a thread that does not see this yet finds the shared queue closed. */
	atomic_store_explicit(&rt->closing, true, memory_order_relaxed);
	stop_workers(rt, rt->n_workers);
	for (task = take_all_tasks(rt); task != NULL; task = next) {
		next = task->next;
		tdt__task_drop(task, TDT_PENDING);
	}
	tdt__blocking_stop(&rt->blocking);
	tdt__driver_stop(rt->driver);
	tdt__rt_unref(rt);
}
