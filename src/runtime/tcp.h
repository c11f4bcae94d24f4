/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* TCP and Unix sockets: what the calls of tdt/rt/net.h (net.c) and its futures (tcp.c) share. */

#include <netinet/in.h>
#include <sys/types.h>
#include <sys/un.h>

#include <tdt/future.h>

#include "runtime/socket.h"

struct tdt_tcp {
	struct tdt__socket socket; /* first: freeing it frees the whole struct */
};

struct tdt_tcp_listener {
	struct tdt__socket socket;
};

union tdt__address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
};

/*
 * Initialize the socket of a connection.  TCP_NODELAY: small writes go out at once, instead of
 * waiting until the write before is acknowledged.  A socket that refuses it is not TCP's: what it
 * reads may end at a message, or at a descriptor that was sent, so that a read of less than there
 * was room for does not show that nothing is left.
 */
void tdt__tcp_init(struct tdt__socket *socket, int fd);

/* Set `*address` to that of `host`, numeric or "unix:...", and return its length, or -EINVAL. */
int tdt__address(const char *host, uint16_t port, union tdt__address *address);

/*
 * Return a new TCP socket for addresses of the family of `address`, or a negative errno.  The
 * socket is non-blocking and close-on-exec.
 */
int tdt__tcp_socket(const union tdt__address *address);

