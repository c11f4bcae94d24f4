// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Leaves that wait until a descriptor is ready: one that was adopted, or their own signalfd. */

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <tdt/rt/net.h>
#include <tdt/rt/runtime.h>

#include "base/result.h"
#include "runtime/name.h"
#include "runtime/tcp.h"

struct readiness {
	struct tdt__operation operation;
	int *result; /* an error, or the signal that came */
};

static void report_readiness(void *state, ssize_t result)
{
	*((struct readiness *)state)->result = (int)result;
}

/* --- Any descriptor -------------------------------------------------------------- */

static ssize_t ask_kernel(void *state)
{
	struct readiness *readiness = state;
	struct pollfd ready = { .fd = readiness->operation.socket->fd,
				.events =
				    readiness->operation.side == TDT__READ ? POLLIN : POLLOUT };
	const long n = TEMP_FAILURE_RETRY(poll(&ready, 1, 0));

	return n > 0 ? 0 : n == 0 ? -EAGAIN : -errno;
}

TDT__LEAF(tdt_tcp_ready, tdt__operation_poll, ask_kernel, report_readiness)

struct tdt_future tdt_tcp_ready(struct tdt_tcp *tcp, bool to_write, int *error)
{
	const struct readiness readiness = {
		.operation.socket = tcp != NULL ? &tcp->socket : NULL,
		.operation.side = to_write ? TDT__WRITE : TDT__READ,
		.result = error,
	};

	if (tcp == NULL || error == NULL)
		return tdt__no_future(-EINVAL);
	return tdt__future_new(&readiness, sizeof readiness, tdt_tcp_ready_poll,
			       tdt__operation_drop);
}

/* --- Signals --------------------------------------------------------------------- */

static ssize_t take_signal(void *state)
{
	struct readiness *readiness = state;
	struct signalfd_siginfo info;
	const ssize_t n =
	    TEMP_FAILURE_RETRY(read(readiness->operation.socket->fd, &info, sizeof info));

	return n < 0 ? -errno : (ssize_t)info.ssi_signo;
}

TDT__LEAF(tdt_signal_wait, tdt__operation_poll, take_signal, report_readiness)

static void drop_signals(void *state)
{
	struct tdt__socket *socket = ((struct readiness *)state)->operation.socket;

	tdt__operation_end(state);
	tdt__socket_free(socket);
	free(state);
}

#define NAME_SIZE 64

/* The descriptor's name is that of its signals, for traces and dumps: "signals 2 15". */
static int signal_descriptor(const int *signals, char name[NAME_SIZE])
{
	size_t length = (size_t)sprintf(name, "signals");
	sigset_t set;
	int fd;

	sigemptyset(&set);
	do { /* 0 is no signal: an empty list is refused */
		if (*signals == SIGKILL || *signals == SIGSTOP || sigaddset(&set, *signals) != 0)
			return -EINVAL;
		if (length < NAME_SIZE)
			length += (size_t)snprintf(name + length, NAME_SIZE - length, " %d",
						   *signals);
	} while (*++signals != 0);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

struct tdt_future tdt_signal_wait(const int *signals, int *signal)
{
	char name[NAME_SIZE];
	int fd = signals != NULL && signal != NULL ? signal_descriptor(signals, name) : -EINVAL;
	struct readiness readiness = { .operation.side = TDT__READ, .result = signal };
	struct tdt__socket *socket;
	struct tdt_future future = TDT_FUTURE_NONE;

	if (fd < 0)
		return tdt__no_future(fd);
	socket = calloc(1, sizeof *socket);
	if (socket == NULL) {
		close(fd);
		return tdt__no_future(-ENOMEM);
	}
	tdt__socket_init(socket, fd);
	readiness.operation.socket = socket;
	if (tdt__name_set(&socket->name, name) == 0)
		future = tdt__future_new(&readiness, sizeof readiness, tdt_signal_wait_poll,
					 drop_signals);
	if (tdt_future_is_none(&future))
		tdt__socket_free(socket);
	return future;
}
