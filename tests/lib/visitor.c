// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See visitor.h. */

#include <config.h>

#include "lib/visitor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/find_registry.h"
#include "lib/must.h"

#define MOST_FDS 4

/* What another thread may write. */
#define READ(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

int visitor_door(void)
{
	const struct tdt_registry *registry = find_registry();
	struct stat stat;
	int copy;

	MUST(registry != NULL);
	copy = fcntl((int)READ(registry->door), F_DUPFD_CLOEXEC, 0);
	MUST(copy >= 0 && fstat(copy, &stat) == 0);
	MUST(S_ISSOCK(stat.st_mode) && stat.st_ino == READ(registry->door_inode));
	return copy;
}

void visitor_knock(int door, const void *message, size_t size, const int *fds, int n)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(MOST_FDS * sizeof(int))];
	} control = { 0 };
	struct iovec from = { (void *)(uintptr_t)message, size };
	struct msghdr header = { .msg_iov = &from, .msg_iovlen = 1 };

	MUST(n <= MOST_FDS);
	if (n > 0) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, (size_t)n * sizeof(int));
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
	}
	MUST(sendmsg(door, &header, MSG_NOSIGNAL) == (ssize_t)size);
}

int visitor_enter(int door)
{
	const struct tdt_outside_header hello = VISITOR_HEADER(tdt_outside_header, HELLO);
	const struct timeval patience = { .tv_sec = 30 };
	int ends[2];

	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
	MUST(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
	visitor_knock(door, &hello, sizeof hello, &ends[1], 1);
	close(ends[1]);
	return ends[0];
}

int visitor_come(int door)
{
	int connection = visitor_enter(door);
	struct tdt_outside_hello hello;

	MUST(visitor_receive(connection, &hello, sizeof hello) == sizeof hello);
	MUST(hello.header.size == sizeof hello && hello.header.error == 0);
	return connection;
}

void visitor_send(int connection, const void *message, size_t size)
{
	MUST(send(connection, message, size, MSG_NOSIGNAL) == (ssize_t)size);
}

ssize_t visitor_receive(int connection, void *message, size_t room)
{
	ssize_t n = recv(connection, message, room, MSG_TRUNC);

	if (n < 0 && errno == ECONNRESET)
		n = 0;
	MUST(n >= 0 && n <= (ssize_t)room);
	return n;
}

int visitor_ask(int connection, const void *request, size_t size, void *answer, size_t room)
{
	struct tdt_outside_header *header = answer;
	const struct tdt_outside_header *asked = request;
	ssize_t n;

	visitor_send(connection, request, size);
	n = visitor_receive(connection, answer, room);
	MUST(n >= (ssize_t)sizeof *header && header->size == (size_t)n);
	MUST(header->version == TDT_OUTSIDE_VERSION);
	if (size >= sizeof *asked)
		MUST(header->kind == asked->kind && header->number == asked->number);
	MUST((size_t)n == (header->error == 0 ? room : sizeof *header));
	return header->error;
}

void visitor_end(int connection)
{
	char byte;

	MUST(visitor_receive(connection, &byte, sizeof byte) == 0);
	close(connection);
}
