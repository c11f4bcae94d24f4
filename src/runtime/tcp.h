/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* TCP and Unix sockets: what the calls of tdt/rt/net.h (net.c) and its futures (tcp.c) share. */

#include <netdb.h>
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
	struct sockaddr_in6 in6; /* whose port lies where that of `in` does */
	struct sockaddr_un un;
};

/*
 * Initialize the socket of a connection.  TCP_NODELAY: small writes go out at once, instead of
 * waiting until the write before is acknowledged.  A socket that refuses it is not TCP's: what it
 * reads may end at a message, or at a descriptor that was sent, so that a read of less than there
 * was room for does not show that nothing is left.
 */
void tdt__tcp_init(struct tdt__socket *socket, int fd);

/*
 * Set `*address` to that of `host`, numeric or "unix:...", and return its length.  0: `host` is a
 * name, which has to be looked up.  -EINVAL: it is NULL, or no address.
 */
int tdt__address(const char *host, uint16_t port, union tdt__address *address);

/*
 * Return a new TCP socket for addresses of the family of `address`, or a negative errno.  The
 * socket is non-blocking and close-on-exec.
 */
int tdt__tcp_socket(const union tdt__address *address);

/* --- Names of hosts, which are looked up by a job that blocks (lookup.c) --------- */

struct tdt__lookup {
	int error;		/* 0 or a negative errno */
	struct addrinfo *found; /* NULL: none */
	char words[];		/* "looking up NAME" */
};

/*
 * Make a future that looks `host` up.  It owns `*lookup`, which belongs to the caller once it is
 * ready, and which is freed, by the job if that still runs, when it is dropped before or panics.
 */
struct tdt_future tdt__lookup_new(const char *host, struct tdt__lookup **lookup);

/* NULL does nothing. */
void tdt__lookup_free(void *lookup);
