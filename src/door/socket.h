/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The sockets of the door.
 *
 * Their descriptors are the process', which may close them at any time, as a daemon does, and get
 * their numbers again for files of its own.  So each socket has its inode noted, and before each
 * use of a number the kernel is asked whether it is still the socket's.  This cannot see a number
 * that is closed and used again between that question and the use, some hundred nanoseconds later.
 *
 * No call here waits but those that say so, whatever the flags of the socket are: other processes
 * share them.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Held while a socket is opened, closed or received, and stored where the library finds it: so a
 * child of fork() knows all sockets that it has inherited.  It is held for a few system calls, and
 * across fork() (fork.c).
 */
extern pthread_mutex_t tdt__door_lock;

struct tdt__door_socket {
	bool open;
	int fd; /* not one of the standard streams */
	dev_t dev;
	ino_t inode;
};

/*
 * Make a pair of connected sockets, which are closed on exec.  Returns 0 or a negative errno; then
 * nothing is open.
 */
int tdt__door_socket_pair(struct tdt__door_socket pair[2]);

/* Whether the socket is open, and its descriptor is still its own. */
bool tdt__door_socket_is_ours(const struct tdt__door_socket *socket);

/* Close the socket if it is open and its descriptor is still its own. */
void tdt__door_socket_close(struct tdt__door_socket *socket);

/*
 * Receive a message of at most `room` bytes; a longer one is cut off.  Returns its whole length; 0
 * if the other end is closed; or a negative errno: -EAGAIN (there is none), -EBADF (the descriptor
 * is not the socket's any more).
 */
ssize_t tdt__door_socket_receive(const struct tdt__door_socket *socket, void *message, size_t room);

/*
 * The same of a message that brings a socket along, which goes to `brought`.  If the message brings
 * none, or something else, or more than one, `brought` is not open.
 */
ssize_t tdt__door_socket_receive_socket(const struct tdt__door_socket *socket, void *message,
					size_t room, struct tdt__door_socket *brought);

/*
 * Send a message.  Waits until `deadline` (tdt__clock()) for the other end to receive what was sent
 * before.  Returns 0 or a negative errno: -ETIMEDOUT, -EPIPE (the other end is closed), -EBADF.
 */
int tdt__door_socket_send(const struct tdt__door_socket *socket, const void *message, size_t size,
			  uint64_t deadline);
