// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark measures a task that is ready at its first poll, from spawn to end.  It makes
 * 1,000,000 such tasks, 10,000 at a time.  A thread that is no worker spawns them, or a task
 * does; one worker runs them, or two.  Other ways to have a function called are measured beside
 * it: a pool of threads with one queue, libuv's pool, and GNU Pth.  Each task of ours is traced,
 * and can be requested.
 */

#include <config.h>

#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <uv.h>

#include <tdt/rt/runtime.h>

#include "pool.h"
#include "pth.h"
#include "report.h"

#define BATCH 10000

static int n_batches;
static atomic_int left;	 /* of a batch */
static sem_t batch_over; /* for a thread that waits for it */
static sem_t all_over;
static int batches; /* that a task, or a job, has begun */

static void per_task(struct figure *figure, int64_t start)
{
	add(figure, (double)(now() - start) / n_batches / BATCH);
}

/* --- Tasks -------------------------------------------------------------------- */

static struct tdt_rt *rt;

static void nothing(void *state)
{
	(void)state;
}

static void spawn(tdt_poll_t (*poll)(void *state, struct tdt_context *cx))
{
	struct tdt_handle *handle =
	    tdt_rt_spawn(rt, (struct tdt_future){ NULL, poll, nothing }, NULL);

	if (handle == NULL)
		die("tdt_rt_spawn");
	tdt_handle_unref(handle);
}

static tdt_poll_t trivial_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	if (atomic_fetch_sub(&left, 1) == 1)
		sem_post(&batch_over);
	return TDT_READY;
}

static void tasks_from_a_thread(struct figure *figure)
{
	int64_t start = now();

	for (int i = 0; i < n_batches; i++) {
		atomic_store(&left, BATCH);
		for (int j = 0; j < BATCH; j++)
			spawn(trivial_poll);
		sem_wait(&batch_over);
	}
	per_task(figure, start);
}

/* The last of a batch wakes the task that spawned it. */
static const struct tdt_waker *spawner;

static tdt_poll_t child_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	if (atomic_fetch_sub(&left, 1) == 1)
		tdt_waker_wake(spawner);
	return TDT_READY;
}

static tdt_poll_t spawner_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	if (batches++ == n_batches) {
		sem_post(&all_over);
		return TDT_READY;
	}
	spawner = tdt_waker_clone(cx->waker);
	atomic_store(&left, BATCH);
	for (int i = 0; i < BATCH; i++)
		spawn(child_poll);
	return TDT_PENDING;
}

static void tasks_from_a_task(struct figure *figure)
{
	int64_t start = now();

	batches = 0;
	spawn(spawner_poll);
	sem_wait(&all_over);
	per_task(figure, start);
}

/* --- Jobs of a pool ----------------------------------------------------------- */

static void trivial_call(void *unused)
{
	trivial_poll(unused, NULL);
}

static void jobs_from_a_thread(struct figure *figure)
{
	int64_t start = now();

	for (int i = 0; i < n_batches; i++) {
		atomic_store(&left, BATCH);
		for (int j = 0; j < BATCH; j++)
			pool_submit(trivial_call, NULL);
		sem_wait(&batch_over);
	}
	per_task(figure, start);
}

static void submitter_call(void *unused);

static void child_call(void *unused)
{
	if (atomic_fetch_sub(&left, 1) == 1)
		pool_submit(submitter_call, unused);
}

static void submitter_call(void *unused)
{
	if (batches++ == n_batches) {
		sem_post(&all_over);
		return;
	}
	atomic_store(&left, BATCH);
	for (int i = 0; i < BATCH; i++)
		pool_submit(child_call, unused);
}

static void jobs_from_a_job(struct figure *figure)
{
	int64_t start = now();

	batches = 0;
	pool_submit(submitter_call, NULL);
	sem_wait(&all_over);
	per_task(figure, start);
}

/* --- Others -------------------------------------------------------------------- */

static void uv_call(uv_work_t *unused)
{
	(void)unused;
}

static void uv_called(uv_work_t *work, int status)
{
	(void)status;
	free(work);
}

/* Only the thread of its loop may submit to libuv's pool, and it hears of the end of each. */
static void jobs_of_libuv(struct figure *figure)
{
	int64_t start = now();

	for (int i = 0; i < n_batches; i++) {
		for (int j = 0; j < BATCH; j++) {
			uv_work_t *work = malloc(sizeof *work);

			if (work == NULL ||
			    uv_queue_work(uv_default_loop(), work, uv_call, uv_called) != 0)
				die("uv_queue_work");
		}
		uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	}
	per_task(figure, start);
}

/* --- All of it ------------------------------------------------------------------- */

#define N_WORKERS 2 /* at most */

struct figures {
	struct figure *pool_thread, *thread, *pool_job, *task;
};

static void measure(const struct figures *figures, unsigned workers)
{
	struct tdt_rt_config config = { .size = sizeof config, .workers = workers };

	pool_start(workers);
	jobs_from_a_thread(figures->pool_thread);
	jobs_from_a_job(figures->pool_job);
	pool_stop();
	rt = tdt_rt_new(&config);
	if (rt == NULL)
		die("tdt_rt_new");
	tasks_from_a_thread(figures->thread);
	tasks_from_a_task(figures->task);
	tdt_rt_free(rt);
}

int main(int argc, char **argv)
{
	struct figures figures[N_WORKERS];
	struct figure *uv, *pth = NULL;

	report_start(argc, argv, "What does a task cost, from spawn to end?", "ns a task", 5);
	n_batches = quick ? 3 : 100;
	setenv("UV_THREADPOOL_SIZE", "2", 1);
	sem_init(&batch_over, 0, 0);
	sem_init(&all_over, 0, 0);
	for (int i = 0; i < N_WORKERS; i++) {
		struct figures *of = &figures[i];

		remark("With %d worker%s:", i + 1, i == 0 ? "" : "s");
		of->pool_thread = figure("a job of a pool, submitted by a thread", NULL);
		of->thread = figure("a task, spawned by a thread", of->pool_thread);
		of->pool_job = figure("a job of a pool, submitted by a job", NULL);
		of->task = figure("a task, spawned by a task", of->pool_job);
	}
	uv = figure("a job of libuv's pool, submitted by its loop",
		    figures[N_WORKERS - 1].pool_thread);
	if (have_pth)
		pth = figure("a thread of GNU Pth, spawned and joined", figures[0].pool_job);
	else
		remark(NO_PTH);
	for (int i = 0; i < rounds; i++) {
		for (int j = 0; j < N_WORKERS; j++)
			measure(&figures[j], (unsigned)j + 1);
		jobs_of_libuv(uv);
		if (have_pth)
			add(pth, (double)pth_spawns(n_batches * 1000) / n_batches / 1000);
	}
	return report_end();
}
