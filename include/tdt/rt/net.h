/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_NET_H
#define TDT_NET_H /* may change: docs/compatibility.md */

/*
 * TCP and Unix sockets for tasks on libtdt-rt (tdt/rt/runtime.h).
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
 * Results are written through pointers that must outlive the future; only the future's own poll
 * writes them.  Errors are negative errnos in these results.
 *
 * A socket belongs to the runtime on which one of its futures is first awaited.  The futures refer
 * to the socket: free it only after they have been dropped.  Dropping a future that waits cancels
 * the operation, and the socket remains usable.
 *
 * An operation that can complete at once completes in the first poll, without waiting.  Therefore a
 * task that always finds something to read never yields by itself.  If such a task must not delay
 * other tasks, let it await tdt_yield_now() now and then.
 *
 * At most one task at a time may read from a socket, at most one (the same or another) may write to
 * it, and at most one may accept from a listener.  A second task gets -EBUSY.
 *
 * Addresses are numeric, IPv4 or IPv6 ("127.0.0.1", "::1", "0.0.0.0").  Or they are those of Unix
 * sockets: "unix:" and a path, or "unix:@" and a name without a file; the port is then ignored.
 * tdt_tcp_connect() takes names of hosts, too.  Sockets are close-on-exec, connections have
 * TCP_NODELAY, and SIGPIPE is never raised.
 */

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <tdt/decls.h>
#include <tdt/future.h>

TDT_DECLS_BEGIN

struct tdt_tcp_listener; /* a socket that accepts */
struct tdt_tcp;          /* a connection */

/*
 * Listen at `host` and `port`, with SO_REUSEADDR.  Port 0 means any free port.  Returns a listener,
 * which the caller frees with tdt_tcp_listener_free().  On failure it returns NULL and sets errno:
 * EINVAL (`host` is NULL or not a numeric address), ENOMEM, or an error of socket(2), bind(2) or
 * listen(2), such as EADDRINUSE or EMFILE.  Any thread.
 */
TDT_MUST_USE
struct tdt_tcp_listener *tdt_tcp_listen(const char *host, uint16_t port);

/*
 * Take over a descriptor, of socket activation or another library: a socket that listens, or a
 * connection.  (For tdt_tcp_ready() it may be any descriptor that epoll(7) takes.)  It becomes
 * non-blocking and close-on-exec, and is closed when the object is freed; give a dup(2) of a
 * descriptor that somebody else closes.  On failure they return NULL and set errno, and `fd` still
 * belongs to the caller: EBADF, ENOMEM.  Any thread.
 */
TDT_MUST_USE
struct tdt_tcp_listener *tdt_tcp_listener_adopt(int fd);
TDT_MUST_USE
struct tdt_tcp *tdt_tcp_adopt(int fd);

/*
 * Return the port that `listener` listens at.  Returns 0 and sets errno to EINVAL if `listener` is
 * NULL; 0 also for a Unix socket.
 */
uint16_t tdt_tcp_listener_port(const struct tdt_tcp_listener *listener);

/*
 * Give the listener, or the connection, a name, as tdt_mutex_set_name() (tdt/rt/sync.h): a task
 * then "waits for descriptor 7 "peer 10.0.0.7"".  Make this call while no future uses the socket.
 */
int tdt_tcp_listener_set_name(struct tdt_tcp_listener *listener, const char *name);
int tdt_tcp_set_name(struct tdt_tcp *tcp, const char *name);

/* Close and free a listener.  NULL does nothing.  Any thread. */
void tdt_tcp_listener_free(struct tdt_tcp_listener *listener);

/*
 * Make a future that accepts a connection.  When it is ready, either `*tcp` is the connection,
 * which the caller frees, and `*error` is 0; or `*tcp` is NULL and `*error` is a negative errno.
 * If a connection goes away before it is accepted, that error is not reported.  EMFILE and ENFILE
 * are reported, and leave the connection in the queue: wait a little before you accept again.
 *
 * Returns TDT_FUTURE_NONE and sets errno: EINVAL (a pointer is NULL), ENOMEM.
 */
TDT_MUST_USE
struct tdt_future tdt_tcp_accept(struct tdt_tcp_listener *listener, struct tdt_tcp **tcp,
				 int *error);

/*
 * Make a future that connects to `host` and `port`, after which the connection is named.  The
 * results are written as by tdt_tcp_accept(); errors are -ECONNREFUSED (also if the queue of a Unix
 * listener is full), -ETIMEDOUT, -EMFILE and others.
 *
 *	TDT_AWAIT(tdt_tcp_connect("db.example.org", 5432, &it->tcp, &it->error));
 *
 * If `host` is not an address, it is a name, which getaddrinfo(3) looks up on a blocking thread
 * (tdt/rt/blocking.h).  Meanwhile the caller waits for that job, a task named "looking up
 * db.example.org".  Dropping the future does not stop the job, which owns what it needs, and
 * tdt_rt_free() waits for it.  Then the addresses are tried in their order, one after the other,
 * until one accepts; if none does, the error is that of the last.  tdt_timeout_ms() limits how long
 * all this takes.  Further errors are then -ENOENT (there is no such name, or it has no address),
 * -EAGAIN (name servers do not answer, or no thread could be started), -EIO (they fail), -ENOMEM,
 * or what errno was for EAI_SYSTEM.
 *
 * Returns TDT_FUTURE_NONE and sets errno: EINVAL (a pointer is NULL, `host` is empty, or the path
 * of a Unix socket is empty or too long), ENOMEM.
 */
TDT_MUST_USE
struct tdt_future tdt_tcp_connect(const char *host, uint16_t port, struct tdt_tcp **tcp,
				  int *error);

/*
 * Make a future that waits until there are bytes to read, and reads them, at most `size` bytes,
 * into `buffer`.  When it is ready, `*n` is the number of bytes; or 0 at the end of the stream (or
 * if `size` is 0); or a negative errno: -ECONNRESET, -EBUSY and others.  `buffer` must outlive the
 * future.
 *
 * Returns TDT_FUTURE_NONE and sets errno: EINVAL (a pointer is NULL), ENOMEM.
 */
TDT_MUST_USE
struct tdt_future tdt_tcp_read(struct tdt_tcp *tcp, void *buffer, size_t size, ssize_t *n);

/*
 * Make a future that writes all `size` bytes at `data`.  The bytes still belong to the caller, and
 * must outlive the future.  When it is ready, `*n` is `size`, or a negative errno: -EPIPE,
 * -ECONNRESET, -EBUSY and others.  After an error, or if the future is dropped before it is ready,
 * some of the bytes may have been sent.
 *
 * Returns TDT_FUTURE_NONE and sets errno: EINVAL (a pointer is NULL, or `size` is more than
 * SSIZE_MAX), ENOMEM.
 */
TDT_MUST_USE
struct tdt_future tdt_tcp_write(struct tdt_tcp *tcp, const void *data, size_t size, ssize_t *n);

/*
 * The same for what `n_parts` parts hold, one after the other, in as few system calls as there can
 * be.  `parts`, too, must outlive the future, which changes them.
 */
TDT_MUST_USE
struct tdt_future tdt_tcp_writev(struct tdt_tcp *tcp, struct iovec *parts, size_t n_parts,
				 ssize_t *n);

/*
 * Make a future that waits until there is something to read from the descriptor, or, if `to_write`,
 * room to write; or an error or the end has come.  When it is ready, `*error` is 0, or a negative
 * errno: -EBUSY and others.  Another thread may be faster: the caller's own call may block
 * nevertheless (EAGAIN), and the caller then waits again.
 *
 * Returns TDT_FUTURE_NONE and sets errno: EINVAL (a pointer is NULL), ENOMEM.
 */
TDT_MUST_USE
struct tdt_future tdt_tcp_ready(struct tdt_tcp *tcp, bool to_write, int *error);

/*
 * Write the peer's address into `text` of `size` bytes, as snprintf(3) does: "10.0.0.7:4711",
 * "[::1]:80", or "unix:" and its path, if any, or "@" and its name, in which a NUL is a further
 * "@"; other bytes stay as they are.  Returns the length of the whole address, or a negative errno
 * and sets errno: -EINVAL (`tcp` is NULL), -ENOTCONN and others.  Any thread.
 */
int tdt_tcp_peer(const struct tdt_tcp *tcp, char *text, size_t size);

/*
 * Report to the peer that nothing more will be written: the peer then reads the end of the stream.
 * Returns 0, or a negative errno and sets errno: -EINVAL (`tcp` is NULL), -ENOTCONN (the peer has
 * reset the connection) and others.  Any thread.
 */
int tdt_tcp_shutdown(struct tdt_tcp *tcp);

/* Close and free a connection.  Unread bytes are lost.  NULL does nothing.  Any thread. */
void tdt_tcp_free(struct tdt_tcp *tcp);

TDT_DECLS_END

#endif
