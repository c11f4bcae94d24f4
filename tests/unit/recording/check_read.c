// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers recording/read, recording/recording, recording/sort, recording/cursor, recording/clocks,
 * recording/identities, recording/payload.  Recordings that were made of given events are read: in
 * the order of time, each event with what belongs to it, and whatever the bytes are.
 */

#include "lib/made_recording.h"
#include "lib/test.h"

static unsigned ring;
static char text[1 << 16];

static void begin(void)
{
	end();
	maker = maker_new();
	ring = maker_ring(maker, TDT_RING_POLLS, 64, 11);
}

static const char *kind_name(uint8_t kind)
{
	static const char *const names[] = {
		[TDT_EVENT_POLL] = "poll",   [TDT_EVENT_WAKE] = "wake",
		[TDT_EVENT_SPAWN] = "spawn", [TDT_EVENT_END] = "end",
		[TDT_EVENT_PARK] = "park",   [TDT_EVENT_WAIT] = "wait",
		[TDT_EVENT_STACK] = "stack", [TDT_EVENT_DELAY] = "delay",
		[TDT_EVENT_USER] = "user",   [TDT_EVENT_THREAD] = "thread",
		[TDT_EVENT_CLOCK] = "clock", [TDT_EVENT_MODULE] = "module",
		[TDT_EVENT_TASK] = "task",   [TDT_EVENT_START] = "start",
		[TDT_EVENT_STOP] = "stop",   [TDT_EVENT_STATE] = "state",
	};

	return kind < sizeof(names) / sizeof(names[0]) && names[kind] != NULL ? names[kind] : "?";
}

static void print_parts(FILE *out, const struct tdt__recorded_item *item)
{
	for (uint32_t i = 0; i < item->parts.n; i++) {
		struct tdt__recorded_item part;

		tdt__recording_part(recording, &item->parts, i, &part);
		ck_assert_uint_eq(part.event.task, item->event.task);
		fprintf(out, ",%s:%" PRIu64, kind_name(part.event.kind),
			part.event.kind == TDT_EVENT_WAIT ? part.event.c : part.event.a);
	}
}

/* All items as text: "100 +poll7@11 150 wake8@11 200 -poll7@11 ". */
static const char *items(void)
{
	FILE *out = fmemopen(text, sizeof(text), "w");
	struct tdt__recording_cursor cursor;
	struct tdt__recorded_item item;
	uint64_t last = 0;
	const struct tdt__recorded_thread *threads = recording->thread;
	size_t n = recording->n_threads;

	ck_assert_int_eq(tdt__recording_begin(&cursor, recording), 0);
	while (tdt__recording_next(&cursor, &item)) {
		ck_assert_uint_ge(item.ns, last);
		ck_assert_uint_lt(item.thread, n);
		last = item.ns;
		fprintf(out, "%" PRIu64 " %s%s", item.ns,
			item.kind == TDT__RECORDED_BEGIN ? "+"
			: item.kind == TDT__RECORDED_END ? "-"
							 : "",
			kind_name(item.event.kind));
		if (item.event.kind != TDT_EVENT_PARK && item.event.kind != TDT_EVENT_THREAD)
			fprintf(out, "%" PRIu64, item.event.task);
		fprintf(out, "@%u", threads[item.thread].id);
		print_parts(out, &item);
		fputs(item.remarkable ? "! " : " ", out);
	}
	tdt__recording_end(&cursor);
	ck_assert_int_eq(ferror(out), 0);
	fclose(out);
	return text;
}

CASE(order, .setup = begin, .teardown = end)

TEST(a_poll_begins_before_what_happened_in_it)
{
	maker_wake(maker, ring, 150, 8, 7);
	maker_wake(maker, ring, 160, 9, 7);
	maker_poll(maker, ring, 100, 100, 7, TDT_PENDING);
	open_block();
	ck_assert_str_eq(items(), "100 +poll7@11 150 wake8@11 160 wake9@11 200 -poll7@11 ");
}

TEST(polls_that_follow_each_other_at_once_are_not_nested)
{
	maker_poll(maker, ring, 100, 100, 7, TDT_PENDING);
	maker_poll(maker, ring, 200, 50, 8, TDT_PENDING);
	maker_poll(maker, ring, 250, 0, 9, TDT_PENDING);
	maker_poll(maker, ring, 250, 10, 7, TDT_PENDING);
	maker_park(maker, ring, 260, 40);
	open_block();
	ck_assert_str_eq(items(), "100 +poll7@11 200 -poll7@11 200 +poll8@11 250 -poll8@11 "
				  "250 +poll9@11 250 -poll9@11 250 +poll7@11 260 -poll7@11 "
				  "260 +park@11 300 -park@11 ");
}

TEST(polls_inside_of_polls_are_nested)
{
	maker_poll(maker, ring, 110, 10, 8, TDT_PENDING);
	maker_poll(maker, ring, 130, 10, 10, TDT_PENDING);
	maker_poll(maker, ring, 130, 20, 9, TDT_PENDING);
	maker_poll(maker, ring, 100, 100, 7, TDT_PENDING);
	open_block();
	ck_assert_str_eq(items(), "100 +poll7@11 110 +poll8@11 120 -poll8@11 130 +poll9@11 "
				  "130 +poll10@11 140 -poll10@11 150 -poll9@11 200 -poll7@11 ");
}

/* A coarse clock reads the same at the beginning of a poll and in it. */
TEST(an_event_of_the_time_of_a_beginning_is_where_it_says)
{
	maker_wake(maker, ring, 100, 8, 7);
	maker_poll(maker, ring, 100, 100, 7, TDT_PENDING);
	maker_wake(maker, ring, 200, 7, 0);
	maker_poll(maker, ring, 200, 10, 8, TDT_PENDING);
	open_block();
	ck_assert_str_eq(items(), "100 +poll7@11 100 wake8@11 200 -poll7@11 200 wake7@11 "
				  "200 +poll8@11 210 -poll8@11 ");
}

TEST(waits_and_stacks_are_parts_of_their_poll)
{
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 50, 9,
		   "a name that is longer than a slot has room");
	maker_wait(maker, ring, 8, TDT_WAIT_TIMER, 51, 0, NULL);
	maker_poll(maker, ring, 110, 10, 8, TDT_PENDING);
	maker_wait(maker, ring, 7, TDT_WAIT_IO, 52, 0, NULL);
	maker_leaf(maker, ring, 7, 35, 0, 1);
	maker_poll(maker, ring, 100, 100, 7, TDT_PENDING);
	maker_poll(maker, ring, 300, 100, 7, TDT_PENDING);
	open_block();
	ck_assert_str_eq(items(), "100 +poll7@11,wait:50,wait:52,stack:35 110 +poll8@11,wait:51 "
				  "120 -poll8@11 200 -poll7@11 300 +poll7@11 400 -poll7@11 ");
}

TEST(parts_have_their_payload)
{
	struct tdt__recording_cursor cursor;
	struct tdt__recorded_item item, part;
	char payload[TDT__PAYLOAD_MAX + 1];

	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 50, 9, "the table of all the connections");
	maker_wake(maker, ring, 150, 8, 7);
	maker_poll(maker, ring, 100, 100, 7, TDT_PENDING);
	open_block();
	ck_assert_int_eq(tdt__recording_begin(&cursor, recording), 0);
	ck_assert(tdt__recording_next(&cursor, &item));
	ck_assert_uint_eq(item.parts.n, 1);
	ck_assert_uint_eq(item.begin, 100);
	ck_assert_uint_eq(item.end, 200);
	tdt__recording_part(recording, &item.parts, 0, &part);
	ck_assert_uint_eq(part.event.time, 9);
	ck_assert_uint_eq(tdt__recording_payload(recording, &part, payload), 32);
	ck_assert_str_eq(payload, "the table of all the connections");
	tdt__recording_end(&cursor);
}

TEST(rings_are_merged_by_time)
{
	unsigned other = maker_ring(maker, TDT_RING_OTHERS, 64, 12);

	maker_poll(maker, ring, 100, 100, 7, TDT_PENDING);
	maker_poll(maker, ring, 300, 100, 7, TDT_PENDING);
	maker_wake(maker, other, 50, 7, 0);
	maker_wake(maker, other, 200, 7, 0); /* after the poll that ends then */
	maker_wake(maker, other, 300, 7, 0); /* before the poll that begins then */
	maker_wake(maker, other, 350, 7, 0);
	open_block();
	ck_assert_str_eq(items(), "50 wake7@12 100 +poll7@11 200 -poll7@11 200 wake7@12 "
				  "300 wake7@12 300 +poll7@11 350 wake7@12 400 -poll7@11 ");
	ck_assert_uint_eq(recording->from, 50);
	ck_assert_uint_eq(recording->until, 400);
}

TEST(a_poll_that_goes_on_has_a_beginning_only)
{
	struct tdt_recording_ring *entry;

	maker_poll(maker, ring, 100, 100, 7, TDT_PENDING);
	maker_wait(maker, ring, 8, TDT_WAIT_MUTEX, 50, 9, NULL);
	entry = maker_entry(maker, ring);
	entry->task = 8;
	entry->since = 200;
	maker_wake(maker, ring, 250, 9, 8);
	open_block();
	/* The poll of 8 is older than the newest event, so that it may have ended meanwhile. */
	ck_assert_str_eq(items(), "100 +poll7@11 200 -poll7@11 250 wake9@11 ");
	entry->since = 250;
	open_block();
	ck_assert_str_eq(items(),
			 "100 +poll7@11 200 -poll7@11 250 +poll8@11,wait:50 250 wake9@11 ");
	ck_assert_uint_ne(tdt__recording_task(recording, 8), TDT__RECORDED_NONE);
}

TEST(a_worker_that_is_parked_has_a_beginning_only)
{
	maker_poll(maker, ring, 100, 100, 7, TDT_PENDING);
	maker_entry(maker, ring)->since = 220;
	open_block();
	ck_assert_str_eq(items(), "100 +poll7@11 200 -poll7@11 220 +park@11 ");
}

TEST(a_ring_that_changed_hands_has_the_events_of_both_threads)
{
	const struct tdt__recorded_thread *threads;
	size_t n;

	maker_poll(maker, ring, 100, 100, 7, TDT_PENDING);
	maker_thread(maker, ring, 250, 12, 10, 1, "second");
	maker_poll(maker, ring, 300, 100, 7, TDT_PENDING);
	maker_thread(maker, ring, 450, 13, 12, 0, "third");
	maker_wake(maker, ring, 500, 7, 0);
	open_block();
	ck_assert_str_eq(items(), "100 +poll7@10 200 -poll7@10 250 thread@12 300 +poll7@12 "
				  "400 -poll7@12 450 thread@13 500 wake7@13 ");
	threads = recording->thread;
	n = recording->n_threads;
	ck_assert_uint_eq(n, 3);
	ck_assert_str_eq(threads[0].name, "");
	ck_assert_str_eq(threads[1].name, "second");
	ck_assert(threads[1].worker && !threads[2].worker);
	ck_assert_uint_eq(threads[0].whole_from, 200);
	ck_assert_uint_eq(threads[1].whole_from, 250);
}

TEST(remarkable_events_are_told_once)
{
	unsigned remarkable = maker_ring(maker, TDT_RING_REMARKABLE, 64, 11);

	maker_thread(maker, remarkable, 1, 11, 0, 1, "worker");
	maker_wait(maker, remarkable, 7, TDT_WAIT_MUTEX, 50, 9, NULL);
	maker_poll(maker, remarkable, 100, 3000, 7, TDT_PENDING);
	maker_delay(maker, remarkable, 9000, 8, 5000);
	maker_wait(maker, remarkable, 7, TDT_WAIT_MUTEX, 51, 9, NULL);
	maker_poll(maker, remarkable, 9000, 3000, 7, TDT_PENDING);
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 51, 9, NULL);
	maker_poll(maker, ring, 9000, 3000, 7, TDT_PENDING);
	open_block();
	ck_assert_str_eq(items(), "1 thread@11! 100 +poll7@11,wait:50! 3100 -poll7@11! "
				  "9000 delay8@11! 9000 +poll7@11,wait:51 12000 -poll7@11 ");
}

/* The first event of those that begin at the slots `begins` that is whole. */
static unsigned first_left(const uint64_t *begins, unsigned n, uint64_t head, uint64_t margin)
{
	for (unsigned i = 0; i < n; i++)
		if (begins[i] + 64 >= head + margin)
			return i;
	return n;
}

/* Events of 2 to 4 slots each are task 1, 2 and so on.  Those that are left must be the last. */
static void expect_the_last(unsigned events, bool taken)
{
	uint64_t begins[150];
	struct tdt__recording_cursor cursor;
	struct tdt__recorded_item item;
	unsigned next;

	begin();
	maker_header(maker)->taken = taken ? 1000 : 0;
	for (unsigned i = 0; i < events; i++) {
		begins[i] = maker_entry(maker, ring)->head;
		maker_identity(maker, ring, TDT_EVENT_SPAWN, i + 1, i + 1, 0, 0,
			       &"long names need several slots"[i % 27],
			       &"and/so/do/the/names/of/files.c"[i % 29], 3);
	}
	next = first_left(begins, events, maker_entry(maker, ring)->head,
			  taken ? 0 : TDT_EVENT_SLOTS_MAX);
	open_block();
	ck_assert_int_eq(tdt__recording_begin(&cursor, recording), 0);
	while (tdt__recording_next(&cursor, &item)) {
		ck_assert_uint_eq(item.event.task, ++next);
		ck_assert_str_eq(recording->task[tdt__recording_task(recording, next)].name,
				 &"long names need several slots"[(next - 1) % 27]);
	}
	ck_assert_uint_eq(next, events);
	tdt__recording_end(&cursor);
	end();
}

TEST(only_what_was_overwritten_is_missing)
{
	for (unsigned events = 0; events < 150; events++) {
		expect_the_last(events, true);
		expect_the_last(events, false);
	}
}

CASE(tables, .setup = begin, .teardown = end)

TEST(from_when_on_all_events_are_there_is_known)
{
	const struct tdt__recorded_ring *rings;
	size_t n;
	unsigned other = maker_ring(maker, TDT_RING_OTHERS, 64, 12);

	maker_header(maker)->taken = 5000;
	maker_wake(maker, ring, 900, 7, 0);
	for (unsigned i = 0; i < 100; i++)
		maker_wake(maker, other, 1000 + i, 7, 0);
	open_block();
	ck_assert_uint_eq(recording->from, 900);
	ck_assert_uint_eq(recording->sure_from, 1036);
	ck_assert_uint_eq(recording->until, 5000);
	rings = recording->ring;
	n = recording->n_rings;
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(rings[0].first, 0);
	ck_assert_uint_eq(rings[1].first, 36);
	ck_assert_uint_eq(rings[1].n, 64);
	ck_assert_uint_eq(rings[1].from, 1036);
	for (unsigned i = 0; i < 100; i++)
		maker_wake(maker, ring, 2000 + i, 7, 0);
	open_block();
	ck_assert_uint_eq(recording->sure_from, 2036);
}

/* From when on no event is missing, if the last one without a ring was at `missed_last`. */
static uint64_t sure_from(uint64_t missed, uint64_t missed_last)
{
	uint64_t from;

	begin();
	maker_header(maker)->missed = missed;
	maker_header(maker)->missed_last = missed_last;
	maker_wake(maker, ring, 900, 7, 0);
	open_block();
	from = recording->sure_from;
	end();
	return from;
}

TEST(events_are_missing_until_the_last_one_that_found_no_ring)
{
	ck_assert_uint_eq(sure_from(0, 0), 0);
	ck_assert_uint_eq(sure_from(3, 700), 700);
	ck_assert_uint_eq(sure_from(3, 0), UINT64_MAX); /* nobody knows when */
}

TEST(nothing_is_whole_before_the_end_of_a_pause)
{
	static const uint64_t whole_from[] = { 700, UINT64_MAX, 800, UINT64_MAX };
	unsigned service;

	for (unsigned marks = 0; marks < 4; marks++) {
		begin();
		maker_header(maker)->missed = 1;
		maker_header(maker)->missed_last = 700;
		service = maker_ring(maker, TDT_RING_SERVICE, 64, 0);
		maker_wake(maker, ring, 900, 7, 0);
		for (unsigned i = 0; i < marks; i++)
			maker_event(maker, service,
				    .kind = i % 2 == 0 ? TDT_EVENT_STOP : TDT_EVENT_START,
				    .time = 600 + 200 * i);
		open_block();
		ck_assert_uint_eq(tdt__recording_whole_from(recording), whole_from[marks]);
	}
}

TEST(the_clocks_differ_by_what_was_recorded_last)
{
	unsigned service = maker_ring(maker, TDT_RING_SERVICE, 64, 0);

	maker_clock(maker, service, 10000000000, 10000000000, 0, 10000003000);
	maker_clock(maker, service, 20000000000, 20000000000, 0, 20000005000);
	open_block();
	ck_assert_uint_eq(tdt__recording_real(recording), 5000);
}

/* Ticks of 2 GHz, then of 1 GHz. */
TEST(ticks_are_reckoned_between_clock_events)
{
	const struct tdt__recorded_clock *clocks;
	unsigned service;
	size_t n;
	struct tdt_recording *header = maker_header(maker);

	header->clock = TDT_RECORDING_TSC;
	header->hz = 2000000000;
	header->start_ticks = 1000000;
	header->start = 5000000000;
	open_block();
	ck_assert_uint_eq(tdt__recording_ns(recording, 1000000), 5000000000);
	ck_assert_uint_eq(tdt__recording_ns(recording, 1000000 + 2000), 5000001000);
	ck_assert_uint_eq(tdt__recording_ns(recording, 0), 5000000000 - 500000);
	service = maker_ring(maker, TDT_RING_SERVICE, 64, 99);
	maker_clock(maker, service, 1000000 + 4000000000, 7000000000, 7000000500, 1);
	maker_clock(maker, service, 1000000 + 5000000000, 8000000000, 8000000500, 2);
	maker_clock(maker, service, 1000000 + 5000000100, 8000000001, 8000000500, 3); /* too near */
	open_block();
	ck_assert_uint_eq(tdt__recording_ns(recording, 1000000 + 2000), 5000001000);
	ck_assert_uint_eq(tdt__recording_ns(recording, 1000000 + 4000000000), 7000000000);
	ck_assert_uint_eq(tdt__recording_ns(recording, 1000000 + 4000000500), 7000000500);
	ck_assert_uint_eq(tdt__recording_ns(recording, 1000000 + 5000000700), 8000000700);
	clocks = recording->clock;
	n = recording->n_clocks;
	ck_assert_uint_eq(n, 3);
	ck_assert_uint_eq(clocks[2].boot, 8000000500);
	ck_assert_uint_eq(clocks[2].real, 2);
}

TEST(tasks_have_the_identity_that_events_gave_them)
{
	const struct tdt__recorded_task *tasks, *task;
	size_t n;

	maker_identity(maker, ring, TDT_EVENT_SPAWN, 100, 7, 0, 3, "conn", "echo.c", 42);
	maker_identity(maker, ring, TDT_EVENT_END, 200, 7, TDT_PANICKED, 3, "", "echo.c", 42);
	maker_identity(maker, ring, TDT_EVENT_TASK, 300, 8, 0, 0, "", "\xff\x1b", 1);
	maker_wake(maker, ring, 400, 9, 0);
	open_block();
	tasks = recording->task;
	n = recording->n_tasks;
	ck_assert_uint_eq(n, 3);
	task = &tasks[tdt__recording_task(recording, 7)];
	ck_assert_uint_eq(task->spawned, 100);
	ck_assert_uint_eq(task->ended, 200);
	ck_assert_uint_eq(task->parent, 3);
	ck_assert_uint_eq(task->line, 42);
	ck_assert_uint_eq(task->column, 3);
	ck_assert_uint_eq(task->poll_function, 0x1000);
	ck_assert_str_eq(task->name, "conn");
	ck_assert_str_eq(task->file, "echo.c");
	task = &tasks[tdt__recording_task(recording, 8)];
	ck_assert_str_eq(task->name, "");
	ck_assert_str_eq(task->file, "\xff\x1b");
	task = &tasks[tdt__recording_task(recording, 9)];
	ck_assert_str_eq(task->name, "");
	ck_assert_str_eq(task->file, "");
	ck_assert_uint_eq(tdt__recording_task(recording, 10), TDT__RECORDED_NONE);
}

static void add_context(unsigned to, uint64_t time, uint8_t trace)
{
	const struct tdt_trace_context context = {
		.trace_id = { trace }, .span_id = { 1 }, .valid = 1
	};
	const struct tdt_event event = { .kind = TDT_EVENT_CONTEXT, .time = time, .task = 7 };

	maker_add(maker, to, event, &context, trace != 0 ? sizeof context : 0);
}

/* The first bytes of the traces that the items say; 0: none. */
static void expect_contexts(const char *expected)
{
	struct tdt__recording_cursor cursor;
	struct tdt__recorded_item item;
	struct tdt_trace_context context;
	char found[64] = "";

	ck_assert_int_eq(tdt__recording_begin(&cursor, recording), 0);
	while (tdt__recording_next(&cursor, &item))
		if (tdt__recorded_context(recording, &item, &context))
			sprintf(found + strlen(found), "%d ",
				context.valid == 1 ? context.trace_id[0] : 0);
	tdt__recording_end(&cursor);
	ck_assert_str_eq(found, expected);
}

/* An identity without a context says that the task has none; what a runtime reports does not. */
TEST(a_task_has_the_trace_context_that_was_set_last)
{
	const struct tdt_event reported = { .kind = TDT_EVENT_SPAWN, .time = 500, .task = 7 };
	unsigned second = maker_ring(maker, TDT_RING_POLLS, 64, 12);

	add_context(ring, 300, 3);
	maker_wake(maker, ring, 350, 7, 0);
	add_context(ring, 400, 0);
	add_context(ring, 450, 5);
	maker_add(maker, ring, reported, NULL, 0);
	maker_identity(maker, second, TDT_EVENT_SPAWN, 100, 7, 0, 0, "conn 7", "f.c", 1);
	add_context(second, 200, 2);
	open_block();
	expect_contexts("0 2 3 0 5 ");
	ck_assert_uint_eq(recording->n_tasks, 1);
	ck_assert_uint_eq(recording->task[0].context.valid, 1);
	ck_assert_uint_eq(recording->task[0].context.trace_id[0], 5);
	ck_assert_str_eq(recording->task[0].name, "conn 7");
}

TEST(modules_and_stacks_are_found)
{
	static const uint64_t pcs[] = { 0x401000, 0x402000, 0x403000 };
	const struct tdt__recorded_module *modules;
	const uint64_t *found;
	enum tdt_cut cut;
	uint32_t stack;
	size_t n;
	unsigned service = maker_ring(maker, TDT_RING_SERVICE, 64, 99);

	maker_module(maker, service, 1, 0x400000, 0x500000, 0x400000, "\x01\xab", 2, "/bin/echo");
	maker_stack(maker, pcs, 1, 0);
	stack = maker_stack(maker, pcs, 3, TDT_CUT_LIMIT);
	open_block();
	modules = recording->module;
	n = recording->n_modules;
	ck_assert_uint_eq(n, 1);
	ck_assert_str_eq(modules[0].path, "/bin/echo");
	ck_assert_str_eq(modules[0].build_id, "01ab");
	ck_assert_uint_eq(modules[0].start, 0x400000);
	ck_assert_uint_eq(modules[0].end, 0x500000);
	ck_assert_uint_eq(modules[0].bias, 0x400000);
	ck_assert_uint_eq(tdt__recording_stack(recording, stack, &found, &cut), 3);
	ck_assert_mem_eq(found, pcs, sizeof(pcs));
	ck_assert_int_eq(cut, TDT_CUT_LIMIT);
	ck_assert_uint_eq(tdt__recording_stack(recording, 0, &found, &cut), 0);
	ck_assert_uint_eq(tdt__recording_stack(recording, stack + 4, &found, &cut), 0);
	ck_assert_uint_eq(tdt__recording_stack(recording, UINT32_MAX, &found, &cut), 0);
}

static void append(char **at, enum tdt_user_type type, const void *value, size_t n)
{
	*(*at)++ = (char)type;
	memcpy(*at, value, n);
	*at += n;
}

TEST(user_events_have_their_arguments)
{
	struct tdt__recording_cursor cursor;
	struct tdt__recorded_item item;
	struct tdt__recorded_user user;
	struct tdt__recorded_argument argument;
	char payload[TDT__PAYLOAD_MAX + 1], arguments[100], *at = arguments;
	const int64_t i = -5;
	const uint64_t u = UINT64_MAX;
	const double d = 1.5;
	size_t n;

	append(&at, TDT_USER_INT, &i, 8);
	append(&at, TDT_USER_UINT, &u, 8);
	append(&at, TDT_USER_TEXT, "GET /", 6);
	append(&at, TDT_USER_DOUBLE, &d, 8);
	maker_user(maker, ring, 100, 7, "app", "request", 4, arguments, (size_t)(at - arguments));
	open_block();
	ck_assert_int_eq(tdt__recording_begin(&cursor, recording), 0);
	ck_assert(tdt__recording_next(&cursor, &item));
	n = tdt__recording_payload(recording, &item, payload);
	ck_assert(tdt__recorded_user(&user, &item.event, payload, n));
	ck_assert_str_eq(user.provider, "app");
	ck_assert_str_eq(user.name, "request");
	ck_assert(tdt__recorded_user_next(&user, &argument));
	ck_assert_int_eq(argument.i, -5);
	ck_assert(tdt__recorded_user_next(&user, &argument));
	ck_assert(argument.u == UINT64_MAX && argument.type == TDT_USER_UINT);
	ck_assert(tdt__recorded_user_next(&user, &argument));
	ck_assert_str_eq(argument.text, "GET /");
	ck_assert(tdt__recorded_user_next(&user, &argument));
	ck_assert_double_eq(argument.d, 1.5);
	ck_assert(!tdt__recorded_user_next(&user, &argument));
	/* A payload that was cut has fewer of them. */
	ck_assert(tdt__recorded_user(&user, &item.event, payload, n - 1));
	for (int k = 0; k < 3; k++)
		ck_assert(tdt__recorded_user_next(&user, &argument));
	ck_assert(!tdt__recorded_user_next(&user, &argument));
	ck_assert(!tdt__recorded_user(&user, &item.event, payload, 11));
	tdt__recording_end(&cursor);
}

CASE(damage, .setup = begin, .teardown = end)

TEST(what_is_no_recording_is_refused)
{
	struct tdt_recording *header;

	maker_poll(maker, ring, 100, 100, 7, TDT_PENDING);
	block = maker_block(maker, &size);
	header = block;
	ck_assert_int_eq(tdt__recording_open(&recording, block, 0), -EINVAL);
	ck_assert_ptr_null(recording);
	ck_assert_int_eq(tdt__recording_open(&recording, block, sizeof(*header) - 1), -EINVAL);
	ck_assert_int_eq(tdt__recording_open(&recording, block, sizeof(*header)), -EINVAL);
	header->version = TDT_RECORDING_VERSION + 1;
	ck_assert_int_eq(tdt__recording_open(&recording, block, size), -ENOTSUP);
	header->version = TDT_RECORDING_VERSION;
	header->magic[7] = 'x';
	ck_assert_int_eq(tdt__recording_open(&recording, block, size), -EINVAL);
	ck_assert_ptr_null(recording);
}

/* A recording with something of everything. */
static void make_everything(void)
{
	static const uint64_t pcs[] = { 0x401000, 0x402000, 0x403000 };
	unsigned other, remarkable, service;
	uint32_t stack;

	begin();
	other = maker_ring(maker, TDT_RING_OTHERS, 64, 12);
	remarkable = maker_ring(maker, TDT_RING_REMARKABLE, 64, 11);
	service = maker_ring(maker, TDT_RING_SERVICE, 64, 13);
	stack = maker_stack(maker, pcs, 3, 0);
	maker_clock(maker, service, 4, 1, 2, 3);
	maker_module(maker, service, 5, 0x400000, 0x500000, 0, "\x01\xab", 2, "/bin/echo");
	maker_identity(maker, service, TDT_EVENT_TASK, 6, 7, 0, 0, "conn", "echo.c", 42);
	maker_poll(maker, remarkable, 10, 10, 7, TDT_PENDING);
	for (unsigned i = 0; i < 4; i++) {
		maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 50, 9, "the table of connections");
		maker_leaf(maker, ring, 7, stack, 0, 1);
		maker_wake(maker, ring, 150 + 100 * i, 8, 7);
		maker_user(maker, ring, 160 + 100 * i, 7, "app", "x", 1,
			   "\x04"
			   "a",
			   3);
		maker_poll(maker, ring, 100 + 100 * i, 90, 7, TDT_PENDING);
		maker_wake(maker, other, 155 + 100 * i, 8, 0);
		maker_thread(maker, other, 156 + 100 * i, 12 + i, 12, 0, "a thread");
	}
}

static int open_and_close(void *argument)
{
	int err = tdt__recording_open(&recording, argument, size);
	struct tdt__recording_cursor cursor;

	if (err == 0) {
		err = tdt__recording_begin(&cursor, recording);
		if (err == 0)
			tdt__recording_end(&cursor);
	}
	tdt__recording_close(recording);
	recording = NULL;
	return err;
}

TEST(without_memory_opening_says_so)
{
	make_everything();
	block = maker_block(maker, &size);
	no_memory_each(open_and_close, block, 10);
}

/* Read all there is, in vain: only to see that it ends, and stays in the block. */
static void read_all(void)
{
	struct tdt__recording_cursor cursor;
	struct tdt__recorded_item item;
	uint64_t last = 0, items_left = 3 * (size / sizeof(struct tdt_event)) + 10;
	size_t n;

	ck_assert_int_eq(tdt__recording_begin(&cursor, recording), 0);
	while (tdt__recording_next(&cursor, &item)) {
		char payload[TDT__PAYLOAD_MAX + 1];
		const uint64_t *pcs;
		enum tdt_cut cut;

		ck_assert_uint_gt(items_left--, 0);
		ck_assert_uint_ge(item.ns, last);
		last = item.ns;
		ck_assert_uint_lt(item.thread, recording->n_threads);
		tdt__recording_payload(recording, &item, payload);
		for (uint32_t i = 0; i < item.parts.n; i++) {
			struct tdt__recorded_item part;

			tdt__recording_part(recording, &item.parts, i, &part);
			tdt__recording_payload(recording, &part, payload);
			n = tdt__recording_stack(recording, part.event.a, &pcs, &cut);
			for (size_t k = 0; k < n; k++)
				last += pcs[k] & 0;
		}
	}
	tdt__recording_end(&cursor);
}

TEST(damaged_blocks_are_read_as_far_as_possible)
{
	unsigned seed = seed_of_run(), n = times_here(20000), read = 0;

	make_everything();
	for (unsigned i = 0; i < n; i++) {
		block = maker_block(maker, &size);
		for (unsigned k = random_below(&seed, 4) + 1; k > 0; k--)
			((unsigned char *)block)[random_below(&seed, (unsigned)size)] =
			    (unsigned char)random_below(&seed, 256);
		if (tdt__recording_open(&recording, block, size) == 0) {
			read++;
			read_all();
		}
		close_block();
	}
	ck_assert_uint_gt(read, n / 2);
}
