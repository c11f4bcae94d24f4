// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See messages.h. */

#include "door/messages.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <tdt/counters.h>
#include <tdt/recorder.h>

#include "base/clock.h"
#include "door/trees.h"
#include "registry/registry.h"

_Static_assert(sizeof(struct tdt_outside_header) == 32, "the layout is public");
_Static_assert(sizeof(struct tdt_outside_hello) == 64, "the layout is public");
_Static_assert(sizeof(struct tdt_outside_trees) == 48 + 8 * TDT_OUTSIDE_IDS,
	       "the layout is public");
_Static_assert(sizeof(struct tdt_outside_tree) == 128, "the layout is public");
_Static_assert(sizeof(struct tdt_outside_wait) == 96, "the layout is public");
_Static_assert(sizeof(struct tdt_outside_done) == 48, "the layout is public");
_Static_assert(sizeof(struct tdt_outside_watch) == 40, "the layout is public");
_Static_assert(sizeof(struct tdt_outside_record) == 80, "the layout is public");
_Static_assert(sizeof(struct tdt_outside_counters) == 120, "the layout is public");

/* A request; and its answer, which has the place of the request. */
union message {
	struct tdt_outside_header header;
	struct tdt_outside_hello hello;
	struct tdt_outside_trees trees;
	struct tdt_outside_watch watch;
	struct tdt_outside_record record;
	struct tdt_outside_counters counters;
	struct tdt_outside_done done;
};

_Static_assert(sizeof(union message) == TDT__REQUEST_MAX, "any request fits");

/*
 * Each function checks the fields behind the header of a request, does what it wants, and writes
 * the fields of the answer.  It returns 0 or a positive errno, with which the request is refused.
 * `*broken` is set if the connection has to end.
 */
typedef int kind_fn(struct tdt__connection *connection, union message *message, int *broken);

static bool all_zero(const uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (words[i] != 0)
			return false;
	return true;
}

static bool is_sound_trees(const struct tdt_outside_trees *trees)
{
	return trees->timeout_ns <= TDT_OUTSIDE_TIMEOUT_MAX_NS && trees->n_ids <= TDT_OUTSIDE_IDS &&
	       trees->unseen <= 1 &&
	       all_zero(trees->ids + trees->n_ids, TDT_OUTSIDE_IDS - trees->n_ids);
}

static int do_trees(struct tdt__connection *connection, union message *message, int *broken)
{
	struct tdt_outside_done done = { .header = message->header };
	int error;

	if (!is_sound_trees(&message->trees))
		return EINVAL;
	error = tdt__trees_send(&connection->socket, &message->trees, &done);
	if (error == -ENOMEM)
		return ENOMEM;
	*broken = error;
	message->done = done;
	return 0;
}

static int do_watch(struct tdt__connection *connection, union message *message, int *broken)
{
	struct tdt_outside_watch *watch = &message->watch;

	(void)broken;
	if (watch->interval_ns > INT64_MAX)
		return EINVAL;
	return -tdt__connection_watch(connection, watch->interval_ns, &watch->interval_ns);
}

static bool wants_nothing(const struct tdt_outside_record *record)
{
	return record->on == 0 && record->ring_size == 0 && record->total_size == 0 &&
	       record->long_poll_ns == 0 && record->long_wait_ns == 0 && record->stacks == 0 &&
	       record->every == 0;
}

/* The memory that a recording may take, unless the reader wants less. */
static uint64_t total_size(const struct tdt_outside_record *record)
{
	if (record->total_size != 0 || record->ring_size == 0)
		return record->total_size;
	return record->ring_size < TDT_OUTSIDE_RECORDING_MAX / 64 ? 0 : TDT_OUTSIDE_RECORDING_MAX;
}

static bool is_sound_record(const struct tdt_outside_record *record)
{
	return record->by_program == 0 && record->ring_size <= TDT_OUTSIDE_RECORDING_MAX &&
	       record->total_size <= TDT_OUTSIDE_RECORDING_MAX &&
	       (record->on == 1 || wants_nothing(record));
}

static int do_record(struct tdt__connection *connection, union message *message, int *broken)
{
	struct tdt_outside_record *record = &message->record;
	const struct tdt_recorder_options options = {
		.size = sizeof options,
		.ring_size = record->ring_size,
		.total_size = total_size(record),
		.long_poll_ns = record->long_poll_ns,
		.long_wait_ns = record->long_wait_ns,
		.stacks = (int)record->stacks,
		.every = record->every,
	};
	bool by_program = false;
	int error;

	(void)broken;
	if (!is_sound_record(record))
		return EINVAL;
	error = tdt__connection_record(connection, record->on == 1 ? &options : NULL, &by_program);
	record->by_program = by_program;
	return -error;
}

static int do_counters(struct tdt__connection *connection, union message *message, int *broken)
{
	struct tdt_counts counts = { .size = sizeof counts };

	(void)connection;
	(void)broken;
	tdt_counters(&counts);
	message->counters = (struct tdt_outside_counters){
		.header = message->header,
		.waiting = counts.waiting,
		.runnable = counts.runnable,
		.running = counts.running,
		.longest_wait_ns = counts.longest_wait_ns,
		.longest_poll_ns = counts.longest_poll_ns,
		.spawned = counts.spawned,
		.ended = counts.ended,
		.panicked = counts.panicked,
		.polls = counts.polls,
		.captures = counts.captures,
		.dumps = counts.dumps,
	};
	return 0;
}

static int do_hello(struct tdt__connection *connection, union message *message, int *broken)
{
	(void)connection;
	(void)broken;
	message->hello.registry = (uintptr_t)&tdt__registry;
	message->hello.pid = (uint32_t)getpid();
	message->hello.features = (uint32_t)tdt__registry.features;
	memcpy(message->hello.library, tdt__registry.library, sizeof message->hello.library);
	return 0;
}

/* By kind.  Without a function, the kind is unknown. */
static const struct message_kind {
	kind_fn *run;
	size_t request, answer; /* their sizes */
} kinds[] = {
	[TDT_OUTSIDE_HELLO] = { do_hello, sizeof(struct tdt_outside_header),
				sizeof(struct tdt_outside_hello) },
	[TDT_OUTSIDE_TREES] = { do_trees, sizeof(struct tdt_outside_trees),
				sizeof(struct tdt_outside_done) },
	[TDT_OUTSIDE_WATCH] = { do_watch, sizeof(struct tdt_outside_watch),
				sizeof(struct tdt_outside_watch) },
	[TDT_OUTSIDE_RECORD] = { do_record, sizeof(struct tdt_outside_record),
				 sizeof(struct tdt_outside_record) },
	[TDT_OUTSIDE_COUNTERS] = { do_counters, sizeof(struct tdt_outside_header),
				   sizeof(struct tdt_outside_counters) },
};

static const struct message_kind *message_kind_of(const struct tdt_outside_header *header)
{
	if (header->kind >= sizeof kinds / sizeof kinds[0] || kinds[header->kind].run == NULL)
		return NULL;
	return &kinds[header->kind];
}

/* Whether all that the library does not know of a request is zero. */
static bool rest_is_zero(const unsigned char *packet, size_t known, size_t size)
{
	for (size_t i = known; i < size && size <= TDT__PACKET_MAX; i++)
		if (packet[i] != 0)
			return false;
	return size <= TDT__PACKET_MAX;
}

/* Returns 0 or a positive errno.  `size` is at least that of a header. */
static int check_request(const struct tdt_outside_header *header, const void *packet, size_t size)
{
	const struct message_kind *kind = message_kind_of(header);

	if (header->version != TDT_OUTSIDE_VERSION)
		return EPROTONOSUPPORT;
	if (header->size != size)
		return EPROTO;
	if (kind == NULL)
		return EOPNOTSUPP;
	if (header->error != 0 || header->reserved[0] != 0 || header->reserved[1] != 0 ||
	    header->reserved[2] != 0)
		return EINVAL;
	return rest_is_zero(packet, kind->request, size) ? 0 : E2BIG;
}

/* Copy the packet, and check what all requests have in common.  Returns 0 or a positive errno. */
static int read_message(union message *message, const void *packet, size_t size)
{
	memset(message, 0, sizeof *message);
	memcpy(message, packet, size < sizeof *message ? size : sizeof *message);
	if (size >= sizeof message->header)
		return check_request(&message->header, packet, size);
	memset(message, 0, sizeof *message);
	return EPROTO;
}

/* Send the answer, or refuse with `error`.  Returns 0 or why nothing can be sent. */
static int send_message(const struct tdt__door_socket *socket, union message *message, int error)
{
	size_t size = error == 0 ? kinds[message->header.kind].answer : sizeof message->header;

	message->header = (struct tdt_outside_header){ .size = (uint32_t)size,
						       .version = TDT_OUTSIDE_VERSION,
						       .kind = message->header.kind,
						       .number = message->header.number,
						       .error = error };
	return tdt__door_socket_send(socket, message, size, tdt__clock() + (uint64_t)TDT__SECOND);
}

int tdt__message_answer(struct tdt__connection *connection, const void *packet, size_t size)
{
	union message message;
	int broken = 0, error = read_message(&message, packet, size);

	if (error == 0)
		error = kinds[message.header.kind].run(connection, &message, &broken);
	return broken != 0 ? broken : send_message(&connection->socket, &message, error);
}

int tdt__message_hello(const struct tdt__door_socket *socket, const void *packet, size_t size,
		       int refusal)
{
	union message message;
	int broken = 0, error = read_message(&message, packet, size);

	if (error == 0 && message.header.kind != TDT_OUTSIDE_HELLO)
		error = EINVAL;
	if (error == 0)
		error = refusal;
	if (error == 0)
		do_hello(NULL, &message, &broken);
	broken = send_message(socket, &message, error);
	return broken != 0 ? broken : -error;
}
