// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The packets of a Perfetto trace: see packets.h. */

#include "packets.h"

#include <string.h>

/* The numbers of the fields, by message. */
enum {
	TRACE_PACKET = 1,

	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK = 60,

	PACKET_CLOCK = 58,
	DEFAULTS_CLOCK = 58,

	SNAPSHOT_CLOCK = 1,
	SNAPSHOT_PRIMARY = 2,
	CLOCK_ID = 1,
	CLOCK_TIME = 2,
	CLOCK_INCREMENTAL = 3,

	TRACK_UUID = 1,

	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_NAME = 10,
	EVENT_TRACK = 11,
	EVENT_COUNTER = 30,
	EVENT_FLOW = 47,
	EVENT_FLOW_END = 48,
	EVENT_CALLSTACK = 56,

	ANNOTATION_NAME = 1,
	ANNOTATION_UINT = 3,
	ANNOTATION_INT = 4,
	ANNOTATION_DOUBLE = 5,
	ANNOTATION_STRING = 6,

	TEXT_IID = 1,
	TEXT_BYTES = 2
};

/* Clocks, as Perfetto numbers them.  Those from 64 on belong to one sequence. */
enum { REALTIME = 1, MONOTONIC = 3, BOOTTIME = 6, OURS = 64 };

/* The first packet says that the sequence begins, and the others that they need what it told. */
enum { BEGINS = 1, GOES_ON = 2 };

/*
 * The number of the sequence.  The tracing service counts its sequences from 1, so a trace of the
 * system that is joined with ours uses the small numbers.
 */
#define SEQUENCE 11735

static void write_raw(struct tdt__packets *packets, const void *bytes, size_t n)
{
	if (packets->error != 0 || n == 0)
		return;
	errno = 0;
	if (fwrite(bytes, 1, n, packets->file) != n)
		packets->error = errno == 0 ? -EIO : -errno;
}

/* Compress the buffer; Z_FINISH also what zlib still holds back. */
static void write_compressed(struct tdt__packets *packets, int flush)
{
	unsigned char compressed[1 << 14];

	packets->stream.next_in = packets->buffer;
	packets->stream.avail_in = (unsigned)packets->used;
	do {
		packets->stream.next_out = compressed;
		packets->stream.avail_out = sizeof(compressed);
		deflate(&packets->stream, flush);
		write_raw(packets, compressed, sizeof(compressed) - packets->stream.avail_out);
	} while (packets->stream.avail_out == 0);
}

static void write_buffer(struct tdt__packets *packets, bool last)
{
	if (packets->gzip)
		write_compressed(packets, last ? Z_FINISH : Z_NO_FLUSH);
	else
		write_raw(packets, packets->buffer, packets->used);
	packets->used = 0;
}

static void put_bytes(struct tdt__packets *packets, const void *bytes, size_t n)
{
	const unsigned char *from = bytes;

	while (n > sizeof(packets->buffer) - packets->used) {
		size_t room = sizeof(packets->buffer) - packets->used;

		memcpy(packets->buffer + packets->used, from, room);
		packets->used += room;
		from += room;
		n -= room;
		write_buffer(packets, false);
	}
	if (n != 0)
		memcpy(packets->buffer + packets->used, from, n);
	packets->used += n;
}

/*
 * Write a packet: its first fields, which are in `packet`, what is new in the interned data, and
 * the message, which is emptied.
 */
static void put_packet(struct tdt__packets *packets, unsigned field, struct tdt__string *message)
{
	struct tdt__string *packet = &packets->packet;
	unsigned char head[2 * TDT__PROTO_MAX];

	if (packets->interned.n != 0 || packets->interned.failed)
		tdt__proto_add_message(packet, PACKET_INTERNED, &packets->interned);
	tdt__proto_add_message(packet, field, message);
	if (packet->failed) {
		tdt__packets_fail(packets);
		return;
	}
	put_bytes(packets, head, (size_t)(tdt__proto_head(head, TRACE_PACKET, packet->n) - head));
	put_bytes(packets, packet->bytes, packet->n);
	packet->n = 0;
}

static void put_message(struct tdt__packets *packets, unsigned flags, unsigned field,
			struct tdt__string *message)
{
	tdt__proto_add_uint(&packets->packet, PACKET_SEQUENCE, SEQUENCE);
	tdt__proto_add_uint(&packets->packet, PACKET_FLAGS, flags);
	put_packet(packets, field, message);
}

/* The fields of an event but its annotations.  Returns their end; at most EVENT_MAX bytes. */
#define EVENT_MAX 70

static unsigned char *put_fields(unsigned char *at, const struct tdt__packet_event *event)
{
	at = tdt__proto_uint(at, EVENT_TYPE, event->type);
	at = tdt__proto_uint(at, EVENT_TRACK, event->track);
	if (event->name != 0)
		at = tdt__proto_uint(at, EVENT_NAME, event->name);
	if (event->type == TDT__PACKET_COUNTER)
		at = tdt__proto_uint(at, EVENT_COUNTER, (uint64_t)event->value);
	if (event->flow != 0)
		at = tdt__proto_fixed64(at, EVENT_FLOW, event->flow);
	if (event->flow_end != 0)
		at = tdt__proto_fixed64(at, EVENT_FLOW_END, event->flow_end);
	if (event->callstack != 0)
		at = tdt__proto_uint(at, EVENT_CALLSTACK, event->callstack);
	return at;
}

static unsigned char *put_time(unsigned char *at, uint64_t since)
{
	at = tdt__proto_uint(at, PACKET_TIMESTAMP, since);
	return tdt__proto_uint(at, PACKET_SEQUENCE, SEQUENCE);
}

/*
 * Write an event that tells nothing new, right into the buffer.  It is so short that its length is
 * one byte, which is filled in afterwards.  Nearly all events are of this kind.
 */
#define SHORT_ANNOTATIONS 20

static void put_short(struct tdt__packets *packets, uint64_t since,
		      const struct tdt__packet_event *event, const struct tdt__string *annotations)
{
	unsigned char *start = packets->buffer + packets->used, *at = start, *body;

	*at++ = TRACE_PACKET << 3 | 2;
	at = put_time(at + 1, since);
	*at++ = PACKET_EVENT << 3 | 2;
	body = at + 1;
	at = put_fields(body, event);
	if (annotations != NULL) {
		memcpy(at, annotations->bytes, annotations->n);
		at += annotations->n;
	}
	body[-1] = (unsigned char)(at - body);
	start[1] = (unsigned char)(at - start - 2);
	packets->used += (size_t)(at - start);
}

static void put_full(struct tdt__packets *packets, uint64_t time, bool is_past,
		     const struct tdt__packet_event *event)
{
	unsigned char bytes[EVENT_MAX];
	struct tdt__string *body = &packets->scratch;

	tdt__string_add(&packets->packet, bytes, (size_t)(put_time(bytes, time) - bytes));
	if (is_past)
		tdt__proto_add_uint(&packets->packet, PACKET_CLOCK, MONOTONIC);
	tdt__string_add(body, bytes, (size_t)(put_fields(bytes, event) - bytes));
	if (event->annotations != NULL) {
		tdt__string_add(body, event->annotations->bytes, event->annotations->n);
		body->failed |= event->annotations->failed;
	}
	put_packet(packets, PACKET_EVENT, body);
}

void tdt__packets_event(struct tdt__packets *packets, uint64_t ns,
			const struct tdt__packet_event *event)
{
	const struct tdt__string *annotations = event->annotations;
	uint64_t since = ns - packets->last;

	if (ns < packets->last) {
		put_full(packets, ns, true, event);
		return;
	}
	packets->last = ns;
	if (packets->interned.n != 0 || packets->interned.failed ||
	    (annotations != NULL && (annotations->n > SHORT_ANNOTATIONS || annotations->failed))) {
		put_full(packets, since, false, event);
		return;
	}
	if (sizeof(packets->buffer) - packets->used < 2 * EVENT_MAX)
		write_buffer(packets, false);
	put_short(packets, since, event, annotations);
}

uint64_t tdt__packets_track(struct tdt__packets *packets, struct tdt__string *descriptor)
{
	tdt__proto_add_uint(descriptor, TRACK_UUID, packets->next_track);
	put_message(packets, GOES_ON, PACKET_TRACK, descriptor);
	return packets->next_track++;
}

static void put_clock_time(struct tdt__string *snapshot, struct tdt__string *clock, unsigned id,
			   uint64_t ns)
{
	tdt__proto_add_uint(clock, CLOCK_ID, id);
	tdt__proto_add_uint(clock, CLOCK_TIME, ns);
	if (id == OURS)
		tdt__proto_add_uint(clock, CLOCK_INCREMENTAL, 1);
	tdt__proto_add_message(snapshot, SNAPSHOT_CLOCK, clock);
}

void tdt__packets_clocks(struct tdt__packets *packets, uint64_t monotonic, uint64_t boot,
			 uint64_t real)
{
	struct tdt__string snapshot = { 0 };

	put_clock_time(&snapshot, &packets->scratch, BOOTTIME, boot);
	put_clock_time(&snapshot, &packets->scratch, MONOTONIC, monotonic);
	put_clock_time(&snapshot, &packets->scratch, REALTIME, real);
	put_clock_time(&snapshot, &packets->scratch, OURS, monotonic);
	tdt__proto_add_uint(&snapshot, SNAPSHOT_PRIMARY, BOOTTIME);
	packets->last = monotonic;
	put_message(packets, GOES_ON, PACKET_CLOCK_SNAPSHOT, &snapshot);
	tdt__string_free(&snapshot);
}

int tdt__packets_begin(struct tdt__packets *packets, const struct tdt__perfetto_options *options,
		       FILE *file, uint64_t seed)
{
	memset(packets, 0, offsetof(struct tdt__packets, buffer));
	packets->file = file;
	packets->options = options;
	packets->gzip = options->gzip;
	/* 28 bits, which are 4 bytes as a varint. */
	packets->next_track = (UINT64_C(1) << 21 | (seed & 0xfffffff)) + 1;
	/* The last bits of the window's size ask for gzip's frame. */
	if (packets->gzip && deflateInit2(&packets->stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8,
					  Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	tdt__proto_add_uint(&packets->scratch, DEFAULTS_CLOCK, OURS);
	put_message(packets, BEGINS, PACKET_DEFAULTS, &packets->scratch);
	return 0;
}

int tdt__packets_end(struct tdt__packets *packets)
{
	write_buffer(packets, true);
	errno = 0;
	if (fflush(packets->file) != 0 && packets->error == 0)
		packets->error = errno == 0 ? -EIO : -errno;
	if (packets->gzip)
		deflateEnd(&packets->stream);
	tdt__string_free(&packets->interned);
	tdt__string_free(&packets->scratch);
	tdt__string_free(&packets->packet);
	for (int i = 0; i < TDT__INTERNED; i++)
		tdt__texts_fini(&packets->texts[i]);
	tdt__table_fini(&packets->stack_table);
	return packets->error;
}

uint32_t tdt__packets_intern(struct tdt__packets *packets, enum tdt__interned field,
			     const char *text, size_t n)
{
	struct tdt__texts *texts = &packets->texts[field];
	size_t before = texts->n;
	uint32_t iid = tdt__texts_number(texts, text, n) + 1;

	if (iid == 0) /* TDT__INDEX_NONE + 1 */
		tdt__packets_fail(packets);
	if (texts->n == before)
		return iid;
	tdt__proto_add_uint(&packets->scratch, TEXT_IID, iid);
	tdt__proto_add_bytes(&packets->scratch, TEXT_BYTES, text, n);
	tdt__proto_add_message(&packets->interned, field, &packets->scratch);
	return iid;
}

uint32_t tdt__packets_name(struct tdt__packets *packets, enum tdt__interned field, const char *name)
{
	struct tdt__string escaped = { 0 };
	uint32_t iid = 0;

	tdt__string_escape(&escaped, name, true, '\0');
	if (escaped.failed)
		tdt__packets_fail(packets);
	else
		iid = tdt__packets_intern(packets, field, escaped.bytes, escaped.n);
	tdt__string_free(&escaped);
	return iid;
}

void tdt__packets_annotate_named(struct tdt__string *annotations, uint32_t name, uint64_t value)
{
	unsigned char bytes[4 * TDT__PROTO_MAX], *body = bytes + 2, *at;

	at = tdt__proto_uint(body, ANNOTATION_NAME, name);
	at = tdt__proto_uint(at, ANNOTATION_UINT, value);
	bytes[0] = EVENT_ANNOTATION << 3 | 2;
	bytes[1] = (unsigned char)(at - body);
	tdt__string_add(annotations, bytes, (size_t)(at - bytes));
}

void tdt__packets_annotate_value(struct tdt__packets *packets, struct tdt__string *annotations,
				 const char *name, const struct tdt__recorded_argument *value)
{
	size_t start = annotations->n;

	tdt__proto_add_uint(
	    annotations, ANNOTATION_NAME,
	    tdt__packets_intern(packets, TDT__ANNOTATION_NAMES, name, strlen(name)));
	if (value->type == TDT_USER_INT)
		tdt__proto_add_uint(annotations, ANNOTATION_INT, (uint64_t)value->i);
	else if (value->type == TDT_USER_UINT)
		tdt__proto_add_uint(annotations, ANNOTATION_UINT, value->u);
	else if (value->type == TDT_USER_DOUBLE)
		tdt__proto_add_double(annotations, ANNOTATION_DOUBLE, value->d);
	else
		tdt__proto_add_escaped(annotations, ANNOTATION_STRING, value->text);
	tdt__proto_wrap(annotations, start, EVENT_ANNOTATION);
}
