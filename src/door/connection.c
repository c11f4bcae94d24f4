// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See connection.h. */

#include "door/connection.h"

#include <stddef.h>
#include <string.h>

#include "recorder/recorder.h"
#include "watch/watch.h"

struct tdt__connection tdt__connections[TDT_OUTSIDE_CONNECTIONS];

struct tdt__connection *tdt__connection_add(const struct tdt__door_socket *socket)
{
	for (int i = 0; i < TDT_OUTSIDE_CONNECTIONS; i++) {
		struct tdt__connection *connection = &tdt__connections[i];

		if (connection->socket.open)
			continue;
		*connection = (struct tdt__connection){ .socket = *socket };
		return connection;
	}
	return NULL;
}

/* The shortest interval that a connection wants; 0: none wants a watch. */
static uint64_t shortest_watch(void)
{
	uint64_t shortest = 0;

	for (int i = 0; i < TDT_OUTSIDE_CONNECTIONS; i++) {
		uint64_t ns = tdt__connections[i].watch_ns;

		if (ns != 0 && (shortest == 0 || ns < shortest))
			shortest = ns;
	}
	return shortest;
}

int tdt__connection_watch(struct tdt__connection *connection, uint64_t interval_ns,
			  uint64_t *in_force)
{
	uint64_t before = connection->watch_ns;
	int error;

	connection->watch_ns = interval_ns;
	error = tdt__watch_outside((int64_t)shortest_watch(), in_force);
	if (error != 0)
		connection->watch_ns = before;
	return error;
}

static bool any_records(void)
{
	for (int i = 0; i < TDT_OUTSIDE_CONNECTIONS; i++)
		if (tdt__connections[i].records)
			return true;
	return false;
}

int tdt__connection_record(struct tdt__connection *connection,
			   const struct tdt_recorder_options *options, bool *by_program)
{
	int error = 0;

	if (options != NULL)
		error = tdt__recorder_outside_start(options, by_program);
	if (error == 0)
		connection->records = options != NULL;
	if (!any_records())
		tdt__recorder_outside_stop(by_program);
	return error;
}

void tdt__connection_end(struct tdt__connection *connection)
{
	uint64_t in_force;
	bool by_program;

	if (connection->watch_ns != 0)
		tdt__connection_watch(connection, 0, &in_force);
	if (connection->records)
		tdt__connection_record(connection, NULL, &by_program);
	pthread_mutex_lock(&tdt__door_lock);
	tdt__door_socket_close(&connection->socket);
	pthread_mutex_unlock(&tdt__door_lock);
}

void tdt__connections_forked(void)
{
	for (int i = 0; i < TDT_OUTSIDE_CONNECTIONS; i++)
		tdt__door_socket_close(&tdt__connections[i].socket);
	memset(tdt__connections, 0, sizeof tdt__connections);
}
