// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A program with a task at each of the library's leaves where a task can stay: stripped.sh looks
 * what they are called.  It prints its own dump, as folded stacks, when its input ends.
 */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include <tdt/rt/net.h>
#include <tdt/rt/runtime.h>
#include <tdt/rt/sync.h>
#include <tdt/tdt.h>

#include "lib/at_rest.h"
#include "lib/must.h"

#define LONG 1000000000u /* ms */

static struct tdt_rt *rt;
static char sent[1 << 25]; /* more than a socket takes */

static struct tdt_handle *spawn(const char *name, struct tdt_future future)
{
	struct tdt_handle *handle;

	MUST(!tdt_future_is_none(&future));
	handle = tdt_rt_spawn(rt, future, TDT_TASK_ATTR(.name = name));
	MUST(handle != NULL);
	return handle;
}

/* What has one leaf only shows nothing but that. */
static void spawn_combined(struct tdt_handle *sleeper, struct tdt_mutex *mutex)
{
	static bool elapsed;
	static size_t winner;
	struct tdt_future two[] = { tdt_sleep_ms(LONG), tdt_mutex_lock(mutex) },
			  other_two[] = { tdt_sleep_ms(LONG), tdt_join(sleeper, NULL) };

	spawn("timeout", tdt_timeout_ms(tdt_mutex_lock(mutex), LONG, &elapsed));
	spawn("join", tdt_join(sleeper, NULL));
	spawn("join_all", tdt_join_all(two, 2));
	spawn("select", tdt_select(other_two, 2, &winner));
}

static void spawn_net(void)
{
	static struct tdt_tcp *server, *client, *next;
	static int error;
	static char byte;
	static ssize_t n_read, n_sent;
	struct tdt_tcp_listener *listener = tdt_tcp_listen("127.0.0.1", 0);

	MUST(listener != NULL);
	MUST(tdt_rt_block_on(rt, tdt_tcp_connect("127.0.0.1", tdt_tcp_listener_port(listener),
						 &client, &error)) == 0 &&
	     client != NULL);
	MUST(tdt_rt_block_on(rt, tdt_tcp_accept(listener, &server, &error)) == 0 && server != NULL);
	spawn("accept", tdt_tcp_accept(listener, &next, &error));
	spawn("read", tdt_tcp_read(client, &byte, 1, &n_read));
	spawn("write", tdt_tcp_write(client, sent, sizeof sent, &n_sent));
}

int main(void)
{
	const struct tdt_print_options print = { .size = sizeof print,
						 .format = TDT_PRINT_FOLDED };
	const struct tdt_dump_options options = { .size = sizeof options,
						  .timeout_ns = INT64_C(30000000000),
						  .print = &print };
	struct tdt_mutex *mutex = tdt_mutex_new();
	struct tdt_oneshot_sender *sender;
	struct tdt_oneshot_receiver *receiver;
	static void *value;
	struct tdt_handle *sleeper;

	rt = tdt_rt_new(NULL);
	MUST(rt != NULL && mutex != NULL && tdt_mutex_try_lock(mutex));
	MUST(tdt_oneshot(&sender, &receiver, NULL) == 0);
	sleeper = spawn("sleep", tdt_sleep_ms(LONG));
	spawn("lock", tdt_mutex_lock(mutex));
	spawn("receive", tdt_oneshot_receive(receiver, &value, NULL));
	spawn_combined(sleeper, mutex);
	spawn_net();
	spawn("last", tdt_sleep_ms(LONG));
	wait_for_rest(0);
	puts("ready");
	fflush(stdout);
	getchar();
	MUST(tdt_dump_with(stdout, &options) == 0);
	fflush(stdout);
	_Exit(0);
}
