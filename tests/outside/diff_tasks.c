// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A process for tdt diff to look at: tasks that stand still, and tasks that move.
 *
 *	diff_tasks    prints "ready"; when it gets a line, it prints "stepped" as soon as the tasks
 *	              that can have gone on; ends with its input
 *
 *	1 to 4  sleep all the time
 *	5       blocks its thread in read() all the time
 *	6, 7    wake up all the time, and sleep again at the same place
 *	8       goes on with the line, and sleeps at another place
 *	9       ends with the line
 *	10, 11  come with the line, and sleep where 1 to 4 do
 */

#include <config.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <tdt/rt/runtime.h>
#include <tdt/tdt.h>

#include "lib/must.h"

#define FOR_EVER 60000000 /* milliseconds */

struct work {
	struct tdt_async async;
	atomic_int *turns;
};

static atomic_bool stepped, reading, moved;
static atomic_int turns[2]; /* how often 6 and 7 have slept */
static int ends[2];
static struct tdt_rt *rt;

static tdt_poll_t sleeper_poll(void *state, struct tdt_context *cx)
{
	struct work *work = state;

	TDT_BEGIN(&work->async, cx);
	TDT_AWAIT(tdt_sleep_ms(FOR_EVER));
	TDT_END();
}

static tdt_poll_t blocked_poll(void *state, struct tdt_context *cx)
{
	struct work *work = state;
	char byte;

	TDT_BEGIN(&work->async, cx);
	atomic_store(&reading, true);
	MUST(read(ends[0], &byte, 1) >= 0); /* no thread ever writes */
	TDT_END();
}

static tdt_poll_t restless_poll(void *state, struct tdt_context *cx)
{
	struct work *work = state;

	TDT_BEGIN(&work->async, cx);
	for (;;) {
		TDT_AWAIT(tdt_sleep_ms(20));
		atomic_fetch_add(work->turns, 1);
	}
	TDT_END();
}

static tdt_poll_t mover_poll(void *state, struct tdt_context *cx)
{
	struct work *work = state;

	TDT_BEGIN(&work->async, cx);
	while (!atomic_load(&stepped))
		TDT_AWAIT(tdt_sleep_ms(20));
	atomic_store(&moved, true);
	TDT_AWAIT(tdt_sleep_ms(FOR_EVER));
	TDT_END();
}

static tdt_poll_t leaver_poll(void *state, struct tdt_context *cx)
{
	struct work *work = state;

	TDT_BEGIN(&work->async, cx);
	while (!atomic_load(&stepped))
		TDT_AWAIT(tdt_sleep_ms(20));
	TDT_END();
}

static void spawn(uint64_t id, const char *name, struct tdt_future future)
{
	struct tdt_handle *handle =
		tdt_rt_spawn(rt, future, TDT_TASK_ATTR(.id = id, .name = name));

	MUST(handle != NULL);
	tdt_handle_unref(handle);
}

#define SPAWN(id, name, ...) \
	spawn(id, #name, TDT_ASYNC_NEW(name##_poll, (struct work){ __VA_ARGS__ }))

static int count_asleep(struct tdt_handle *handle, const struct tdt_task_info *info, void *n)
{
	(void)handle;
	if (strcmp(info->name, "sleeper") == 0 || strcmp(info->name, "mover") == 0)
		*(int *)n += info->polls != 0 && info->state == TDT_TASK_WAITING;
	return 0;
}

static int count_tasks(struct tdt_handle *handle, const struct tdt_task_info *info, void *n)
{
	(void)handle;
	(void)info;
	++*(int *)n;
	return 0;
}

/* Wait until there are so many tasks, so many of which sleep. */
static void settle(int tasks, int asleep)
{
	int there = 0, sleeping = 0;

	while (there != tasks || sleeping != asleep) {
		usleep(1000);
		there = sleeping = 0;
		MUST(tdt_tasks(NULL, count_tasks, &there) == 0);
		MUST(tdt_tasks(NULL, count_asleep, &sleeping) == 0);
	}
}

static void step(void)
{
	int before[2] = { atomic_load(&turns[0]), atomic_load(&turns[1]) };

	SPAWN(10, sleeper, 0);
	SPAWN(11, sleeper, 0);
	atomic_store(&stepped, true);
	while (!atomic_load(&moved) || atomic_load(&turns[0]) == before[0] ||
	       atomic_load(&turns[1]) == before[1])
		usleep(1000);
	settle(10, 7);
	puts("stepped");
}

int main(void)
{
	struct tdt_rt_config config = { .size = sizeof config, .workers = 2 };
	int byte;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	rt = tdt_rt_new(&config);
	MUST(rt != NULL && pipe(ends) == 0);
	for (uint64_t id = 1; id <= 4; id++)
		SPAWN(id, sleeper, 0);
	SPAWN(5, blocked, 0);
	SPAWN(6, restless, .turns = &turns[0]);
	SPAWN(7, restless, .turns = &turns[1]);
	SPAWN(8, mover, 0);
	SPAWN(9, leaver, 0);
	while (!atomic_load(&reading))
		usleep(1000);
	settle(9, 5);
	puts("ready");
	while ((byte = getchar()) != EOF)
		if (byte == '\n')
			step();
	close(ends[1]);
	tdt_rt_free(rt);
	close(ends[0]);
	return 0;
}
