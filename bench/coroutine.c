// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What coroutines cost: a poll that goes there and back, against the same poll of a plain future; and making one. */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tdt/coroutine.h>

#include "measure.h"

#define ROUNDS 21
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

static void print(const char *what, double *value)
{
	sort_values(value, ROUNDS);
	printf("%-44s %10.1f %10.1f %10.1f\n", what, value[0], value[ROUNDS / 2], value[ROUNDS - 1]);
}

int main(void)
{
	static double plain[ROUNDS], coroutine[ROUNDS], life[ROUNDS];
	struct tdt_future waits = { NULL, pending, nothing }, ends = { NULL, ready, nothing };
	struct tdt_future co = tdt_coroutine(awaits, &waits, NULL);

	if (tdt_future_is_none(&co))
		return EXIT_FAILURE;
	for (int i = 0; i < ROUNDS; i++) {
		plain[i] = poll_often(&waits);
		coroutine[i] = poll_often(&co);
		life[i] = live_often(&ends);
	}
	tdt_future_drop(&co);
	printf("%-44s %10s %10s %10s\n", "ns", "min", "median", "max");
	print("a poll that waits", plain);
	print("the same in a coroutine, there and back", coroutine);
	print("a coroutine made, run to its end, and dropped", life);
	return EXIT_SUCCESS;
}
