// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A program whose metrics are known.  Its tasks:
 *
 *	20 tasks that were polled 3 times, and dropped
 *	2 tasks that panicked in their first poll
 *	4 tasks that were polled 5 times, and wait
 *	2 tasks that wait for each other, polled once
 *	1 task that was polled once, and woken
 *	1 task in its first poll, which goes on
 *
 * It prints "ready".  For each line of its input it wakes one of the 4 tasks, polls each of them 10
 * times more, replaces another one, whose polls are those of an ended task then, and prints "done".
 * It ends with its input.
 */

#include <config.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tdt/integrate/hooks.h>
#include <tdt/tdt.h>

#include "lib/must.h"

#define WAITING 4

static const struct tdt_waker *same_waker(const struct tdt_waker *waker)
{
	return waker;
}

static void ignore_waker(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable vtable = { same_waker, ignore_waker, ignore_waker,
						ignore_waker };
static const struct tdt_waker waker = { &vtable };

static struct tdt_traced ring[2], waiting[WAITING];

static void nothing(void *state)
{
	(void)state;
}

static struct tdt_traced spawn(tdt_poll_t (*poll)(void *state, struct tdt_context *cx), void *state)
{
	struct tdt_traced task = tdt_traced((struct tdt_future){ state, poll, nothing });

	MUST(task.handle != NULL);
	return task;
}

static void poll_times(struct tdt_traced *task, unsigned n)
{
	struct tdt_context cx = { &waker };

	while (n-- > 0)
		tdt_future_poll(&task->future, &cx);
}

static void end(struct tdt_traced *task)
{
	tdt_future_drop(&task->future);
	tdt_handle_unref(task->handle);
}

static tdt_poll_t pend(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PENDING;
}

static tdt_poll_t fall(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PANICKED;
}

/* Wait for the end of the task at `state`. */
static tdt_poll_t await(void *state, struct tdt_context *cx)
{
	const struct tdt_traced *other = state;

	(void)cx;
	tdt_leaf_waits_on(TDT_WAIT_TASK, other->handle, tdt_handle_id(other->handle));
	return TDT_PENDING;
}

static void work(void)
{
	tdt_task_woken(waiting[1].handle);
	for (int i = 0; i < WAITING; i++)
		poll_times(&waiting[i], 10);
	end(&waiting[0]);
	waiting[0] = spawn(pend, NULL);
}

static tdt_poll_t read_input(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	puts("ready");
	fflush(stdout);
	for (int c; (c = getchar()) != EOF;)
		if (c == '\n') {
			work();
			puts("done");
			fflush(stdout);
		}
	return TDT_READY;
}

static void spawn_and_end(unsigned n, tdt_poll_t (*poll)(void *state, struct tdt_context *cx),
			  unsigned polls)
{
	for (unsigned i = 0; i < n; i++) {
		struct tdt_traced task = spawn(poll, NULL);

		poll_times(&task, polls);
		end(&task);
	}
}

int main(void)
{
	struct tdt_traced woken, reader;

	spawn_and_end(20, pend, 3);
	spawn_and_end(2, fall, 1);
	for (int i = 0; i < WAITING; i++) {
		waiting[i] = spawn(pend, NULL);
		poll_times(&waiting[i], 5);
	}
	for (int i = 0; i < 2; i++)
		ring[i] = spawn(await, &ring[1 - i]);
	for (int i = 0; i < 2; i++)
		poll_times(&ring[i], 1);
	woken = spawn(pend, NULL);
	poll_times(&woken, 1);
	tdt_task_woken(woken.handle);
	reader = spawn(read_input, NULL);
	poll_times(&reader, 1);
	end(&reader);
	end(&woken);
	for (int i = 0; i < 2; i++)
		end(&ring[i]);
	for (int i = 0; i < WAITING; i++)
		end(&waiting[i]);
	return 0;
}
