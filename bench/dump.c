// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * What it takes to ask all tasks of a process where they wait: a snapshot of 10,000 and of 100,000 idle tasks, ten
 * functions deep, on one and on two workers; beside asking them one after the other by tdt_backtrace().  No names are
 * looked up.  And the memory that a snapshot takes.
 */

#include <config.h>

#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tdt/dump.h>
#include <tdt/runtime.h>

#include "measure.h"

#define ROUNDS 9
#define DEPTH 10
#define MOST 100000
#define ONE_BY_ONE 1000 /* that are asked so */

/* --- Tasks that wait for ever ------------------------------------------------ */

static struct idle {
	const struct tdt_waker *waker; /* touched in polls and in the drop alone */
	struct tdt_handle *handle;
} idle[MOST];

static atomic_int polled;

static __attribute__((noinline)) tdt_poll_t wait_below(int depth, struct idle *task, struct tdt_context *cx)
{
	tdt_poll_t result = TDT_PENDING;

	if (depth > 0) {
		result = wait_below(depth - 1, task, cx);
	} else if (task->waker == NULL || !tdt_waker_will_wake(task->waker, cx->waker)) {
		tdt_waker_drop(task->waker);
		task->waker = tdt_waker_clone(cx->waker);
		atomic_fetch_add(&polled, 1);
	}
	TDT_KEEP_FRAME();
	return result;
}

static tdt_poll_t idle_poll(void *state, struct tdt_context *cx)
{
	tdt_poll_t result = wait_below(DEPTH - 2, state, cx);

	TDT_KEEP_FRAME();
	return result;
}

static void idle_drop(void *state)
{
	struct idle *task = state;

	tdt_waker_drop(task->waker);
	task->waker = NULL;
}

static struct tdt_rt *start(unsigned workers, int tasks)
{
	struct tdt_rt *rt = tdt_rt_new(&(struct tdt_rt_config){ .size = sizeof(struct tdt_rt_config), workers });

	if (rt == NULL)
		die("tdt_rt_new");
	atomic_store(&polled, 0);
	for (int i = 0; i < tasks; i++) {
		idle[i].handle = tdt_rt_spawn(rt, (struct tdt_future){ &idle[i], idle_poll, idle_drop },
					      TDT_TASK_ATTR(.name = "idle"));
		if (idle[i].handle == NULL)
			die("tdt_rt_spawn");
	}
	while (atomic_load(&polled) < tasks)
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	return rt;
}

static void stop(struct tdt_rt *rt, int tasks)
{
	tdt_rt_free(rt);
	for (int i = 0; i < tasks; i++)
		tdt_handle_unref(idle[i].handle);
}

/* --- Asking --------------------------------------------------------------------- */

/* Nanoseconds a task. */
static double one_by_one(void)
{
	int64_t begin = now();

	for (int i = 0; i < ONE_BY_ONE; i++) {
		struct tdt_trace *trace = tdt_backtrace(idle[i].handle);

		if (trace == NULL)
			die("tdt_backtrace");
		tdt_trace_free(trace);
	}
	return (double)(now() - begin) / ONE_BY_ONE;
}

static size_t allocated(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static double snapshot(int tasks, double *bytes, size_t *groups)
{
	struct tdt_dump_options options = { .size = sizeof options, .timeout_ns = INT64_C(10000000000) };
	const struct tdt_snapshot *taken;
	size_t before = allocated();
	int64_t begin = now(), end;

	taken = tdt_snapshot_take(&options);
	end = now();
	if (taken == NULL)
		die("tdt_snapshot_take");
	if (taken->answers[TDT_ANSWER_FRESH] != (size_t)tasks) {
		fprintf(stderr, "only %zu of %d tasks answered\n", taken->answers[TDT_ANSWER_FRESH], tasks);
		exit(1);
	}
	*bytes = (double)(allocated() - before) / tasks;
	*groups = taken->n_groups;
	tdt_snapshot_free(taken);
	return (double)(end - begin) / tasks;
}

static void measure(unsigned workers, int tasks)
{
	struct tdt_rt *rt = start(workers, tasks);
	double each[ROUNDS], all[ROUNDS], bytes = 0;
	size_t groups = 0;

	for (int i = 0; i < ROUNDS; i++) {
		each[i] = one_by_one();
		all[i] = snapshot(tasks, &bytes, &groups);
	}
	sort_values(each, ROUNDS);
	sort_values(all, ROUNDS);
	printf("%7d tasks, %u worker%s %9.2f ms (%.2f to %.2f), %5.0f ns a task, x %5.3f;  %3.0f bytes a task, "
	       "%zu group%s\n",
	       tasks, workers, workers == 1 ? ", " : "s,", all[ROUNDS / 2] * tasks / 1e6, all[0] * tasks / 1e6,
	       all[ROUNDS - 1] * tasks / 1e6, all[ROUNDS / 2], all[ROUNDS / 2] / each[ROUNDS / 2], bytes, groups,
	       groups == 1 ? "" : "s");
	stop(rt, tasks);
}

int main(void)
{
	printf("A snapshot of idle tasks %d deep, median of %d; x: beside tdt_backtrace() of one after the other\n", DEPTH,
	       ROUNDS);
	for (unsigned workers = 1; workers <= 2; workers++) {
		measure(workers, 1000);
		measure(workers, 10000);
		measure(workers, MOST);
	}
	return 0;
}
