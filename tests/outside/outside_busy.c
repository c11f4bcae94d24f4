// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A process for the program tdt to look at: task 1 wakes itself again and again, which is a busy
 * loop; and three that look like it are healthy: task 2 wakes itself, but seldom, and tasks 3 and 4
 * wake each other.  Nobody polls task 5, which keeps requests waiting for as long as they may.
 * Prints "ready", and a dump for each line of its input, with which it ends.
 */

#include <config.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <tdt/rt/runtime.h>
#include <tdt/tdt.h>

#include "lib/must.h"

struct looping {
	struct tdt_async async;
	int i;
};

static _Atomic uint64_t turns; /* of the task that spins */

static tdt_poll_t spin_poll(void *state, struct tdt_context *cx)
{
	struct looping *looping = state;

	TDT_BEGIN(&looping->async, cx);
	for (;;) {
		turns++;
		TDT_AWAIT(tdt_yield_now());
	}
	TDT_END();
}

static tdt_poll_t paced_poll(void *state, struct tdt_context *cx)
{
	struct looping *looping = state;

	TDT_BEGIN(&looping->async, cx);
	for (;;) {
		for (looping->i = 0; looping->i < 3; looping->i++)
			TDT_AWAIT(tdt_yield_now());
		TDT_AWAIT(tdt_sleep_ms(20));
	}
	TDT_END();
}

/* A ball that two tasks pass to each other: whoever gets it is woken by the other one. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct tdt_waker *waits[2];
static int has_ball;

static tdt_poll_t ball_poll(void *state, struct tdt_context *cx)
{
	const int i = *(const int *)state;
	const struct tdt_waker *before = NULL;
	bool has;

	pthread_mutex_lock(&lock);
	has = has_ball == i;
	if (!has) {
		before = waits[i];
		waits[i] = tdt_waker_clone(cx->waker);
	}
	pthread_mutex_unlock(&lock);
	tdt_waker_drop(before);
	return has ? TDT_READY : TDT_PENDING;
}

static void pass_ball(int to)
{
	const struct tdt_waker *waker;

	pthread_mutex_lock(&lock);
	has_ball = to;
	waker = waits[to];
	waits[to] = NULL;
	pthread_mutex_unlock(&lock);
	tdt_waker_wake(waker);
}

static void drop_nothing(void *state)
{
	(void)state;
}

static tdt_poll_t pass_poll(void *state, struct tdt_context *cx)
{
	struct looping *looping = state;

	TDT_BEGIN(&looping->async, cx);
	for (;;) {
		TDT_AWAIT(((struct tdt_future){ &looping->i, ball_poll, drop_nothing }));
		pass_ball(!looping->i);
	}
	TDT_END();
}

static void start(struct tdt_rt *rt, struct tdt_future future, const char *name)
{
	struct tdt_handle *handle = tdt_rt_spawn(rt, future, TDT_TASK_ATTR(.name = name));

	MUST(handle != NULL);
	tdt_handle_unref(handle);
}

int main(void)
{
	struct tdt_rt *rt = tdt_rt_new(
	    &(struct tdt_rt_config){ .size = sizeof(struct tdt_rt_config), .workers = 2 });
	const struct tdt_dump_options dump = { .size = sizeof dump, .timeout_ns = 1500000000 };
	struct tdt_traced unpolled;
	char line[16];

	MUST(rt != NULL);
	start(rt, TDT_ASYNC_NEW(spin_poll, (struct looping){ 0 }), "spin");
	start(rt, TDT_ASYNC_NEW(paced_poll, (struct looping){ 0 }), "paced");
	start(rt, TDT_ASYNC_NEW(pass_poll, (struct looping){ .i = 0 }), "ping");
	start(rt, TDT_ASYNC_NEW(pass_poll, (struct looping){ .i = 1 }), "pong");
	unpolled = tdt_traced_with((struct tdt_future){ NULL, ball_poll, drop_nothing }, NULL);
	MUST(unpolled.handle != NULL);
	while (turns < 1000)
		usleep(1000);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin) != NULL) {
		tdt_dump_with(stdout, &dump);
		puts("dumped");
		fflush(stdout);
	}
	_exit(0);
}
