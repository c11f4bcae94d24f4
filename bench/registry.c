// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * What it costs to keep records of tasks where others find them: to trace a future and drop it, beside memory of the
 * same size from calloc(), on one thread and on two at once; and with 100,000 tasks, to go through them all, to find
 * one, and the memory.  Rounds are interleaved, so that what disturbs one disturbs all.
 */

#include <config.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <tdt/registry.h>
#include <tdt/tasks.h>

#include "measure.h"

#define ROUNDS 9
#define TIMES 400000
#define BATCH 100
#define TASKS 100000

/* --- Figures ------------------------------------------------------------------ */

static void print(struct figure *figure)
{
	sort_values(figure->value, figure->n);
	printf("%-48s %10.1f %10.1f %10.1f\n", figure->name, figure->value[0], figure->value[figure->n / 2],
	       figure->value[figure->n - 1]);
}

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
			batch[j] = calloc(1, 256);
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
	figure->value[figure->n++] = (double)(now() - start) / TIMES;
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

static int count(struct tdt_handle *handle, const struct tdt_trace_info *info, void *arg)
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
	figure->value[figure->n++] = (double)(now() - start) / TASKS;
	if (n < expected)
		die("tdt_tasks");
}

static void find(struct figure *figure)
{
	int64_t start = now();

	if (tdt_task_find(UINT64_MAX) != NULL)
		die("tdt_task_find");
	figure->value[figure->n++] = (double)(now() - start) / TASKS;
}

static struct figure one = { .name = "traced and dropped, on one thread" };
static struct figure one_calloc = { .name = "  256 bytes of calloc" };
static struct figure two = { .name = "traced and dropped, on each of two threads" };
static struct figure two_calloc = { .name = "  256 bytes of calloc" };
static struct figure all = { .name = "tdt_tasks(), each of 100,000" };
static struct figure filtered = { .name = "tdt_tasks() that lets none through" };
static struct figure found = { .name = "tdt_task_find() of none" };

int main(void)
{
	const struct tdt_task_filter none = { .size = sizeof none, .longer_than_ns = UINT64_MAX };
	long before;

	for (int i = 0; i < ROUNDS; i++) {
		measure(&one, come_and_go, 1);
		measure(&one_calloc, allocate, 1);
		measure(&two, come_and_go, 2);
		measure(&two_calloc, allocate, 2);
	}
	for (int i = 0; i < TASKS; i++)
		tasks[i].poll = never; /* so that this memory does not count */
	before = resident();
	for (int i = 0; i < TASKS; i++)
		tasks[i] = trace();
	printf("%d tasks: %.0f bytes of memory each\n", TASKS, (double)(resident() - before) / TASKS);
	for (int i = 0; i < ROUNDS; i++) {
		go_through(&all, NULL, TASKS);
		go_through(&filtered, &none, 0);
		find(&found);
	}
	for (int i = 0; i < TASKS; i++)
		tdt_future_drop(&tasks[i]);
	printf("%d rounds; ns %46s %10s %10s\n", ROUNDS, "min", "median", "max");
	print(&one);
	print(&one_calloc);
	print(&two);
	print(&two_calloc);
	print(&all);
	print(&filtered);
	print(&found);
	return 0;
}
