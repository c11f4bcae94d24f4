// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A client of an echo server; it does not use tdt.  It opens connections, sends messages on each of
 * them, one at a time, and compares every byte that comes back.
 */

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "number.h"

struct options {
	const char *host, *port;
	unsigned long connections, messages, size, timeout_ms, hold_ms;
};

enum state {
	TALKING,
	HELD,	 /* all echoes came back; the connection stays open */
	CLOSING, /* the client has shut down its side; the server must close, too */
	CLOSED
};

struct connection {
	enum state state;
	unsigned long number;
	unsigned long message; /* the number of messages that have come back */
	size_t sent, received; /* bytes of the next message */
};

struct load {
	const struct options *options;
	struct connection *connections;
	struct pollfd *fds; /* fds[i] is for connections[i]; its `fd` is -1 once it is closed */
};

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int failed(const struct connection *connection, const char *what)
{
	fprintf(stderr, "echo-client: connection %lu, message %lu: %s\n", connection->number,
		connection->message + 1, what);
	return -1;
}

/* The byte at `offset` of the next message.  Neighbours, also of other connections, differ. */
static unsigned char byte_at(const struct connection *connection, size_t offset)
{
	return (unsigned char)(connection->number * 131 + connection->message * 17 + offset * 7 +
			       (offset >> 8));
}

static bool would_block(void)
{
	return errno == EAGAIN || errno == EINTR;
}

static int send_some(struct connection *connection, int fd, size_t size)
{
	unsigned char buffer[16384];
	size_t length = size - connection->sent;
	ssize_t n;

	if (length > sizeof(buffer))
		length = sizeof(buffer);
	for (size_t i = 0; i < length; i++)
		buffer[i] = byte_at(connection, connection->sent + i);
	n = send(fd, buffer, length, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return would_block() ? 0 : failed(connection, strerror(errno));
	connection->sent += (size_t)n;
	return 0;
}

static int wrong_byte(const struct connection *connection, unsigned char got)
{
	char what[80];

	snprintf(what, sizeof(what), "byte %zu came back as 0x%02x, not as 0x%02x",
		 connection->received, got, byte_at(connection, connection->received));
	return failed(connection, what);
}

static int check(struct connection *connection, const unsigned char *bytes, size_t n, size_t size)
{
	for (size_t i = 0; i < n; i++) {
		if (connection->received >= connection->sent)
			return failed(connection, "more came back than was sent");
		if (bytes[i] != byte_at(connection, connection->received))
			return wrong_byte(connection, bytes[i]);
		connection->received++;
	}
	if (connection->received == size) {
		connection->sent = 0;
		connection->received = 0;
		connection->message++;
	}
	return 0;
}

static int receive_some(struct connection *connection, struct pollfd *fd, size_t size)
{
	unsigned char buffer[16384];
	ssize_t n = recv(fd->fd, buffer, sizeof(buffer), MSG_DONTWAIT);

	if (n < 0)
		return would_block() ? 0 : failed(connection, strerror(errno));
	if (n > 0)
		return check(connection, buffer, (size_t)n, size);
	if (connection->state != CLOSING)
		return failed(connection, "closed by the server");
	connection->state = CLOSED;
	close(fd->fd);
	fd->fd = -1;
	return 0;
}

static void start_closing(struct connection *connection, int fd)
{
	connection->state = CLOSING;
	shutdown(fd, SHUT_WR);
}

/* Do for connection `i` what is possible without waiting. */
static int step(struct load *load, unsigned long i)
{
	const struct options *options = load->options;
	struct connection *connection = &load->connections[i];
	struct pollfd *fd = &load->fds[i];

	if ((fd->revents & POLLOUT) != 0 && send_some(connection, fd->fd, options->size) != 0)
		return -1;
	if ((fd->revents & ~POLLOUT) != 0 && receive_some(connection, fd, options->size) != 0)
		return -1;
	if (connection->state == TALKING && connection->message == options->messages) {
		connection->state = HELD;
		if (options->hold_ms == 0)
			start_closing(connection, fd->fd);
	}
	fd->events = POLLIN;
	if (connection->state == TALKING && connection->sent < options->size)
		fd->events |= POLLOUT;
	return 0;
}

static unsigned long count_in(const struct load *load, enum state state)
{
	unsigned long n = 0;

	for (unsigned long i = 0; i < load->options->connections; i++)
		n += load->connections[i].state == state;
	return n;
}

/* Wait for events, for `ms` at most, and handle them.  Returns 1; 0 on a timeout; -1 on failure. */
static int turn(struct load *load, unsigned long ms)
{
	int ready = poll(load->fds, load->options->connections, ms < INT_MAX ? (int)ms : INT_MAX);

	if (ready == 0)
		return 0;
	if (ready < 0) {
		perror("echo-client: poll");
		return -1;
	}
	for (unsigned long i = 0; i < load->options->connections; i++)
		if (load->fds[i].revents != 0 && step(load, i) != 0)
			return -1;
	return 1;
}

/* Take turns until no connection is in `state`. */
static int turn_while(struct load *load, enum state state)
{
	unsigned long n;
	int result;

	while ((n = count_in(load, state)) > 0) {
		result = turn(load, load->options->timeout_ms);
		if (result < 0)
			return -1;
		if (result == 0) {
			fprintf(
			    stderr,
			    "echo-client: %lu of %lu connections: nothing came back for %lu ms\n",
			    n, load->options->connections, load->options->timeout_ms);
			return -1;
		}
	}
	return 0;
}

/* Stay connected for a while.  The server must not close the connections. */
static int hold(struct load *load)
{
	double end = seconds() + (double)load->options->hold_ms / 1e3, now;

	printf("holding %lu connections\n", load->options->connections);
	fflush(stdout);
	while ((now = seconds()) < end)
		if (turn(load, (unsigned long)((end - now) * 1e3) + 1) < 0)
			return -1;
	for (unsigned long i = 0; i < load->options->connections; i++)
		start_closing(&load->connections[i], load->fds[i].fd);
	return 0;
}

static void print_rate(const struct options *options, double s)
{
	double n = (double)options->connections * (double)options->messages;

	printf("%.0f echoes of %lu bytes on %lu connections, all right: %.3f s, %.0f echoes/s, "
	       "%.1f MB/s\n",
	       n, options->size, options->connections, s, n / s,
	       n * (double)options->size / s / 1e6);
	fflush(stdout);
}

static int run(struct load *load)
{
	double start = seconds();

	for (unsigned long i = 0; i < load->options->connections; i++)
		if (step(load, i) != 0)
			return -1;
	if (turn_while(load, TALKING) != 0)
		return -1;
	print_rate(load->options, seconds() - start);
	if (load->options->hold_ms > 0 && hold(load) != 0)
		return -1;
	return turn_while(load, CLOSING);
}

/* Return a connected socket, or -1 and errno. */
static int dial(const struct addrinfo *address, unsigned long timeout_ms)
{
	struct timeval limit = { .tv_sec = (time_t)(timeout_ms / 1000),
				 .tv_usec = (suseconds_t)(timeout_ms % 1000 * 1000) };
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), error;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)); /* for connect(), too */
	if (connect(fd, address->ai_addr, address->ai_addrlen) == 0)
		return fd;
	error = errno == EINPROGRESS ? ETIMEDOUT : errno;
	close(fd);
	errno = error;
	return -1;
}

static int dial_all(struct load *load, const struct addrinfo *address)
{
	for (unsigned long i = 0; i < load->options->connections; i++) {
		load->connections[i].number = i + 1;
		load->fds[i].fd = dial(address, load->options->timeout_ms);
		if (load->fds[i].fd < 0) {
			fprintf(stderr, "echo-client: connection %lu: %s\n", i + 1,
				strerror(errno));
			return -1;
		}
	}
	return 0;
}

static int run_at(const struct options *options, const struct addrinfo *address)
{
	struct load load = { options, calloc(options->connections, sizeof(struct connection)),
			     calloc(options->connections, sizeof(struct pollfd)) };
	int error = -1;

	if (load.connections == NULL || load.fds == NULL)
		fputs("echo-client: no memory\n", stderr);
	else
		error = dial_all(&load, address) != 0 ? -1 : run(&load);
	free(load.connections); /* on failure the exit of the process closes the sockets */
	free(load.fds);
	return error;
}

static char client_name[] = "echo-client";

static const char usage[] =
    "Usage: echo-client --port=N [OPTION]...\n"
    "Send messages to an echo server, one at a time on each connection, and compare what comes "
    "back.\n"
    "\n"
    "  --host=ADDRESS   IPv4 or IPv6 (127.0.0.1)\n"
    "  --connections=N  (4)\n"
    "  --messages=N     on each (1000)\n"
    "  --size=N         bytes of a message (64)\n"
    "  --timeout=MS     give up when nothing comes back for so long (5000)\n"
    "  --hold=MS        stay connected so long after the last message (0)\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0; 1 if an echo is wrong or missing, or a connection fails; 2 for a wrong "
    "option.\n";

static int bad_usage(const char *what)
{
	fprintf(stderr, "echo-client: %s\nTry 'echo-client --help'.\n", what);
	return 2;
}

/* Returns 0 to go on, an exit status, or -1 to exit successfully. */
static int parse_option(struct options *to, int option, const char *value)
{
	unsigned long port;

	switch (option) {
	case 'h':
		to->host = value;
		return 0;
	case 'p':
		to->port = value;
		return parse_number(value, 1, UINT16_MAX, &port)
			   ? 0
			   : bad_usage("--port is 1 to 65535");
	case 'c':
		return parse_number(value, 1, INT_MAX, &to->connections)
			   ? 0
			   : bad_usage("--connections is 1 or more");
	case 'm':
		return parse_number(value, 0, ULONG_MAX, &to->messages)
			   ? 0
			   : bad_usage("--messages is 0 or more");
	case 's':
		return parse_number(value, 1, ULONG_MAX, &to->size)
			   ? 0
			   : bad_usage("--size is 1 or more");
	case 't':
		return parse_number(value, 1, INT_MAX, &to->timeout_ms)
			   ? 0
			   : bad_usage("--timeout is 1 or more");
	case 'o':
		return parse_number(value, 0, INT_MAX, &to->hold_ms)
			   ? 0
			   : bad_usage("--hold is 0 or more");
	case 'H':
		fputs(usage, stdout);
		return -1;
	case 'v':
		puts("echo-client (tdt " TDT_DEMO_VERSION ")");
		return -1;
	default: /* getopt_long() has printed a message */
		return bad_usage("wrong option");
	}
}

static int parse(struct options *to, int argc, char **argv)
{
	static const struct option options[] = {
		{ "host", required_argument, NULL, 'h' },
		{ "port", required_argument, NULL, 'p' },
		{ "connections", required_argument, NULL, 'c' },
		{ "messages", required_argument, NULL, 'm' },
		{ "size", required_argument, NULL, 's' },
		{ "timeout", required_argument, NULL, 't' },
		{ "hold", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'H' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	int option, status;

	argv[0] = client_name; /* getopt_long() begins its messages with it */
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		status = parse_option(to, option, optarg);
		if (status != 0)
			return status;
	}
	if (to->port == NULL)
		return bad_usage("--port is needed");
	return optind == argc ? 0 : bad_usage("there are no arguments but options");
}

int main(int argc, char **argv)
{
	struct options options = {
		.host = "127.0.0.1", .connections = 4,	  .messages = 1000,
		.size = 64,	     .timeout_ms = 5000
	};
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
				  .ai_socktype = SOCK_STREAM };
	struct addrinfo *address;
	int status = parse(&options, argc, argv), error;

	if (status != 0)
		return status == -1 ? EXIT_SUCCESS : status;
	error = getaddrinfo(options.host, options.port, &hints, &address);
	if (error != 0) {
		fprintf(stderr, "echo-client: %s port %s: %s\n", options.host, options.port,
			gai_strerror(error));
		return EXIT_FAILURE;
	}
	error = run_at(&options, address);
	freeaddrinfo(address);
	return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
