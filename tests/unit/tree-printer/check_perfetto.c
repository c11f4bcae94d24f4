// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tree-printer/perfetto, tree-printer/packets, tree-printer/packet_stacks.  The packets of a
 * trace are well formed, whatever the recording has; and errors are reported.  What the traces mean
 * to Perfetto is looked at in tests/outside/perfetto.sh.
 */

#include <zlib.h>

#include "lib/made_recording.h"
#include "lib/test.h"
#include "tree-printer/perfetto.h"
#include "tree-printer/protobuf.h"

static unsigned ring, service;

static void begin(void)
{
	end();
	maker = maker_new();
	maker_header(maker)->taken = 1;
	ring = maker_ring(maker, TDT_RING_POLLS, 1024, 11);
	service = maker_ring(maker, TDT_RING_SERVICE, 64, 12);
}

/* A bit of everything. */
static void make_everything(void)
{
	static const uint64_t pcs[] = { 0x401000, 0x402000, 0x403000 };
	unsigned other;
	uint32_t stack;

	begin();
	other = maker_ring(maker, TDT_RING_OTHERS, 64, 13);
	stack = maker_stack(maker, pcs, 3, 0);
	maker_thread(maker, ring, 1, 11, 0, 1,
		     "work\xff"
		     "er");
	maker_clock(maker, service, 1, 1, 2, 3);
	maker_clock(maker, service, 20000000, 20000000, 90000000, 3);
	maker_identity(maker, service, TDT_EVENT_TASK, 6, 9, 0, 0, "\xffholder", "a.c", 42);
	maker_event(maker, service, .kind = TDT_EVENT_START, .time = 7);
	maker_header(maker)->missed = 1;
	maker_event(maker, service, .kind = TDT_EVENT_STACK, .a = stack, .time = 150, .task = 7,
		    .c = 11);
	maker_event(maker, service, .kind = TDT_EVENT_STOP, .time = 9000);
	for (unsigned i = 0; i < 100; i++) /* of which some are lost */
		maker_wake(maker, other, 20 + i, 8, 0);
	maker_identity(maker, ring, TDT_EVENT_SPAWN, 50, 7, 0, 9, "conn", "echo.c", 42);
	for (unsigned i = 0; i < 4; i++) {
		maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 50, 9, "the table of connections");
		maker_leaf(maker, ring, 7, stack, 0, 1);
		maker_leaf(maker, ring, 7, stack, 1, 1);
		if (i < 3)
			maker_wake(maker, ring, 150 + 100 * i, 7, 7);
		maker_user(maker, ring, 160 + 100 * i, 7, "app", "x__start", 1,
			   "\x04"
			   "a",
			   3);
		maker_user(maker, ring, 170 + 100 * i, 7, "app", "x__end", 0, NULL, 0);
		maker_user(maker, ring, 180 + 100 * i, 0, "app", "y", 0, NULL, 0);
		maker_poll_on(maker, ring, 100 + 100 * i, 90, 7, TDT_PENDING, 7, 3);
		maker_park(maker, ring, 191 + 100 * i, 5);
	}
	maker_delay(maker, ring, 400, 7, 1234);
	maker_identity(maker, ring, TDT_EVENT_END, 900, 7, TDT_PANICKED, 9, "conn", "echo.c", 42);
}

/* --- Reading back: by MUST, because Check's assertions take long, and there are many --- */

static uint64_t read_varint(const unsigned char **at, const unsigned char *limit)
{
	uint64_t value = 0;
	unsigned shift = 0;

	for (;; shift += 7) {
		MUST(*at < limit && shift < 64);
		value |= (uint64_t)(**at & 0x7f) << shift;
		if (*(*at)++ < 0x80)
			return value;
	}
}

/* Of which fields of a packet each is a message, as deep as is looked at. */
static bool is_message(unsigned depth, uint64_t field)
{
	return depth == 0 ||
	       (depth == 1 && (field == 6 || field == 11 || field == 12 || field == 60)) ||
	       (depth == 2 && (field == 4 || field == 5 || field == 6 || field == 7));
}

/* Read `n` bytes of fields.  Returns how many messages there were at depth 0. */
static unsigned read_fields(const unsigned char *at, size_t n, unsigned depth)
{
	const unsigned char *limit = at + n;
	unsigned messages = 0;

	while (at < limit) {
		uint64_t tag = read_varint(&at, limit), length;

		messages++;
		switch (tag & 7) {
		case 0:
			read_varint(&at, limit);
			break;
		case 1:
			MUST(limit - at >= 8);
			at += 8;
			break;
		case 2:
			length = read_varint(&at, limit);
			MUST(length <= (size_t)(limit - at));
			if (depth < 2 && is_message(depth, tag >> 3))
				read_fields(at, length, depth + 1);
			at += length;
			break;
		default:
			MUST(false);
		}
	}
	return messages;
}

/* Write the trace, with such names.  The caller frees it. */
static unsigned char *trace_with(tdt__perfetto_names_fn *names, bool gzip, size_t *n)
{
	const struct tdt__perfetto_options options = { .gzip = gzip, .names = names };
	char *bytes = NULL;
	FILE *out = open_memstream(&bytes, n);

	ck_assert_ptr_nonnull(out);
	ck_assert_int_eq(tdt__perfetto_write(recording, &options, out), 0);
	ck_assert_int_eq(fclose(out), 0);
	return (unsigned char *)bytes;
}

static unsigned char *trace(bool gzip, size_t *n)
{
	return trace_with(NULL, gzip, n);
}

static bool contains(const unsigned char *bytes, size_t n, const char *text)
{
	return memmem(bytes, n, text, strlen(text)) != NULL;
}

CASE(packets, .setup = begin, .teardown = end)

TEST(numbers_take_seven_bits_a_byte)
{
	unsigned char bytes[16];

	ck_assert_int_eq(tdt__proto_varint(bytes, 127) - bytes, 1);
	ck_assert_uint_eq(bytes[0], 127);
	ck_assert_int_eq(tdt__proto_varint(bytes, 300) - bytes, 2);
	ck_assert(bytes[0] == 0xac && bytes[1] == 0x02);
	ck_assert_int_eq(tdt__proto_varint(bytes, UINT64_MAX) - bytes, 10);
	ck_assert_int_eq(tdt__proto_uint(bytes, 16, UINT64_MAX) - bytes, 12);
	ck_assert_int_eq(tdt__proto_fixed64(bytes, 47, 1) - bytes, 10);
	ck_assert(bytes[0] == 0xf9 && bytes[1] == 0x02 && bytes[2] == 1 && bytes[9] == 0);
}

TEST(all_packets_are_well_formed_and_texts_are_utf8)
{
	unsigned char *bytes;
	size_t n;

	make_everything();
	open_block();
	bytes = trace(false, &n);
	ck_assert_uint_gt(read_fields(bytes, n, 0), 70);
	ck_assert(contains(bytes, n, "waiting for a mutex \"the table of connections\""));
	ck_assert(contains(bytes, n, "held by task 9 \"\\xffholder\""));
	ck_assert(contains(bytes, n, "work\\xffer"));
	ck_assert(!contains(bytes, n, "\xffholder"));
	ck_assert(contains(bytes, n, "0x403000"));
	free(bytes);
}

TEST(an_empty_recording_is_a_trace)
{
	unsigned char *bytes;
	size_t n;

	open_block();
	bytes = trace(false, &n);
	ck_assert_uint_eq(read_fields(bytes, n, 0), 7); /* clocks, the process, four counters */
	free(bytes);
}

/* 0: it was aborted, 1: it was dropped */
TEST(the_end_of_a_task_says_whether_it_was_aborted_and_by_whom, .to = 2)
{
	unsigned char *bytes;
	size_t n;

	maker_clock(maker, service, 1, 1, 2, 3);
	maker_identity(maker, ring, TDT_EVENT_END, 900, 7,
		       TDT_PENDING | (_i == 0 ? TDT_EVENT_END_ABORTED : 0), 9, "conn", "echo.c",
		       42);
	open_block();
	bytes = trace(false, &n);
	ck_assert_int_eq(contains(bytes, n, "aborted"), _i == 0);
	ck_assert_int_eq(contains(bytes, n, "by task"), _i == 0);
	ck_assert_int_eq(contains(bytes, n, "dropped"), _i == 1);
	free(bytes);
}

static size_t name_entry(void *data, uint64_t pc, struct tdt_frame *frames, size_t max)
{
	frames[0] = (struct tdt_frame){ .function = "serve_client" };
	return 1;
}

static size_t name_callback_poll(void *data, uint64_t pc, struct tdt_frame *frames, size_t max)
{
	frames[0] = (struct tdt_frame){ .function = "tdt__callback_poll" };
	return 1;
}

TEST(a_task_without_a_name_is_called_by_its_function_unless_that_is_the_library_s)
{
	unsigned char *bytes;
	size_t n;

	maker_clock(maker, service, 1, 1, 2, 3);
	maker_identity(maker, ring, TDT_EVENT_SPAWN, 50, 7, TDT_EVENT_ENTRY, 9, "", "echo.c", 42);
	maker_poll(maker, ring, 100, 50, 7, TDT_PENDING);
	open_block();
	bytes = trace_with(name_entry, false, &n);
	ck_assert(contains(bytes, n, "serve_client 7") && contains(bytes, n, "began with") &&
		  !contains(bytes, n, "poll function"));
	free(bytes);
	bytes = trace_with(name_callback_poll, false, &n);
	ck_assert(contains(bytes, n, "task 7") && !contains(bytes, n, "callback_poll"));
	free(bytes);
}

TEST(a_compressed_trace_is_the_same)
{
	unsigned char *plain, *compressed, *again;
	z_stream stream = { 0 };
	size_t n, n_compressed;

	make_everything();
	for (unsigned i = 0; i < 20000; i++) /* more than the buffers have room for */
		maker_wake(maker, ring, 10000 + i * 77 % 1000, i * 7, 0);
	open_block();
	plain = trace(false, &n);
	compressed = trace(true, &n_compressed);
	ck_assert_uint_lt(n_compressed, n);
	again = malloc(n + 1);
	ck_assert_int_eq(inflateInit2(&stream, 15 + 16), Z_OK);
	stream.next_in = compressed;
	stream.avail_in = (unsigned)n_compressed;
	stream.next_out = again;
	stream.avail_out = (unsigned)n + 1;
	ck_assert_int_eq(inflate(&stream, Z_FINISH), Z_STREAM_END);
	ck_assert_uint_eq(stream.total_out, n);
	ck_assert_mem_eq(again, plain, n);
	inflateEnd(&stream);
	free(plain);
	free(compressed);
	free(again);
}

CASE(errors, .setup = begin, .teardown = end)

TEST(an_error_of_writing_is_reported)
{
	const struct tdt__perfetto_options gzip = { .gzip = true };
	STREAM(full, fopen("/dev/full", "w"));

	make_everything();
	open_block();
	ck_assert_ptr_nonnull(full);
	ck_assert_int_eq(tdt__perfetto_write(recording, NULL, full), -ENOSPC);
	ck_assert_int_eq(tdt__perfetto_write(recording, &gzip, full), -ENOSPC);
}

static int write_to(void *argument)
{
	const struct tdt__perfetto_options gzip = { .gzip = true };
	int err = tdt__perfetto_write(recording, NULL, argument);

	return err != 0 ? err : tdt__perfetto_write(recording, &gzip, argument);
}

TEST(a_task_waits_for_its_main_wait_and_surely_only_if_no_event_is_missing)
{
	unsigned char *bytes;
	size_t n;

	maker_header(maker)->missed = 1;
	maker_header(maker)->missed_last = 150;
	for (unsigned i = 0; i < 2; i++) {
		maker_wait(maker, ring, 7, TDT_WAIT_TIMER, 0, 0, NULL);
		maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0x10, 9, "table");
		maker_poll(maker, ring, 100 + 100 * i, 10, 7, TDT_PENDING);
	}
	open_block();
	bytes = trace(false, &n);
	ck_assert(contains(bytes, n,
			   "waiting for a mutex \"table\" (0x10) held by task 9 and 1 "
			   "more (unsure, since events are lost)"));
	ck_assert(!contains(bytes, n, "timer"));
	free(bytes);
}

TEST(a_wait_is_one_slice_with_the_last_holder_of_the_lock)
{
	unsigned char *bytes;
	size_t n;

	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0x10, 8, NULL);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_event(maker, service, .kind = TDT_EVENT_LOCK, .time = 150, .task = 9, .c = 0x10);
	open_block();
	bytes = trace(false, &n);
	ck_assert(contains(bytes, n, "waiting for a mutex (0x10) held by task 9"));
	ck_assert(!contains(bytes, n, "task 8"));
	free(bytes);
}

TEST(without_memory_writing_says_so)
{
	STREAM(out, fopen("/dev/null", "w"));
	static char buffer[BUFSIZ];

	make_everything();
	open_block();
	ck_assert_ptr_nonnull(out);
	setvbuf(out, buffer, _IOFBF, sizeof(buffer));
	no_memory_each(write_to, out, 20);
}

TEST(damaged_recordings_make_whole_packets)
{
	unsigned seed = seed_of_run(), written = 0;

	make_everything();
	for (unsigned i = 0; i < 2000; i++) {
		unsigned char *bytes;
		size_t n;

		block = maker_block(maker, &size);
		for (unsigned k = random_below(&seed, 20) + 1; k > 0; k--)
			((unsigned char *)
			     block)[sizeof(struct tdt_recording) + random_below(&seed, 4096)] =
			    (unsigned char)random_below(&seed, 256);
		if (tdt__recording_open(&recording, block, size) == 0) {
			bytes = trace(false, &n);
			read_fields(bytes, n, 0);
			free(bytes);
			written++;
		}
		close_block();
	}
	ck_assert_uint_gt(written, 1000);
}
