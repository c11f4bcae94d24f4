// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Going through the door of a process.  pidfd_getfd(2) takes a copy of the descriptor at which the
 * library listens, and the reader sends one end of a pair of its own through it.
 */

#include "reader/door.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

/* No thread of the process listens.  `door` of the registry says why. */
static int nobody_listens(const struct tdt__target *target, const struct tdt_registry *registry,
			  struct tdt__trouble *trouble)
{
	switch (registry->door) {
	case 0:
		return tdt__trouble(trouble, -ENOTCONN,
				    "process %d does not listen for requests: it has to call "
				    "tdt_listen(), or to be started with TDT_OUTSIDE=1",
				    target->pid);
	case EPERM:
		return tdt__trouble(trouble, -EACCES,
				    "process %d refuses requests: it was started with "
				    "TDT_OUTSIDE=0",
				    target->pid);
	default:
		return tdt__trouble(trouble, -ENOTCONN,
				    "process %d could not listen for requests: %s", target->pid,
				    strerror((int)registry->door));
	}
}

static int no_descriptor(const char *call, const struct tdt__target *target,
			 struct tdt__trouble *trouble)
{
	int error = errno;

	switch (error) {
	case ENOSYS:
		return tdt__trouble(trouble, -error,
				    "requests need pidfd_getfd(2), which came with Linux 5.6, or a "
				    "sandbox forbids it");
	case EPERM:
	case EACCES:
		return tdt__trouble(trouble, -EPERM,
				    "%s of process %d is not permitted, probably by a seccomp "
				    "filter.  Run tdt outside of the container, or as root; or "
				    "start the container with the capability (--cap-add "
				    "SYS_PTRACE)",
				    call, target->pid);
	case ESRCH:
		return tdt__trouble(trouble, -error, "process %d has ended meanwhile", target->pid);
	case EBADF:
		return tdt__trouble(trouble, -ENOTCONN,
				    "process %d has closed the descriptor at which the library "
				    "listened, as daemons do: it has to call tdt_listen() again",
				    target->pid);
	default:
		return tdt__trouble(trouble, -error, "%s of process %d: %s", call, target->pid,
				    strerror(error));
	}
}

/* The message breaks the rules: no other message of this connection can be trusted. */
static int nonsense(struct tdt__trouble *trouble)
{
	return tdt__trouble(trouble, -EPROTO,
			    "the answer of the process makes no sense, and is not used: the "
			    "process is damaged or hostile, or another tdt belongs to its library");
}

static int broken_off(struct tdt__trouble *trouble)
{
	return tdt__trouble(trouble, -ECONNRESET,
			    "the process has broken off the connection, or has ended");
}

/*
 * Whether the process that the registry belongs to is the target.  A child of fork() has its
 * parent's registry and descriptors until it uses the library, and its parent would answer.
 */
static bool is_own_registry(const struct tdt__target *target, const struct tdt_registry *registry)
{
	uint32_t id = tdt__target_own_id(target, "status");

	return id == 0 || id == registry->pid;
}

static int check_target(const struct tdt__target *target, const struct tdt_registry *registry,
			struct tdt__trouble *trouble)
{
	char state = tdt__target_state(target);

	if (state == 'T' || state == 't')
		return tdt__trouble(trouble, -EAGAIN,
				    "process %d is stopped, by a signal or a debugger, so it "
				    "cannot answer",
				    target->pid);
	if (registry->door_inode == 0)
		return nobody_listens(target, registry, trouble);
	if (!is_own_registry(target, registry))
		return tdt__trouble(trouble, -ENOTCONN,
				    "process %d has used the library only before it was forked, "
				    "and does not listen for requests",
				    target->pid);
	return 0;
}

/* Whether the descriptor is that of the library: its number may have been used again. */
static bool is_door(int file, uint64_t inode)
{
	struct stat status;

	return fstat(file, &status) == 0 && S_ISSOCK(status.st_mode) && status.st_ino == inode;
}

/* Take a copy of the descriptor.  Returns it or a negative errno. */
static int take_descriptor(const struct tdt__target *target, const struct tdt_registry *registry,
			   struct tdt__trouble *trouble)
{
	int process = (int)syscall(SYS_pidfd_open, target->pid, 0), file;

	if (process < 0)
		return no_descriptor("pidfd_open(2)", target, trouble);
	/* Now the number cannot be used again, so this is the process that was opened. */
	if (!tdt__target_is_there(target)) {
		close(process);
		errno = ESRCH;
		return no_descriptor("pidfd_open(2)", target, trouble);
	}
	file = (int)syscall(SYS_pidfd_getfd, process, (int)registry->door, 0);
	if (file < 0)
		file = no_descriptor("pidfd_getfd(2)", target, trouble);
	close(process);
	if (file < 0 || is_door(file, registry->door_inode))
		return file;
	close(file);
	errno = EBADF;
	return no_descriptor("pidfd_getfd(2)", target, trouble);
}

static struct tdt_outside_header begin_request(struct tdt__door *door, uint16_t kind, size_t size)
{
	return (struct tdt_outside_header){ .size = (uint32_t)size,
					    .version = TDT_OUTSIDE_VERSION,
					    .kind = kind,
					    .number = ++door->number };
}

/* Send one end of the connection through the descriptor, and close that end. */
static int hand_end_over(struct tdt__door *door, int file, int end)
{
	struct tdt_outside_header header =
		begin_request(door, TDT_OUTSIDE_HELLO, sizeof header);
	struct iovec bytes = { &header, sizeof header };
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr message = { .msg_iov = &bytes,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof control.room };
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
	int error;

	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof end);
	memcpy(CMSG_DATA(rights), &end, sizeof end);
	error = sendmsg(file, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
	close(end);
	return error;
}

static bool wait_ready(const struct tdt__door *door, short events)
{
	struct pollfd wait = { .fd = door->connection, .events = events };
	uint64_t now = tdt__clock();
	int ready;

	/* Once at least: this process may have stood still itself, and the answer have come. */
	do {
		ready = poll(&wait, 1, now < door->deadline
					       ? (int)((door->deadline - now) / 1000000) + 1
					       : 0);
		now = tdt__clock();
	} while (ready < 0 && now < door->deadline);
	return ready > 0;
}

static int in_vain(struct tdt__trouble *trouble)
{
	return tdt__trouble(trouble, -ETIMEDOUT,
			    "the process did not answer in time: it may have too little time on "
			    "the processor, or be stopped or frozen");
}

/* Receive a packet.  Returns its size or a negative errno. */
static ssize_t receive_packet(struct tdt__door *door, struct tdt__trouble *trouble)
{
	ssize_t n = -1;

	for (;;) {
		n = recv(door->connection, door->message, TDT_OUTSIDE_MESSAGE_MAX,
			 MSG_DONTWAIT | MSG_TRUNC);
		if (n > 0)
			return n;
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			return broken_off(trouble);
		if (!wait_ready(door, POLLIN))
			return in_vain(trouble);
	}
}

static int refused_request(const struct tdt_outside_header *header, struct tdt__trouble *trouble)
{
	if (header->error == EPROTONOSUPPORT)
		return tdt__trouble(trouble, -EPROTONOSUPPORT,
				    "the process speaks version %u of the messages, and this tdt "
				    "version %d: use the tdt that belongs to its library",
				    header->version, TDT_OUTSIDE_VERSION);
	if (header->error == EBUSY && header->kind == TDT_OUTSIDE_HELLO)
		return tdt__trouble(trouble, -EBUSY,
				    "the process has %d connections already: end another tdt",
				    TDT_OUTSIDE_CONNECTIONS);
	return tdt__trouble(trouble, -header->error, "the process refuses the request: %s",
			    strerror(header->error));
}

int tdt__door_receive(struct tdt__door *door, struct tdt__trouble *trouble)
{
	const struct tdt_outside_header *header = (const void *)door->message;
	ssize_t n = receive_packet(door, trouble);

	if (n < 0)
		return (int)n;
	if ((size_t)n < sizeof *header || n > TDT_OUTSIDE_MESSAGE_MAX ||
	    header->size != (size_t)n || header->error < 0 || header->error > 4095)
		return nonsense(trouble);
	if (header->error != 0 && (size_t)n == sizeof *header)
		return refused_request(header, trouble);
	if (header->version != TDT_OUTSIDE_VERSION || header->number != door->number ||
	    header->kind == 0)
		return nonsense(trouble);
	return header->kind;
}

static void set_deadline(struct tdt__door *door, uint64_t ns)
{
	door->deadline = tdt__clock() + ns + TDT__DOOR_PATIENCE;
}

int tdt__door_send(struct tdt__door *door, struct tdt_outside_header *header, uint16_t kind,
		   size_t size, uint64_t ns, struct tdt__trouble *trouble)
{
	*header = begin_request(door, kind, size);
	set_deadline(door, ns);
	if (!wait_ready(door, POLLOUT))
		return in_vain(trouble);
	if (send(door->connection, header, size, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)size)
		return broken_off(trouble);
	return 0;
}

int tdt__door_request(struct tdt__door *door, struct tdt_outside_header *header, uint16_t kind,
		      size_t size, struct tdt__trouble *trouble)
{
	const struct tdt_outside_header *answer = (const void *)door->message;
	int error = tdt__door_send(door, header, kind, size, 0, trouble), got;

	if (error != 0)
		return error;
	got = tdt__door_receive(door, trouble);
	if (got < 0)
		return got;
	if (got != kind || answer->size < size)
		return nonsense(trouble);
	memcpy(header, door->message, size);
	return 0;
}

/* Make a connection through the door `file`.  Returns 0 or a negative errno. */
static int connect_through(struct tdt__door *door, int file)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -errno;
	door->connection = ends[0];
	return hand_end_over(door, file, ends[1]);
}

static int receive_hello(struct tdt__door *door, const struct tdt__found *found,
			 struct tdt__trouble *trouble)
{
	struct tdt_outside_hello hello;
	int kind = tdt__door_receive(door, trouble);

	if (kind < 0)
		return kind;
	memcpy(&hello.header, door->message, sizeof hello.header);
	if (kind != TDT_OUTSIDE_HELLO || hello.header.size < sizeof hello)
		return nonsense(trouble);
	memcpy(&hello, door->message, sizeof hello);
	return hello.registry == found->address && hello.pid == found->registry.pid
		       ? 0
		       : nonsense(trouble);
}

static int open_connection(struct tdt__door *door, int file, const struct tdt__found *found,
			   struct tdt__trouble *trouble)
{
	int error;

	door->message = malloc(TDT_OUTSIDE_MESSAGE_MAX);
	if (door->message == NULL)
		return tdt__trouble(trouble, -ENOMEM, "there is not enough memory");
	error = connect_through(door, file);
	if (error == -EAGAIN)
		return in_vain(trouble);
	if (error != 0)
		return tdt__trouble(trouble, error, "a connection to the process: %s",
				    strerror(-error));
	set_deadline(door, 0);
	return receive_hello(door, found, trouble);
}

int tdt__door_open(struct tdt__door *door, const struct tdt__target *target,
		   const struct tdt__found *found, struct tdt__trouble *trouble)
{
	int error = check_target(target, &found->registry, trouble), file;

	*door = (struct tdt__door){ .connection = -1 };
	if (error != 0)
		return error;
	file = take_descriptor(target, &found->registry, trouble);
	if (file < 0)
		return file;
	error = open_connection(door, file, found, trouble);
	close(file);
	if (error != 0)
		tdt__door_close(door);
	return error;
}

void tdt__door_close(struct tdt__door *door)
{
	if (door->connection >= 0)
		close(door->connection);
	free(door->message);
	*door = (struct tdt__door){ .connection = -1 };
}
