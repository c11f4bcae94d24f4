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

#include "runtime/loop.h"
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
	int fd;	    /* constant */
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
