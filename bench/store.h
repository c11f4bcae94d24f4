/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BENCH_STORE_H
#define BENCH_STORE_H

/*
 * A store of values, as mini-redis is one: each connection is a task that waits for a request or
 * for the server to end (a select, whose order is random), for one request in eight waits for a
 * permit, takes a lock, and replies.  As with tokio, a future that waits for the end or for a
 * permit registers its waker first and looks second: so one poll runs through leaves that do not
 * wait.
 *
 * The server knows where each connection waits, and can judge its trees.
 */

#include <stdint.h>

#include <tdt/rt/net.h>
#include <tdt/rt/runtime.h>
#include <tdt/rt/sync.h>
#include <tdt/tree.h>

#define STORE_CONNECTIONS 200 /* at most */

struct store_connection;

struct store {
	struct tdt_rt *rt;
	struct tdt_tcp_listener *listener;
	struct tdt_mutex *mutex; /* of the values */
	char value[16][64];

	struct store_connection *connection[STORE_CONNECTIONS];
	_Atomic unsigned connections;
};

/* Start it on a runtime of one worker, and stop it.  What fails ends the program. */
void store_start(struct store *store);
void store_stop(struct store *store);

/* The handle of a connection's task, and its number of polls that the last judged tree was of. */
struct tdt_handle *store_handle(const struct store_connection *connection);
uint64_t *store_judged(struct store_connection *connection);

/* The errors of a tree. */
enum store_verdict {
	STORE_RIGHT,
	STORE_MARKED,  /* it shows a leaf that is over, and says that some may be */
	STORE_GHOST,   /* it shows one, and does not say so */
	STORE_LOST,    /* a leaf that waits is missing */
	STORE_UNKNOWN, /* of a poll that the server does not remember */
	STORE_VERDICTS
};
enum store_verdict store_judge(struct store_connection *connection, const struct tdt_trace *trace);

#endif
