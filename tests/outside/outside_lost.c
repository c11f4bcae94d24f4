// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A process for the program tdt to look at: tasks that wait for events.  Each event of a "consumer"
 * comes, and nobody wakes the task: its wake-up is lost.  The events of a "healthy" one come every
 * 20 ms, and wake it.
 *
 *	outside_lost
 *
 * prints "ready"; for each line of its input, the next event of the consumer comes.  It ends with
 * its input.
 */

#include <config.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include <tdt/rt/runtime.h>
#include <tdt/tdt.h>
#include <tdt/integrate/hooks.h>
#include <tdt/watch.h>

#include "lib/at_rest.h"
#include "lib/must.h"

struct event {
	bool is_set;
	const struct tdt_waker *waker;
};

struct waiting {
	struct tdt_async async;
	struct event *event;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct event jobs, ticks;

static tdt_poll_t event_poll(void *state, struct tdt_context *cx)
{
	const struct tdt_waker *before = NULL;
	struct event *event = state;
	bool is_set;

	pthread_mutex_lock(&lock);
	is_set = event->is_set;
	event->is_set = false;
	if (!is_set) {
		before = event->waker;
		event->waker = tdt_waker_clone(cx->waker);
		tdt_leaf_waits_on_named(TDT_WAIT_CHANNEL, event, 0,
					event == &jobs ? "jobs" : "ticks");
	}
	pthread_mutex_unlock(&lock);
	tdt_waker_drop(before);
	return is_set ? TDT_READY : TDT_PENDING;
}

static void drop_nothing(void *state)
{
	(void)state;
}

static tdt_poll_t wait_poll(void *state, struct tdt_context *cx)
{
	struct waiting *waiting = state;

	TDT_BEGIN(&waiting->async, cx);
	for (;;) {
		TDT_AWAIT(((struct tdt_future){ waiting->event, event_poll, drop_nothing }));
		TDT_AWAIT(tdt_sleep_ms(1));
	}
	TDT_END();
}

static void set_event(struct event *event, bool wakes)
{
	/* No poll is to see the event without the wake-up, which would seem to be lost, too. */
	pthread_mutex_lock(&lock);
	event->is_set = true;
	if (wakes) {
		tdt_waker_wake(event->waker);
		event->waker = NULL;
	}
	pthread_mutex_unlock(&lock);
}

static void start(struct tdt_rt *rt, struct event *event, const char *name)
{
	struct tdt_handle *handle =
	    tdt_rt_spawn(rt, TDT_ASYNC_NEW(wait_poll, (struct waiting){ .event = event }),
			 TDT_TASK_ATTR(.name = name));

	MUST(handle != NULL);
	tdt_handle_unref(handle);
}

static void *tick(void *unused)
{
	for (;;) {
		usleep(20000);
		set_event(&ticks, true);
	}
	return unused;
}

int main(void)
{
	struct tdt_rt *rt = tdt_rt_new(
	    &(struct tdt_rt_config){ .size = sizeof(struct tdt_rt_config), .workers = 2 });
	pthread_t ticker;
	int c;

	MUST(rt != NULL);
	start(rt, &jobs, "consumer");
	start(rt, &ticks, "healthy");
	wait_for_rest(0); /* or a request would come while there is nothing to see */
	MUST(pthread_create(&ticker, NULL, tick, NULL) == 0);
	set_event(&jobs, false);
	puts("ready");
	fflush(stdout);
	while ((c = getchar()) != EOF)
		if (c == '\n') { /* the next event is lost, too */
			set_event(&jobs, false);
			puts("set");
			fflush(stdout);
		}
	_exit(0);
}
