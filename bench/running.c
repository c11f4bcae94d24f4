// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark measures the reading of a poll in progress.  Its thread is blocked, or it runs
 * and has to be interrupted.  The time counts from the decision to the capture, without names and
 * without the grace before the decision.
 */

#include <config.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tdt/trace.h>

#include "../src/base/clock.h"
#include "../src/capture/capture.h"
#include "../src/capture/running.h"
#include "report.h"

#define DEPTH 20
#define SECOND UINT64_C(1000000000)

static atomic_bool over;
static int gate[2];

static __attribute__((noinline)) void stay(bool spins, int depth)
{
	char byte;

	if (depth > 0)
		stay(spins, depth - 1);
	else if (spins)
		while (!atomic_load_explicit(&over, memory_order_relaxed))
			;
	else if (read(gate[0], &byte, 1) < 0)
		abort();
	__asm__ volatile("" : : "r"(&byte) : "memory");
}

static tdt_poll_t spin_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	stay(true, DEPTH);
	TDT_KEEP_FRAME();
	return cx != NULL ? TDT_READY : TDT_PANICKED;
}

static tdt_poll_t block_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	stay(false, DEPTH);
	TDT_KEEP_FRAME();
	return cx != NULL ? TDT_READY : TDT_PANICKED;
}

static void nothing(void *state)
{
	(void)state;
}

static const struct tdt_waker *clone_itself(const struct tdt_waker *waker)
{
	return waker;
}

static void ignore(const struct tdt_waker *waker)
{
	(void)waker;
}

static void *poll_it(void *argument)
{
	static const struct tdt_waker_vtable vtable = { clone_itself, ignore, ignore, ignore };
	static const struct tdt_waker waker = { &vtable };
	struct tdt_context cx = { &waker };

	tdt_future_poll(argument, &cx);
	return NULL;
}

static void measure(struct figure *figure, tdt_poll_t (*poll)(void *state, struct tdt_context *cx))
{
	struct tdt_traced traced = tdt_traced(((struct tdt_future){ NULL, poll, nothing }));
	pthread_t thread;
	int n = 0, error, failed = 0;

	if (traced.handle == NULL || pthread_create(&thread, NULL, poll_it, &traced.future) != 0)
		abort();
	while (tdt__running_poll(traced.handle) == 0)
		usleep(1000);
	usleep(100000); /* now it blocks, or runs */
	while (n < rounds && failed < rounds) {
		struct tdt__capture *capture;
		double took;
		uint64_t start;

		/* so that the thread has left the handler of the round before */
		usleep(200);
		start = tdt__clock();
		capture = tdt__running(traced.handle, 1, TDT_MAX_FRAMES, start + SECOND, &error);
		took = (double)(tdt__clock() - start) / 1e3;
		if (capture != NULL) {
			add(figure, took);
			n++;
		} else {
			failed++;
		}
		tdt__capture_unref(capture);
	}
	atomic_store(&over, true);
	if (write(gate[1], "", 1) != 1)
		abort();
	pthread_join(thread, NULL);
	tdt_future_drop(&traced.future);
	tdt_handle_unref(traced.handle);
}

int main(int argc, char **argv)
{
	struct figure *blocked, *runs;

	report_start(argc, argv,
		     "What does it cost to read a poll that is going on, 22 frames deep?", "us",
		     2001);
	blocked = figure("on a thread that is blocked", NULL);
	runs = figure("on a thread that runs, by a signal", NULL);
	if (pipe(gate) != 0)
		die("pipe");
	measure(blocked, block_poll);
	atomic_store(&over, false);
	measure(runs, spin_poll);
	return report_end();
}
