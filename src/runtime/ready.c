// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Leaves that wait until a descriptor is ready: one that was adopted, or their own signalfd. */

#include <config.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/leaf_poll.h"
#include "base/result.h"
#include "runtime/name.h"
#include "runtime/operation.h"
#include "runtime/tcp.h"

struct readiness {
	struct tdt__operation operation;
	int *result; /* an error, or the signal that came */
	bool owns;   /* the socket is the future's */
};

static void drop_readiness(void *state)
{
	struct readiness *readiness = state;

	tdt__operation_end(&readiness->operation);
	if (readiness->owns)
		tdt__socket_free(readiness->operation.socket);
	free(readiness);
}

static inline __attribute__((always_inline)) tdt_poll_t
tdt__readiness_poll(struct readiness *readiness, struct tdt_context *cx,
		    ssize_t (*try_it)(void *state))
{
	ssize_t result;
	tdt_poll_t polled = tdt__operation_poll(&readiness->operation, cx, try_it, &result);

	if (polled == TDT_READY)
		*readiness->result = (int)result;
	return polled;
}

/* --- Any descriptor -------------------------------------------------------------- */

static ssize_t ask_kernel(void *state)
{
	struct readiness *readiness = state;
	struct pollfd ready = { .fd = readiness->operation.socket->fd,
				.events =
				    readiness->operation.side == TDT__READ ? POLLIN : POLLOUT };
	int n = poll(&ready, 1, 0);

	return n > 0 ? 0 : n == 0 || errno == EINTR ? -EAGAIN : -errno;
}

TDT__LEAF_POLL_BY(tdt_tcp_ready, tdt__readiness_poll(state, cx, ask_kernel))

struct tdt_future tdt__tcp_ready_new(struct tdt_tcp *tcp, bool to_write, int *error)
    TDT__LEAF_CALL(tdt_tcp_ready);

struct tdt_future tdt__tcp_ready_new(struct tdt_tcp *tcp, bool to_write, int *error)
{
	struct readiness *readiness;

	if (tcp == NULL || error == NULL)
		return tdt__no_future(-EINVAL);
	readiness = malloc(sizeof *readiness);
	if (readiness == NULL)
		return TDT_FUTURE_NONE;
	*readiness = (struct readiness){ .operation = { .socket = &tcp->socket,
							.side = to_write ? TDT__WRITE : TDT__READ },
					 .result = error };
	return (struct tdt_future){ readiness, tdt_tcp_ready, drop_readiness };
}

/* --- Signals --------------------------------------------------------------------- */

static ssize_t take_signal(void *state)
{
	struct readiness *readiness = state;
	struct signalfd_siginfo info;
	ssize_t n;

	do
		n = read(readiness->operation.socket->fd, &info, sizeof info);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : (ssize_t)info.ssi_signo;
}

TDT__LEAF_POLL_BY(tdt_signal_wait, tdt__readiness_poll(state, cx, take_signal))

/* Name the socket after its signals, for traces and dumps: "signals 2 15". */
static int name_signals(struct tdt__socket *socket, const int *signals)
{
	char name[64] = "signals";
	size_t length = strlen(name);

	for (; *signals != 0 && length < sizeof name; signals++)
		length += (size_t)snprintf(name + length, sizeof name - length, " %d", *signals);
	return tdt__name_set(&socket->name, name);
}

static int signal_descriptor(const int *signals)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (; *signals != 0; signals++)
		if (sigaddset(&set, *signals) != 0)
			return -EINVAL;
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

struct tdt_future tdt__signal_wait_new(const int *signals, int *signal)
    TDT__LEAF_CALL(tdt_signal_wait);

struct tdt_future tdt__signal_wait_new(const int *signals, int *signal)
{
	int fd = signals != NULL && signal != NULL ? signal_descriptor(signals) : -EINVAL;
	struct readiness *readiness;
	struct tdt__socket *socket;

	if (fd < 0)
		return tdt__no_future(fd);
	socket = calloc(1, sizeof *socket);
	readiness = malloc(sizeof *readiness);
	if (socket == NULL || readiness == NULL || name_signals(socket, signals) != 0) {
		free(readiness);
		free(socket);
		close(fd);
		return tdt__no_future(-ENOMEM);
	}
	tdt__socket_init(socket, fd);
	*readiness = (struct readiness){ .operation = { .socket = socket, .side = TDT__READ },
					 .result = signal,
					 .owns = true };
	return (struct tdt_future){ readiness, tdt_signal_wait, drop_readiness };
}
