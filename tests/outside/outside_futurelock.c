// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A process for the program tdt to look at: task 1 polls a future of tdt_mutex_lock() once, and
 * then sleeps; the mutex is handed to this future, and task 2 waits for it.
 *
 *	outside_futurelock         prints "ready"; ends with its input.
 */

#include <config.h>

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include <tdt/rt/runtime.h>
#include <tdt/rt/sync.h>
#include <tdt/tdt.h>

#include "lib/must.h"

struct forgetting {
	struct tdt_async async;
	struct tdt_future first;
};

static struct tdt_future first;

static tdt_poll_t forget(void *state, struct tdt_context *cx)
{
	struct forgetting *forgetting = state;

	TDT_BEGIN(&forgetting->async, cx);
	MUST(tdt_future_poll(&forgetting->first, cx) == TDT_PENDING);
	TDT_AWAIT(tdt_sleep_ms(60000000));
	TDT_END();
}

static int waits_for_mutex(struct tdt_handle *handle, const struct tdt_task_info *info, void *arg)
{
	(void)handle;
	(void)arg;
	return info->n_waits != 0 && info->waits[0]->kind == TDT_WAIT_MUTEX;
}

static void start(struct tdt_rt *rt, struct tdt_future future, const char *name)
{
	struct tdt_handle *handle = tdt_rt_spawn(rt, future, TDT_TASK_ATTR(.name = name));

	MUST(handle != NULL);
	while (tdt_task_inspect(handle, waits_for_mutex, NULL) == 0)
		usleep(1000);
	tdt_handle_unref(handle);
}

int main(void)
{
	struct tdt_rt *rt = tdt_rt_new(NULL);
	struct tdt_mutex *mutex = tdt_mutex_new();

	MUST(rt != NULL && tdt_mutex_set_name(mutex, "accounts") == 0);
	MUST(tdt_mutex_try_lock(mutex));
	first = tdt_mutex_lock(mutex);
	start(rt, TDT_ASYNC_NEW(forget, (struct forgetting){ .first = first }), "forgetful");
	start(rt, tdt_mutex_lock(mutex), "waiter");
	MUST(tdt_mutex_unlock(mutex) == 0);
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	tdt_future_drop(&first);
	tdt_rt_free(rt);
	tdt_mutex_free(mutex);
	return 0;
}
