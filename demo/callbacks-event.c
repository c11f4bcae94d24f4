// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Callbacks of libevent: each session reads lines, and rests after each.  What was added for tdt
 * are the lines with TDT_ or tdt_.  They cost a
 * callback some 30 ns, of the 2 us and more that an event takes.
 *
 *	callbacks-event [SESSIONS]       prints where they wait (3)
 */

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include <tdt/callback.h>
#include <tdt/trace.h>

struct session {
	struct tdt_op op;
	struct event *readable, *rested;
	int fd, peer;
};

static struct event_base *base;
static const struct timeval nap = { 0, 200000 };

static void on_line(evutil_socket_t fd, short what, void *arg)
{
	struct session *session = arg;
	char line[80];

	(void)what;
	TDT_RUNS(&session->op);
	if (read(fd, line, sizeof line) > 0)
		TDT_AWAITS_FOR(&session->op, event_add(session->rested, &nap), "a rest",
			       TDT_WAIT_TIMER, 0);
}

static void on_rest(evutil_socket_t fd, short what, void *arg)
{
	struct session *session = arg;

	(void)fd;
	(void)what;
	TDT_RUNS(&session->op);
	TDT_AWAITS_FOR(&session->op, event_add(session->readable, NULL), "a line", TDT_WAIT_IO,
		       session->fd);
}

static void begin(struct session *session)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
		exit(EXIT_FAILURE);
	session->fd = pair[0];
	session->peer = pair[1];
	session->readable = event_new(base, session->fd, EV_READ, on_line, session);
	session->rested = evtimer_new(base, on_rest, session);
	tdt_op_begin(&session->op, TDT_TASK_ATTR(.name = "session"));
	TDT_AWAITS_FOR(&session->op, event_add(session->readable, NULL), "a line", TDT_WAIT_IO,
		       session->fd);
}

static void dump(evutil_socket_t fd, short what, void *nothing)
{
	(void)fd;
	(void)what;
	(void)nothing;
	tdt_dump(stdout);
	event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 3;
	struct session *sessions = calloc((size_t)n, sizeof *sessions);
	const struct timeval soon = { 0, 100000 };

	base = event_base_new();
	if (sessions == NULL || base == NULL)
		return EXIT_FAILURE;
	for (int i = 0; i < n; i++)
		begin(&sessions[i]);
	if (n > 0 && write(sessions[0].peer, "hello\n", 6) != 6)
		return EXIT_FAILURE;
	event_base_once(base, -1, EV_TIMEOUT, dump, NULL, &soon);
	event_base_dispatch(base);
	return EXIT_SUCCESS;
}
