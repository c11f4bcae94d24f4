// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark measures what the flight recorder adds to a poll, to a wake-up and to both of them
 * by a worker of libtdt-rt; and what it adds to a poll if every n-th poll is captured, in a task
 * whose leaf lies 10 calls deep.  The processor's clock, which an event has to read, stands beside.
 */

#include <config.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <tdt/integrate/hooks.h>
#include <tdt/rt/runtime.h>
#include <tdt/tdt.h>

#include "report.h"

#define POLLS 20000
#define TURN 32 /* polls that one look at the clock serves in libtdt-rt */
#define DEPTH 10

/* --- Futures, and a waker that is its own clone ------------------------------------------ */

static tdt_poll_t wait_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PENDING;
}

static __attribute__((noinline)) void clone_deep(int depth, struct tdt_context *cx)
{
	if (depth > 1)
		clone_deep(depth - 1, cx);
	else
		tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
}

static tdt_poll_t deep_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	clone_deep(DEPTH, cx);
	return TDT_PENDING;
}

static void drop_nothing(void *state)
{
	(void)state;
}

static const struct tdt_waker *clone_itself(const struct tdt_waker *waker)
{
	return waker;
}

static void nothing(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable vtable = { clone_itself, nothing, nothing, nothing };
static const struct tdt_waker waker = { &vtable };

static struct tdt_traced trace(tdt_poll_t (*poll)(void *state, struct tdt_context *cx))
{
	struct tdt_traced traced = tdt_traced(((struct tdt_future){ NULL, poll, drop_nothing }));

	if (traced.handle == NULL)
		die("tdt_traced");
	return traced;
}

/* --- What is measured -------------------------------------------------------------------- */

static double note(struct figure *figure, double value)
{
	add(figure, value);
	return value;
}

static double poll_in_turns(struct figure *figure, const struct tdt_traced *task)
{
	struct tdt_context cx = { &waker };
	int64_t start = now();

	for (int i = 0; i < POLLS / TURN; i++) {
		tdt_worker_now((uint64_t)now());
		for (int j = 0; j < TURN; j++)
			tdt_future_poll(&task->future, &cx);
	}
	tdt_worker_now(0);
	return note(figure, (double)(now() - start) / (POLLS / TURN * TURN));
}

/* Of several wake-ups before a poll the first one counts. */
static double wake_often(struct figure *figure, const struct tdt_traced *tasks)
{
	struct tdt_context cx = { &waker };
	int64_t start, spent = 0;

	for (int i = 0; i < POLLS / TURN; i++) {
		start = now();
		tdt_worker_now((uint64_t)start);
		for (int j = 0; j < TURN; j++)
			tdt_task_woken(tasks[j].handle);
		spent += now() - start;
		for (int j = 0; j < TURN; j++)
			tdt_future_poll(&tasks[j].future, &cx);
	}
	tdt_worker_now(0);
	return note(figure, (double)spent / (POLLS / TURN * TURN));
}

/* The clock that an event reads.  Elsewhere than on x86-64 it is compared with clock_gettime(). */
static double read_clock(struct figure *figure)
{
	int64_t start = now();
	volatile uint64_t sink;

	for (int i = 0; i < POLLS; i++)
#if defined(__x86_64__)
		sink = __builtin_ia32_rdtsc();
#else
		sink = (uint64_t)now();
#endif
	(void)sink;
	return note(figure, (double)(now() - start) / POLLS);
}

static int again; /* polls that are left */

static tdt_poll_t again_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	if (again-- == 0)
		return TDT_READY;
	tdt_waker_wake_by_ref(cx->waker);
	return TDT_PENDING;
}

/* A task that wakes itself. */
static double run_on_worker(struct figure *figure, struct tdt_rt *rt)
{
	const struct tdt_future future = { NULL, again_poll, drop_nothing };
	int64_t start = now();

	again = POLLS;
	if (tdt_rt_block_on(rt, future) != 0)
		die("tdt_rt_block_on");
	return note(figure, (double)(now() - start) / POLLS);
}

static void start(uint32_t every)
{
	const struct tdt_recorder_options options = { .size = sizeof options,
						      .ring_size = 1 << 20,
						      .stacks = every != 0 ? TDT_STACKS_EVERY : 0,
						      .every = every };

	if (tdt_recorder_start(&options) != 0)
		die("tdt_recorder_start");
}

/* The time that the recorder adds; `beyond` leaves out the one clock read that it needs. */
struct comparison {
	struct figure *off, *on, *beyond;
};

static struct comparison compare(const char *off, const char *beyond, double target)
{
	struct comparison comparison;

	comparison.off = figure(off, NULL);
	comparison.on = figure("  recorded", comparison.off);
	comparison.beyond = figure(beyond, NULL);
	at_most(comparison.beyond, target);
	return comparison;
}

int main(int argc, char **argv)
{
	static const uint32_t every[] = { 100, 10, 1 };
	struct figure *clock, *deep, *captured[3];
	struct comparison poll, wake, both;
	struct tdt_traced task, deeper, woken[TURN];
	struct tdt_rt *rt;

	report_start(argc, argv, "What does the flight recorder add?", "ns", 51);
	clock = figure("reading the processor's clock", NULL);
	poll = compare("a traced poll", "  added, without the clock", 12);
	wake = compare("a wake-up that is reported", "  added, without the clock", 6);
	both = compare("a poll with its wake-up, by a worker", "  added", 60);
	deep = figure("a traced poll, its leaf 10 deep", NULL);
	captured[0] = figure("  recorded, every 100th captured", deep);
	captured[1] = figure("  recorded, every 10th captured", deep);
	captured[2] = figure("  recorded, each captured", deep);
	rt = tdt_rt_new(NULL);
	if (rt == NULL)
		die("tdt_rt_new");
	task = trace(wait_poll);
	deeper = trace(deep_poll);
	for (int i = 0; i < TURN; i++)
		woken[i] = trace(wait_poll);
	for (int i = 0; i < rounds; i++) {
		double clock_ns = read_clock(clock), poll_ns = poll_in_turns(poll.off, &task),
		       wake_ns = wake_often(wake.off, woken), both_ns = run_on_worker(both.off, rt);

		poll_in_turns(deep, &deeper);
		start(0);
		add(poll.beyond, poll_in_turns(poll.on, &task) - poll_ns - clock_ns);
		add(wake.beyond, wake_often(wake.on, woken) - wake_ns - clock_ns);
		add(both.beyond, run_on_worker(both.on, rt) - both_ns);
		tdt_recorder_stop();
		for (int j = 0; j < 3; j++) {
			start(every[j]);
			poll_in_turns(captured[j], &deeper);
			tdt_recorder_stop();
		}
	}
	tdt_rt_free(rt);
	for (int i = 0; i < TURN; i++) {
		tdt_future_drop(&woken[i].future);
		tdt_handle_unref(woken[i].handle);
	}
	tdt_future_drop(&task.future);
	tdt_future_drop(&deeper.future);
	tdt_handle_unref(task.handle);
	tdt_handle_unref(deeper.handle);
	return report_end();
}
