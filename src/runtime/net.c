// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The calls of tdt/rt/net.h that never wait: listen, close and the like. */

#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tdt/rt/net.h>

#include "base/result.h"
#include "runtime/name.h"
#include "runtime/tcp.h"

int tdt__address(const char *host, uint16_t port, union tdt__address *address)
{
	if (host == NULL)
		return -EINVAL;
	if (uv_ip4_addr(host, port, &address->in) == 0)
		return sizeof(address->in);
	if (uv_ip6_addr(host, port, &address->in6) == 0)
		return sizeof(address->in6);
	return -EINVAL;
}

int tdt__tcp_socket(const union tdt__address *address)
{
	int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

/* Return a listening descriptor, or a negative errno. */
static int listen_at(const char *host, uint16_t port)
{
	union tdt__address address;
	int fd, error, length = tdt__address(host, port, &address);

	if (length < 0)
		return length;
	fd = tdt__tcp_socket(&address);
	if (fd < 0)
		return fd;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) == 0 &&
	    bind(fd, &address.any, (socklen_t)length) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	error = -errno;
	close(fd);
	return error;
}

struct tdt_tcp_listener *tdt_tcp_listen(const char *host, uint16_t port)
{
	struct tdt_tcp_listener *listener = calloc(1, sizeof(*listener));
	int fd;

	if (listener == NULL)
		return NULL;
	fd = listen_at(host, port);
	if (fd < 0) {
		free(listener);
		return tdt__nothing(fd);
	}
	tdt__socket_init(&listener->socket, fd);
	return listener;
}

uint16_t tdt_tcp_listener_port(const struct tdt_tcp_listener *listener)
{
	union tdt__address address = { 0 };

	if (listener == NULL) {
		errno = EINVAL;
		return 0;
	}
	/* The port is at the same place in a sockaddr_in6 as in a sockaddr_in. */
	if (getsockname(listener->socket.fd, &address.any, &(socklen_t){ sizeof(address) }) != 0)
		return 0;
	return ntohs(address.in.sin_port);
}

/*
 * If a driver knows the listener, the driver closes it later.  The shutdown refuses connections and
 * frees the port at once.  A listener that no driver knows is closed at once; it is not shut down,
 * because a child of fork() may share it.
 */
void tdt_tcp_listener_free(struct tdt_tcp_listener *listener)
{
	if (listener == NULL)
		return;
	if (tdt__socket_has_driver(&listener->socket))
		shutdown(listener->socket.fd, SHUT_RDWR);
	tdt__socket_free(&listener->socket);
}

static int name_socket(struct tdt__socket *socket, const char *name)
{
	if (socket != NULL)
		return tdt__name_set(&socket->name, name);
	return tdt__result(-EINVAL);
}

int tdt_tcp_listener_set_name(struct tdt_tcp_listener *listener, const char *name)
{
	return name_socket(listener != NULL ? &listener->socket : NULL, name);
}

int tdt_tcp_set_name(struct tdt_tcp *tcp, const char *name)
{
	return name_socket(tcp != NULL ? &tcp->socket : NULL, name);
}

int tdt_tcp_shutdown(struct tdt_tcp *tcp)
{
	if (tcp == NULL)
		return tdt__result(-EINVAL);
	return shutdown(tcp->socket.fd, SHUT_WR) == 0 ? 0 : -errno;
}

void tdt_tcp_free(struct tdt_tcp *tcp)
{
	if (tcp != NULL)
		tdt__socket_free(&tcp->socket);
}
