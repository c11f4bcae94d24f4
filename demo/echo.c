// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The tasks of the echo server: accept_poll(), a ticker that reports what was echoed, and one
 * connection_poll() for each connection.  All share the statistics, under a mutex that they await.
 *
 * With --wedge the service has a typical bug: while the handler of the third connection holds the
 * mutex, it awaits a function that locks it again.  So the handler waits for itself, and the ticker
 * and, in time, all connections wait for it.  Nothing uses the CPU or is logged, but a dump shows:
 *
 *	deadlock: task 5 "connection 3" waits for a mutex held by itself
 *
 *	task 5 "connection 3" pending ...
 *	╼ connection_poll
 *	 └╼ count_poll                  after its lock call: it holds the mutex
 *	    └╼ report_poll              at its lock call
 *
 *	2 tasks pending ...: 3 "connection 1" and 4 "connection 2"
 *	   2 wait for a mutex held by task 5 "connection 3"
 *	╼ connection_poll
 *	 └╼ count_poll                  at its lock call
 */

#include "echo.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tdt/async.h>
#include <tdt/join.h>

#define ACCEPT_AGAIN_MS 100
#define WEDGED_CONNECTION 3

/* The handle is not needed, since a dump finds all tasks.  Takes over `future`, even on failure. */
static int spawn(struct service *service, struct tdt_future future,
		 const struct tdt_task_attr *attr)
{
	struct tdt_handle *handle = tdt_rt_spawn(service->rt, future, attr);
	int error = handle != NULL ? 0 : -errno;

	if (handle == NULL)
		tdt_future_drop(&future);
	tdt_handle_unref(handle);
	return error;
}

/* Report what was echoed, unless nothing is new. */
struct report {
	struct tdt_async async;
	struct service *service;
	uint64_t *echoes; /* the number that was reported last */
};

static tdt_poll_t report_poll(void *state, struct tdt_context *cx)
{
	struct report *report = state;
	struct service *service = report->service;
	struct statistics now;

	TDT_BEGIN(&report->async, cx);
	TDT_AWAIT(tdt_mutex_lock(service->mutex));
	now = service->statistics;
	tdt_mutex_unlock(service->mutex);
	if (now.echoes != *report->echoes) {
		printf("%" PRIu64 " connections, %" PRIu64 " echoes, %" PRIu64 " bytes\n",
		       now.connections, now.echoes, now.bytes);
		fflush(stdout);
	}
	*report->echoes = now.echoes;
	TDT_END();
}

static struct tdt_future report(struct service *service, uint64_t *echoes)
{
	return TDT_ASYNC_NEW(report_poll, (struct report){ .service = service, .echoes = echoes });
}

/* Count an echo. */
struct count {
	struct tdt_async async;
	struct service *service;
	size_t bytes;
	bool first; /* whether it is the connection's first echo */
	bool wedge;
	bool locked;
	uint64_t echoes;
};

static tdt_poll_t count_poll(void *state, struct tdt_context *cx)
{
	struct count *count = state;
	struct service *service = count->service;

	TDT_BEGIN(&count->async, cx);
	TDT_AWAIT(tdt_mutex_lock(service->mutex));
	count->locked = true;
	service->statistics.connections += count->first;
	service->statistics.echoes++;
	service->statistics.bytes += count->bytes;
	if (count->wedge)
		TDT_AWAIT(report(service, &count->echoes)); /* the bug: report() locks it again */
	TDT_END();
}

static void count_fini(void *state)
{
	struct count *count = state;

	if (count->locked)
		tdt_mutex_unlock(count->service->mutex);
}

static struct tdt_future count(struct service *service, size_t bytes, bool first, bool wedge)
{
	return TDT_ASYNC_NEW(
	    count_poll,
	    (struct count){ .async.fini = count_fini, .service = service, .bytes = bytes,
			    .first = first, .wedge = wedge });
}

struct ticker {
	struct tdt_async async;
	struct service *service;
	uint64_t echoes;
};

static tdt_poll_t ticker_poll(void *state, struct tdt_context *cx)
{
	struct ticker *ticker = state;

	TDT_BEGIN(&ticker->async, cx);
	for (;;) {
		TDT_AWAIT(tdt_sleep_ms(ticker->service->options->report_ms));
		TDT_AWAIT(report(ticker->service, &ticker->echoes));
	}
	TDT_END();
}

static int spawn_ticker(struct service *service)
{
	struct tdt_future ticker =
	    TDT_ASYNC_NEW(ticker_poll, (struct ticker){ .service = service });

	if (tdt_future_is_none(&ticker))
		return -errno;
	return spawn(service, ticker, TDT_TASK_ATTR(.name = "ticker"));
}

struct connection {
	struct tdt_async async;
	struct service *service;
	struct tdt_tcp *tcp;
	unsigned number;
	bool first, idle;
	ssize_t n; /* the bytes that were read or written; 0 at the end; or a negative errno */
	char buffer[4096];
};

/* Read some bytes, and send them back. */
struct echo {
	struct tdt_async async;
	struct connection *connection;
};

static tdt_poll_t echo_poll(void *state, struct tdt_context *cx)
{
	struct echo *echo = state;
	struct connection *connection = echo->connection;

	TDT_BEGIN(&echo->async, cx);
	TDT_AWAIT(tdt_tcp_read(connection->tcp, connection->buffer, sizeof(connection->buffer),
			       &connection->n));
	if (connection->n <= 0)
		return TDT_READY;
	TDT_AWAIT(tdt_tcp_write(connection->tcp, connection->buffer, (size_t)connection->n,
				&connection->n));
	TDT_END();
}

/* The same, limited to the time for which a peer may be idle. */
static struct tdt_future echo_unless_idle(struct connection *connection)
{
	struct tdt_future echo =
	    TDT_ASYNC_NEW(echo_poll, (struct echo){ .connection = connection });
	struct tdt_future limited =
	    tdt_timeout_ms(echo, connection->service->options->idle_ms, &connection->idle);

	if (tdt_future_is_none(&limited))
		tdt_future_drop(&echo);
	return limited;
}

static tdt_poll_t connection_poll(void *state, struct tdt_context *cx)
{
	struct connection *connection = state;
	struct service *service = connection->service;

	TDT_BEGIN(&connection->async, cx);
	for (;;) {
		TDT_AWAIT(echo_unless_idle(connection));
		if (connection->idle || connection->n <= 0)
			return TDT_READY; /* idle, at its end, or an error: all are the same */
		TDT_AWAIT(count(service, (size_t)connection->n, connection->first,
				service->options->wedge &&
					connection->number == WEDGED_CONNECTION));
		connection->first = false;
	}
	TDT_END();
}

static void connection_fini(void *state)
{
	struct connection *connection = state;

	tdt_tcp_free(connection->tcp);
	atomic_fetch_sub(&connection->service->open, 1);
	tdt_notify_one(connection->service->ended);
}

/* Takes over `tcp`, even on failure. */
static int spawn_connection(struct service *service, struct tdt_tcp *tcp, unsigned number)
{
	struct tdt_future connection = TDT_ASYNC_NEW(
	    connection_poll,
	    (struct connection){ .async.fini = connection_fini, .service = service, .tcp = tcp,
				 .number = number, .first = true });
	char name[32];

	if (tdt_future_is_none(&connection)) {
		tdt_tcp_free(tcp);
		return -ENOMEM;
	}
	atomic_fetch_add(&service->open, 1);
	snprintf(name, sizeof(name), "connection %u", number);
	return spawn(service, connection, TDT_TASK_ATTR(.name = name));
}

struct acceptor {
	struct tdt_async async;
	struct service *service;
	struct tdt_tcp *tcp;
	unsigned connections;
	int error, last_error;
};

static void tell_error(int *last, int error)
{
	if (error != 0 && error != *last)
		fprintf(stderr, "echo-server: accept: %s; trying again every %d ms\n",
			strerror(-error), ACCEPT_AGAIN_MS);
	*last = error;
}

static tdt_poll_t accept_poll(void *state, struct tdt_context *cx)
{
	struct acceptor *acceptor = state;

	TDT_BEGIN(&acceptor->async, cx);
	for (;;) {
		TDT_AWAIT(tdt_tcp_accept(acceptor->service->listener, &acceptor->tcp,
					 &acceptor->error));
		if (acceptor->tcp != NULL)
			acceptor->error = spawn_connection(acceptor->service, acceptor->tcp,
							   ++acceptor->connections);
		tell_error(&acceptor->last_error, acceptor->error);
		if (acceptor->error != 0) /* no descriptors or memory: connections must end first */
			TDT_AWAIT(tdt_sleep_ms(ACCEPT_AGAIN_MS));
	}
	TDT_END();
}

static void accept_fini(void *state)
{
	struct acceptor *acceptor = state;
	struct service *service = acceptor->service;

	if (acceptor->async.point == TDT_ASYNC_ENDED) { /* ended by itself: no memory was left */
		service->accept_failed = true;
		kill(getpid(), SIGTERM);
	}
}

static int spawn_accept(struct service *service)
{
	struct tdt_future acceptor = TDT_ASYNC_NEW(
	    accept_poll, (struct acceptor){ .async.fini = accept_fini, .service = service });

	if (tdt_future_is_none(&acceptor))
		return -errno;
	service->acceptor = tdt_rt_spawn(service->rt, acceptor, TDT_TASK_ATTR(.name = "accept"));
	if (service->acceptor != NULL)
		return 0;
	tdt_future_drop(&acceptor);
	return -errno;
}

/* --- The end ----------------------------------------------------------------- */

struct draining {
	struct tdt_async async;
	struct service *service;
};

static tdt_poll_t drain_poll(void *state, struct tdt_context *cx)
{
	struct draining *draining = state;
	struct service *service = draining->service;

	TDT_BEGIN(&draining->async, cx);
	tdt_task_abort(service->acceptor);
	TDT_AWAIT(tdt_join(service->acceptor, NULL));
	tdt_tcp_listener_free(service->listener); /* who connects now is refused */
	service->listener = NULL;
	while (atomic_load(&service->open) != 0)
		TDT_AWAIT(tdt_notify_wait(service->ended));
	TDT_END();
}

/* On SIGTERM.  What is left at the deadline is dropped by service_stop(). */
void service_drain(struct service *service)
{
	struct tdt_future drain =
	    TDT_ASYNC_NEW(drain_poll, (struct draining){ .service = service });
	struct tdt_future limited = tdt_timeout_ms(drain, service->options->drain_ms, NULL);

	if (tdt_future_is_none(&limited))
		tdt_future_drop(&drain);
	else if (tdt_rt_block_on(service->rt, limited) == -ENOMEM)
		tdt_future_drop(&limited);
}

int service_start(struct service *service, const struct echo_options *options, const char **what)
{
	struct tdt_rt_config config = { .size = sizeof(config),
					.workers = (unsigned)options->workers };
	int error;

	*service = (struct service){ .options = options };
	*what = "a runtime";
	service->rt = tdt_rt_new(&config);
	if (service->rt == NULL)
		return -errno;
	*what = "a mutex";
	service->mutex = tdt_mutex_new();
	service->ended = tdt_notify_new();
	if (service->mutex == NULL || service->ended == NULL)
		return -errno;
	*what = options->host;
	service->listener = tdt_tcp_listen(options->host, (uint16_t)options->port);
	if (service->listener == NULL)
		return -errno;
	*what = "tasks";
	error = spawn_accept(service);
	return error != 0 ? error : spawn_ticker(service);
}

void service_stop(struct service *service)
{
	tdt_rt_free(service->rt); /* drops all tasks */
	tdt_tcp_listener_free(service->listener);
	tdt_handle_unref(service->acceptor);
	tdt_notify_free(service->ended);
	tdt_mutex_free(service->mutex);
}
