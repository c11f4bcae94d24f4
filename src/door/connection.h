/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The connections of readers outside, and what each of them wants as long as it lasts: a watch, a
 * recording.
 *
 * The door's thread alone uses them.  Their sockets are opened and closed under tdt__door_lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/layout/outside.h>

#include "door/socket.h"

struct tdt_recorder_options;

struct tdt__connection {
	struct tdt__door_socket socket; /* not open: the place in the table is free */
	uint64_t watch_ns;		/* the interval that it wants; 0: none */
	bool records;			/* it wants a recording */
};

extern struct tdt__connection tdt__connections[TDT_OUTSIDE_CONNECTIONS];

/*
 * Take over the socket.  Under tdt__door_lock.  NULL: there are TDT_OUTSIDE_CONNECTIONS already.
 */
struct tdt__connection *tdt__connection_add(const struct tdt__door_socket *socket);

/* Close the connection, and end what it alone wanted.  Takes tdt__door_lock. */
void tdt__connection_end(struct tdt__connection *connection);

/*
 * The connection wants a watch with this interval; 0: none.  `*in_force` gets the interval that is
 * in force.  Returns 0, -ENOMEM or -EAGAIN: then nothing has changed.
 */
int tdt__connection_watch(struct tdt__connection *connection, uint64_t interval_ns,
			  uint64_t *in_force);

/*
 * The connection wants a recording; `options` is NULL: it wants none.  `*by_program` says whether
 * the program wants one.  Returns 0 or what tdt__recorder_outside_start() returns.
 */
int tdt__connection_record(struct tdt__connection *connection,
			   const struct tdt_recorder_options *options, bool *by_program);

/*
 * In a child of fork(), under tdt__door_lock: close the descriptors, which are those of the parent.
 */
void tdt__connections_forked(void);
