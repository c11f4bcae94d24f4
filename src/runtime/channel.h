/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A bounded channel: a ring of values, with a gate on each side.  `room` has a permit for each
 * element of the ring that is free and promised to no sender, and `filled` one for each value that
 * is promised to no receiver.  So a leaf that was admitted finds its room, or its value.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/gate.h"

struct tdt_channel {
	atomic_uint refs;
	char *name;			 /* set before a task waits; NULL: none */
	void (*value_free)(void *value); /* may be NULL.  Constant, as is `capacity` */
	size_t capacity;

	pthread_mutex_t lock; /* protects what follows */
	bool closed;
	struct tdt__gate room, filled;
	size_t first, n; /* the oldest value, and how many there are */
	void *value[];
};

/*
 * Send a value, or receive one, without waiting.  0: done.  -EAGAIN: `place` is in the line.
 * -EPIPE: the channel is closed, and has no value for this receiver; `place` is outside.
 */
int tdt__channel_put(struct tdt_channel *channel, struct tdt__gate_place *place, void *value);
int tdt__channel_get(struct tdt_channel *channel, struct tdt__gate_place *place, void **value);

/* Free a value that will not be received. */
void tdt__channel_waste(struct tdt_channel *channel, void *value);
