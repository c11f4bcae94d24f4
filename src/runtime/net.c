// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The calls of tdt/rt/net.h that never wait: listen, close and the like. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tdt/rt/net.h>

#include "base/result.h"
#include "runtime/name.h"
#include "runtime/tcp.h"

/* `host` may end in the name of an interface: "fe80::1%eth0". */
static bool read_in6(const char *host, struct sockaddr_in6 *address)
{
	size_t length = strcspn(host, "%");
	char digits[INET6_ADDRSTRLEN] = "";

	if (length >= sizeof digits)
		return false;
	memcpy(digits, host, length);
	if (host[length] == '%')
		address->sin6_scope_id = if_nametoindex(host + length + 1);
	return inet_pton(AF_INET6, digits, &address->sin6_addr) == 1;
}

/* `name` is a path, or "@" and a name that is none (unix(7), "abstract"). */
static int read_unix(const char *name, struct sockaddr_un *address)
{
	size_t length = strlen(name);

	if (length == 0 || length >= sizeof address->sun_path)
		return -EINVAL;
	address->sun_family = AF_UNIX;
	memcpy(address->sun_path, name, length + 1);
	if (name[0] != '@')
		return (int)(offsetof(struct sockaddr_un, sun_path) + length + 1);
	address->sun_path[0] = '\0';
	return (int)(offsetof(struct sockaddr_un, sun_path) + length);
}

int tdt__address(const char *host, uint16_t port, union tdt__address *address)
{
	if (host == NULL)
		return -EINVAL;
	if (strncmp(host, "unix:", 5) == 0)
		return read_unix(host + 5, &address->un);
	*address = (union tdt__address){ .in = { .sin_family = AF_INET, .sin_port = htons(port) } };
	if (inet_pton(AF_INET, host, &address->in.sin_addr) == 1)
		return sizeof(address->in);
	*address = (union tdt__address){ .in6 = { .sin6_family = AF_INET6,
						  .sin6_port = htons(port) } };
	if (read_in6(host, &address->in6))
		return sizeof(address->in6);
	return host[0] != '\0' ? 0 : -EINVAL;
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

	if (length <= 0)
		return -EINVAL;
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

uint16_t tdt_tcp_listener_port(const struct tdt_tcp_listener *listener)
{
	union tdt__address address = { 0 };

	if (listener == NULL) {
		errno = EINVAL;
		return 0;
	}
	if (getsockname(listener->socket.fd, &address.any, &(socklen_t){ sizeof(address) }) != 0)
		return 0;
	return address.any.sa_family == AF_UNIX ? 0 : ntohs(address.in.sin_port);
}

void tdt__tcp_init(struct tdt__socket *socket, int fd)
{
	int saved = errno;

	tdt__socket_init(socket, fd);
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)) != 0)
		atomic_init(&socket->sides[TDT__READ].cut, true);
	errno = saved;
}

/* Have a descriptor of the caller be ours: NULL and errno, and it is still the caller's. */
static struct tdt__socket *adopt_socket(int fd, size_t size)
{
	int flags = fcntl(fd, F_GETFL);
	struct tdt__socket *socket;

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
		return NULL;
	socket = calloc(1, size);
	if (socket != NULL)
		tdt__tcp_init(socket, fd);
	return socket;
}

struct tdt_tcp_listener *tdt_tcp_listener_adopt(int fd)
{
	return (struct tdt_tcp_listener *)adopt_socket(fd, sizeof(struct tdt_tcp_listener));
}

struct tdt_tcp_listener *tdt_tcp_listen(const char *host, uint16_t port)
{
	/* First, since a Unix socket that is bound leaves a file. */
	struct tdt_tcp_listener *listener = calloc(1, sizeof *listener);
	int fd = listener != NULL ? listen_at(host, port) : -ENOMEM;

	if (fd < 0) {
		free(listener);
		return tdt__nothing(fd);
	}
	tdt__tcp_init(&listener->socket, fd);
	return listener;
}

struct tdt_tcp *tdt_tcp_adopt(int fd)
{
	return (struct tdt_tcp *)adopt_socket(fd, sizeof(struct tdt_tcp));
}

int tdt_tcp_peer(const struct tdt_tcp *tcp, char *text, size_t size)
{
	union tdt__address address = { 0 };
	char host[INET6_ADDRSTRLEN] = "", *path = address.un.sun_path, *nul;
	socklen_t length = sizeof address;

	if (tcp == NULL || (text == NULL && size != 0))
		return tdt__result(-EINVAL);
	if (getpeername(tcp->socket.fd, &address.any, &length) != 0)
		return -errno;
	switch (address.any.sa_family) {
	case AF_INET:
		inet_ntop(AF_INET, &address.in.sin_addr, host, sizeof host);
		return snprintf(text, size, "%s:%u", host, ntohs(address.in.sin_port));
	case AF_INET6:
		inet_ntop(AF_INET6, &address.in6.sin6_addr, host, sizeof host);
		return snprintf(text, size, "[%s]:%u", host, ntohs(address.in6.sin6_port));
	default: /* a path; a name, which begins with a NUL; or mostly nothing */
		length -= offsetof(struct sockaddr_un, sun_path);
		if (length > 0 && path[0] == '\0')
			while ((nul = memchr(path, '\0', length)) != NULL)
				*nul = '@';
		return snprintf(text, size, "unix:%.*s", (int)length, path);
	}
}

void tdt_tcp_listener_free(struct tdt_tcp_listener *listener)
{
	if (listener != NULL)
		tdt__socket_free(&listener->socket);
}

int tdt_tcp_listener_set_name(struct tdt_tcp_listener *listener, const char *name)
{
	return tdt__name_set(listener != NULL ? &listener->socket.name : NULL, name);
}

int tdt_tcp_set_name(struct tdt_tcp *tcp, const char *name)
{
	return tdt__name_set(tcp != NULL ? &tcp->socket.name : NULL, name);
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
