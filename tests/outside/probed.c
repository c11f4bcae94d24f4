// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * What tracers are tried on: a program that knows which probes it fires.
 *
 *	probed work	at a line of input two workers do the same small work; it prints what a tracer should have seen,
 *			a line an event: THREAD PROBE [ID FILE LINE COLUMN], for each thread in order
 *	probed watch	a task is polled time and again until a line of input; a line tells what kind of waker its leaf
 *			is given: real or substituted; whenever that changes, and every 20 polls
 *
 * It is linked to the library as a user's program would be, and has frame pointers.
 */

#include <config.h>

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tdt/integrate/hooks.h>
#include <tdt/tdt.h>

#include "lib/must.h"

enum { WORKERS = 2, SIMPLE = 20, PENDING = 3 };

/* --- What was done --------------------------------------------------------------- */

static __thread FILE *log_file;
static __thread int thread_id;

static void note(const char *probe)
{
	fprintf(log_file, "%d %s\n", thread_id, probe);
}

/* --- Tasks ----------------------------------------------------------------------------- */

/* A waker that does nothing: this runtime polls without being woken, and its wake-ups are told. */
static const struct tdt_waker *clone_itself(const struct tdt_waker *waker)
{
	return waker;
}

static void no_wake(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable vtable = { clone_itself, no_wake, no_wake, no_wake };
static const struct tdt_waker real = { &vtable };

struct task {
	struct tdt_traced traced;
	struct tdt_task_attr attr;
	int pending;	    /* how many polls stay pending */
	tdt_poll_t result;  /* of the one after */
	struct task *inner; /* polled in each poll; NULL: none */
};

static void note_task(const char *probe, const struct task *task)
{
	fprintf(log_file, "%d %s %llu %s %u %u\n", thread_id, probe,
		(unsigned long long)tdt_handle_id(task->traced.handle),
		task->attr.file != NULL ? task->attr.file : "", task->attr.line, task->attr.column);
}

static tdt_poll_t poll_task(struct task *task, struct tdt_context *cx)
{
	tdt_poll_t result;

	note_task("task-poll-start", task);
	result = tdt_future_poll(&task->traced.future, cx);
	if (result != TDT_PENDING)
		note_task("task-terminate", task);
	note_task("task-poll-end", task);
	return result;
}

static tdt_poll_t task_poll(void *state, struct tdt_context *cx)
{
	struct task *task = state;

	if (task->inner != NULL)
		return poll_task(task->inner, cx);
	if (task->pending-- == 0)
		return task->result;
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	note_task("task-waker-clone", task);
	return TDT_PENDING;
}

static void drop_task(struct task *task, int ended)
{
	if (!ended)
		note_task("task-terminate", task);
	tdt_future_drop(&task->traced.future);
	tdt_handle_unref(task->traced.handle);
}

static void task_drop(void *state)
{
	struct task *task = state;

	if (task->inner != NULL)
		drop_task(task->inner, task->inner->pending < 0);
}

static void spawn(struct task *task, const char *file, uint32_t line, uint32_t column)
{
	task->attr = (struct tdt_task_attr){
		.size = sizeof task->attr, .file = file, .line = line, .column = column
	};
	task->traced =
	    tdt_traced_with((struct tdt_future){ task, task_poll, task_drop }, &task->attr);
	MUST(task->traced.handle != NULL);
	note_task("task-spawn", task);
}

/* Poll it `polls` times at most, woken before each but the first. */
static void run(struct task *task, int polls)
{
	struct tdt_context cx = { &real };
	int ended = 0;

	for (int i = 0; i < polls && !ended; i++) {
		if (i > 0) {
			tdt_task_woken(task->traced.handle);
			note_task("task-wake", task);
		}
		ended = poll_task(task, &cx) != TDT_PENDING;
	}
	drop_task(task, ended);
}

/* --- A worker ---------------------------------------------------------------------------- */

static pthread_barrier_t ready, go;

static void *work(void *log)
{
	log_file = log;
	thread_id = (int)syscall(SYS_gettid);
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&go);

	tdt_worker_thread_start(NULL);
	note("worker-thread-start");
	for (unsigned i = 0; i < SIMPLE; i++) {
		struct task task = { .pending = PENDING, .result = TDT_READY };

		spawn(&task, "simple.c", 1000 + i, i);
		run(&task, PENDING + 1);
	}
	tdt_worker_thread_park();
	note("worker-thread-park");
	tdt_worker_thread_unpark();
	note("worker-thread-unpark");
	{
		struct task inner = { .pending = 2, .result = TDT_READY },
			    outer = { .inner = &inner };
		struct task dropped = { .pending = 9 }, unpolled = { .result = TDT_READY };
		struct task panicked = { .pending = 1, .result = TDT_PANICKED };

		spawn(&inner, "inner.c", UINT32_MAX, 7);
		spawn(&outer, "outer.c", 0, UINT32_MAX);
		run(&outer, 9);
		spawn(&dropped, "dropped.c", 1, 2);
		run(&dropped, 2);
		spawn(&panicked, "panicked.c", 3, 4);
		run(&panicked, 9);
		spawn(&unpolled, NULL, 0, 0);
		run(&unpolled, 0);
	}
	tdt_worker_thread_stop();
	note("worker-thread-stop");
	return NULL;
}

static int work_for_tracers(void)
{
	pthread_t threads[WORKERS];
	FILE *logs[WORKERS];
	char *texts[WORKERS];
	size_t size;

	pthread_barrier_init(&ready, NULL, WORKERS + 1);
	pthread_barrier_init(&go, NULL, WORKERS + 1);
	for (int i = 0; i < WORKERS; i++) {
		logs[i] = open_memstream(&texts[i], &size);
		MUST(logs[i] != NULL);
		MUST(pthread_create(&threads[i], NULL, work, logs[i]) == 0);
	}
	pthread_barrier_wait(&ready);
	getchar();
	pthread_barrier_wait(&go);
	for (int i = 0; i < WORKERS; i++) {
		pthread_join(threads[i], NULL);
		fclose(logs[i]);
		fputs(texts[i], stdout);
		free(texts[i]);
	}
	return EXIT_SUCCESS;
}

/* --- A task to be watched --------------------------------------------------------------------- */

/*
 * The next three must be on a tracer's stack, each by its name: none is inlined, or cloned to some
 * `.isra`.
 */
#if __has_attribute(noipa)
#define ON_STACK __attribute__((noipa))
#else
#define ON_STACK __attribute__((noinline))
#endif

static ON_STACK tdt_poll_t wait_for_delivery(void *state, struct tdt_context *cx)
{
	static const char *said = "";
	static int polls;
	const char *kind = cx->waker == &real ? "real" : "substituted";

	(void)state;
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	if (said != kind || polls++ % 20 == 0)
		puts(kind);
	fflush(stdout);
	said = kind;
	return TDT_PENDING;
}

static ON_STACK tdt_poll_t serve_customer(void *state, struct tdt_context *cx)
{
	tdt_poll_t result = wait_for_delivery(state, cx);

	TDT_KEEP_FRAME();
	return result;
}

static ON_STACK tdt_poll_t run_shop(void *state, struct tdt_context *cx)
{
	tdt_poll_t result = serve_customer(state, cx);

	TDT_KEEP_FRAME();
	return result;
}

static void no_drop(void *state)
{
	(void)state;
}

static int be_watched(void)
{
	struct tdt_task_attr attr = {
		.size = sizeof attr, .id = 4711, .file = "shop.c", .line = 12, .column = 34
	};
	struct tdt_traced shop =
	    tdt_traced_with((struct tdt_future){ NULL, run_shop, no_drop }, &attr);
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	struct tdt_context cx = { &real };

	MUST(shop.handle != NULL);
	do
		tdt_future_poll(&shop.future, &cx);
	while (poll(&input, 1, 10) == 0);
	tdt_future_drop(&shop.future);
	tdt_handle_unref(shop.handle);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "watch") == 0)
		return be_watched();
	if (argc == 2 && strcmp(argv[1], "work") == 0)
		return work_for_tracers();
	fputs("usage: probed work|watch\n", stderr);
	return 2;
}
