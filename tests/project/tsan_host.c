// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A host with workers and locks of its own, which install.sh builds with ThreadSanitizer and runs
 * with an ordinary libtdt.  Its tasks wait, run, and block in their polls, while the library does
 * all that it does beside polls: dumps, backtraces, the watch, the recorder.
 */

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tdt/integrate/hooks.h>
#include <tdt/tdt.h>

#define WORKERS 3
#define TASKS 8
#define ROUNDS 8

enum kind { WAITS, RUNS, BLOCKS };

struct task {
	struct tdt_waker waker; /* counted: it outlives the task */
	int wakers;
	bool woken, busy;
	enum kind kind;
	int polls;
	struct tdt_traced traced;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;
static struct task tasks[TASKS];
static bool over;

static struct task *task_of(const struct tdt_waker *waker)
{
	return (struct task *)waker;
}

static const struct tdt_waker *waker_clone(const struct tdt_waker *waker)
{
	pthread_mutex_lock(&lock);
	task_of(waker)->wakers++;
	pthread_mutex_unlock(&lock);
	return waker;
}

static void count_down(const struct tdt_waker *waker, int wakers, bool wake)
{
	pthread_mutex_lock(&lock);
	task_of(waker)->wakers -= wakers;
	task_of(waker)->woken |= wake;
	pthread_cond_signal(&woken);
	pthread_mutex_unlock(&lock);
}

static void waker_wake(const struct tdt_waker *waker)
{
	count_down(waker, 1, true);
}

static void waker_wake_by_ref(const struct tdt_waker *waker)
{
	count_down(waker, 0, true);
}

static void waker_drop(const struct tdt_waker *waker)
{
	count_down(waker, 1, false);
}

static const struct tdt_waker_vtable vtable = { waker_clone, waker_wake, waker_wake_by_ref,
						waker_drop };

static void pass(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static void spin(long ns)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < ns);
}

static tdt_poll_t task_poll(void *state, struct tdt_context *cx)
{
	struct task *task = state;
	char room[512];

	room[0] = (char)task->polls++; /* no lock: one thread at a time polls */
	if (task->kind == RUNS)
		spin(20000000);
	else if (task->kind == BLOCKS)
		pass(20000000);
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	if (task->kind == WAITS)
		tdt_leaf_waits_on_named(TDT_WAIT_CHANNEL, task, 0, "nothing");
	else
		tdt_waker_wake_by_ref(cx->waker);
	__asm__ volatile("" : : "r"(room) : "memory");
	return TDT_PENDING;
}

static void drop_nothing(void *state)
{
	(void)state;
}

static struct task *next_task(void)
{
	for (;;) {
		for (int i = 0; i < TASKS; i++)
			if (tasks[i].woken && !tasks[i].busy)
				return &tasks[i];
		if (over)
			return NULL;
		pthread_cond_wait(&woken, &lock);
	}
}

static void *work(void *unused)
{
	struct task *task;

	tdt_worker_thread_start(NULL);
	pthread_mutex_lock(&lock);
	while (!over && (task = next_task()) != NULL) {
		struct tdt_context cx = { &task->waker };

		task->woken = false;
		task->busy = true;
		pthread_mutex_unlock(&lock);
		tdt_future_poll(&task->traced.future, &cx);
		pthread_mutex_lock(&lock);
		task->busy = false;
	}
	pthread_mutex_unlock(&lock);
	tdt_worker_thread_stop();
	return unused;
}

static void look(FILE *out)
{
	void *module = dlopen("libresolv.so.2", RTLD_NOW); /* the library makes a new list */
	struct tdt_trace *trace;

	for (int i = 0; i < TASKS; i++) {
		trace = tdt_backtrace_with(tasks[i].traced.handle,
		&(const struct tdt_backtrace_options){ .size = sizeof(struct tdt_backtrace_options),
						.timeout_ns = 50000000 });
		if (trace != NULL)
			tdt_trace_print(trace, out);
		tdt_trace_free(trace);
		tdt_trace_free(tdt_backtrace_last(tasks[i].traced.handle));
	}
	tdt_dump(out);
	if (module != NULL)
		dlclose(module);
}

int main(void)
{
	FILE *out = fopen("/dev/null", "w");
	pthread_t worker[WORKERS];

	if (out == NULL || tdt_watch(1000000, NULL) != 0 || tdt_recorder_start(NULL) != 0)
		return EXIT_FAILURE;
	for (int i = 0; i < TASKS; i++) {
		tasks[i] = (struct task){ .waker.vtable = &vtable,
					  .woken = true,
					  .kind = i == 0   ? RUNS
						  : i == 1 ? BLOCKS
							   : WAITS };
		tasks[i].traced =
		    tdt_traced(((struct tdt_future){ &tasks[i], task_poll, drop_nothing }));
	}
	for (int i = 0; i < WORKERS; i++)
		pthread_create(&worker[i], NULL, work, NULL);
	for (int i = 0; i < ROUNDS; i++)
		look(out);
	pthread_mutex_lock(&lock);
	over = true;
	pthread_cond_broadcast(&woken);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(worker[i], NULL);
	for (int i = 0; i < TASKS; i++) {
		tdt_future_drop(&tasks[i].traced.future);
		tdt_handle_unref(tasks[i].traced.handle);
	}
	tdt_recorder_stop();
	tdt_watch(0, NULL);
	fclose(out);
	return EXIT_SUCCESS;
}
