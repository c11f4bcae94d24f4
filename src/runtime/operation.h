/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* What all leaves that wait for a descriptor do: take a side, try, and wait. */

#include <errno.h>
#include <sys/types.h>

#include <tdt/integrate/hooks.h>

#include "runtime/socket.h"

/* The first member of each such future's state. */
struct tdt__operation {
	struct tdt__socket *socket; /* borrowed; NULL: a connect that has not begun */
	int side;
	unsigned seen; /* the side's `events` before the last system call */
	bool took;     /* this future has taken the side */
	bool ended;
};

static inline void tdt__operation_end(struct tdt__operation *operation)
{
	if (operation->took)
		tdt__socket_leave(operation->socket, operation->side);
	operation->took = false;
}

/*
 * Try the operation, and wait if its system call would block (-EAGAIN).  If this returns TDT_READY,
 * `*result` is the result to report; it may be the error that prevented the future from waiting.
 * This is inlined, as tdt__socket_wait() is.
 */
static inline __attribute__((always_inline)) tdt_poll_t
tdt__operation_poll(struct tdt__operation *operation, struct tdt_context *cx,
		    ssize_t (*try_it)(void *state), ssize_t *result)
{
	bool here = true;

	if (operation->ended)
		return TDT_PANICKED;
	do {
		*result = operation->socket == NULL
			      ? 0
			      : tdt__socket_begin(operation->socket, operation->side,
						  &operation->took, &operation->seen);
		if (*result == 0)
			*result = try_it(operation);
		if (*result != -EAGAIN)
			break;
		*result = tdt__socket_wait(operation->socket, operation->side, operation->seen,
					   cx->waker);
		if (*result == 0) {
			tdt_leaf_waits_on_named(TDT_WAIT_IO,
						(void *)(intptr_t)operation->socket->fd, 0,
						operation->socket->name);
			return TDT_PENDING;
		}
		here = *result != -ENOTSUP;
	} while (*result == -EAGAIN);
	tdt__operation_end(operation);
	operation->ended = true;
	if (here)
		return TDT_READY;
	errno = ENOTSUP;
	return TDT_PANICKED;
}
