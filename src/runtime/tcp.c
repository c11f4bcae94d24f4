// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The futures of TCP.  Each first tries its system call, on the thread that polls the future, and
 * waits if the call would block.
 *
 * All memory is allocated when the future is made, including that of the connection which the
 * future opens.  So no poll can run out of memory, and no connection is lost for lack of it.
 */

#include <config.h>

#include "runtime/tcp.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/leaf_poll.h"
#include "base/result.h"
#include "runtime/name.h"
#include "runtime/operation.h"

/* --- Read and write ------------------------------------------------------------ */

struct transfer {
	struct tdt__operation operation;
	struct iovec one;    /* where a read puts the data, or what a write sends */
	struct iovec *parts; /* what is left of that; the caller's, for tdt_tcp_writev() */
	size_t n_parts;
	ssize_t done;
	ssize_t *n;
};

static ssize_t receive(void *state)
{
	struct transfer *transfer = state;
	ssize_t n;

	if (transfer->one.iov_len == 0)
		return 0;
	do
		n = recv(transfer->operation.socket->fd, transfer->one.iov_base,
			 transfer->one.iov_len, 0);
	while (n < 0 && errno == EINTR);
	if (n > 0 && (size_t)n < transfer->one.iov_len)
		tdt__socket_drain(transfer->operation.socket, TDT__READ, transfer->operation.seen);
	return n < 0 ? -errno : n;
}

/* `n` more bytes have been sent, or none.  Returns whether some are left. */
static bool note_sent(struct transfer *transfer, size_t n)
{
	transfer->done += (ssize_t)n;
	for (; transfer->n_parts > 0 && n >= transfer->parts->iov_len; transfer->n_parts--)
		n -= transfer->parts++->iov_len;
	if (transfer->n_parts == 0)
		return false;
	transfer->parts->iov_base = (char *)transfer->parts->iov_base + n;
	transfer->parts->iov_len -= n;
	return true;
}

static ssize_t send_all(void *state)
{
	struct transfer *transfer = state;
	ssize_t n = 0;

	while (note_sent(transfer, (size_t)n)) {
		const size_t n_parts = transfer->n_parts < IOV_MAX ? transfer->n_parts : IOV_MAX;
		const struct msghdr message = { .msg_iov = transfer->parts,
						.msg_iovlen = n_parts };

		do
			n = sendmsg(transfer->operation.socket->fd, &message, MSG_NOSIGNAL);
		while (n < 0 && errno == EINTR);
		if (n < 0)
			return -errno;
	}
	return transfer->done;
}

static inline __attribute__((always_inline)) tdt_poll_t
tdt__transfer_poll(struct transfer *transfer, struct tdt_context *cx,
		   ssize_t (*transmit)(void *state))
{
	ssize_t n;
	tdt_poll_t polled = tdt__operation_poll(&transfer->operation, cx, transmit, &n);

	if (polled == TDT_READY)
		*transfer->n = n;
	return polled;
}

TDT__LEAF_POLL_BY(tdt_tcp_read, tdt__transfer_poll(state, cx, receive))
TDT__LEAF_POLL_BY(tdt_tcp_write, tdt__transfer_poll(state, cx, send_all))
TDT__LEAF_POLL_BY(tdt_tcp_writev, tdt__transfer_poll(state, cx, send_all))

static void drop_transfer(void *state)
{
	struct transfer *transfer = state;

	tdt__operation_end(&transfer->operation);
	free(transfer);
}

static struct tdt_future transfer_new(struct tdt_tcp *tcp, const struct transfer *transfer,
				      tdt_poll_t (*poll)(void *state, struct tdt_context *cx))
{
	struct transfer *state;

	if (tcp == NULL || transfer->n == NULL)
		return tdt__no_future(-EINVAL);
	state = malloc(sizeof(*state));
	if (state == NULL)
		return TDT_FUTURE_NONE;
	*state = *transfer;
	state->operation.socket = &tcp->socket;
	if (state->parts == NULL) {
		state->parts = &state->one;
		state->n_parts = 1;
	}
	return (struct tdt_future){ state, poll, drop_transfer };
}

struct tdt_future tdt__tcp_read_new(struct tdt_tcp *tcp, void *buffer, size_t size, ssize_t *n)
    TDT__LEAF_CALL(tdt_tcp_read);

struct tdt_future tdt__tcp_read_new(struct tdt_tcp *tcp, void *buffer, size_t size, ssize_t *n)
{
	const struct transfer transfer = { .operation.side = TDT__READ,
					   .one = { buffer, size },
					   .n = n };

	if (buffer == NULL)
		return tdt__no_future(-EINVAL);
	return transfer_new(tcp, &transfer, tdt_tcp_read);
}

struct tdt_future tdt__tcp_write_new(struct tdt_tcp *tcp, const void *data, size_t size, ssize_t *n)
    TDT__LEAF_CALL(tdt_tcp_write);

struct tdt_future tdt__tcp_write_new(struct tdt_tcp *tcp, const void *data, size_t size, ssize_t *n)
{
	const struct transfer transfer = { .operation.side = TDT__WRITE,
					   .one = { (void *)(uintptr_t)data, size },
					   .n = n };

	if (data == NULL || size > SSIZE_MAX)
		return tdt__no_future(-EINVAL);
	return transfer_new(tcp, &transfer, tdt_tcp_write);
}

struct tdt_future tdt__tcp_writev_new(struct tdt_tcp *tcp, struct iovec *parts, size_t n_parts,
				      ssize_t *n) TDT__LEAF_CALL(tdt_tcp_writev);

struct tdt_future tdt__tcp_writev_new(struct tdt_tcp *tcp, struct iovec *parts, size_t n_parts,
				      ssize_t *n)
{
	const struct transfer transfer = {
		.operation.side = TDT__WRITE, .parts = parts, .n_parts = n_parts, .n = n
	};
	size_t left = SSIZE_MAX;

	if (parts == NULL)
		return tdt__no_future(-EINVAL);
	for (size_t i = 0; i < n_parts; left -= parts[i++].iov_len)
		if (parts[i].iov_len > left)
			return tdt__no_future(-EINVAL);
	return transfer_new(tcp, &transfer, tdt_tcp_writev);
}

/* --- Accept and connect ---------------------------------------------------------- */

struct opening {
	struct tdt__operation operation;
	struct tdt_tcp *connection; /* owned until the result is reported */
	bool has_socket;	    /* `connection` is initialized */
	union tdt__address address; /* where a connect goes */
	socklen_t length;
	struct tdt_tcp **tcp;
	int *error;
};

/* Give `fd` to the connection. */
static void adopt(struct opening *opening, int fd)
{
	tdt__tcp_init(&opening->connection->socket, fd);
	opening->has_socket = true;
}

static void discard(struct opening *opening)
{
	if (opening->has_socket) {
		tdt__socket_free(&opening->connection->socket);
	} else if (opening->connection != NULL) {
		free(opening->connection->socket.name);
		free(opening->connection);
	}
	opening->connection = NULL;
	opening->has_socket = false;
}

static void report_result(struct opening *opening, int error)
{
	*opening->error = error;
	*opening->tcp = error == 0 ? opening->connection : NULL;
	if (error != 0)
		discard(opening);
	opening->connection = NULL;
	opening->has_socket = false;
}

static inline __attribute__((always_inline)) tdt_poll_t
tdt__opening_poll(struct opening *opening, struct tdt_context *cx,
		  ssize_t (*try_it)(void *state))
{
	ssize_t error;
	tdt_poll_t polled = tdt__operation_poll(&opening->operation, cx, try_it, &error);

	if (polled == TDT_READY)
		report_result(opening, (int)error);
	return polled;
}

/*
 * Whether an error of accept(2) concerns one connection that has gone away.  accept(2) says that
 * the network errors are to be treated like this, too; but EOPNOTSUPP is what a socket that was
 * adopted, and cannot accept, gives for ever.
 */
static bool is_of_connection(int error)
{
	switch (error) {
	case EINTR:
	case ECONNABORTED:
	case EPROTO:
	case ENETDOWN:
	case ENOPROTOOPT:
	case EHOSTDOWN:
	case ENONET:
	case EHOSTUNREACH:
	case ENETUNREACH:
		return true;
	default:
		return false;
	}
}

static ssize_t accept_one(void *state)
{
	struct opening *opening = state;
	int fd;

	do
		fd = accept4(opening->operation.socket->fd, NULL, NULL,
			     SOCK_CLOEXEC | SOCK_NONBLOCK);
	while (fd < 0 && is_of_connection(errno));
	if (fd < 0)
		return -errno;
	adopt(opening, fd);
	return 0;
}

TDT__LEAF_POLL_BY(tdt_tcp_accept, tdt__opening_poll(state, cx, accept_one))

/* The first poll.  Returns 0, -EAGAIN if the connect is in progress, or another negative errno. */
static int connect_first(struct opening *opening)
{
	struct tdt__operation *operation = &opening->operation;
	int fd = tdt__tcp_socket(&opening->address);

	if (fd < 0)
		return fd;
	adopt(opening, fd);
	operation->socket = &opening->connection->socket;
	/* This can't fail: no other future knows the socket. */
	tdt__socket_begin(operation->socket, operation->side, &operation->took, &operation->seen);
	if (connect(fd, &opening->address.any, opening->length) == 0)
		return 0;
	if (errno == EAGAIN) /* a Unix listener whose queue is full; nothing would happen later */
		return -ECONNREFUSED;
	return errno == EINPROGRESS || errno == EINTR ? -EAGAIN : -errno;
}

/* Something has happened to the side that writes: so the connect has ended. */
static int connect_further(struct opening *opening)
{
	int fd = opening->operation.socket->fd, error;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){ sizeof(error) }) != 0)
		return -errno;
	return -error;
}

static ssize_t try_connect(void *state)
{
	struct opening *opening = state;

	return opening->has_socket ? connect_further(opening) : connect_first(opening);
}

TDT__LEAF_POLL_BY(tdt_tcp_connect, tdt__opening_poll(state, cx, try_connect))

static void drop_opening(void *state)
{
	struct opening *opening = state;

	tdt__operation_end(&opening->operation);
	discard(opening);
	free(opening);
}

static struct opening *opening_new(struct tdt_tcp **tcp, int *error)
{
	struct opening *opening = calloc(1, sizeof(*opening));

	if (opening == NULL)
		return NULL;
	opening->connection = calloc(1, sizeof(*opening->connection));
	if (opening->connection == NULL) {
		free(opening);
		return NULL;
	}
	opening->tcp = tcp;
	opening->error = error;
	return opening;
}

struct tdt_future tdt__tcp_accept_new(struct tdt_tcp_listener *listener, struct tdt_tcp **tcp,
				      int *error) TDT__LEAF_CALL(tdt_tcp_accept);

struct tdt_future tdt__tcp_accept_new(struct tdt_tcp_listener *listener, struct tdt_tcp **tcp,
				      int *error)
{
	struct opening *opening;

	if (listener == NULL || tcp == NULL || error == NULL)
		return tdt__no_future(-EINVAL);
	opening = opening_new(tcp, error);
	if (opening == NULL)
		return TDT_FUTURE_NONE;
	opening->operation.socket = &listener->socket;
	opening->operation.side = TDT__READ;
	return (struct tdt_future){ opening, tdt_tcp_accept, drop_opening };
}

struct tdt_future tdt__tcp_connect_new(const char *host, uint16_t port, struct tdt_tcp **tcp,
				       int *error) TDT__LEAF_CALL(tdt_tcp_connect);

struct tdt_future tdt__tcp_connect_new(const char *host, uint16_t port, struct tdt_tcp **tcp,
				       int *error)
{
	struct opening *opening;
	union tdt__address address;
	int length = tdt__address(host, port, &address);
	char name[TDT_WAIT_NAME_MAX + 1];

	if (length < 0 || tcp == NULL || error == NULL)
		return tdt__no_future(-EINVAL);
	opening = opening_new(tcp, error);
	if (opening == NULL)
		return TDT_FUTURE_NONE;
	/* For traces and dumps; the connection keeps it. */
	snprintf(name, sizeof name, address.any.sa_family == AF_UNIX ? "%s" : "%s:%u", host, port);
	if (tdt__name_set(&opening->connection->socket.name, name) != 0) {
		drop_opening(opening);
		return TDT_FUTURE_NONE;
	}
	opening->operation.side = TDT__WRITE;
	opening->address = address;
	opening->length = (socklen_t)length;
	return (struct tdt_future){ opening, tdt_tcp_connect, drop_opening };
}
