// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tree-printer/otlp.  The spans of made recordings, as a strict reader of OTLP reads them;
 * and errors are reported.  What protoc and a receiver of HTTP make of them is looked at in
 * tests/outside/otlp.sh.
 */

#include "lib/made_recording.h"
#include "lib/test.h"
#include "tree-printer/otlp.h"
#include "tree-printer/protobuf.h"

/* --- Reading back: by MUST, because Check's assertions take long, and there are many --- */

struct slice {
	const unsigned char *at, *end;
};

struct field {
	unsigned number, type;
	uint64_t value;	    /* a number */
	struct slice bytes; /* a text, or a message */
};

static uint64_t read_varint(struct slice *in)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		MUST(in->at < in->end && shift < 64);
		value |= (uint64_t)(*in->at & 0x7f) << shift;
		if (*in->at++ < 0x80)
			return value;
	}
}

static uint64_t read_fixed(struct slice *in, size_t n)
{
	uint64_t value = 0;

	MUST((size_t)(in->end - in->at) >= n);
	for (size_t i = 0; i < n; i++)
		value |= (uint64_t)*in->at++ << 8 * i;
	return value;
}

static bool next_field(struct slice *in, struct field *field)
{
	uint64_t tag, n;

	if (in->at == in->end)
		return false;
	tag = read_varint(in);
	*field = (struct field){ .number = (unsigned)(tag >> 3), .type = tag & 7 };
	switch (field->type) {
	case 0:
		field->value = read_varint(in);
		break;
	case 1:
		field->value = read_fixed(in, 8);
		break;
	case 2:
		n = read_varint(in);
		MUST(n <= (size_t)(in->end - in->at));
		field->bytes = (struct slice){ in->at, in->at + n };
		in->at += n;
		break;
	case 5:
		field->value = read_fixed(in, 4);
		break;
	default:
		MUST(false);
	}
	return true;
}

#define NUMBERS 17

/* The fields of a message by their numbers. */
struct message {
	struct field field[NUMBERS];
	bool has[NUMBERS];
};

/*
 * `types`: the type of each field that may be there, else '-'.  `several`: bits of the fields that
 * may be there more than once.
 */
static struct message read_message(struct slice in, const char *types, unsigned several)
{
	struct message message = { 0 };
	struct field field;

	while (next_field(&in, &field)) {
		MUST(field.number < strlen(types));
		MUST(types[field.number] == (char)('0' + field.type));
		MUST(!message.has[field.number] || (several & 1u << field.number) != 0);
		message.field[field.number] = field;
		message.has[field.number] = true;
	}
	return message;
}

static void print_text_of(FILE *out, struct slice text)
{
	char copy[4096];
	size_t n = (size_t)(text.end - text.at);
	uint32_t code;

	MUST(n < sizeof copy);
	memcpy(copy, text.at, n);
	copy[n] = '\0';
	MUST(strlen(copy) == n);
	for (const char *at = copy; *at != '\0'; at += tdt__utf8_decode(at, &code))
		MUST(tdt__utf8_decode(at, &code) != 0);
	fputs(copy, out);
}

static void print_attribute(FILE *out, struct slice bytes)
{
	struct message attribute = read_message(bytes, "-22", 0), value;

	MUST(attribute.has[1] && attribute.has[2]);
	fputc(' ', out);
	print_text_of(out, attribute.field[1].bytes);
	value = read_message(attribute.field[2].bytes, "-200", 0);
	MUST(value.has[1] + value.has[2] + value.has[3] == 1);
	fputc('=', out);
	if (value.has[1])
		print_text_of(out, value.field[1].bytes);
	else if (value.has[2])
		fputs(value.field[2].value != 0 ? "true" : "false", out);
	else
		fprintf(out, "%" PRIu64, value.field[3].value);
}

/* All attributes of a message, which are its field `number`. */
static void print_attributes(FILE *out, struct slice in, unsigned number)
{
	struct field field;

	while (next_field(&in, &field))
		if (field.number == number)
			print_attribute(out, field.bytes);
}

static bool damaged; /* the recording is: ids and times may be any */

/* The bytes of an id of these tests are all the same. */
static unsigned byte_of_id(const struct field *id, size_t n)
{
	MUST((size_t)(id->bytes.end - id->bytes.at) == n);
	for (size_t i = 1; i < n; i++)
		MUST(damaged || id->bytes.at[i] == id->bytes.at[0]);
	return id->bytes.at[0];
}

static void print_link(FILE *out, struct slice in)
{
	struct message link = read_message(in, "-22-2-5", 0);

	MUST(link.has[1] && link.has[2] && link.has[6]);
	fprintf(out, " -> %x/%x", byte_of_id(&link.field[1], 16), byte_of_id(&link.field[2], 8));
	print_attributes(out, in, 4);
}

#define START_REAL UINT64_C(1700000000000000000)

static uint64_t ids[100]; /* of the spans, in their order */
static unsigned n_spans;

static void print_span(FILE *out, struct slice in)
{
	struct message span = read_message(in, "-22-220112---2--5", 1u << 9 | 1u << 13);
	struct slice links = in, id = span.field[2].bytes;
	struct field field;

	for (unsigned i = 1; i <= 8; i++)
		MUST(span.has[i] || i == 3);
	MUST(id.end - id.at == 8);
	MUST(span.field[6].value == 1);
	MUST(damaged || span.field[8].value >= span.field[7].value);
	ids[n_spans % 100] = read_fixed(&id, 8);
	MUST(ids[n_spans++ % 100] != 0);
	fprintf(out, "%x/%x+%" PRIx64 " %" PRIu64 "-%" PRIu64 " ", byte_of_id(&span.field[1], 16),
		byte_of_id(&span.field[4], 8), span.field[16].value,
		span.field[7].value - START_REAL, span.field[8].value - START_REAL);
	print_text_of(out, span.field[5].bytes);
	fputc(':', out);
	print_attributes(out, in, 9);
	while (next_field(&links, &field))
		if (field.number == 13)
			print_link(out, field.bytes);
	fputc('\n', out);
}

static void print_resource_spans(FILE *out, struct slice in)
{
	struct message resource_spans = read_message(in, "-22", 0), scope_spans, scope;
	struct slice spans;
	struct field field;

	MUST(resource_spans.has[1] && resource_spans.has[2]);
	read_message(resource_spans.field[1].bytes, "-2", 1u << 1);
	print_attributes(out, resource_spans.field[1].bytes, 1);
	spans = resource_spans.field[2].bytes;
	scope_spans = read_message(spans, "-22", 1u << 2);
	MUST(scope_spans.has[1] && scope_spans.has[2]);
	scope = read_message(scope_spans.field[1].bytes, "-22", 0);
	MUST(scope.has[1] && scope.has[2]);
	fputs(" of ", out);
	print_text_of(out, scope.field[1].bytes);
	fputc(' ', out);
	print_text_of(out, scope.field[2].bytes);
	fputc('\n', out);
	while (next_field(&spans, &field))
		if (field.number == 2)
			print_span(out, field.bytes);
}

/* --- Recordings --- */

static struct tdt__otlp_counts counts;
static unsigned messages;
static size_t longest;
static int refusal;

/* A tdt__otlp_fn: print the message as text to the stream. */
static int take(void *arg, const void *message, size_t n, uint64_t spans)
{
	struct slice in = { message, (const unsigned char *)message + n };
	unsigned before = n_spans;
	struct field field;

	while (next_field(&in, &field)) {
		MUST(field.number == 1 && field.type == 2);
		print_resource_spans(arg, field.bytes);
	}
	MUST(n_spans - before == spans);
	messages++;
	longest = n > longest ? n : longest;
	return refusal;
}

static char text[1 << 16];

static const char *spans_longer_than(uint64_t longer)
{
	char *bytes = NULL;
	size_t n;
	FILE *out = open_memstream(&bytes, &n);

	n_spans = messages = 0;
	open_block();
	ck_assert_int_eq(tdt__otlp_write(recording, longer, take, out, &counts), 0);
	fclose(out);
	ck_assert_uint_lt(n, sizeof text);
	memcpy(text, bytes, n + 1);
	free(bytes);
	ck_assert_uint_eq(counts.spans, n_spans);
	return text;
}

static const char *spans(void)
{
	return spans_longer_than(0);
}

#define HEAD " service.name=made process.pid=4242 of tdt 0.1\n"

static unsigned ring, service;

static void begin(void)
{
	end();
	maker = maker_new();
	maker_header(maker)->taken = 1000;
	ring = maker_ring(maker, TDT_RING_POLLS, 1024, 11);
	service = maker_ring(maker, TDT_RING_SERVICE, 64, 12);
	maker_thread(maker, ring, 1, 11, 0, 1, "worker");
}

static struct tdt_trace_context context_of(int trace, int span)
{
	struct tdt_trace_context context = { .valid = 1, .flags = 1 };

	memset(context.trace_id, trace, sizeof context.trace_id);
	memset(context.span_id, span, sizeof context.span_id);
	return context;
}

/* The task gets a context; `trace` is 0: it loses it. */
static void set(uint64_t time, uint64_t task, int trace, int span)
{
	struct tdt_trace_context context = context_of(trace, span);

	maker_add(maker, ring,
		  (struct tdt_event){ .kind = TDT_EVENT_CONTEXT, .time = time, .task = task },
		  &context, trace != 0 ? sizeof context : 0);
}

/* SPAWN, END or TASK of a task, which has that context. */
static void identify(uint8_t kind, uint64_t time, uint64_t task, const char *name, int trace,
		     int span)
{
	struct tdt_trace_context context = context_of(trace, span);
	char payload[100] = "";
	size_t n = 16 + strlen(name) + 1;

	memcpy(payload + 16, name, n - 16);
	payload[8] = 42; /* the line */
	n += 1 + (size_t)sprintf(payload + n, "echo.c");
	memcpy(payload + n, &context, sizeof context);
	maker_add(maker, ring,
		  (struct tdt_event){
		      .kind = kind, .detail = TDT_READY, .time = time, .task = task, .c = 0x1000 },
		  payload, n + (trace != 0 ? sizeof context : 0));
}

CASE(spans, .setup = begin, .teardown = end)

TEST(each_phase_is_a_child_of_the_programs_span)
{
	identify(TDT_EVENT_SPAWN, 100, 7, "conn", 0xa, 0xb);
	maker_wait(maker, ring, 7, TDT_WAIT_TIMER, 0, 0, NULL);
	maker_poll(maker, ring, 120, 30, 7, TDT_PENDING);
	maker_wake(maker, ring, 200, 7, 8);
	identify(TDT_EVENT_END, 230, 7, "conn", 0xa, 0xb);
	maker_poll(maker, ring, 210, 40, 7, TDT_READY);
	ck_assert_str_eq(spans(), HEAD
			 "a/b+101 100-120 spawned: tdt.task.id=7 tdt.task.name=conn thread.id=11"
			 " thread.name=worker\n"
			 "a/b+101 120-150 polling: tdt.task.id=7 tdt.task.name=conn thread.id=11"
			 " thread.name=worker\n"
			 "a/b+101 150-200 waiting for a timer: tdt.task.id=7 tdt.task.name=conn"
			 " tdt.wait.kind=timer tdt.waker.id=8 tdt.waker.thread.id=11"
			 " tdt.waker.thread.name=worker\n"
			 "a/b+101 200-210 runnable: tdt.task.id=7 tdt.task.name=conn thread.id=11"
			 " thread.name=worker\n"
			 "a/b+101 210-250 polling: tdt.task.id=7 tdt.task.name=conn thread.id=11"
			 " thread.name=worker\n");
}

TEST(tasks_without_a_trace_have_no_spans)
{
	identify(TDT_EVENT_SPAWN, 100, 7, "conn", 0, 0);
	maker_poll(maker, ring, 120, 30, 7, TDT_PENDING);
	ck_assert_str_eq(spans(), "");
	ck_assert_uint_eq(messages, 0);
}

TEST(what_hangs_ends_with_the_recording_and_links_to_the_holder)
{
	identify(TDT_EVENT_SPAWN, 10, 9, "vacuum", 0xc, 0xd);
	maker_poll(maker, ring, 20, 5, 9, TDT_READY);
	identify(TDT_EVENT_SPAWN, 100, 7, "", 0xa, 0xb);
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0xabc, 9, "db \"pool\"\xff");
	maker_wait(maker, ring, 7, TDT_WAIT_TIMER, 0, 0, NULL);
	maker_poll(maker, ring, 120, 30, 7, TDT_PENDING);
	spans_longer_than(850);
	ck_assert_str_eq(
	    text,
	    HEAD "a/b+101 150-1000 waiting for a mutex \"db \\\"pool\\\"\\xff\": tdt.task.id=7"
		 " tdt.task.file=echo.c tdt.task.line=42 tdt.not_over=true tdt.wait.kind=mutex"
		 " tdt.wait.object=0xabc tdt.wait.leaves=2 tdt.holder.id=9 tdt.holder.name=vacuum"
		 " -> c/d tdt.link=holder\n");
	ck_assert_uint_eq(counts.shorter, 4);
}

TEST(a_wait_that_begins_with_the_last_event_has_a_span)
{
	identify(TDT_EVENT_SPAWN, 10, 9, "vacuum", 0xc, 0xd);
	maker_poll(maker, ring, 20, 5, 9, TDT_PENDING);
	identify(TDT_EVENT_SPAWN, 100, 7, "", 0xa, 0xb);
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0xabc, 9, NULL);
	maker_poll(maker, ring, 970, 30, 7, TDT_PENDING);
	ck_assert_ptr_nonnull(strstr(spans(), "a/b+101 1000-1000 waiting for a mutex:"));
	ck_assert_ptr_nonnull(strstr(text, " tdt.not_over=true"));
	ck_assert_ptr_nonnull(strstr(text, " -> c/d tdt.link=holder\n"));
}

TEST(a_wait_from_before_the_first_event_begins_when_the_listing_says)
{
	const uint64_t listed[] = { 42, 5, 0, 0, 0xabc, 9, 0 };

	identify(TDT_EVENT_SPAWN, 500, 9, "vacuum", 0xc, 0xd);
	maker_add(maker, service,
		  (struct tdt_event){ .kind = TDT_EVENT_STATE,
				      .detail = TDT_WAIT_MUTEX,
				      .a = 1,
				      .b = TDT_STATE_IDLE,
				      .time = 900,
				      .task = 7,
				      .c = 20 },
		  listed, sizeof listed);
	identify(TDT_EVENT_TASK, 900, 7, "conn", 0xa, 0xb);
	spans();
	ck_assert_ptr_nonnull(
	    strstr(text, "a/b+101 20-1000 waiting for a mutex: tdt.task.id=7 tdt.task.name=conn"
			 " tdt.not_over=true tdt.wait.kind=mutex tdt.wait.object=0xabc"
			 " tdt.holder.id=9 tdt.holder.name=vacuum -> c/d tdt.link=holder\n"));
}

TEST(a_phase_is_cut_where_the_context_changes)
{
	maker_poll(maker, ring, 100, 0, 7, TDT_PENDING);
	set(150, 7, 0xa, 0xb);
	set(170, 7, 0xa, 0xe);
	set(200, 7, 0, 0);
	maker_wake(maker, ring, 300, 7, 0);
	ck_assert_str_eq(spans(), HEAD "a/b+101 150-170 waiting: tdt.task.id=7\n"
				       "a/e+101 170-200 waiting: tdt.task.id=7\n");
}

TEST(a_wait_links_to_the_span_that_the_holder_had_during_it, .to = 4)
{
	/*
	 * 0: it had lost it when the wait ended; 1: it got another one afterwards; 2: before; 3: it
	 * had lost it when the wait began.
	 */
	identify(TDT_EVENT_SPAWN, 10, 9, "holder", 0xc, 0xd);
	identify(TDT_EVENT_SPAWN, 20, 7, "conn", 0xa, 0xb);
	if (_i >= 2)
		set(105, 9, _i == 2 ? 0xe : 0, 0xf);
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0xabc, 9, NULL);
	maker_poll(maker, ring, 110, 10, 7, TDT_PENDING);
	if (_i == 0)
		set(190, 9, 0, 0);
	maker_wake(maker, ring, 200, 7, 9);
	if (_i == 1)
		set(210, 9, 0xe, 0xf);
	spans();
	ck_assert_ptr_nonnull(strstr(text, "120-200 waiting for a mutex: tdt.task.id=7"));
	ck_assert_int_eq(strstr(text, " -> c/d") != NULL, _i < 2);
	ck_assert_int_eq(strstr(text, " -> e/f") != NULL, _i == 2);
}

TEST(a_lock_that_is_passed_on_has_a_first_holder, .to = 2)
{
	identify(TDT_EVENT_SPAWN, 10, 8, "first", 0xc, 0xd);
	identify(TDT_EVENT_SPAWN, 20, 9, "last", 0xe, 0xf);
	identify(TDT_EVENT_SPAWN, 30, 7, "conn", 0xa, 0xb);
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0xabc, 8, NULL);
	maker_poll(maker, ring, 110, 10, 7, TDT_PENDING);
	if (_i == 1) /* the first one has lost its context when the wait ends */
		set(140, 8, 0, 0);
	maker_event(maker, ring, .kind = TDT_EVENT_LOCK, .time = 150, .task = 9, .c = 0xabc);
	maker_wake(maker, ring, 200, 7, 9);
	spans();
	ck_assert_ptr_nonnull(strstr(
	    text, " tdt.holder.id=9 tdt.holder.name=last tdt.first_holder.id=8"
		  " tdt.first_holder.name=first tdt.waker.id=9 tdt.waker.name=last"
		  " tdt.waker.thread.id=11 tdt.waker.thread.name=worker"
		  " -> e/f tdt.link=holder -> c/d tdt.link=first holder\n"));
}

/* The event that gave the task its context is missing: a listing says so later. */
TEST(a_context_that_is_listed_is_that_of_the_time_before)
{
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_wake(maker, ring, 200, 7, 0);
	maker_poll(maker, ring, 210, 10, 7, TDT_PENDING);
	identify(TDT_EVENT_TASK, 300, 7, "conn", 0xa, 0xb);
	ck_assert_str_eq(spans(), HEAD "a/b+101 100-110 polling: tdt.task.id=7 tdt.task.name=conn"
				       " thread.id=11 thread.name=worker\n"
				       "a/b+101 110-200 waiting: tdt.task.id=7 tdt.task.name=conn"
				       " tdt.waker.thread.id=11 tdt.waker.thread.name=worker\n"
				       "a/b+101 200-210 runnable: tdt.task.id=7 tdt.task.name=conn"
				       " thread.id=11 thread.name=worker\n"
				       "a/b+101 210-220 polling: tdt.task.id=7 tdt.task.name=conn"
				       " thread.id=11 thread.name=worker\n"
				       "a/b+101 220-1000 waiting: tdt.task.id=7 tdt.task.name=conn"
				       " tdt.not_over=true\n");
}

/* Then only the phase that goes on at the time of the listing is known to belong to the trace. */
TEST(a_context_that_differs_from_the_known_one_is_that_of_the_phase)
{
	identify(TDT_EVENT_TASK, 50, 7, "", 0, 0);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	identify(TDT_EVENT_TASK, 300, 7, "", 0xa, 0xb);
	maker_wake(maker, ring, 400, 7, 0);
	spans();
	ck_assert_str_eq(strchr(text, '\n') + 1,
			 "a/b+101 110-400 waiting: tdt.task.id=7 tdt.task.file=echo.c"
			 " tdt.task.line=42 tdt.waker.thread.id=11 tdt.waker.thread.name=worker\n"
			 "a/b+101 400-1000 runnable: tdt.task.id=7 tdt.task.file=echo.c"
			 " tdt.task.line=42 tdt.not_over=true\n");
}

/* 0: up to 150; 1: nobody knows until when. */
TEST(where_events_are_missing_a_listing_says_nothing_of_the_time_before, .to = 2)
{
	maker_header(maker)->missed = 1;
	maker_header(maker)->missed_last = _i == 0 ? 150 : 0;
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_wake(maker, ring, 120, 7, 0);
	maker_poll(maker, ring, 140, 20, 7, TDT_PENDING);
	maker_wake(maker, ring, 170, 7, 0);
	maker_poll(maker, ring, 175, 5, 7, TDT_PENDING);
	identify(TDT_EVENT_TASK, 200, 7, "conn", 0xa, 0xb);
	spans();
	ck_assert_ptr_null(strstr(text, "100-110 polling"));
	ck_assert_ptr_null(strstr(text, "120-140 runnable"));
	ck_assert_int_eq(strstr(text, " 140-160 polling") != NULL, _i == 0);
	ck_assert_int_eq(strstr(text, " 170-175 runnable") != NULL, _i == 0);
	ck_assert_ptr_nonnull(strstr(text, " 180-1000 waiting"));
}

TEST(where_events_are_missing_a_span_is_not_sure)
{
	maker_header(maker)->missed = 1;
	maker_header(maker)->missed_last = 250;
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	set(110, 7, 0xa, 0xb);
	maker_wake(maker, ring, 300, 7, 0);
	spans();
	ck_assert_ptr_nonnull(
	    strstr(text, "110-300 waiting: tdt.task.id=7 tdt.unsure=true tdt.waker"));
}

TEST(the_same_recording_gives_the_same_ids_and_no_two_spans_have_one)
{
	uint64_t first[100];

	identify(TDT_EVENT_SPAWN, 1, 7, "conn", 0xa, 0xb);
	identify(TDT_EVENT_SPAWN, 1, 8, "conn", 0xa, 0xb);
	for (unsigned i = 0; i < 10; i++) {
		maker_poll(maker, ring, 20 + 20 * i, 10, 7, TDT_PENDING);
		maker_wake(maker, ring, 35 + 20 * i, 7, 0);
		maker_poll(maker, ring, 20 + 20 * i, 10, 8, TDT_PENDING);
	}
	spans();
	ck_assert_uint_gt(n_spans, 40);
	memcpy(first, ids, sizeof ids);
	for (unsigned i = 0; i < n_spans; i++)
		for (unsigned k = 0; k < i; k++)
			ck_assert_uint_ne(ids[i], ids[k]);
	spans();
	ck_assert_mem_eq(first, ids, sizeof ids);
}

/* The clock was set between the two spans, and while the second one went on. */
TEST(times_are_those_of_the_system_s_clock_then)
{
	const uint64_t s = 1000000000;

	maker_header(maker)->taken = 10 * s;
	maker_clock(maker, service, 2 * s, 2 * s, 2 * s, START_REAL + 5 * s);
	maker_clock(maker, service, 4 * s, 4 * s, 4 * s, START_REAL + s);
	identify(TDT_EVENT_SPAWN, s, 7, "", 0xa, 0xb);
	maker_poll(maker, ring, s + 5, s * 2 - 5, 7, TDT_PENDING);
	maker_wake(maker, ring, 5 * s, 7, 0);
	spans();
	ck_assert_ptr_nonnull(strstr(text, " 1000000000-1000000005 spawned"));
	ck_assert_ptr_nonnull(strstr(text, " 1000000005-3000000000 polling"));
	ck_assert_ptr_nonnull(strstr(text, " 6000000000-8000000000 waiting"));
	ck_assert_ptr_nonnull(strstr(text, " 2000000000-7000000000 runnable"));
}

TEST(a_message_has_some_4_mib_at_most)
{
	char name[250];
	STREAM(out, fopen("/dev/null", "w"));

	begin();
	ring = maker_ring(maker, TDT_RING_POLLS, 1 << 17, 13);
	maker_header(maker)->taken = 100000000;
	memset(name, '\xff', sizeof name - 1); /* which takes four bytes */
	name[sizeof name - 1] = '\0';
	maker_identity(maker, ring, TDT_EVENT_SPAWN, 1, 7, 0, 0, name, "echo.c", 1);
	set(2, 7, 0xa, 0xb);
	for (unsigned i = 0; i < 5000; i++)
		maker_poll(maker, ring, 20 + 20 * i, 10, 7, TDT_PENDING);
	open_block();
	n_spans = messages = 0;
	ck_assert_int_eq(tdt__otlp_write(recording, 0, take, out, &counts), 0);
	ck_assert_uint_eq(counts.spans, 10001);
	ck_assert_uint_gt(messages, 2);
	ck_assert_uint_gt(longest, TDT__OTLP_MESSAGE);
	ck_assert_uint_lt(longest, TDT__OTLP_MESSAGE + 8192);
}

CASE(errors, .setup = begin, .teardown = end)

/* A bit of everything. */
static void make_everything(void)
{
	identify(TDT_EVENT_SPAWN, 10, 9, "vacuum", 0xc, 0xd);
	identify(TDT_EVENT_SPAWN, 20, 7, "conn", 0xa, 0xb);
	for (unsigned i = 0; i < 4; i++) {
		maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 50, 9, "the table");
		maker_poll(maker, ring, 100 + 100 * i, 50, 7, TDT_PENDING);
		set(160 + 100 * i, 7, 0xa, (int)i + 1);
		maker_wake(maker, ring, 180 + 100 * i, 7, 9);
	}
	identify(TDT_EVENT_TASK, 600, 7, "conn", 0xa, 0xb);
	identify(TDT_EVENT_END, 900, 7, "conn", 0xa, 0xb);
}

TEST(a_refusal_ends_the_export)
{
	STREAM(out, fopen("/dev/null", "w"));

	make_everything();
	open_block();
	refusal = -ECANCELED;
	ck_assert_int_eq(tdt__otlp_write(recording, 0, take, out, &counts), -ECANCELED);
	ck_assert_uint_eq(messages, 1);
}

static int ignore(void *arg, const void *message, size_t n, uint64_t taken)
{
	return 0;
}

static int write_it(void *argument)
{
	return tdt__otlp_write(recording, 0, ignore, NULL, argument);
}

TEST(without_memory_the_export_says_so)
{
	make_everything();
	open_block();
	no_memory_each(write_it, &counts, 5);
}

TEST(damaged_recordings_make_whole_messages)
{
	unsigned seed = seed_of_run(), written = 0;
	FILE *out = fopen("/dev/null", "w");

	make_everything();
	for (unsigned i = 0; i < 2000; i++) {
		block = maker_block(maker, &size);
		for (unsigned k = random_below(&seed, 20) + 1; k > 0; k--)
			((unsigned char *)
			     block)[sizeof(struct tdt_recording) + random_below(&seed, 4096)] =
			    (unsigned char)random_below(&seed, 256);
		if (tdt__recording_open(&recording, block, size) == 0) {
			damaged = true;
			ck_assert_int_eq(tdt__otlp_write(recording, 0, take, out, &counts), 0);
			written++;
		}
		close_block();
	}
	fclose(out);
	ck_assert_uint_gt(written, 1000);
}
