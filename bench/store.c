// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <config.h>

#include "store.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tdt/async.h>
#include <tdt/combine.h>

#include "report.h"

#define LOG 1024 /* polls */
#define PERMIT_EVERY 8

/* Where a connection waits, and the functions that its leaves are in then. */
enum place { NOWHERE, AT_REQUEST, AT_PERMIT, AT_LOCK, AT_REPLY, PLACES };

enum { END, PERMIT, READ, LOCK, WRITE, LEAVES };

static const char *const leaf_function[LEAVES] = { [END] = "end_poll",
						   [PERMIT] = "permit_poll",
						   [READ] = "tdt_tcp_read",
						   [LOCK] = "tdt_mutex_lock",
						   [WRITE] = "tdt_tcp_write" };

static const unsigned leaves_at[PLACES][LEAVES] = {
	[AT_REQUEST] = { [END] = 1, [READ] = 1 },
	[AT_PERMIT] = { [PERMIT] = 1 },
	[AT_LOCK] = { [LOCK] = 1 },
	[AT_REPLY] = { [WRITE] = 1 },
};

struct store_connection {
	struct tdt_async async;
	struct store *store;
	struct tdt_tcp *tcp;
	struct tdt_handle *handle;
	const struct tdt_waker *permit; /* the slot of its leaf, which outlives it */
	char message[64];
	ssize_t n;
	size_t winner;
	unsigned requests, random;

	/* Written by its polls: where the last one left it waiting, and the same of the polls
	 * before. */
	enum place at;
	uint64_t polls;
	_Atomic uint64_t log[LOG]; /* poll << 8 | place.  Relaxed: each is a whole fact */
	uint64_t judged;
};

/* --- Leaves that register first ----------------------------------------------- */

/* The end of the server, which never comes here.  Its slot is emptied when it is dropped. */
static tdt_poll_t end_poll(void *state, struct tdt_context *cx)
{
	const struct tdt_waker **slot = state;

	if (*slot == NULL || !tdt_waker_will_wake(*slot, cx->waker)) {
		tdt_waker_drop(*slot);
		*slot = tdt_waker_clone(cx->waker);
	}
	return TDT_PENDING;
}

static void end_drop(void *state)
{
	const struct tdt_waker **slot = state;

	tdt_waker_drop(*slot);
	free(slot);
}

static struct tdt_future end(void)
{
	const struct tdt_waker **slot = calloc(1, sizeof *slot);

	return slot != NULL ? (struct tdt_future){ (void *)slot, end_poll, end_drop }
			    : TDT_FUTURE_NONE;
}

/* A permit, of which there are enough. */
static tdt_poll_t permit_poll(void *state, struct tdt_context *cx)
{
	const struct tdt_waker **slot = state;

	tdt_waker_drop(*slot);
	*slot = tdt_waker_clone(cx->waker);
	return TDT_READY;
}

static void permit_drop(void *state)
{
	(void)state;
}

/* --- A connection --------------------------------------------------------------- */

static struct tdt_future request_or_end(struct store_connection *connection)
{
	struct tdt_future read = tdt_tcp_read(connection->tcp, connection->message,
					      sizeof connection->message, &connection->n);
	struct tdt_future either[2], selected;
	unsigned first;

	connection->random = connection->random * 1664525u + 1013904223u;
	first = connection->random >> 31;
	either[first] = end();
	either[1 - first] = read;
	selected = tdt_select(either, 2, &connection->winner);
	if (tdt_future_is_none(&selected))
		die("tdt_select");
	return selected;
}

/* A poll begins: the one before has left the connection waiting where it is. */
/* Note that `connection` is polled.  Returns it. */
static struct store_connection *note(struct store_connection *connection)
{
	uint64_t poll = connection->polls++;

	atomic_store_explicit(&connection->log[poll % LOG], poll << 8 | connection->at,
			      memory_order_relaxed);
	return connection;
}

static tdt_poll_t connection_poll(void *state, struct tdt_context *cx)
{
	struct store_connection *connection = note(*(struct store_connection **)state);
	struct store *store = connection->store;
	char *value;

	TDT_BEGIN(&connection->async, cx);
	for (;;) {
		connection->at = AT_REQUEST;
		TDT_AWAIT(request_or_end(connection));
		if (connection->n <= 0)
			return TDT_READY;
		if (++connection->requests % PERMIT_EVERY == 0) {
			connection->at = AT_PERMIT;
			TDT_AWAIT(((struct tdt_future){ (void *)&connection->permit, permit_poll,
							permit_drop }));
		}
		connection->at = AT_LOCK;
		TDT_AWAIT(tdt_mutex_lock(store->mutex));
		value = store->value[connection->requests % 16];
		memcpy(connection->requests % 2 != 0 ? value : connection->message,
		       connection->requests % 2 != 0 ? connection->message : value,
		       sizeof connection->message);
		tdt_mutex_unlock(store->mutex);
		connection->at = AT_REPLY;
		TDT_AWAIT(tdt_tcp_write(connection->tcp, connection->message, (size_t)connection->n,
					&connection->n));
		if (connection->n < 0)
			return TDT_READY;
	}
	TDT_END();
}

/* The server keeps its facts of the connection until it stops: trees are judged by them. */
static void connection_drop(void *state)
{
	struct store_connection *connection = *(struct store_connection **)state;

	tdt_future_drop(&connection->async.child);
	tdt_waker_drop(connection->permit);
	tdt_tcp_free(connection->tcp);
	free(state);
}

static void add_connection(struct store *store, struct tdt_tcp *tcp)
{
	unsigned n = store->connections;
	struct store_connection *connection = calloc(1, sizeof *connection),
				**state = malloc(sizeof *state);

	if (connection == NULL || state == NULL || n == STORE_CONNECTIONS)
		die("a connection");
	connection->store = store;
	connection->tcp = tcp;
	connection->random = n;
	*state = connection;
	connection->handle = tdt_rt_spawn(
	    store->rt, (struct tdt_future){ (void *)state, connection_poll, connection_drop },
	    TDT_TASK_ATTR(.name = "connection"));
	if (connection->handle == NULL)
		die("tdt_rt_spawn");
	store->connection[n] = connection;
	/* Release the connection to the judges.  Pairs with their loads of `connections`. */
	atomic_store_explicit(&store->connections, n + 1, memory_order_release);
}

struct acceptor {
	struct tdt_async async;
	struct store *store;
	struct tdt_tcp *tcp;
	int error;
};

static tdt_poll_t accept_poll(void *state, struct tdt_context *cx)
{
	struct acceptor *acceptor = state;

	TDT_BEGIN(&acceptor->async, cx);
	for (;;) {
		TDT_AWAIT(
		    tdt_tcp_accept(acceptor->store->listener, &acceptor->tcp, &acceptor->error));
		if (acceptor->error != 0)
			die("tdt_tcp_accept");
		add_connection(acceptor->store, acceptor->tcp);
	}
	TDT_END();
}

void store_start(struct store *store)
{
	struct tdt_rt_config config = { .size = sizeof config, .workers = 1 };

	memset(store, 0, sizeof *store);
	store->rt = tdt_rt_new(&config);
	store->mutex = tdt_mutex_new();
	store->listener = tdt_tcp_listen("127.0.0.1", 0);
	if (store->rt == NULL || store->mutex == NULL || store->listener == NULL)
		die("the store");
	tdt_handle_unref(
	    tdt_rt_spawn(store->rt, TDT_ASYNC_NEW(accept_poll, (struct acceptor){ .store = store }),
			 TDT_TASK_ATTR(.name = "accept")));
}

void store_stop(struct store *store)
{
	tdt_rt_free(store->rt);
	for (unsigned i = 0; i < store->connections; i++) {
		tdt_handle_unref(store->connection[i]->handle);
		free(store->connection[i]);
	}
	tdt_tcp_listener_free(store->listener);
	tdt_mutex_free(store->mutex);
}

struct tdt_handle *store_handle(const struct store_connection *connection)
{
	return connection->handle;
}

uint64_t *store_judged(struct store_connection *connection)
{
	return &connection->judged;
}

/* --- The judge --------------------------------------------------------------------- */

/* Where this poll of it left it waiting: known as soon as the next begins.  NOWHERE: not known. */
static enum place place_after(struct store_connection *connection, uint64_t poll)
{
	for (int i = 0; i < 1000; i++) {
		uint64_t entry =
		    atomic_load_explicit(&connection->log[poll % LOG], memory_order_relaxed);

		if (entry >> 8 == poll)
			return (enum place)(entry & 0xff);
		if (entry >> 8 > poll)
			return NOWHERE;
		usleep(100);
	}
	return NOWHERE;
}

static int leaf_of(const struct tdt_node *node)
{
	for (; node != NULL; node = tdt_node_parent(node)) {
		const char *function = tdt_node_frame(node)->function;

		for (int leaf = 0; function != NULL && leaf < LEAVES; leaf++)
			if (strstr(function, leaf_function[leaf]) != NULL)
				return leaf;
	}
	return -1;
}

enum store_verdict store_judge(struct store_connection *connection, const struct tdt_trace *trace)
{
	const struct tdt_node *node = tdt_trace_root(trace);
	const struct tdt_task_info *info = tdt_trace_info(trace);
	enum place at = place_after(connection, info->polls - info->polls_since);
	unsigned leaves[LEAVES] = { 0 };
	bool more = false;

	if (at == NOWHERE || info->state != TDT_TASK_WAITING || info->leaves_lost > 0)
		return STORE_UNKNOWN;
	for (; node != NULL; node = tdt_node_next(node)) {
		int leaf = tdt_node_leaves(node) > 0 ? leaf_of(node) : 0;

		if (leaf < 0)
			more = true;
		else
			leaves[leaf] += tdt_node_leaves(node);
	}
	for (int leaf = 0; leaf < LEAVES; leaf++) {
		if (leaves[leaf] < leaves_at[at][leaf])
			return STORE_LOST;
		more = more || leaves[leaf] > leaves_at[at][leaf];
	}
	if (more)
		return info->leaves_unsure > 0 ? STORE_MARKED : STORE_GHOST;
	return STORE_RIGHT;
}
