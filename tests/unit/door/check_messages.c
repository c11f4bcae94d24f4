// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers door/messages, door/connection.  Each message is checked before anything is done; what
 * connections want is in force as long as they last, beside what the program wants.  The messages
 * are answered on the thread of the test: there is no door.
 */

#include <sys/socket.h>

#include "door/messages.h"
#include "host/start.h"
#include "lib/test.h"
#include "lib/visitor.h"
#include "recorder/recorder.h"
#include "registry/registry.h"

#define MS INT64_C(1000000)

/* --- Connections --------------------------------------------------------- */

/* A reader, and its connection in the library. */
struct reader {
	int fd;
	struct tdt__connection *connection;
};

static struct reader come(void)
{
	struct tdt__door_socket pair[2];
	struct reader reader;

	ck_assert_int_eq(tdt__start(), 0);
	ck_assert_int_eq(tdt__door_socket_pair(pair), 0);
	reader.connection = tdt__connection_add(&pair[0]);
	ck_assert_ptr_nonnull(reader.connection);
	reader.fd = pair[1].fd;
	return reader;
}

static void go(struct reader *reader)
{
	tdt__connection_end(reader->connection);
	close(reader->fd);
}

/*
 * Have a message answered.  The answer has `room` bytes, unless it is a refusal, whose error is
 * returned.
 */
static int answer(const struct reader *reader, const void *message, size_t size, void *to,
		  size_t room)
{
	struct tdt_outside_header *header = to;
	ssize_t n;

	ck_assert_int_eq(tdt__message_answer(reader->connection, message, size), 0);
	n = visitor_receive(reader->fd, to, room);
	ck_assert_uint_eq(header->size, (size_t)n);
	ck_assert_uint_eq(header->version, TDT_OUTSIDE_VERSION);
	ck_assert_uint_eq((size_t)n, header->error == 0 ? room : sizeof *header);
	return header->error;
}

/* Request a watch.  Returns the interval in force. */
static uint64_t watch(const struct reader *reader, int64_t ns)
{
	const struct tdt_outside_watch request = { VISITOR_HEADER(tdt_outside_watch, WATCH),
						   .interval_ns = (uint64_t)ns };
	struct tdt_outside_watch to;

	ck_assert_int_eq(answer(reader, &request, sizeof request, &to, sizeof to), 0);
	ck_assert_uint_eq(to.interval_ns, tdt__registry.watch_ns);
	return to.interval_ns;
}

static struct tdt_outside_record small_recording(void)
{
	return (struct tdt_outside_record){ VISITOR_HEADER(tdt_outside_record, RECORD),
					    .ring_size = 65536,
					    .total_size = 1 << 20,
					    .on = 1 };
}

/* Request a recording, or with `on` 0 none.  Returns whether the program wants one. */
static bool record(const struct reader *reader, bool on)
{
	const struct tdt_outside_record none = { VISITOR_HEADER(tdt_outside_record, RECORD),
						 .on = 0 };
	struct tdt_outside_record request = small_recording(), to;

	if (!on)
		request = none;
	ck_assert_int_eq(answer(reader, &request, sizeof request, &to, sizeof to), 0);
	return to.by_program;
}

static bool is_recording(void)
{
	struct tdt_recorder_status status = { .size = sizeof status };

	ck_assert_int_eq(tdt_recorder_info(&status), 0);
	return status.recording;
}

/* --- Messages that are not sound ----------------------------------------- */

static void expect_refusal(const void *message, size_t size, int error)
{
	const struct tdt_outside_header *asked = message;
	struct tdt_outside_header to;
	struct reader reader = come();

	ck_assert_int_eq(answer(&reader, message, size, &to, sizeof to), error);
	ck_assert_uint_eq(to.kind, size < sizeof to ? 0 : asked->kind);
	ck_assert_uint_eq(to.number, size < sizeof to ? 0 : asked->number);
	ck_assert_uint_eq(tdt__registry.watch_ns, 0);
	ck_assert(!is_recording());
	go(&reader);
}

CASE(refused)

TEST(a_message_that_is_too_short_for_a_header_is_refused)
{
	const struct tdt_outside_header sound = VISITOR_HEADER(tdt_outside_header, COUNTERS);

	for (size_t size = 1; size < sizeof sound; size++)
		expect_refusal(&sound, size, EPROTO);
}

TEST(a_message_of_another_length_than_it_says_is_refused)
{
	struct tdt_outside_header header = VISITOR_HEADER(tdt_outside_header, COUNTERS);
	const uint32_t sizes[] = { 0, 1, sizeof header - 1, sizeof header + 1, UINT32_MAX };

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		header.size = sizes[i];
		expect_refusal(&header, sizeof header, EPROTO);
	}
}

static const size_t sizes[] = { [TDT_OUTSIDE_HELLO] = sizeof(struct tdt_outside_header),
				[TDT_OUTSIDE_TREES] = sizeof(struct tdt_outside_trees),
				[TDT_OUTSIDE_WATCH] = sizeof(struct tdt_outside_watch),
				[TDT_OUTSIDE_RECORD] = sizeof(struct tdt_outside_record),
				[TDT_OUTSIDE_COUNTERS] = sizeof(struct tdt_outside_header) };

/* A later reader has set a field that this library does not know. */
TEST(what_is_appended_to_a_request_must_be_zero)
{
	union {
		struct tdt_outside_header header;
		char bytes[8192];
	} message;

	for (uint16_t kind = TDT_OUTSIDE_HELLO; kind <= TDT_OUTSIDE_COUNTERS; kind++) {
		const size_t longer[] = { sizes[kind] + 1, sizes[kind] + 64, sizeof message };

		for (int i = 0; i < 3 && kind != TDT_OUTSIDE_TREE; i++) {
			memset(&message, 0, sizeof message);
			message.header = (struct tdt_outside_header){
				.size = (uint32_t)longer[i],
				.version = TDT_OUTSIDE_VERSION,
				.kind = kind,
			};
			message.bytes[longer[i] - 1] = 1;
			expect_refusal(&message, longer[i], E2BIG);
		}
	}
}

/* Of an older reader, and of a later one that has set nothing new. */
TEST(a_shorter_request_and_one_that_ends_in_zeros_are_understood)
{
	struct {
		struct tdt_outside_watch known;
		uint64_t later[4];
	} longer = { .known.header = VISITOR_HEADER(tdt_outside_watch, WATCH) };
	struct tdt_outside_header shorter = VISITOR_HEADER(tdt_outside_header, WATCH);
	struct tdt_outside_watch to;
	struct reader reader = come();

	longer.known.header.size = sizeof longer;
	ck_assert_int_eq(answer(&reader, &longer, sizeof longer, &to, sizeof to), 0);
	ck_assert_int_eq(answer(&reader, &shorter, sizeof shorter, &to, sizeof to), 0);
	ck_assert_uint_eq(to.interval_ns, 0);
	go(&reader);
}

TEST(another_version_is_refused_whatever_else_is_wrong)
{
	struct tdt_outside_header header = { .version = 0, .kind = 99, .error = 1, .number = 8 };

	expect_refusal(&header, sizeof header, EPROTONOSUPPORT);
	header.version = TDT_OUTSIDE_VERSION + 1;
	expect_refusal(&header, sizeof header, EPROTONOSUPPORT);
}

TEST(an_unknown_kind_is_refused)
{
	static const uint16_t kinds[] = { 0, TDT_OUTSIDE_TREE, TDT_OUTSIDE_COUNTERS + 1,
					  UINT16_MAX };
	struct tdt_outside_header header = VISITOR_HEADER(tdt_outside_header, COUNTERS);

	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		header.kind = kinds[i];
		expect_refusal(&header, sizeof header, EOPNOTSUPP);
	}
}

TEST(reserved_fields_must_be_zero)
{
	struct tdt_outside_header header = VISITOR_HEADER(tdt_outside_header, COUNTERS);

	header.error = 1;
	expect_refusal(&header, sizeof header, EINVAL);
	header.error = 0;
	for (int i = 0; i < 3; i++) {
		header.reserved[i] = 1;
		expect_refusal(&header, sizeof header, EINVAL);
		header.reserved[i] = 0;
	}
}

#define TREES(...)                                                                                 \
	{                                                                                          \
		VISITOR_HEADER(tdt_outside_trees, TREES), .most = 1, __VA_ARGS__                   \
	}

TEST(absurd_trees_are_refused, .to = 6)
{
	static const struct tdt_outside_trees absurd[] = {
		TREES(.timeout_ns = TDT_OUTSIDE_TIMEOUT_MAX_NS + 1),
		TREES(.timeout_ns = UINT64_MAX),
		TREES(.n_ids = TDT_OUTSIDE_IDS + 1),
		TREES(.n_ids = UINT16_MAX),
		TREES(.n_ids = 1, .ids[1] = 1),
		TREES(.ids[TDT_OUTSIDE_IDS - 1] = 1),
	};

	expect_refusal(&absurd[_i], sizeof absurd[_i], EINVAL);
}

TEST(an_absurd_interval_is_refused)
{
	struct tdt_outside_watch request = { VISITOR_HEADER(tdt_outside_watch, WATCH),
					     .interval_ns = UINT64_C(1) << 63 };

	expect_refusal(&request, sizeof request, EINVAL);
	request.interval_ns = UINT64_MAX;
	expect_refusal(&request, sizeof request, EINVAL);
}

TEST(absurd_recordings_are_refused)
{
	const struct tdt_outside_record sound = small_recording();
	struct tdt_outside_record request = sound;

	request.ring_size = 1;
	expect_refusal(&request, sizeof request, EINVAL);
	request.ring_size = TDT_OUTSIDE_RECORDING_MAX + UINT64_C(1);
	expect_refusal(&request, sizeof request, EINVAL);
	request.ring_size = UINT64_MAX;
	expect_refusal(&request, sizeof request, EINVAL);
	request = sound;
	request.total_size = TDT_OUTSIDE_RECORDING_MAX + UINT64_C(1);
	expect_refusal(&request, sizeof request, EINVAL);
	request = sound;
	request.stacks = 3;
	expect_refusal(&request, sizeof request, EINVAL);
	request.stacks = UINT32_MAX;
	expect_refusal(&request, sizeof request, EINVAL);
	request = sound;
	request.on = 2;
	expect_refusal(&request, sizeof request, EINVAL);
	request.on = 0;
	expect_refusal(&request, sizeof request, EINVAL);
	request = sound;
	request.by_program = 1;
	expect_refusal(&request, sizeof request, EINVAL);
}

CASE(watch)

TEST(the_shortest_interval_is_in_force)
{
	struct reader one = come(), other = come();

	ck_assert_int_eq(tdt_watch(50 * MS, NULL), 0);
	ck_assert_int_eq(watch(&one, 10 * MS), 10 * MS);
	ck_assert_int_eq(watch(&other, 20 * MS), 10 * MS);
	ck_assert_int_eq(watch(&one, 0), 20 * MS);
	ck_assert_int_eq(watch(&other, 100 * MS), 50 * MS);
	ck_assert_int_eq(watch(&one, 30 * MS), 30 * MS);
	go(&one);
	ck_assert_uint_eq(tdt__registry.watch_ns, 50 * MS);
	go(&other);
	ck_assert_uint_eq(tdt__registry.watch_ns, 50 * MS);
	ck_assert_int_eq(tdt_watch(0, NULL), 0);
	ck_assert_uint_eq(tdt__registry.watch_ns, 0);
}

TEST(a_program_that_stops_its_watch_leaves_those_of_readers)
{
	struct reader reader = come();

	ck_assert_int_eq(tdt_watch(5 * MS, NULL), 0);
	ck_assert_int_eq(watch(&reader, 20 * MS), 5 * MS);
	ck_assert_int_eq(tdt_watch(0, NULL), 0);
	ck_assert_uint_eq(tdt__registry.watch_ns, 20 * MS);
	go(&reader);
	ck_assert_uint_eq(tdt__registry.watch_ns, 0);
}

TEST(an_interval_has_a_lower_limit)
{
	struct reader reader = come();

	ck_assert_int_eq(watch(&reader, 1), TDT_WATCH_MIN_NS);
	ck_assert_int_eq(watch(&reader, INT64_MAX), INT64_MAX);
	go(&reader);
	ck_assert_uint_eq(tdt__registry.watch_ns, 0);
}

/* --- The recorder -------------------------------------------------------- */

static const struct tdt_recorder_options programs = { .size = sizeof programs,
						      .ring_size = 131072,
						      .total_size = 4 << 20 };

CASE(recorder)

TEST(a_recording_ends_with_the_last_connection_that_wants_it)
{
	struct reader one = come(), other = come();

	ck_assert(!record(&one, true));
	ck_assert(!record(&one, true));
	ck_assert(!record(&other, true));
	go(&one);
	ck_assert(is_recording());
	ck_assert(!record(&other, false));
	ck_assert(!is_recording());
	ck_assert(!record(&other, false));
	ck_assert(!record(&other, true));
	ck_assert(is_recording());
	go(&other);
	ck_assert(!is_recording());
}

TEST(the_programs_recording_goes_on_as_it_is)
{
	struct reader reader = come();
	uint64_t rings;

	ck_assert_int_eq(tdt_recorder_start(&programs), 0);
	rings = tdt__registry.rings;
	ck_assert(record(&reader, true));
	ck_assert_uint_eq(tdt__registry.rings, rings);
	ck_assert_int_eq(tdt_recorder_start(&programs), -EALREADY);
	go(&reader);
	ck_assert(is_recording());
	ck_assert_int_eq(tdt_recorder_stop(), 0);
	ck_assert(!is_recording());
}

TEST(a_recording_outlives_the_programs_as_long_as_a_reader_wants_it)
{
	struct reader reader = come();

	ck_assert_int_eq(tdt_recorder_start(&programs), 0);
	ck_assert(record(&reader, true));
	ck_assert_int_eq(tdt_recorder_stop(), 0);
	ck_assert(is_recording());
	ck_assert_int_eq(tdt_recorder_stop(), -EALREADY);
	go(&reader);
	ck_assert(!is_recording());
}

TEST(the_programs_options_replace_those_of_readers)
{
	struct reader reader = come();
	uint64_t rings;

	ck_assert(!record(&reader, true));
	rings = tdt__registry.rings;
	ck_assert_int_eq(tdt_recorder_start(&programs), 0);
	ck_assert_uint_ne(tdt__registry.rings, rings);
	ck_assert(is_recording());
	ck_assert(record(&reader, false));
	ck_assert(is_recording());
	ck_assert_int_eq(tdt_recorder_stop(), 0);
	ck_assert(!is_recording());
	go(&reader);
}

/* What the program could not start leaves the recording of the reader. */
TEST(a_start_that_fails_leaves_a_readers_recording)
{
	const struct tdt_recorder_options bad = { .size = sizeof bad,
						  .dir = "/proc/self/no such directory" };
	struct tdt_recorder_options file = { .size = sizeof file, .ring_size = 131072 };
	struct reader reader = come();

	ck_assert(!record(&reader, true));
	ck_assert_int_eq(tdt_recorder_start(&bad), -ENOENT);
	ck_assert(is_recording());
	file.dir = "/proc";
	ck_assert_int_lt(tdt_recorder_start(&file), 0);
	ck_assert(is_recording());
	go(&reader);
	ck_assert(!is_recording());
}

TEST(without_a_size_the_rings_are_those_of_the_last_recording)
{
	struct tdt_outside_record request = small_recording(), to;
	struct reader reader = come();
	uint64_t rings;

	ck_assert_int_eq(tdt_recorder_start(&programs), 0);
	ck_assert_int_eq(tdt_recorder_stop(), 0);
	rings = tdt__registry.rings;
	request.ring_size = 0;
	request.total_size = 0;
	ck_assert_int_eq(answer(&reader, &request, sizeof request, &to, sizeof to), 0);
	ck_assert_uint_eq(tdt__registry.rings, rings);
	ck_assert(is_recording());
	go(&reader);
}

CASE(rest)

TEST(counters_are_those_of_the_program)
{
	const struct tdt_outside_header request = VISITOR_HEADER(tdt_outside_header, COUNTERS);
	struct tdt_counts counts = { .size = sizeof counts };
	struct reader reader = come();
	struct tdt_outside_counters to;

	for (int i = 0; i < 3; i++)
		__atomic_fetch_add(&tdt__registry_counters()->panicked, 5, __ATOMIC_RELAXED);
	__atomic_fetch_add(&tdt__registry_counters()->dumps, 2, __ATOMIC_RELAXED);
	ck_assert_int_eq(answer(&reader, &request, sizeof request, &to, sizeof to), 0);
	ck_assert_int_eq(tdt_counters(&counts), 0);
	ck_assert_uint_eq(to.panicked, 15);
	ck_assert_uint_eq(to.dumps, 2);
	ck_assert_uint_eq(to.spawned, counts.spawned);
	ck_assert_uint_eq(to.waiting, counts.waiting);
	go(&reader);
}

TEST(a_second_hello_is_answered_like_the_first)
{
	const struct tdt_outside_header request = VISITOR_HEADER(tdt_outside_header, HELLO);
	struct reader reader = come();
	struct tdt_outside_hello to;

	ck_assert_int_eq(answer(&reader, &request, sizeof request, &to, sizeof to), 0);
	ck_assert_uint_eq(to.pid, (uint32_t)getpid());
	go(&reader);
}

/* --- Readers that do not receive ----------------------------------------- */

TEST(a_reader_that_does_not_receive_is_given_up)
{
	const struct tdt_outside_header request = VISITOR_HEADER(tdt_outside_header, COUNTERS);
	struct reader reader = come();
	int error = 0;

	while (error == 0)
		error = tdt__message_answer(reader.connection, &request, sizeof request);
	ck_assert_int_eq(error, -ETIMEDOUT);
	go(&reader);
}

TEST(an_answer_to_nobody_ends_the_connection)
{
	const struct tdt_outside_header request = VISITOR_HEADER(tdt_outside_header, COUNTERS);
	struct reader reader = come();

	close(reader.fd);
	ck_assert_int_eq(tdt__message_answer(reader.connection, &request, sizeof request), -EPIPE);
	reader.fd = -1;
	go(&reader);
}

TEST(an_answer_does_not_go_to_another_file_with_the_same_number)
{
	const struct tdt_outside_header request = VISITOR_HEADER(tdt_outside_header, COUNTERS);
	struct reader reader = come();
	int fd = reader.connection->socket.fd, other[2];
	char byte;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, other), 0);
	ck_assert_int_eq(dup2(other[0], fd), fd);
	ck_assert_int_eq(tdt__message_answer(reader.connection, &request, sizeof request), -EBADF);
	ck_assert_int_eq(recv(other[1], &byte, 1, MSG_DONTWAIT), -1);
	go(&reader);
	ck_assert_int_eq(write(fd, "x", 1), 1); /* it is open */
}

/* --- A child, and no memory ---------------------------------------------- */

TEST(a_child_has_nothing_of_what_readers_of_its_parent_want)
{
	struct reader reader = come();

	ck_assert_int_eq(watch(&reader, 10 * MS), 10 * MS);
	ck_assert(!record(&reader, true));
	IN_A_CHILD
		MUST(tdt__registry.watch_ns == 0 && !is_recording() &&
		     !tdt__connections[0].socket.open);
	ck_assert(is_recording());
	go(&reader);
}

/* Have a request answered with the allocations from the `first` on failing.  Returns the error. */
static int answer_without(int first, const struct reader *reader, const void *message, size_t size)
{
	struct tdt_outside_header to[4];
	int sent;

	no_memory_begin(first);
	sent = tdt__message_answer(reader->connection, message, size);
	no_memory_end();
	ck_assert_int_eq(sent, 0);
	visitor_receive(reader->fd, to, sizeof to);
	ck_assert(to[0].error == 0 || to[0].error == ENOMEM || to[0].error == EAGAIN);
	return to[0].error;
}

TEST(without_memory_a_request_is_refused_and_changes_nothing)
{
	const struct tdt_outside_record to_record = small_recording();
	const struct tdt_outside_watch to_watch = { VISITOR_HEADER(tdt_outside_watch, WATCH),
						    .interval_ns = 10 * MS };
	struct reader reader = come();
	int error = -1;

	NEEDS_FAILING_MEMORY();
	for (int first = 0; error != 0; first++) {
		error = answer_without(first, &reader, &to_watch, sizeof to_watch);
		ck_assert_uint_eq(tdt__registry.watch_ns, error == 0 ? 10 * MS : 0);
	}
	error = -1;
	for (int first = 0; error != 0; first++) {
		error = answer_without(first, &reader, &to_record, sizeof to_record);
		ck_assert_int_eq(is_recording(), error == 0);
	}
	go(&reader);
}
