/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_VISITOR_H
#define TESTS_VISITOR_H

/*
 * A reader at the door (<tdt/layout/outside.h>), in the process itself or in another one.  What
 * goes wrong ends the process.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tdt/layout/outside.h>

/* Fill in the header of a message: `kind` without TDT_OUTSIDE_. */
#define VISITOR_HEADER(type, name)                                                                 \
	{ .size = sizeof(struct type), .version = TDT_OUTSIDE_VERSION, .kind = TDT_OUTSIDE_##name, \
	  .number = 7 }

/* A copy of the descriptor through which the process listens, as pidfd_getfd(2) makes it. */
int visitor_door(void);

/* Send a message of `size` bytes through `door`, which brings the `n` descriptors. */
void visitor_knock(int door, const void *message, size_t size, const int *fds, int n);

/*
 * Send a sound hello through `door`, and return the reader's end of the connection, at which
 * nothing was received yet.
 */
int visitor_enter(int door);

/* The same, and receive the answer to the hello. */
int visitor_come(int door);

void visitor_send(int connection, const void *message, size_t size);

/* Receive a message; 0: the connection has ended.  30 s at most. */
ssize_t visitor_receive(int connection, void *message, size_t room);

/*
 * Send a request and receive its answer, which has `room` bytes, into `answer`.  Returns `error` of
 * the answer, which is a header alone if that is not 0.
 */
int visitor_ask(int connection, const void *request, size_t size, void *answer, size_t room);

/* Wait until the connection has ended. */
void visitor_end(int connection);

#endif
