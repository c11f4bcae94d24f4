// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Coroutines: plain C functions that can wait anywhere, at any call depth, with plain variables.
 *
 * Breakfast is made by two coroutines, which need one stove.  Another task holds the stove until
 * breakfast has begun, and prints where the coroutines wait.  Two threads do all the work.
 */

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include <tdt/rt/runtime.h>
#include <tdt/rt/sync.h>
#include <tdt/tdt.h>

#include "help.h"

static const char coroutines_help[] =
	"Usage: coroutines [--help]\n"
	"Make breakfast in two coroutines, and print where they wait.\n";

struct kitchen {
	struct tdt_mutex *stove;
	struct tdt_oneshot_sender *begin;   /* used by make_breakfast() */
	struct tdt_oneshot_receiver *begun; /* used by serve() */
};

/* A function that waits is called like any other. */
static int use_stove(struct kitchen *kitchen, uint64_t ms)
{
	int err = tdt_co_await(tdt_mutex_lock(kitchen->stove));

	if (err != 0)
		return err;
	err = tdt_co_await(tdt_sleep_ms(ms));
	tdt_mutex_unlock(kitchen->stove);
	return err;
}

static int boil_eggs(void *arg)
{
	int err = use_stove(arg, 20);

	if (err == 0)
		printf("The eggs are boiled.\n");
	return err;
}

static int toast_bread(void *arg)
{
	int err = 0;

	for (int slice = 1; slice <= 2 && err == 0; slice++) {
		err = use_stove(arg, 5);
		if (err == 0)
			printf("Slice %d is toasted.\n", slice);
	}
	return err;
}

/* A coroutine is a future: it can be joined, raced and spawned like any other. */
static int make_both(struct kitchen *kitchen)
{
	struct tdt_future both[] = { tdt_coroutine(boil_eggs, kitchen, NULL),
				     tdt_coroutine(toast_bread, kitchen, NULL) };
	struct tdt_future joined = tdt_join_all(both, 2);

	if (tdt_future_is_none(&joined)) {
		tdt_future_drop(&both[0]);
		tdt_future_drop(&both[1]);
		return -ENOMEM;
	}
	return tdt_co_await(joined);
}

static int make_breakfast(void *arg)
{
	struct kitchen *kitchen = arg;
	int err = tdt_co_await(tdt_sleep_ms(10));

	tdt_oneshot_send(kitchen->begin, NULL);
	if (err == 0)
		err = make_both(kitchen);
	return err;
}

/* Request a backtrace of the task, and print it. */
static int print_backtrace(struct tdt_handle *task)
{
	struct tdt_trace *trace = NULL;
	int err = 0, awaited = tdt_co_await(tdt_backtrace_async(task, NULL, &trace, &err));

	if (awaited == 0 && err == 0)
		err = tdt_trace_print(trace, stdout);
	tdt_trace_free(trace);
	return awaited != 0 ? awaited : err;
}

static int serve(void *arg)
{
	struct kitchen *kitchen = arg;
	struct tdt_future making;
	struct tdt_handle *breakfast;
	void *nothing;
	int err, outcome;

	err = tdt_co_await(tdt_mutex_lock(kitchen->stove));
	if (err != 0)
		return err;
	making = tdt_coroutine(make_breakfast, kitchen, NULL);
	breakfast = tdt_rt_spawn(tdt_rt_current(), making, TDT_TASK_ATTR(.name = "breakfast"));
	if (breakfast == NULL) {
		tdt_future_drop(&making);
		tdt_mutex_unlock(kitchen->stove);
		return -ENOMEM;
	}
	err = tdt_co_await(tdt_oneshot_receive(kitchen->begun, &nothing, NULL));
	if (err == 0)
		err = print_backtrace(breakfast);
	tdt_mutex_unlock(kitchen->stove);
	if (err == 0)
		err = tdt_co_await(tdt_join(breakfast, &outcome));
	tdt_handle_unref(breakfast);
	return err != 0 ? err : outcome;
}

int main(int argc, char **argv)
{
	struct tdt_rt_config config = { .size = sizeof(config), .workers = 1 };
	struct tdt_rt *rt;
	struct kitchen kitchen = { 0 };
	struct tdt_coroutine_attr large = { .size = sizeof(large), .stack_size = 1 << 20 };
	int err = read_options(argc, argv, coroutines_help);

	if (err >= 0)
		return err;
	setlocale(LC_ALL, ""); /* in a UTF-8 locale the tree is drawn in UTF-8 */
	rt = tdt_rt_new(&config);
	kitchen.stove = tdt_mutex_new();
	if (rt == NULL || kitchen.stove == NULL ||
	    tdt_oneshot(&kitchen.begin, &kitchen.begun, NULL) != 0) {
		perror("coroutines");
		return EXIT_FAILURE;
	}
	/* Printing a trace needs more stack than a coroutine has by default. */
	err = tdt_rt_block_on(rt, tdt_coroutine(serve, &kitchen, &large));
	tdt_rt_free(rt);
	tdt_oneshot_receiver_free(kitchen.begun);
	tdt_mutex_free(kitchen.stove);
	if (err != 0)
		fprintf(stderr, "coroutines: no breakfast\n");
	else
		printf("Breakfast is ready.\n");
	return err == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
