// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The life of a runtime. */

#include <config.h>

#include "runtime/rt.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/options.h"
#include "base/refs.h"
#include "base/result.h"
#include "runtime/current.h"
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
	tdt__idle_fini(&rt->idle);
	tdt__inject_fini(&rt->inject);
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
	long online;

	if (sched_getaffinity(0, sizeof set, &set) == 0) {
		online = CPU_COUNT(&set);
	} else {
		online = sysconf(_SC_NPROCESSORS_ONLN); /* more CPUs than a cpu_set_t can hold */
	}
	return online < 1 ? 1 : online > TDT_RT_MAX_WORKERS ? TDT_RT_MAX_WORKERS : (unsigned)online;
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

static int start_workers(struct tdt_rt *rt)
{
	for (unsigned i = 0; i < rt->n_workers; i++) {
		int error = tdt__worker_start(&rt->workers[i]);

		if (error != 0) {
			stop_workers(rt, i);
			return error;
		}
	}
	return 0;
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
	tdt__inject_init(&rt->inject);
	tdt__idle_init(&rt->idle);
	tdt__blocking_init(&rt->blocking);
	rt->forks = tdt__rt_forks;
	rt->n_workers = workers;
	for (unsigned i = 0; i < workers; i++)
		tdt__worker_init(&rt->workers[i], rt, i);
	error = tdt__driver_new(&rt->driver, rt);
	if (error != 0)
		goto fail_driver;
	error = start_workers(rt);
	if (error != 0)
		goto fail_start;
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

/*
 * Take those tasks of a queue (linked by `next`) that were never polled, and return them followed
 * by `chain` (all linked by `newer`).
 */
static struct tdt__task *take_new(struct tdt__task *queue, struct tdt__task *chain)
{
	for (; queue != NULL; queue = queue->next)
		if (queue->live == NULL) {
			queue->newer = chain;
			chain = queue;
		}
	return chain;
}

/*
 * Take all tasks, linked by `newer`, the oldest first.  The tasks that were polled are in lists,
 * all others in queues.  The workers have stopped.  Another thread may put a task into the shared
 * queue until it is closed; after that the push fails.
 */
static struct tdt__task *take_all_tasks(struct tdt_rt *rt)
{
	struct tdt__task *tasks = take_new(tdt__inject_close(&rt->inject), NULL), *task;

	for (unsigned i = 0; i < rt->n_workers; i++) {
		while ((task = tdt__run_queue_pop(&rt->workers[i].queue)) != NULL) {
			task->next = NULL;
			tasks = take_new(task, tasks);
		}
		tasks = tdt__live_take(&rt->workers[i].live, tasks);
	}
	return tdt__live_sort(tasks);
}

void tdt_rt_free(struct tdt_rt *rt)
{
	struct tdt__task *task, *newer;

	if (rt == NULL)
		return;
	if (tdt__current.rt == rt) {
		errno = EDEADLK;
		return;
	}
	/* Relaxed: a thread that does not see this yet finds the shared queue closed. */
	atomic_store_explicit(&rt->closing, true, memory_order_relaxed);
	stop_workers(rt, rt->n_workers);
	for (task = take_all_tasks(rt); task != NULL; task = newer) {
		newer = task->newer;
		tdt__task_drop(task, TDT_PENDING);
	}
	tdt__blocking_stop(&rt->blocking);
	tdt__driver_stop(rt->driver);
	tdt__rt_unref(rt);
}
