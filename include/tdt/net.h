/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_NET_H
#define TDT_NET_H

/*
 * TCP for tasks on libtdt-rt (tdt/runtime.h).
 *
 *	struct echo {
 *		struct tdt_async async;
 *		struct tdt_tcp *tcp;
 *		char buffer[4096];
 *		ssize_t n;
 *	};
 *	...
 *	TDT_BEGIN(&echo->async, cx);
 *	for (;;) {
 *		TDT_AWAIT(tdt_tcp_read(echo->tcp, echo->buffer, sizeof echo->buffer, &echo->n));
 *		if (echo->n <= 0)
 *			return TDT_READY;               // the end, or an error
 *		TDT_AWAIT(tdt_tcp_write(echo->tcp, echo->buffer, (size_t)echo->n, &echo->n));
 *		if (echo->n < 0)
 *			return TDT_READY;
 *	}
 *	TDT_END();
 *
 * Results go through pointers that outlive the future and are written only from its own poll; errors are negative
 * errnos in them.  A socket belongs to the runtime it is first awaited on.  Its futures refer to it: it is freed after
 * they are dropped.  Dropping a future that waits cancels the operation and leaves the socket usable.
 *
 * What can be done at once is done in the first poll, without waiting.  So a task that always finds something to read
 * never yields by itself: one that must not keep others waiting awaits tdt_yield_now() now and then.
 *
 * One task at a time reads a socket, one (the same or another) writes it, one accepts from a listener: a second gets
 * -EBUSY.
 *
 * Addresses are numeric, IPv4 or IPv6 ("127.0.0.1", "::1", "0.0.0.0"): looking names up would block.  Sockets are
 * close-on-exec, and connections have TCP_NODELAY; SIGPIPE is never raised.
 */

#include <sys/types.h>

#include <tdt/future.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct tdt_tcp_listener; /* a socket that accepts */
struct tdt_tcp;          /* a connection */

/*
 * Listen at `host` and `port` (0: any that is free), with SO_REUSEADDR.  Returns NULL and errno: EINVAL (`host` is NULL
 * or no numeric address), ENOMEM, and what socket(2), bind(2) and listen(2) say: EADDRINUSE, EMFILE...  Any thread.
 */
struct tdt_tcp_listener *tdt_tcp_listen(const char *host, uint16_t port);

/* The port that `listener` listens at; 0 and errno: EINVAL (`listener` is NULL). */
uint16_t tdt_tcp_listener_port(const struct tdt_tcp_listener *listener);

/* Close and free a listener.  NULL does nothing.  Any thread. */
void tdt_tcp_listener_free(struct tdt_tcp_listener *listener);

/*
 * Accept a connection.  When it is ready, `*tcp` is the connection, the caller's to free, and `*error` is 0; or it is
 * NULL, and `*error` says why, as a negative errno.  Errors of a connection that went away before it was accepted are
 * not told; EMFILE and ENFILE are, and leave it in the queue, so who goes on accepting waits a little first.
 *
 * Returns TDT_FUTURE_NONE and errno: EINVAL (a NULL pointer), ENOMEM.
 */
struct tdt_future tdt_tcp_accept(struct tdt_tcp_listener *listener, struct tdt_tcp **tcp, int *error);

/*
 * Connect to `host` and `port`.  Results as tdt_tcp_accept()'s: -ECONNREFUSED, -ETIMEDOUT, -EMFILE...
 *
 * Returns TDT_FUTURE_NONE and errno: EINVAL (a NULL pointer, no numeric address), ENOMEM.
 */
struct tdt_future tdt_tcp_connect(const char *host, uint16_t port, struct tdt_tcp **tcp, int *error);

/*
 * Read what there is, `size` bytes at most, and wait until there is some.  `*n` is the number of bytes; 0 at the end of
 * the stream (or if `size` is 0); or a negative errno: -ECONNRESET, -EBUSY...
 *
 * Returns TDT_FUTURE_NONE and errno: EINVAL (a NULL pointer), ENOMEM.
 */
struct tdt_future tdt_tcp_read(struct tdt_tcp *tcp, void *buffer, size_t size, ssize_t *n);

/*
 * Write all `size` bytes at `data`, which stay the caller's.  `*n` is `size`, or a negative errno: -EPIPE, -ECONNRESET,
 * -EBUSY...; then, and when the future is dropped before it is ready, some bytes may have been sent.
 *
 * Returns TDT_FUTURE_NONE and errno: EINVAL (a NULL pointer, more than SSIZE_MAX bytes), ENOMEM.
 */
struct tdt_future tdt_tcp_write(struct tdt_tcp *tcp, const void *data, size_t size, ssize_t *n);

/*
 * Say that nothing more will be written: the peer reads to the end.  Returns 0 or a negative errno (and sets errno):
 * -EINVAL (`tcp` is NULL), -ENOTCONN (the peer has reset the connection)...  Any thread.
 */
int tdt_tcp_shutdown(struct tdt_tcp *tcp);

/* Close and free a connection, and what is unread.  NULL does nothing.  Any thread. */
void tdt_tcp_free(struct tdt_tcp *tcp);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
