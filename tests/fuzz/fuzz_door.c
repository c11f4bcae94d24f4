// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * What readers outside send (<tdt/layout/outside.h>): each request is answered or refused, and
 * nothing is left of it when its connection has ended.
 *
 * An input is a list of packets.  Each begins with the number of its connection, and its length in
 * two bytes.  What the packet lacks of its length is zero.  (HELLO is the number of a packet that
 * came through the door.)
 */

#include <config.h>

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tdt/trace.h>

#include "door/messages.h"
#include "fuzz/fuzz.h"
#include "host/start.h"
#include "recorder/recorder.h"
#include "registry/registry.h"

#define CONNECTIONS 2
#define HELLO 2
#define PACKET_MAX 2048 /* more than any request has */
#define PACKETS_MAX 64

/* --- A task that is polled as soon as it is woken -------------------------------------- */

static struct tdt_future task;

static const struct tdt_waker *clone_itself(const struct tdt_waker *waker)
{
	return waker;
}

static void poll_task(const struct tdt_waker *waker)
{
	struct tdt_context cx = { waker };

	tdt_future_poll(&task, &cx);
}

static void drop_nothing(const struct tdt_waker *waker)
{
	(void)waker;
}

static tdt_poll_t wait_for_ever(void *state, struct tdt_context *cx)
{
	(void)state;
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

static void drop_no_state(void *state)
{
	(void)state;
}

static void make_waiting_task(void)
{
	static const struct tdt_waker_vtable vtable = { clone_itself, poll_task, poll_task,
							drop_nothing };
	static const struct tdt_waker waker = { &vtable };
	struct tdt_traced traced =
		tdt_traced(((struct tdt_future){ NULL, wait_for_ever, drop_no_state }));

	CLAIM(traced.handle != NULL);
	tdt_handle_unref(traced.handle);
	task = traced.future;
	poll_task(&waker);
}

/* --- Connections ------------------------------------------------------------------------- */

static struct {
	struct tdt__connection *connection;
	int reader;
} visit[CONNECTIONS];

static void open_visit(int i)
{
	struct tdt__door_socket pair[2];

	CLAIM(tdt__door_socket_pair(pair) == 0);
	visit[i].connection = tdt__connection_add(&pair[0]);
	CLAIM(visit[i].connection != NULL);
	visit[i].reader = pair[1].fd;
}

static void close_visit(int i)
{
	tdt__connection_end(visit[i].connection);
	close(visit[i].reader);
}

/* Receive all answers, and return the number of those that are not trees. */
static int receive_answers(int reader)
{
	static union {
		struct tdt_outside_header header;
		char bytes[TDT_OUTSIDE_MESSAGE_MAX];
	} message;
	int answers = 0;
	ssize_t n;

	while ((n = recv(reader, &message, sizeof message, MSG_DONTWAIT | MSG_TRUNC)) > 0) {
		CLAIM(n <= (ssize_t)sizeof message && message.header.size == (size_t)n);
		CLAIM(message.header.version == TDT_OUTSIDE_VERSION);
		CLAIM(message.header.error >= 0);
		answers += message.header.kind != TDT_OUTSIDE_TREE || message.header.error != 0;
	}
	return answers;
}

static void answer_packet(int i, const void *packet, size_t size)
{
	CLAIM(tdt__message_answer(visit[i].connection, packet, size) == 0);
	CLAIM(receive_answers(visit[i].reader) == 1);
}

static void answer_hello(const void *packet, size_t size)
{
	CLAIM(tdt__message_hello(&visit[0].connection->socket, packet, size, 0) <= 0);
	CLAIM(receive_answers(visit[0].reader) == 1);
}

/* --- The input --------------------------------------------------------------------------- */

static void answer_all(const uint8_t *data, size_t size)
{
	for (int n = 0; size > 3 && n < PACKETS_MAX; n++) {
		uint64_t packet[PACKET_MAX / sizeof(uint64_t)] = { 0 };
		size_t length = (data[1] | (size_t)data[2] << 8) % PACKET_MAX + 1,
		       given = length < size - 3 ? length : size - 3;

		memcpy(packet, data + 3, given);
		if (data[0] == HELLO)
			answer_hello(packet, length);
		else
			answer_packet(data[0] % CONNECTIONS, packet, length);
		data += 3 + given;
		size -= 3 + given;
	}
}

static bool is_recording(void)
{
	struct tdt_recorder_status status = { .size = sizeof status };

	CLAIM(tdt_recorder_info(&status) == 0);
	return status.recording;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (task.state == NULL)
		make_waiting_task();
	for (int i = 0; i < CONNECTIONS; i++)
		open_visit(i);
	answer_all(data, size);
	for (int i = 0; i < CONNECTIONS; i++)
		close_visit(i);
	CLAIM(TDT__PEEK(tdt__registry.watch_ns) == 0);
	CLAIM(!is_recording());
	return 0;
}
