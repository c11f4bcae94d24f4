// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A program whose tasks belong to traces, and hang: a task "vacuum" has the mutex "db pool", three
 * requests wait for it, and each of them has spawned a task "audit", which sleeps.  It prints
 * "ready" when all of them wait, and ends with its input.
 *
 * The bytes of the ids of the traces and of their spans are all the same: 0xe0 and 0xe1 of vacuum,
 * 0xa0 to 0xa2 and 0xb0 to 0xb2 of the requests.
 */

#include <config.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <tdt/rt/runtime.h>
#include <tdt/rt/sync.h>
#include <tdt/tdt.h>

#include "lib/at_rest.h"
#include "lib/must.h"

#define REQUESTS 3

struct work {
	struct tdt_async async;
	int number;
};

static struct tdt_mutex *pool;
static atomic_bool held;
static struct tdt_rt *rt;

static void spawn(struct tdt_future future, const char *name)
{
	struct tdt_handle *handle = tdt_rt_spawn(rt, future, TDT_TASK_ATTR(.name = name));

	MUST(handle != NULL);
	tdt_handle_unref(handle);
}

static void begin_request(int trace, int span)
{
	struct tdt_trace_context context = { .flags = 1 };

	memset(context.trace_id, trace, sizeof context.trace_id);
	memset(context.span_id, span, sizeof context.span_id);
	MUST(tdt_task_context(NULL, &context) == 0);
}

static tdt_poll_t vacuum_poll(void *state, struct tdt_context *cx)
{
	struct work *work = state;

	TDT_BEGIN(&work->async, cx);
	begin_request(0xe0, 0xe1);
	TDT_AWAIT(tdt_mutex_lock(pool));
	atomic_store(&held, true);
	TDT_AWAIT(tdt_sleep_ms(60000000));
	TDT_END();
}

static tdt_poll_t audit_poll(void *state, struct tdt_context *cx)
{
	struct work *work = state;

	TDT_BEGIN(&work->async, cx);
	TDT_AWAIT(tdt_sleep_ms(60000000));
	TDT_END();
}

static tdt_poll_t request_poll(void *state, struct tdt_context *cx)
{
	struct work *work = state;

	TDT_BEGIN(&work->async, cx);
	TDT_AWAIT(tdt_sleep_ms(1));
	begin_request(0xa0 + work->number, 0xb0 + work->number);
	spawn(TDT_ASYNC_NEW(audit_poll, (struct work){ 0 }), "audit");
	TDT_AWAIT(tdt_mutex_lock(pool));
	TDT_END();
}

static int count_waits(struct tdt_handle *handle, const struct tdt_task_info *info, void *count)
{
	(void)handle;
	*(int *)count += info->n_waits != 0 && info->waits[0]->kind == TDT_WAIT_MUTEX;
	return 0;
}

static void wait_for_requests(void)
{
	int count;

	do {
		usleep(1000);
		count = 0;
		tdt_tasks(NULL, count_waits, &count);
	} while (count != REQUESTS);
}

int main(void)
{
	struct tdt_rt_config config = { .size = sizeof config, .workers = 2 };

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	rt = tdt_rt_new(&config);
	pool = tdt_mutex_new();
	MUST(rt != NULL && pool != NULL && tdt_mutex_set_name(pool, "db pool") == 0);
	spawn(TDT_ASYNC_NEW(vacuum_poll, (struct work){ 0 }), "vacuum");
	while (!atomic_load(&held))
		usleep(1000);
	for (int i = 0; i < REQUESTS; i++)
		spawn(TDT_ASYNC_NEW(request_poll, (struct work){ .number = i }), "request");
	wait_for_requests();
	wait_for_rest(0);
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	_exit(EXIT_SUCCESS); /* its tasks never end */
}
