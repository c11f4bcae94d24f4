// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark compares a poll of a coroutine, there and back, with the same poll of a plain
 * future.  It also measures the making of a coroutine.
 */

#include <config.h>

#include <stdlib.h>

#include <tdt/coroutine.h>

#include "report.h"

#define POLLS 20000
#define COROUTINES 2000

static tdt_poll_t pending(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PENDING;
}

static tdt_poll_t ready(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_READY;
}

static void nothing(void *state)
{
	(void)state;
}

static int awaits(void *arg)
{
	return tdt_co_await(*(struct tdt_future *)arg);
}

static double poll_often(const struct tdt_future *future)
{
	struct tdt_context cx = { NULL };
	int64_t start = now();

	for (int i = 0; i < POLLS; i++)
		tdt_future_poll(future, &cx);
	return (double)(now() - start) / POLLS;
}

static double live_often(struct tdt_future *awaited)
{
	struct tdt_context cx = { NULL };
	int64_t start = now();

	for (int i = 0; i < COROUTINES; i++) {
		struct tdt_future co = tdt_coroutine(awaits, awaited, NULL);

		tdt_future_poll(&co, &cx);
		tdt_future_drop(&co);
	}
	return (double)(now() - start) / COROUTINES;
}

int main(int argc, char **argv)
{
	struct tdt_future waits = { NULL, pending, nothing }, ends = { NULL, ready, nothing };
	struct tdt_future co = tdt_coroutine(awaits, &waits, NULL);
	struct figure *plain, *coroutine, *life;

	report_start(argc, argv, "What does a coroutine cost?", "ns", 21);
	plain = figure("a poll that waits", NULL);
	coroutine = figure("the same in a coroutine, there and back", plain);
	life = figure("a coroutine made, run to its end, and dropped", NULL);
	if (tdt_future_is_none(&co))
		die("tdt_coroutine");
	for (int i = 0; i < rounds; i++) {
		add(plain, poll_often(&waits));
		add(coroutine, poll_often(&co));
		add(life, live_often(&ends));
	}
	tdt_future_drop(&co);
	return report_end();
}
