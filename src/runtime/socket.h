/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A non-blocking socket.  A leaf first tries its system call, on the thread that polls the leaf.
 * If the call would block, the leaf waits until something happens to the socket.  The driver's
 * epoll gets to know a socket when a leaf first waits for it: once, for both sides, and
 * edge-triggered.
 *
 * Each of the two sides, reading and writing, belongs to one leaf at a time.  `events` counts what
 * has happened to the side.  If a system call would block, or has read less than there was room
 * for, the side is drained: a further call would block, too, unless `events` has changed meanwhile.
 * So a read that follows a read waits without a system call.
 *
 *   leaf                                     thread in the role
 *     1. reads `events`                        5. adds one to `events`
 *     2. its system call would block           6. takes the waker, and wakes it
 *     3. registers its waker
 *     4. if `events` has changed, tries again
 *
 * 3 to 6 are sequentially consistent: either 4 sees 5, or 6 sees 3.  tdt__sockets_give_up() does
 * the same with the driver's `stopped` instead of `events`.
 */

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/types.h>

#include <tdt/integrate/hooks.h>

#include "base/leaf_poll.h"
#include "runtime/driver.h"
#include "runtime/slot.h"

enum { TDT__READ, TDT__WRITE };

struct tdt__socket {
	TAILQ_ENTRY(tdt__socket) link; /* in one of the driver's lists, under its lock */
	atomic_bool known;	       /* to epoll; written under the driver's lock */

	struct tdt__side {
		struct tdt__slot slot; /* the leaf's */
		atomic_bool taken;     /* by a leaf, from its first poll on */
		/*
		 * The end, an error or urgent data has come: what is read is cut off there, and
		 * need not be all there is.  Relaxed: `events` orders it.
		 */
		atomic_bool cut;
		atomic_uint events; /* counted from 1 */
		unsigned drained;   /* `events` when nothing was left; the leaf's */
	} sides[2];
	int fd;	    /* constant, once it is not -1 */
	char *name; /* set before a leaf waits for the socket; NULL: none */
	/* A reference; NULL until a leaf first waits for the socket, and constant from then on. */
	struct tdt__driver *_Atomic driver;
};

/* `socket` is all zero, and was allocated by malloc().  It takes over `fd`. */
void tdt__socket_init(struct tdt__socket *socket, int fd);

/* Close and free the socket.  No leaf may use it any more. */
void tdt__socket_free(struct tdt__socket *socket);

/*
 * Take `side` for a leaf, until tdt__socket_leave(), and set `*seen` to its `events`.  `*took` is
 * the leaf's, and false at first.  Returns 0; -EBUSY: another leaf has the side; or -EAGAIN: it is
 * drained.
 */
int tdt__socket_begin(struct tdt__socket *socket, int side, bool *took, unsigned *seen);
void tdt__socket_leave(struct tdt__socket *socket, int side);

/* A read has got less than it had room for: it saw the end of what was there. */
static inline void tdt__socket_drain(struct tdt__socket *socket, int side, unsigned seen)
{
	if (!atomic_load_explicit(&socket->sides[side].cut, memory_order_relaxed))
		socket->sides[side].drained = seen;
}

/*
 * Have epoll know the socket.  Returns 0 or a negative errno; -ENOTSUP: there is no driver, or it
 * is stopped.
 */
int tdt__socket_meet(struct tdt__socket *socket);

/*
 * Make a leaf wait that has taken `side` and would block; `seen` is as tdt__socket_begin() set it.
 * Returns 0, -EAGAIN: try again, or what tdt__socket_meet() does.  This is inlined, so that the
 * leaf's own poll clones the waker.
 */
static inline __attribute__((always_inline)) int
tdt__socket_wait(struct tdt__socket *socket, int side, unsigned seen, const struct tdt_waker *waker)
{
	struct tdt__side *of = &socket->sides[side];

	of->drained = seen;
	tdt__slot_register(&of->slot, waker);
	/* Acquire: `driver`.  Pairs with tdt__socket_meet(). */
	if (!atomic_load_explicit(&socket->known, memory_order_acquire)) {
		int error = tdt__socket_meet(socket);

		if (error != 0)
			return error;
	}
	if (tdt__driver_stopped(atomic_load_explicit(&socket->driver, memory_order_relaxed)))
		return -ENOTSUP;
	return atomic_load(&of->events) != seen ? -EAGAIN : 0;
}

/* Wake the leaves of the sides that epoll's `events` are about.  Call this in the driver's role. */
void tdt__socket_happened(struct tdt__socket *socket, uint32_t events, struct tdt__turn *turn);

/* Free the sockets of which the turn before may have had an event.  The driver is locked. */
void tdt__sockets_release(struct tdt__driver *driver);

/* Wake the leaves that still wait, so that they find out that the driver is stopped. */
void tdt__sockets_give_up(struct tdt__driver *driver);

/* --- What all leaves that wait for a descriptor do: take a side, try, and wait -------- */

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

/* The drop of a state that owns nothing else. */
static inline void tdt__operation_drop(void *state)
{
	tdt__operation_end(state);
	free(state);
}

/*
 * The poll, for TDT__LEAF(): try the operation, and wait if its system call would block (-EAGAIN).
 * `report` gets the result, which may be the error that prevented the future from waiting.
 */
static inline __attribute__((always_inline)) tdt_poll_t
tdt__operation_poll(void *state, struct tdt_context *cx, ssize_t (*try_it)(void *state),
		    void (*report)(void *state, ssize_t result))
{
	struct tdt__operation *operation = state;
	ssize_t result;
	bool here = true;

	if (operation->ended)
		return TDT_PANICKED;
	do {
		result = operation->socket == NULL
			     ? 0
			     : tdt__socket_begin(operation->socket, operation->side,
						 &operation->took, &operation->seen);
		if (result == 0)
			result = try_it(state);
		if (result != -EAGAIN)
			break;
		result = tdt__socket_wait(operation->socket, operation->side, operation->seen,
					  cx->waker);
		if (result == 0) {
			tdt_leaf_waits_on_named(TDT_WAIT_IO,
						(void *)(intptr_t)operation->socket->fd, 0,
						operation->socket->name);
			return TDT_PENDING;
		}
		here = result != -ENOTSUP;
	} while (result == -EAGAIN);
	tdt__operation_end(operation);
	operation->ended = true;
	if (here) {
		report(state, result);
		return TDT_READY;
	}
	errno = ENOTSUP;
	return TDT_PANICKED;
}
