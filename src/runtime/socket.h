/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A non-blocking socket.  A leaf first tries its system call, on the thread that polls the leaf.
 * If the call would block, the leaf has the driver wake its task once the socket is ready.  The
 * driver gets to know a socket when a leaf first waits for it.
 *
 * The driver watches a side for one event: it then wakes the leaf, and stops watching this side.
 * Otherwise a socket that stays ready while no task reads it would keep the driver busy.
 *
 * Each of the two sides, reading and writing, belongs to one leaf at a time.  The owner has a
 * reference of the socket, and so has the driver from the first wait until libuv has closed its
 * handle.  The last of them closes the descriptor, because libuv must never see it closed.
 */

#include <stdatomic.h>

#include "runtime/loop.h"
#include "runtime/slot.h"

enum { TDT__READ, TDT__WRITE };

struct tdt__socket {
	/* Under the driver's lock. */
	TAILQ_ENTRY(tdt__socket) link;
	bool listed;	/* in the driver's list `sockets` */
	unsigned armed; /* the sides (UV_READABLE, UV_WRITABLE) to watch */
	bool known;	/* the driver has a reference */
	bool freed;	/* the owner has dropped its reference */

	struct tdt__side {
		struct tdt__slot slot; /* the leaf's */
		atomic_bool taken;     /* by a leaf, from its first poll on */
		/* Why the leaf could not wait, to be reported once; 0: no error.  Relaxed. */
		atomic_int error;
	} sides[2];
	int fd; /* constant */
	char *name; /* set before a leaf waits for the socket; NULL: none */
	atomic_uint refs;
	/* A reference; NULL until a leaf first waits for the socket, and constant from then on. */
	struct tdt__driver *_Atomic driver;

	/* Only the driver's thread uses these. */
	bool opened; /* `uv` is a handle */
	unsigned watched;
	uv_poll_t uv;
};

/* `socket` is all zero, and was allocated by malloc().  It takes over `fd`. */
void tdt__socket_init(struct tdt__socket *socket, int fd);

/* Drop the owner's reference.  No leaf may use the socket any more. */
void tdt__socket_free(struct tdt__socket *socket);

/* Whether a leaf has ever waited for the socket, so that a driver may know it. */
static inline bool tdt__socket_has_driver(struct tdt__socket *socket)
{
	return atomic_load_explicit(&socket->driver, memory_order_relaxed) != NULL;
}

/* Take `side` for a leaf, until tdt__socket_leave().  Returns whether the side was free. */
bool tdt__socket_take(struct tdt__socket *socket, int side);
void tdt__socket_leave(struct tdt__socket *socket, int side);

/*
 * Have the driver wake the leaf of `side` when this side is ready.  Returns 0 or a negative errno;
 * -ENOTSUP: there is no driver, or it is stopped.
 */
int tdt__socket_arm(struct tdt__socket *socket, int side);

/*
 * Make a leaf wait that has taken `side` and would block.  Returns what tdt__socket_arm() does.
 * This is inlined, so that the leaf's own poll clones the waker.
 */
static inline __attribute__((always_inline)) int
tdt__socket_wait(struct tdt__socket *socket, int side, const struct tdt_waker *waker)
{
	/* The waker comes first: an armed side may become ready at once. */
	tdt__slot_register(&socket->sides[side].slot, waker);
	return tdt__socket_arm(socket, side);
}

/*
 * Tell libuv what is new with a listed socket.  Call this on the driver's thread, with the driver
 * locked; it unlocks the driver for a while.
 */
void tdt__socket_update(struct tdt__socket *socket, struct tdt__driver *driver);

/* The callback with which libuv closes a socket's handle. */
void tdt__socket_closed(uv_handle_t *handle);
