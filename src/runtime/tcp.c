// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The futures of TCP.  Each first tries its system call, on the thread that polls the future, and
 * waits if the call would block.  A connect to a name first has the blocking pool look it up.
 *
 * All memory is allocated when the future is made, including that of the connection which the
 * future opens.  So no poll can run out of memory, and no connection is lost for lack of it; but
 * a look-up, and the second and further addresses of a name, need some.
 */

#include "runtime/tcp.h"

#include <arpa/inet.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <tdt/rt/net.h>

#include "base/result.h"
#include "runtime/name.h"

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
	n = TEMP_FAILURE_RETRY(recv(transfer->operation.socket->fd, transfer->one.iov_base,
				    transfer->one.iov_len, 0));
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

		n = TEMP_FAILURE_RETRY(
		    sendmsg(transfer->operation.socket->fd, &message, MSG_NOSIGNAL));
		if (n < 0)
			return -errno;
	}
	return transfer->done;
}

static void report_transfer(void *state, ssize_t n)
{
	*((struct transfer *)state)->n = n;
}

TDT__LEAF(tdt_tcp_read, tdt__operation_poll, receive, report_transfer)
TDT__LEAF(tdt_tcp_write, tdt__operation_poll, send_all, report_transfer)
TDT__LEAF(tdt_tcp_writev, tdt__operation_poll, send_all, report_transfer)

/* `transfer` has no `parts` if it has `one`. */
static struct tdt_future transfer_new(struct tdt_tcp *tcp, struct transfer *transfer,
				      tdt_poll_t (*poll)(void *state, struct tdt_context *cx))
{
	struct tdt_future future;

	if (tcp == NULL || transfer->n == NULL)
		return tdt__no_future(-EINVAL);
	transfer->operation.socket = &tcp->socket;
	future = tdt__future_new(transfer, sizeof *transfer, poll, tdt__operation_drop);
	if (transfer->parts == NULL && !tdt_future_is_none(&future)) {
		transfer = future.state;
		transfer->parts = &transfer->one;
		transfer->n_parts = 1;
	}
	return future;
}

struct tdt_future tdt_tcp_read(struct tdt_tcp *tcp, void *buffer, size_t size, ssize_t *n)
{
	struct transfer transfer = { .operation.side = TDT__READ, .one = { buffer, size }, .n = n };

	if (buffer == NULL)
		return tdt__no_future(-EINVAL);
	return transfer_new(tcp, &transfer, tdt_tcp_read_poll);
}

struct tdt_future tdt_tcp_write(struct tdt_tcp *tcp, const void *data, size_t size, ssize_t *n)
{
	struct transfer transfer = { .operation.side = TDT__WRITE,
				     .one = { (void *)(uintptr_t)data, size },
				     .n = n };

	if (data == NULL || size > SSIZE_MAX)
		return tdt__no_future(-EINVAL);
	return transfer_new(tcp, &transfer, tdt_tcp_write_poll);
}

struct tdt_future tdt_tcp_writev(struct tdt_tcp *tcp, struct iovec *parts, size_t n_parts,
				 ssize_t *n)
{
	struct transfer transfer = {
		.operation.side = TDT__WRITE, .parts = parts, .n_parts = n_parts, .n = n
	};
	size_t left = SSIZE_MAX;

	if (parts == NULL)
		return tdt__no_future(-EINVAL);
	for (size_t i = 0; i < n_parts; left -= parts[i++].iov_len)
		if (parts[i].iov_len > left)
			return tdt__no_future(-EINVAL);
	return transfer_new(tcp, &transfer, tdt_tcp_writev_poll);
}

/* --- Accept and connect ---------------------------------------------------------- */

struct opening {
	struct tdt__operation operation;
	struct tdt_tcp *connection; /* owned until the result is reported; `fd` may be -1 */
	struct tdt_tcp **tcp;
	int *error;

	/* Of a connect: where it goes. */
	union tdt__address address;
	socklen_t length;
	uint16_t port;
	struct tdt_future looking;   /* the look-up of a name, until it is over */
	struct tdt__lookup *lookup;  /* from then on owned; NULL: none */
	const struct addrinfo *next; /* of the addresses found; NULL: no other */
};

static bool has_socket(const struct opening *opening)
{
	return opening->connection->socket.fd >= 0;
}

static void discard(struct opening *opening)
{
	if (opening->connection != NULL)
		tdt__socket_free(&opening->connection->socket);
	opening->connection = NULL;
}

/* NULL: no memory. */
static struct tdt_tcp *connection_new(void)
{
	struct tdt_tcp *connection = calloc(1, sizeof *connection);

	if (connection != NULL)
		connection->socket.fd = -1;
	return connection;
}

static void report_opening(void *state, ssize_t error)
{
	struct opening *opening = state;

	*opening->error = (int)error;
	*opening->tcp = error == 0 ? opening->connection : NULL;
	if (error != 0)
		discard(opening);
	opening->connection = NULL;
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
	tdt__tcp_init(&opening->connection->socket, fd);
	return 0;
}

TDT__LEAF(tdt_tcp_accept, tdt__operation_poll, accept_one, report_opening)

/* Returns 0, -EAGAIN if the connect is in progress, or another negative errno. */
static int connect_first(struct opening *opening)
{
	struct tdt__operation *operation = &opening->operation;
	int fd = tdt__tcp_socket(&opening->address);

	if (fd < 0)
		return fd;
	tdt__tcp_init(&opening->connection->socket, fd);
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

	/* Woken since a driver has stopped: nothing has happened. */
	if (poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, 0) == 0)
		return -EAGAIN;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){ sizeof(error) }) != 0)
		return -errno;
	return -error;
}

/*
 * Have the connect go to the next of the addresses that a name has.  False: there is none, or no
 * memory for another socket.
 */
static bool next_address(struct opening *opening)
{
	const struct addrinfo *next = opening->next;
	struct tdt_tcp *connection;

	if (next == NULL)
		return false;
	if (has_socket(opening)) {
		connection = connection_new();
		if (connection == NULL)
			return false;
		connection->socket.name = opening->connection->socket.name;
		opening->connection->socket.name = NULL;
		tdt__operation_end(&opening->operation);
		opening->operation.socket = NULL;
		discard(opening);
		opening->connection = connection;
	}
	opening->next = next->ai_next;
	opening->length = next->ai_addrlen;
	memcpy(&opening->address, next->ai_addr, next->ai_addrlen);
	opening->address.in.sin_port = htons(opening->port);
	return true;
}

static ssize_t try_connect(void *state)
{
	struct opening *opening = state;
	int error = has_socket(opening) ? connect_further(opening) : connect_first(opening);

	while (error != 0 && error != -EAGAIN && next_address(opening))
		error = connect_first(opening);
	return error;
}

/* The look-up is over.  Returns 0 or a negative errno. */
static int end_lookup(struct opening *opening, bool ready)
{
	int error = ready ? opening->lookup->error : -errno;

	if (!ready)
		opening->lookup = NULL; /* freed with the future */
	tdt_future_drop(&opening->looking);
	if (error != 0)
		return error;
	opening->next = opening->lookup->found;
	return next_address(opening) ? 0 : -ENOENT;
}

TDT__LEAF_POLL(tdt_tcp_connect);

tdt_poll_t tdt_tcp_connect_poll(void *state, struct tdt_context *cx)
{
	struct opening *opening = state;
	tdt_poll_t polled;
	int error;

	if (!tdt_future_is_none(&opening->looking)) {
		polled = tdt_future_poll(&opening->looking, cx);
		if (polled == TDT_PENDING)
			return TDT_PENDING;
		error = end_lookup(opening, polled == TDT_READY);
		opening->operation.ended = error != 0;
		if (polled != TDT_READY && (error == -ENOTSUP || error == -ECANCELED)) {
			errno = -error; /* there is no runtime, or no longer */
			return TDT_PANICKED;
		}
		if (error != 0) {
			report_opening(opening, error);
			return TDT_READY;
		}
	}
	return tdt__operation_poll(state, cx, try_connect, report_opening);
}

static void drop_opening(void *state)
{
	struct opening *opening = state;

	if (tdt_future_is_none(&opening->looking))
		tdt__lookup_free(opening->lookup);
	tdt_future_drop(&opening->looking);
	tdt__operation_end(&opening->operation);
	discard(opening);
	free(opening);
}

/* Give the future its connection, too.  TDT_FUTURE_NONE and errno: there is no memory. */
static struct tdt_future opening_new(const struct opening *fields,
				     tdt_poll_t (*poll)(void *state, struct tdt_context *cx))
{
	struct tdt_future future = tdt__future_new(fields, sizeof *fields, poll, drop_opening);
	struct opening *opening = future.state;

	if (opening == NULL)
		return TDT_FUTURE_NONE;
	opening->connection = connection_new();
	if (opening->connection == NULL)
		tdt_future_drop(&future);
	return future;
}

struct tdt_future tdt_tcp_accept(struct tdt_tcp_listener *listener, struct tdt_tcp **tcp,
				 int *error)
{
	const struct opening opening = {
		.operation.socket = listener != NULL ? &listener->socket : NULL,
		.operation.side = TDT__READ,
		.tcp = tcp,
		.error = error,
	};

	if (listener == NULL || tcp == NULL || error == NULL)
		return tdt__no_future(-EINVAL);
	return opening_new(&opening, tdt_tcp_accept_poll);
}

struct tdt_future tdt_tcp_connect(const char *host, uint16_t port, struct tdt_tcp **tcp, int *error)
{
	struct opening fields = {
		.operation.side = TDT__WRITE, .tcp = tcp, .error = error, .port = port
	};
	int length = tdt__address(host, port, &fields.address);
	struct tdt_future future;
	struct opening *opening;
	char name[TDT_WAIT_NAME_MAX + 1];

	if (length < 0 || tcp == NULL || error == NULL)
		return tdt__no_future(-EINVAL);
	fields.length = (socklen_t)length;
	future = opening_new(&fields, tdt_tcp_connect_poll);
	if (tdt_future_is_none(&future))
		return future;
	opening = future.state;
	/* For traces and dumps; the connection keeps it. */
	snprintf(name, sizeof name, strncmp(host, "unix:", 5) == 0 ? "%s" : "%s:%u", host, port);
	if (tdt__name_set(&opening->connection->socket.name, name) != 0)
		goto fail;
	if (length == 0) { /* a name */
		opening->looking = tdt__lookup_new(host, &opening->lookup);
		if (tdt_future_is_none(&opening->looking))
			goto fail;
	}
	return future;
fail:
	tdt_future_drop(&future);
	return TDT_FUTURE_NONE;
}
