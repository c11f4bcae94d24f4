/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_TCP_H
#define TDT_RUNTIME_TCP_H

/* TCP sockets, and what the futures of tdt/net.h forward to: futures.c says why. */

#include <netinet/in.h>
#include <sys/types.h>

#include <tdt/future.h>

#include "runtime/socket.h"

struct tdt_tcp {
	struct tdt__socket socket; /* first: it frees the whole */
};

struct tdt_tcp_listener {
	struct tdt__socket socket;
};

union tdt__address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* `*address` is that of a numeric `host`, and its length is returned; or -EINVAL. */
int tdt__address(const char *host, uint16_t port, union tdt__address *address);

/* A TCP socket for addresses like `address`, non-blocking and close-on-exec.  Or a negative errno. */
int tdt__tcp_socket(const union tdt__address *address);

struct tdt_future tdt__tcp_accept_new(struct tdt_tcp_listener *listener, struct tdt_tcp **tcp, int *error);
struct tdt_future tdt__tcp_connect_new(const char *host, uint16_t port, struct tdt_tcp **tcp, int *error);
struct tdt_future tdt__tcp_read_new(struct tdt_tcp *tcp, void *buffer, size_t size, ssize_t *n);
struct tdt_future tdt__tcp_write_new(struct tdt_tcp *tcp, const void *data, size_t size, ssize_t *n);

#endif
