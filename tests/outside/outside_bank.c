// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A process for the program tdt to look at: a bank that stands still.  Two transfers wait for each
 * other, a task blocks its thread in read(), another one computes, and sessions wait.  Its trees
 * are watched if TDT_WATCH says so.
 *
 *	outside_bank [SESSIONS [rests [heals]]]
 *
 * It prints "ready", and ends with its input.  For each line of its input, it prints a dump of its
 * own to stderr, as JSON, and then "dumped".  With `rests`, the task that computes only pretends
 * to, and leaves the CPU to others.  With `heals` there is no deadlock: beside its lock, each
 * transfer waits at a leaf that reports nothing.  The variable SESSION_NAME gives the sessions
 * another name.
 */

#include <config.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <tdt/rt/runtime.h>
#include <tdt/rt/sync.h>
#include <tdt/tdt.h>

#include "lib/asleep.h"
#include "lib/at_rest.h"
#include "lib/must.h"

struct work {
	struct tdt_async async;
	struct tdt_mutex *first, *second;
	int fd;
};

static struct tdt_mutex *alice, *bob;
static atomic_int halfway; /* transfers that have locked their first account */
static atomic_int computer, reader; /* the threads of these tasks */
static atomic_bool over;
static bool rests, heals;
static int ends[2];
static struct tdt_rt *rt;

/* Some call of another library, which reports no waits. */
static tdt_poll_t silent_poll(void *state, struct tdt_context *cx)
{
	const struct tdt_waker **waker = state;

	if (*waker != NULL)
		tdt_waker_drop(*waker);
	*waker = tdt_waker_clone(cx->waker);
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

static void silent_drop(void *state)
{
	const struct tdt_waker **waker = state;

	if (*waker != NULL)
		tdt_waker_drop(*waker);
	free(state);
}

static struct tdt_future lock_account(struct tdt_mutex *account)
{
	struct tdt_future either[2] = { tdt_mutex_lock(account) };

	if (!heals)
		return either[0];
	either[1] =
	    (struct tdt_future){ calloc(1, sizeof(struct tdt_waker *)), silent_poll, silent_drop };
	MUST(either[1].state != NULL);
	return tdt_select(either, 2, NULL);
}

static tdt_poll_t transfer_poll(void *state, struct tdt_context *cx)
{
	struct work *work = state;

	TDT_BEGIN(&work->async, cx);
	TDT_AWAIT(tdt_mutex_lock(work->first));
	atomic_fetch_add(&halfway, 1);
	while (atomic_load(&halfway) < 2)
		TDT_AWAIT(tdt_sleep_ms(1));
	TDT_AWAIT(tdt_sleep_ms(50)); /* until a watch has ticked */
	TDT_AWAIT(lock_account(work->second));
	TDT_END();
}

static __attribute__((noinline)) void read_config(int fd)
{
	char byte;

	atomic_store(&reader, gettid());
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
	atomic_store(&computer, gettid());
	while (!atomic_load_explicit(&over, memory_order_relaxed))
		if (rests)
			pause();
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
		const char *what = getenv("SESSION_NAME");
		char name[64];

		snprintf(name, sizeof name, "%s %d", what != NULL ? what : "session", i);
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

	MUST(tdt_dump_with(stderr, &options) == 0);
}

static int waits_for_mutex(struct tdt_handle *handle, const struct tdt_task_info *info, void *arg)
{
	(void)handle;
	(void)arg;
	return info->n_waits != 0 && info->waits[0]->kind == TDT_WAIT_MUTEX;
}

static void wait_for_transfer(uint64_t id)
{
	struct tdt_handle *handle = tdt_task_find(id);

	MUST(handle != NULL);
	while (tdt_task_inspect(handle, waits_for_mutex, NULL) == 0)
		usleep(1000);
	tdt_handle_unref(handle);
}

/* Once all but the tasks that read and compute wait, and the watch has their trees. */
static void say_at_rest(const char *done)
{
	wait_for_rest(2);
	puts(done);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct tdt_rt_config config = { .size = sizeof config, .workers = 4 };
	int byte;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	rests = argc > 2;
	heals = argc > 3;
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
	while (atomic_load(&computer) == 0 || atomic_load(&halfway) < 2)
		usleep(1000);
	if (rests)
		wait_until_asleep(&computer);
	wait_until_asleep(&reader);
	wait_for_transfer(2);
	wait_for_transfer(3);
	say_at_rest("ready");
	while ((byte = getchar()) != EOF)
		if (byte == '\n') {
			dump_own();
			say_at_rest("dumped");
		}
	_exit(EXIT_SUCCESS); /* its tasks never end */
}
