// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A process with known tasks, for registry_reader: it prints the line of each, then "ready", and
 * ends with its input.
 *
 *	registry_tasks          some that stay as they are
 *	registry_tasks churn    others too that come, are polled and go: all that is said of them is by their ids
 */

#include <config.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <tdt/integrate/hooks.h>
#include <tdt/integrate/leaf.h>

#include "lib/must.h"

#define STEADY 1500 /* more than a slab has room for */
#define CHURNED UINT64_C(1000000)

static const struct tdt_waker *waker_clone(const struct tdt_waker *waker)
{
	return waker;
}

static void waker_nothing(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable vtable = { waker_clone, waker_nothing, waker_nothing,
						waker_nothing };
static const struct tdt_waker waker = { &vtable };

static void drop(void *state)
{
	(void)state;
}

static struct tdt_traced spawn(tdt_poll_t (*poll)(void *, struct tdt_context *), void *state,
			       uint64_t id, const char *kind)
{
	char name[64];
	const struct tdt_task_attr attr = { .size = sizeof attr,
					    .name = name,
					    .id = id,
					    .file = __FILE__,
					    .line = (uint32_t)(id % 1000) };
	struct tdt_traced task;

	snprintf(name, sizeof name, "%s %" PRIu64, kind, id);
	task = tdt_traced_with((struct tdt_future){ state, poll, drop }, &attr);
	MUST(task.handle != NULL);
	return task;
}

static tdt_poll_t poll_once(struct tdt_traced *task)
{
	struct tdt_context cx = { &waker };

	return tdt_future_poll(&task->future, &cx);
}

static void tell(uint64_t id, const char *state, uint64_t parent, int polls, const char *wait,
		 const char *kind)
{
	printf("%" PRIu64 " %s %" PRIu64 " %d %s %" PRIu64 " %s %s %" PRIu64 "\n", id, state,
	       parent, polls, wait, id % 1000, __FILE__, kind, id);
}

/* --- Those that stay -------------------------------------------------------------- */

static tdt_poll_t pend(void *state, struct tdt_context *cx)
{
	(void)cx;
	if (state != NULL)
		tdt_leaf_waits_on(TDT_WAIT_MUTEX, (void *)(uintptr_t)1234, 99);
	return TDT_PENDING;
}

static tdt_poll_t end(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_READY;
}

static tdt_poll_t panic_at_once(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PANICKED;
}

static struct tdt_traced child;

static tdt_poll_t spawn_child(void *state, struct tdt_context *cx)
{
	(void)cx;
	(void)state;
	child = spawn(pend, NULL, STEADY + 4, "child");
	return TDT_PENDING;
}

static atomic_bool polling;

static tdt_poll_t be_stuck(void *state, struct tdt_context *cx)
{
	(void)cx;
	atomic_store(&polling, true);
	for (;;)
		pause();
	return state == NULL ? TDT_PENDING : TDT_READY;
}

static void *poll_stuck(void *task)
{
	poll_once(task);
	return NULL;
}

/* A task that waits at a list, and one whose list is out of date. */
static void start_listed(void)
{
	static const struct tdt_leaf_frame calls[] = { { "serve", "a.c", 1, 0 },
						       { "que\ary", NULL, 0, 0 } };
	static struct tdt_leaf leaf[2] = { { .kind = TDT_LEAF_NAMED, .n = 2, .frames = calls },
					   { .kind = TDT_LEAF_NAMED, .n = 2, .frames = calls } };
	const struct tdt_task_attr attr = { .size = sizeof attr,
					    .id = STEADY + 7,
					    .file = __FILE__,
					    .line = (STEADY + 7) % 1000,
					    .name = "listed" };
	struct tdt_handle *task = tdt_task_new(&attr);
	struct tdt_traced polled = spawn(pend, NULL, STEADY + 8, "polled");

	MUST(task != NULL);
	tdt_leaf_at(task, &leaf[0]);
	printf("%d idle 0 1 - %d %s listed at serve que\\x07ry\n", STEADY + 7,
	       (STEADY + 7) % 1000, __FILE__);
	tdt_leaf_at(polled.handle, &leaf[1]);
	poll_once(&polled);
	tell(STEADY + 8, "idle", 0, 1, "-", "polled");
}

static void start_steady(void)
{
	static struct tdt_traced stuck;
	struct tdt_traced task;
	pthread_t thread;

	for (uint64_t id = 1; id <= STEADY; id++) {
		(void)spawn(pend, NULL, id, "steady");
		tell(id, "idle", 0, 0, "-", "steady");
	}
	task = spawn(pend, &child, STEADY + 1, "waiting");
	poll_once(&task);
	poll_once(&task);
	tell(STEADY + 1, "idle", 0, 2, "2,1234,99", "waiting");
	task = spawn(end, NULL, STEADY + 2, "over");
	poll_once(&task);
	tell(STEADY + 2, "ended", 0, 1, "-", "over");
	task = spawn(spawn_child, NULL, STEADY + 3, "parent");
	poll_once(&task);
	tell(STEADY + 3, "idle", 0, 1, "-", "parent");
	tell(STEADY + 4, "idle", STEADY + 3, 0, "-", "child");
	start_listed();
	task = spawn(panic_at_once, NULL, STEADY + 6, "fallen");
	poll_once(&task);
	tell(STEADY + 6, "ended", 0, 1, "-", "fallen");
	stuck = spawn(be_stuck, NULL, STEADY + 5, "stuck");
	MUST(pthread_create(&thread, NULL, poll_stuck, &stuck) == 0);
	while (!atomic_load(&polling))
		usleep(1000);
	tell(STEADY + 5, "polling", 0, 1, "-", "stuck");
}

/* --- Those that come and go --------------------------------------------------------- */

static void *churn(void *unused)
{
	static atomic_uint_fast64_t next = CHURNED;

	for (;;) {
		struct tdt_traced task = spawn(pend, &next, atomic_fetch_add(&next, 1), "churned");

		for (int i = 0; i < 10; i++)
			poll_once(&task);
		tdt_handle_unref(task.handle);
		tdt_future_drop(&task.future);
	}
	return unused;
}

int main(int argc, char **argv)
{
	char line[16];
	pthread_t thread;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* or only its parents may read it */
	tdt_worker_thread_start(NULL);
	start_steady();
	tdt_worker_thread_park();
	if (argc > 1 && strcmp(argv[1], "churn") == 0)
		for (int i = 0; i < 2; i++)
			MUST(pthread_create(&thread, NULL, churn, NULL) == 0);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin) != NULL)
		;
	_exit(0);
}
