// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The door (<tdt/layout/outside.h>): a pair of sockets.  The registry has the number of one end,
 * which nobody uses in this process: readers take it by pidfd_getfd(2), and send their own sockets
 * through it.  The door's thread receives them at the other end.  From then on each reader has a
 * connection of its own, so readers do not meet, and the death of a reader is the end of its
 * connection.
 *
 *   reader                      host                         tdt-door
 *     takes the end ─ ─ ─ ─ ─ ▶ registry.door
 *     hello, a socket ─────────────────────────────────────▶ poll(): a connection
 *     request ─────────────────────────────────────────────▶ poll(): do it
 *     answer  ◀───────────────────────────────────────────── send()
 *     (dies)  ─────────────────────────────────────────────▶ poll(): what it wanted ends
 *
 * A thread is needed from the beginning, because the library has no other one that always runs.
 * (The workers of a runtime are no help: they may all be stuck, and this is what the reader wants
 * to see.)  It serves one message after the other, and sleeps in poll() in between.
 *
 * poll() keeps what it waits for open, even if the program closes it.  If the program closes both
 * ends of the door, the end that poll() waits at hangs up, and the thread finds that the door's
 * numbers are not its own.  Then it serves the connections that are left, and ends.  The program
 * may also close a descriptor just before poll() looks it up, and poll() would wait for another
 * file.  So the first sleep after some work is short, and the thread then looks at its numbers
 * again.  Only when nothing has happened does it sleep without a limit.
 */

#include "door/door.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tdt/trace.h>

#include "base/options.h"
#include "base/service.h"
#include "door/connection.h"
#include "door/messages.h"
#include "door/socket.h"
#include "host/start.h"
#include "recorder/recorder.h"
#include "registry/registry.h"

enum { INSIDE, OUTSIDE, ENDS };

/* Protected by tdt__door_lock. */
static struct tdt__door_socket door[ENDS]; /* both are open, or neither is */
static bool running; /* there is a thread: it looks at the door before it ends */

/*
 * What TDT_OUTSIDE says.  Written once, by the first tdt__door_begin(): the program may overwrite
 * its environment later.
 */
static enum { OPERATOR_UNHEARD, OPERATOR_SILENT, OPERATOR_LISTENS, OPERATOR_REFUSES } operator_says;

/* --- The door ------------------------------------------------------------ */

/* Let readers find the door, or why there is none: a positive errno, or 0. */
static void publish_door(int error)
{
	bool open = door[OUTSIDE].open;

	TDT__POKE(tdt__registry.door_inode, 0);
	TDT__POKE(tdt__registry.door, (uint32_t)(open ? door[OUTSIDE].fd : error));
	if (open)
		TDT__POKE(tdt__registry.door_inode, (uint64_t)door[OUTSIDE].inode);
}

static void close_door(int error)
{
	tdt__door_socket_close(&door[INSIDE]);
	tdt__door_socket_close(&door[OUTSIDE]);
	publish_door(error);
}

/* Whether the door is open.  If the program has closed an end of it, it is closed altogether. */
static bool is_door_open(void)
{
	if (!door[INSIDE].open)
		return false;
	if (tdt__door_socket_is_ours(&door[INSIDE]) && tdt__door_socket_is_ours(&door[OUTSIDE]))
		return true;
	close_door(0);
	return false;
}

/* --- A reader comes ------------------------------------------------------ */

static void send_away(struct tdt__door_socket *socket, const void *packet, size_t size)
{
	tdt__message_hello(socket, packet, size, EBUSY);
	pthread_mutex_lock(&tdt__door_lock);
	tdt__door_socket_close(socket);
	pthread_mutex_unlock(&tdt__door_lock);
}

/*
 * Receive the first message of a reader.  A message that brings no socket is passed over.  When
 * there is no message, the door is closed if a reader or the program has shut it down.
 */
static void let_in(bool is_shut)
{
	uint64_t packet[TDT__PACKET_MAX / sizeof(uint64_t)];
	struct tdt__connection *connection = NULL;
	struct tdt__door_socket brought;
	ssize_t n;

	pthread_mutex_lock(&tdt__door_lock);
	n = tdt__door_socket_receive_socket(&door[INSIDE], packet, sizeof packet, &brought);
	if (brought.open)
		connection = tdt__connection_add(&brought);
	if (n == 0 && is_shut)
		close_door(0);
	pthread_mutex_unlock(&tdt__door_lock);
	if (connection != NULL) {
		if (tdt__message_hello(&connection->socket, packet, (size_t)n, 0) != 0)
			tdt__connection_end(connection);
	} else if (brought.open) {
		send_away(&brought, packet, (size_t)n);
	}
}

/* --- A request comes ----------------------------------------------------- */

static void serve_connection(struct tdt__connection *connection)
{
	uint64_t packet[TDT__PACKET_MAX / sizeof(uint64_t)];
	ssize_t n = tdt__door_socket_receive(&connection->socket, packet, sizeof packet);
	int error = n > 0 ? 0 : n == 0 ? -EPIPE : (int)n;

	if (error == -EAGAIN)
		return;
	if (error == 0)
		error = tdt__message_answer(connection, packet, (size_t)n);
	if (error != 0)
		tdt__connection_end(connection);
}

/* --- The thread ---------------------------------------------------------- */

#define WAITS (1 + TDT_OUTSIDE_CONNECTIONS)

/*
 * The length of a short sleep.  So often the thread also looks for a new door while it serves the
 * connections of an old one, and for messages if it cannot wait for them.
 */
#define SLOW_MS 200

static struct pollfd wait_at_socket(const struct tdt__door_socket *socket)
{
	return (struct pollfd){ .fd = socket->open ? socket->fd : -1,
				.events = POLLIN | POLLRDHUP };
}

/*
 * Prepare to wait for the connections, and return how many there are.  A connection whose
 * descriptor the program has closed ends.
 */
static int wait_at_connections(struct pollfd waits[TDT_OUTSIDE_CONNECTIONS])
{
	int n = 0;

	for (int i = 0; i < TDT_OUTSIDE_CONNECTIONS; i++) {
		struct tdt__connection *connection = &tdt__connections[i];

		if (connection->socket.open && !tdt__door_socket_is_ours(&connection->socket))
			tdt__connection_end(connection);
		waits[i] = wait_at_socket(&connection->socket);
		n += connection->socket.open;
	}
	return n;
}

/*
 * Prepare to wait.  Returns the time for poll(), or 0 if there is nothing to wait for: then there
 * is no thread any more.
 */
static int prepare_poll(struct pollfd waits[WAITS])
{
	int n = wait_at_connections(waits + 1), time = -1;

	pthread_mutex_lock(&tdt__door_lock);
	if (!is_door_open())
		time = n != 0 ? SLOW_MS : 0;
	waits[0] = wait_at_socket(&door[INSIDE]);
	running = time != 0;
	pthread_mutex_unlock(&tdt__door_lock);
	return time;
}

/*
 * poll() refuses to wait for more descriptors than the process may have, which some programs limit
 * to 0 after they have opened theirs.  Then all sockets are looked at from time to time.
 */
static void wait_without_poll(struct pollfd waits[WAITS])
{
	usleep(1000 * SLOW_MS);
	for (int i = 0; i < WAITS; i++)
		waits[i].revents = waits[i].fd >= 0 ? POLLIN : 0;
}

static void *serve_door(void *nothing)
{
	struct pollfd waits[WAITS];
	int time, happened = 1;

	pthread_setname_np(pthread_self(), "tdt-door");
	while ((time = prepare_poll(waits)) != 0) {
		happened = poll(waits, WAITS, happened != 0 ? SLOW_MS : time);
		if (happened < 0)
			wait_without_poll(waits);
		for (int i = 0; i < TDT_OUTSIDE_CONNECTIONS; i++)
			if (waits[1 + i].revents != 0)
				serve_connection(&tdt__connections[i]);
		if (waits[0].revents != 0)
			let_in((waits[0].revents & ~POLLIN) != 0);
	}
	return nothing;
}

/* --- Listening ----------------------------------------------------------- */

static int listen_now(void)
{
	int error = 0;

	pthread_mutex_lock(&tdt__door_lock);
	if (!is_door_open()) {
		error = tdt__door_socket_pair(door);
		publish_door(-error);
	}
	if (error == 0) {
		error = tdt__service_need(serve_door, &running, &tdt__door_lock);
		if (error != 0)
			close_door(-error);
	}
	pthread_mutex_unlock(&tdt__door_lock);
	if (error == 0)
		tdt__recorder_need_thread(); /* or else when a reader wants it */
	return error;
}

int tdt_listen(const struct tdt_listen_options *options)
{
	struct tdt_listen_options ours;
	int saved = errno, error = tdt__options_read(&ours, sizeof ours, options);

	if (error == 0)
		error = ours.flags != 0 ? -EINVAL : tdt__start();
	if (error == 0)
		error = operator_says == OPERATOR_REFUSES ? -EPERM : listen_now();
	errno = error == 0 ? saved : -error;
	return error;
}

static void hear_operator(void)
{
	const char *outside = secure_getenv("TDT_OUTSIDE");

	operator_says = OPERATOR_SILENT;
	if (outside != NULL && strcmp(outside, "1") == 0)
		operator_says = OPERATOR_LISTENS;
	if (outside != NULL && strcmp(outside, "0") == 0)
		operator_says = OPERATOR_REFUSES;
}

void tdt__door_begin(void)
{
	int saved = errno;

	if (operator_says == OPERATOR_UNHEARD)
		hear_operator();
	if (operator_says == OPERATOR_REFUSES)
		publish_door(EPERM);
	if (operator_says == OPERATOR_LISTENS)
		listen_now();
	errno = saved;
}

void tdt__door_forked(void)
{
	tdt__connections_forked();
	close_door(operator_says == OPERATOR_REFUSES ? EPERM : 0);
	running = false;
}
