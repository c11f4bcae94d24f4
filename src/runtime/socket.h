/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_SOCKET_H
#define TDT_RUNTIME_SOCKET_H

/*
 * A socket, which nobody waits for in the kernel: a leaf tries first, on the thread that polls it, and when it would
 * block has the driver wake its task once the socket is ready.  The driver hears of a socket when it is first awaited.
 *
 * Interest is for one time: the driver wakes who waits, and stops watching that side.  Else a socket that stays ready
 * while nobody reads it would keep the driver busy.
 *
 * Each side, reading and writing, is one leaf's at a time.  The socket is shared by its owner and, from the first wait
 * until libuv is done with it, the driver: whoever goes last closes the descriptor, which libuv must not find closed.
 */

#include <stdatomic.h>

#include "runtime/loop.h"
#include "runtime/slot.h"

enum { TDT__READ, TDT__WRITE };

struct tdt__socket {
	/* Under the driver's lock. */
	TAILQ_ENTRY(tdt__socket) link;
	bool listed;	/* among the driver's `sockets` */
	unsigned armed; /* the sides (UV_READABLE, UV_WRITABLE) that are watched, or are to be */
	bool known;	/* the driver has a reference */
	bool freed;	/* the owner has given up its own */

	struct tdt__side {
		struct tdt__slot slot; /* who waits */
		atomic_bool taken;     /* by a leaf, from its first poll on */
		atomic_int error;      /* why it can't wait, to be told once; 0: it can.  Relaxed */
	} sides[2];
	int fd; /* constant */
	atomic_uint refs;
	struct tdt__driver *_Atomic driver; /* a reference; NULL until it is first awaited, constant then */

	/* The driver's thread's. */
	bool opened; /* `uv` is a handle */
	unsigned watched;
	uv_poll_t uv;
};

/* `socket` is all zero, and allocated by malloc; it takes `fd` over. */
void tdt__socket_init(struct tdt__socket *socket, int fd);

/* The owner's end: no leaf refers to it any more. */
void tdt__socket_free(struct tdt__socket *socket);

/* Whether it was awaited: a driver may know it. */
static inline bool tdt__socket_has_driver(struct tdt__socket *socket)
{
	return atomic_load_explicit(&socket->driver, memory_order_relaxed) != NULL;
}

/* For a leaf: take a side, until tdt__socket_leave().  Whether it was free. */
bool tdt__socket_take(struct tdt__socket *socket, int side);
void tdt__socket_leave(struct tdt__socket *socket, int side);

/* Have the driver wake who waits at `side`.  0, or a negative errno; -ENOTSUP: there is no driver, or it is stopped. */
int tdt__socket_arm(struct tdt__socket *socket, int side);

/* For who has taken `side` and would block: wait.  As tdt__socket_arm().  Inlined, so that the leaf's poll clones. */
static inline __attribute__((always_inline)) int tdt__socket_wait(struct tdt__socket *socket, int side,
								  const struct tdt_waker *waker)
{
	tdt__slot_register(&socket->sides[side].slot, waker); /* first: what is armed may be ready at once */
	return tdt__socket_arm(socket, side);
}

/* On the driver's thread: tell libuv what is new with a listed socket.  Locked; unlocks for a while. */
void tdt__socket_tell(struct tdt__socket *socket, struct tdt__driver *driver);

/* What to close its handle with. */
void tdt__socket_closed(uv_handle_t *handle);

#endif
