// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark measures what an operation of tdt/callback.h costs an event of a loop: epoll by
 * hand, and libuv.  An event is a number in an eventfd, and a callback that reads it and waits for
 * the next.
 */

#include <config.h>

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>

#include <tdt/callback.h>
#include <tdt/integrate/hooks.h>

#include "report.h"

#define EVENTS 100 /* so many take less than a turn of the scheduler */

static struct tdt_op op;
static int event, epoll;
static uv_loop_t loop;
static uv_poll_t readable;

static void read_event(void)
{
	eventfd_t value;

	if (eventfd_read(event, &value) != 0)
		die("eventfd_read");
}

static void await_event(void)
{
	struct epoll_event wanted = { .events = EPOLLIN | EPOLLONESHOT };

	if (epoll_ctl(epoll, EPOLL_CTL_MOD, event, &wanted) != 0)
		die("epoll_ctl");
}

static void on_event(void)
{
	read_event();
	await_event();
}

static void on_event_of_op(void)
{
	TDT_RUNS(&op);
	read_event();
	TDT_AWAITS_FOR(&op, await_event(), "an event", TDT_WAIT_IO, event);
}

static double epoll_often(void (*callback)(void))
{
	struct epoll_event got;
	int64_t start = now();

	for (int i = 0; i < EVENTS; i++) {
		eventfd_write(event, 1);
		if (epoll_wait(epoll, &got, 1, -1) != 1)
			die("epoll_wait");
		callback();
	}
	return (double)(now() - start) / EVENTS;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	read_event();
	uv_poll_start(poll, UV_READABLE, on_readable);
}

static void on_readable_of_op(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	TDT_RUNS(&op);
	read_event();
	TDT_AWAITS_FOR(&op, uv_poll_start(poll, UV_READABLE, on_readable_of_op), "an event",
		       TDT_WAIT_IO, event);
}

static double uv_often(uv_poll_cb callback, bool timed)
{
	int64_t start;

	uv_poll_start(&readable, UV_READABLE, callback);
	start = now();
	for (int i = 0; i < EVENTS; i++) {
		eventfd_write(event, 1);
		if (timed)
			tdt_worker_now(uv_now(&loop) * 1000000);
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	start = now() - start;
	uv_poll_stop(&readable);
	tdt_worker_now(0);
	return (double)start / EVENTS;
}

#define SHORT 1000 /* so many take less than a turn of the scheduler */

/* The two lines of a callback, and tdt_task_enter() and tdt_task_leave() by themselves. */
static double lines_often(void)
{
	int64_t start = now();

	for (int i = 0; i < SHORT; i++) {
		TDT_RUNS(&op);
		TDT_AWAITS_FOR(&op, (void)0, "an event", TDT_WAIT_IO, event);
	}
	return (double)(now() - start) / SHORT;
}

static double pair_often(void)
{
	int64_t start = now();

	for (int i = 0; i < SHORT; i++) {
		tdt_task_enter(op.task);
		tdt_task_leave(op.task);
	}
	return (double)(now() - start) / SHORT;
}

/* Add a round of each to the figures of one kind of thread. */
static void add_alone(bool timed, struct figure *lines, struct figure *pair)
{
	tdt_worker_now(timed);
	lines_often(); /* the caches are warm, as in a loop that has much to do */
	add(lines, lines_often());
	TDT_AWAITS_FOR(&op, (void)0, "an event", TDT_WAIT_UNKNOWN, 0);
	pair_often();
	add(pair, pair_often());
	tdt_worker_now(0);
}

int main(int argc, char **argv)
{
	struct epoll_event wanted = { .events = 0 };
	struct figure *by_hand, *seen, *of_uv, *seen_uv, *timed_uv, *lines, *pair, *timed_lines,
	    *timed_pair;

	report_start(argc, argv, "What does a callback of tdt/callback.h cost?", "ns", 21);
	by_hand = figure("an event of epoll by hand", NULL);
	seen = figure("the same, of an operation", by_hand);
	at_most(figure_added("  added", seen, by_hand), 60);
	of_uv = figure("an event of libuv", NULL);
	seen_uv = figure("the same, of an operation", of_uv);
	at_most(figure_added("  added", seen_uv, of_uv), 60);
	timed_uv = figure("the same where the loop reports the time", of_uv);
	figure_added("  added", timed_uv, of_uv);
	lines = figure("the two lines alone", NULL);
	at_most(lines, 60);
	pair = figure("  tdt_task_enter() and leave() of it", NULL);
	timed_lines = figure("the lines where the loop reports the time", NULL);
	timed_pair = figure("  tdt_task_enter() and leave() of it", NULL);
	at_most(timed_pair, 15); /* 6 if no other thread is busy on the same core */
	event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (event < 0 || epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, event, &wanted) != 0 ||
	    uv_loop_init(&loop) != 0)
		die("a loop");
	tdt_op_begin(&op, TDT_TASK_ATTR(.name = "operation"));
	await_event();
	for (int i = 0; i < rounds; i++) {
		add_alone(false, lines, pair);
		add_alone(true, timed_lines, timed_pair);
		add(by_hand, epoll_often(on_event));
		add(seen, epoll_often(on_event_of_op));
	}
	uv_poll_init(&loop, &readable, event);
	for (int i = 0; i < rounds; i++) {
		add(of_uv, uv_often(on_readable, false));
		add(seen_uv, uv_often(on_readable_of_op, false));
		add(timed_uv, uv_often(on_readable_of_op, true));
	}
	return report_end();
}
