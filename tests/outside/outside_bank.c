// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A process for the program tdt to look at: a bank that stands still.  Two transfers wait for each
 * other, a task blocks its thread in read(), another one computes, and sessions wait.  Its trees
 * are watched if TDT_WATCH says so.
 *
 *	outside_bank [SESSIONS]    prints "ready"; ends with its input.  For each line of its
 *	                           input, it prints a dump of its own to stderr, as JSON.
 */

#include <config.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <tdt/tdt.h>

#include "lib/must.h"

struct work {
	struct tdt_async async;
	struct tdt_mutex *first, *second;
	int fd;
};

static struct tdt_mutex *alice, *bob;
static atomic_int halfway; /* transfers that have locked their first account */
static atomic_bool over, computing, reading;
static int ends[2];
static struct tdt_rt *rt;

static tdt_poll_t transfer_poll(void *state, struct tdt_context *cx)
{
	struct work *work = state;

	TDT_BEGIN(&work->async, cx);
	TDT_AWAIT(tdt_mutex_lock(work->first));
	atomic_fetch_add(&halfway, 1);
	while (atomic_load(&halfway) < 2)
		TDT_AWAIT(tdt_sleep_ms(1));
	TDT_AWAIT(tdt_sleep_ms(50)); /* until a watch has ticked */
	TDT_AWAIT(tdt_mutex_lock(work->second));
	TDT_END();
}

static __attribute__((noinline)) void read_config(int fd)
{
	char byte;

	atomic_store(&reading, true);
	MUST(read(fd, &byte, 1) >= 0); /* no thread ever writes */
}

static tdt_poll_t reload_poll(void *state, struct tdt_context *cx)
{
	struct work *work = state;

	TDT_BEGIN(&work->async, cx);
	read_config(work->fd);
	TDT_END();
}

static __attribute__((noinline)) void compute(void)
{
	atomic_store(&computing, true);
	while (!atomic_load_explicit(&over, memory_order_relaxed))
		;
}

static tdt_poll_t report_poll(void *state, struct tdt_context *cx)
{
	struct work *work = state;

	TDT_BEGIN(&work->async, cx);
	compute();
	TDT_END();
}

static tdt_poll_t next_order_poll(void *state, struct tdt_context *cx)
{
	struct work *work = state;

	TDT_BEGIN(&work->async, cx);
	TDT_AWAIT(tdt_sleep_ms(60000000));
	TDT_END();
}

static tdt_poll_t session_poll(void *state, struct tdt_context *cx)
{
	struct work *work = state;

	TDT_BEGIN(&work->async, cx);
	TDT_AWAIT(TDT_ASYNC_NEW(next_order_poll, (struct work){ 0 }));
	TDT_END();
}

static void spawn(struct tdt_future future, const struct tdt_task_attr *attr)
{
	struct tdt_handle *handle = tdt_rt_spawn(rt, future, attr);

	MUST(handle != NULL);
	tdt_handle_unref(handle);
}

static void spawn_sessions(int n)
{
	for (int i = 1; i <= n; i++) {
		char name[32];

		snprintf(name, sizeof name, "session %d", i);
		spawn(TDT_ASYNC_NEW(session_poll, (struct work){ 0 }),
		      TDT_TASK_ATTR(.name = name, .id = (uint64_t)i + 5));
	}
}

/* Its sessions are spawned by this task. */
static tdt_poll_t desk_poll(void *state, struct tdt_context *cx)
{
	struct work *work = state;

	TDT_BEGIN(&work->async, cx);
	spawn_sessions(work->fd);
	TDT_AWAIT(tdt_sleep_ms(60000000));
	TDT_END();
}

/* On a busy machine, the names may take longer than a second. */
#define BANK_TIMEOUT INT64_C(30000000000)

static void dump_own(void)
{
	const struct tdt_print_options print = { .size = sizeof print,
						 .format = TDT_PRINT_JSON };
	const struct tdt_dump_options options = { .size = sizeof options,
						  .timeout_ns = BANK_TIMEOUT,
						  .print = &print };

	MUST(tdt_dump(stderr, &options) == 0);
}

int main(int argc, char **argv)
{
	struct tdt_rt_config config = { .size = sizeof config, .workers = 4 };
	int byte;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	rt = tdt_rt_new(&config);
	alice = tdt_mutex_new();
	bob = tdt_mutex_new();
	MUST(rt != NULL && alice != NULL && bob != NULL && pipe(ends) == 0);
	MUST(tdt_mutex_set_name(alice, "alice") == 0 && tdt_mutex_set_name(bob, "bob") == 0);
	spawn(TDT_ASYNC_NEW(desk_poll, (struct work){ .fd = argc > 1 ? atoi(argv[1]) : 10 }),
	      TDT_TASK_ATTR(.name = "desk", .id = 1));
	spawn(TDT_ASYNC_NEW(transfer_poll, (struct work){ .first = alice, .second = bob }),
	      TDT_TASK_ATTR(.name = "alice to bob", .id = 2));
	spawn(TDT_ASYNC_NEW(transfer_poll, (struct work){ .first = bob, .second = alice }),
	      TDT_TASK_ATTR(.name = "bob to alice", .id = 3));
	spawn(TDT_ASYNC_NEW(reload_poll, (struct work){ .fd = ends[0] }),
	      TDT_TASK_ATTR(.name = "reload", .id = 4));
	spawn(TDT_ASYNC_NEW(report_poll, (struct work){ 0 }),
	      TDT_TASK_ATTR(.name = "report", .id = 5));
	while (!atomic_load(&computing) || !atomic_load(&reading) || atomic_load(&halfway) < 2)
		usleep(1000);
	usleep(400000); /* until all of them wait */
	puts("ready");
	fflush(stdout);
	while ((byte = getchar()) != EOF)
		if (byte == '\n')
			dump_own();
	_exit(EXIT_SUCCESS); /* its tasks never end */
}
