// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See socket.h. */

#include "door/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

pthread_mutex_t tdt__door_lock = PTHREAD_MUTEX_INITIALIZER;

#define FIRST_NUMBER 3 /* those before it are the standard streams */

/*
 * Give the socket `fd` a number beyond the standard streams, which a program may have closed: it
 * would print into the socket.  Returns the new number or a negative errno; `fd` is closed then.
 */
static int leave_streams(int fd)
{
	int moved = fd, error = 0;

	if (fd < FIRST_NUMBER) {
		moved = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_NUMBER);
		error = -errno;
		close(fd);
	}
	return moved >= 0 ? moved : error;
}

/* Take over `fd`.  Returns 0 or a negative errno; `fd` is closed then. */
static int adopt_number(struct tdt__door_socket *socket, int fd)
{
	struct stat stat = { 0 };

	socket->open = false;
	fd = leave_streams(fd);
	if (fd < 0)
		return fd;
	if (fstat(fd, &stat) != 0) {
		close(fd);
		return -EBADF;
	}
	*socket = (struct tdt__door_socket){ true, fd, stat.st_dev, stat.st_ino };
	return 0;
}

int tdt__door_socket_pair(struct tdt__door_socket pair[2])
{
	int fds[2], error;

	pair[0].open = pair[1].open = false;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		return -errno;
	error = adopt_number(&pair[0], fds[0]);
	if (error == 0)
		error = adopt_number(&pair[1], fds[1]);
	else
		close(fds[1]);
	if (error != 0)
		tdt__door_socket_close(&pair[0]);
	return error;
}

bool tdt__door_socket_is_ours(const struct tdt__door_socket *socket)
{
	struct stat now;

	return socket->open && fstat(socket->fd, &now) == 0 && now.st_dev == socket->dev &&
	       now.st_ino == socket->inode;
}

void tdt__door_socket_close(struct tdt__door_socket *socket)
{
	if (tdt__door_socket_is_ours(socket))
		close(socket->fd);
	socket->open = false;
}

static ssize_t receive_ours(const struct tdt__door_socket *socket, struct msghdr *header)
{
	ssize_t n;

	if (!tdt__door_socket_is_ours(socket))
		return -EBADF;
	n = recvmsg(socket->fd, header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
	return n >= 0 ? n : -errno;
}

ssize_t tdt__door_socket_receive(const struct tdt__door_socket *socket, void *message, size_t room)
{
	struct iovec into = { message, room };
	/* Without room for them, the kernel closes the descriptors that a message brings. */
	struct msghdr header = { .msg_iov = &into, .msg_iovlen = 1 };

	return receive_ours(socket, &header);
}

static bool is_packet_socket(int fd)
{
	int domain = 0, type = 0;
	socklen_t size = sizeof domain;

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && domain == AF_UNIX &&
	       type == SOCK_SEQPACKET;
}

/* Room for one descriptor: the kernel closes the others that a message brings. */
struct one_descriptor {
	_Alignas(struct cmsghdr) char bytes[CMSG_SPACE(sizeof(int))];
};

/* Take over the only descriptor of a message, if it is a socket of the right kind. */
static void take_brought(struct msghdr *header, struct tdt__door_socket *brought)
{
	struct cmsghdr *control = CMSG_FIRSTHDR(header);
	int fd;

	brought->open = false;
	if (control == NULL || control->cmsg_level != SOL_SOCKET ||
	    control->cmsg_type != SCM_RIGHTS || control->cmsg_len != CMSG_LEN(sizeof fd))
		return;
	memcpy(&fd, CMSG_DATA(control), sizeof fd);
	if (is_packet_socket(fd) && (header->msg_flags & MSG_CTRUNC) == 0)
		adopt_number(brought, fd);
	else
		close(fd);
}

ssize_t tdt__door_socket_receive_socket(const struct tdt__door_socket *socket, void *message,
					size_t room, struct tdt__door_socket *brought)
{
	struct one_descriptor control;
	struct iovec into = { message, room };
	struct msghdr header = { .msg_iov = &into,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = CMSG_LEN(sizeof(int)) };
	ssize_t n = receive_ours(socket, &header);

	brought->open = false;
	if (n >= 0)
		take_brought(&header, brought);
	return n;
}

/* Wait until the socket can send.  False: the deadline has passed. */
static bool wait_to_send(const struct tdt__door_socket *socket, uint64_t deadline)
{
	struct pollfd poll_for = { .fd = socket->fd, .events = POLLOUT };
	uint64_t now = tdt__clock();

	if (now >= deadline)
		return false;
	poll(&poll_for, 1, (int)((deadline - now) / 1000000) + 1);
	return true;
}

int tdt__door_socket_send(const struct tdt__door_socket *socket, const void *message, size_t size,
			  uint64_t deadline)
{
	for (;;) {
		if (!tdt__door_socket_is_ours(socket))
			return -EBADF;
		if (send(socket->fd, message, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (!wait_to_send(socket, deadline))
			return -ETIMEDOUT;
	}
}
