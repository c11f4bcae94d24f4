// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark measures the records of tasks.  A future is traced and dropped, on one thread
 * and on two at once, beside memory of the same size from calloc().  With 100,000 tasks it
 * measures a walk over all of them, a search for one, and the memory.  The rounds are
 * interleaved, so that what disturbs one measurement disturbs all.
 */

#include <config.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tdt/layout/registry.h>
#include <tdt/tasks.h>

#include "report.h"

#define TIMES 400000
#define BATCH 100
#define TASKS 100000

/* --- Coming and going --------------------------------------------------------- */

static tdt_poll_t never(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PENDING;
}

static void nothing(void *state)
{
	(void)state;
}

static struct tdt_future trace(void)
{
	struct tdt_traced traced = tdt_traced((struct tdt_future){ NULL, never, nothing });

	if (traced.handle == NULL)
		die("tdt_traced");
	tdt_handle_unref(traced.handle);
	return traced.future;
}

/* A batch at a time: the next task seldom gets the memory of the one before. */
static void *come_and_go(void *unused)
{
	struct tdt_future batch[BATCH];

	for (int i = 0; i < TIMES / BATCH; i++) {
		for (int j = 0; j < BATCH; j++)
			batch[j] = trace();
		for (int j = 0; j < BATCH; j++)
			tdt_future_drop(&batch[j]);
	}
	return unused;
}

static void *allocate(void *unused)
{
	void *batch[BATCH];

	for (int i = 0; i < TIMES / BATCH; i++) {
		for (int j = 0; j < BATCH; j++) {
			batch[j] = calloc(1, 320);
			__asm__ volatile("" : : "r"(batch[j]) : "memory");
		}
		for (int j = 0; j < BATCH; j++)
			free(batch[j]);
	}
	return unused;
}

static void measure(struct figure *figure, void *(*work)(void *unused), int threads)
{
	int64_t start = now();
	pthread_t thread[2];

	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, work, NULL) != 0)
			die("pthread_create");
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	add(figure, (double)(now() - start) / TIMES);
}

/* --- 100,000 tasks ------------------------------------------------------------ */

static struct tdt_future tasks[TASKS];

static long resident(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long pages = 0;

	if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1)
		die("/proc/self/statm");
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

static int count(struct tdt_handle *handle, const struct tdt_task_info *info, void *arg)
{
	(void)handle;
	(void)info;
	++*(int *)arg;
	return 0;
}

static void go_through(struct figure *figure, const struct tdt_task_filter *filter, int expected)
{
	int64_t start = now();
	int n = 0;

	tdt_tasks(filter, count, &n);
	add(figure, (double)(now() - start) / TASKS);
	if (n < expected)
		die("tdt_tasks");
}

static void find(struct figure *figure)
{
	int64_t start = now();

	if (tdt_task_find(UINT64_MAX) != NULL)
		die("tdt_task_find");
	add(figure, (double)(now() - start) / TASKS);
}

static const struct tdt_waker *clone_itself(const struct tdt_waker *waker)
{
	return waker;
}

static void ignore(const struct tdt_waker *waker)
{
	(void)waker;
}

/* Tasks that were polled once: idle. */
static void fill(int n)
{
	static const struct tdt_waker_vtable vtable = { clone_itself, ignore, ignore, ignore };
	static const struct tdt_waker waker = { &vtable };
	struct tdt_context cx = { &waker };

	for (int i = 0; i < n; i++) {
		tasks[i] = trace();
		tdt_future_poll(&tasks[i], &cx);
	}
}

/* What an idle task takes more than its future does, in a process that has done nothing else. */
static double memory_a_task(void)
{
	double bytes;
	pid_t child;
	int fds[2];
	long before;

	if (pipe(fds) != 0)
		die("pipe");
	child = fork();
	if (child < 0)
		die("fork");
	if (child == 0) {
		for (int i = 0; i < TASKS; i++)
			tasks[i] = (struct tdt_future){ NULL, never, nothing };
		fill(1); /* code counts, too, the first time */
		tdt_future_drop(&tasks[0]);
		before = resident();
		fill(TASKS);
		bytes = (double)(resident() - before) / TASKS;
		_exit(write(fds[1], &bytes, sizeof bytes) == sizeof bytes ? 0 : 1);
	}
	close(fds[1]);
	if (read(fds[0], &bytes, sizeof bytes) != sizeof bytes)
		die("a child");
	close(fds[0]);
	waitpid(child, NULL, 0);
	return bytes;
}

int main(int argc, char **argv)
{
	const struct tdt_task_filter none = { .size = sizeof none, .longer_than_ns = UINT64_MAX };
	struct figure *one, *one_calloc, *two, *two_calloc, *memory, *all, *filtered, *found;

	report_start(argc, argv, "What does it cost to keep records of tasks?", "ns a task", 9);
	one_calloc = figure("320 bytes from calloc() and back", NULL);
	one = figure("a future traced and dropped", one_calloc);
	two_calloc = figure("the bytes, on each of two threads", NULL);
	two = figure("the future, on each of two threads", two_calloc);
	remark("With 100,000 tasks:");
	memory = figure("an idle task, over its future", NULL);
	in_unit(memory, "bytes of memory");
	at_most(memory, 320);
	all = figure("tdt_tasks(), each", NULL);
	filtered = figure("tdt_tasks() that lets none through, each", NULL);
	found = figure("tdt_task_find() of none, each", NULL);
	for (int i = 0; i < rounds; i++)
		add(memory, memory_a_task());
	for (int i = 0; i < rounds; i++) {
		measure(one_calloc, allocate, 1);
		measure(one, come_and_go, 1);
		measure(two_calloc, allocate, 2);
		measure(two, come_and_go, 2);
	}
	fill(TASKS);
	for (int i = 0; i < rounds; i++) {
		go_through(all, NULL, TASKS);
		go_through(filtered, &none, 0);
		find(found);
	}
	for (int i = 0; i < TASKS; i++)
		tdt_future_drop(&tasks[i]);
	return report_end();
}
