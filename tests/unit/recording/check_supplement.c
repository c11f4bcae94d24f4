// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers recording/supplement, recording/describe.  Events that are added to a copy are read like
 * those that were recorded, and the code that a copy names is found.
 */

#include "lib/made_recording.h"
#include "lib/test.h"
#include "recording/describe.h"
#include "recording/read.h"
#include "recording/supplement.h"

static unsigned ring;

/* A made recording is like a copy if it says when it was taken. */
static void begin(void)
{
	maker = maker_new();
	maker_header(maker)->taken = 500;
	ring = maker_ring(maker, TDT_RING_POLLS, 64, 11);
	maker_wake(maker, ring, 100, 7, 0);
}

static void begin_copy(void)
{
	begin();
	block = maker_block(maker, &size);
}

/* Append it to the copy, which is opened then. */
static void append(struct tdt__supplement *supplement)
{
	ck_assert_int_eq(tdt__supplement_append(supplement, &block, &size), 0);
	ck_assert_int_eq(tdt__recording_open(&recording, block, size), 0);
}

static void add_task_of(struct tdt__supplement *supplement, uint64_t id, const char *name,
			const char *file, const struct tdt_trace_context *context)
{
	struct tdt_task_record record = {
		.id = id, .poll = 0x1000, .parent = 3, .line = 88, .column = 5
	};
	const struct tdt__identified task = {
		.record = &record, .file = file, .context = *context
	};
	struct tdt_event event = { .kind = TDT_EVENT_TASK, .time = 150 };
	char payload[TDT__IDENTITY_MAX];
	size_t length;

	strncpy(record.name, name, sizeof record.name - 1);
	length = tdt__describe_task(&event, &task, payload);
	tdt__supplement_add(supplement, &event, payload, length);
}

static void add_task(struct tdt__supplement *supplement, uint64_t id, const char *name,
		     const char *file)
{
	static const struct tdt_trace_context none;

	add_task_of(supplement, id, name, file, &none);
}

static void add_module(struct tdt__supplement *supplement, const char *build_id, const char *path)
{
	const struct tdt_event event = {
		.kind = TDT_EVENT_MODULE, .time = 150, .task = 0x1000, .c = 0x3000
	};
	char payload[TDT__DESCRIPTION_MAX];

	tdt__supplement_add(supplement, &event, payload,
			    tdt__describe_module(0x800, build_id, path, payload));
}

static const struct tdt__recorded_task *task_of(uint64_t id)
{
	return &recording->task[tdt__recording_task(recording, id)];
}

CASE(events, .setup = begin_copy, .teardown = end)

TEST(what_is_added_is_read)
{
	struct tdt__supplement supplement = { 0 };
	const struct tdt__recorded_task *task;
	const struct tdt__recorded_module *module;
	const struct tdt__recorded_clock *clock;
	size_t n;

	add_task(&supplement, 7, "conn 1", "src/a.c");
	add_module(&supplement, "00ff7f", "/lib/libx.so");
	tdt__supplement_clock(&supplement, 20000000, 20000000, 300, 400);
	append(&supplement);
	ck_assert_ptr_null(supplement.slot);
	task = task_of(7);
	ck_assert_str_eq(task->name, "conn 1");
	ck_assert_str_eq(task->file, "src/a.c");
	ck_assert_uint_eq(task->parent, 3);
	ck_assert_uint_eq(task->line, 88);
	ck_assert_uint_eq(task->column, 5);
	ck_assert_uint_eq(task->poll_function, 0x1000);
	module = recording->module;
	n = recording->n_modules;
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(module->start, 0x1000);
	ck_assert_uint_eq(module->end, 0x3000);
	ck_assert_uint_eq(module->bias, 0x800);
	ck_assert_str_eq(module->build_id, "00ff7f");
	ck_assert_str_eq(module->path, "/lib/libx.so");
	clock = recording->clock;
	n = recording->n_clocks;
	ck_assert_uint_ge(n, 1);
	ck_assert_uint_eq(clock[n - 1].ticks, 20000000);
	ck_assert_uint_eq(clock[n - 1].boot, 300);
	ck_assert_uint_eq(clock[n - 1].real, 400);
}

/* 0: a short name of a file, 1: the longest one */
TEST(a_trace_context_is_behind_the_names, .to = 2)
{
	const struct tdt_trace_context context = {
		.trace_id = { 1, [15] = 2 }, .span_id = { 3 }, .valid = 1, .flags = 4
	};
	struct tdt__supplement supplement = { 0 };
	char file[300] = "f.c";

	if (_i == 1)
		memset(file, 'f', sizeof file - 1);
	add_task_of(&supplement, 7, "conn 1", file, &context);
	append(&supplement);
	ck_assert_mem_eq(&task_of(7)->context, &context, sizeof context);
	ck_assert_str_eq(task_of(7)->name, "conn 1");
	ck_assert_uint_eq(strlen(task_of(7)->file), _i == 0 ? 3 : 191);
}

TEST(an_empty_supplement_changes_nothing_that_is_read)
{
	struct tdt__supplement supplement = { 0 };

	append(&supplement);
	ck_assert_uint_eq(recording->n_tasks, 1);
}

/* An event has a limited number of slots, and a task's name and the end of its file matter most. */
TEST(long_texts_are_cut)
{
	static char file[2000], path[2000];
	struct tdt__supplement supplement = { 0 };
	const struct tdt__recorded_task *task;
	const struct tdt__recorded_module *module;

	memset(file, 'f', sizeof file - 5);
	strcpy(file + sizeof file - 5, "/a.c");
	memset(path, 'p', sizeof path - 1);
	add_task(&supplement, 7, "name", file);
	add_module(&supplement, "", path);
	append(&supplement);
	task = task_of(7);
	ck_assert_str_eq(task->name, "name");
	ck_assert_uint_eq(strlen(task->file), 191);
	ck_assert_str_eq(task->file + 191 - 4, "/a.c");
	module = recording->module;
	ck_assert_uint_eq(strlen(module->path), TDT__DESCRIPTION_MAX - 10);
	ck_assert_str_eq(module->build_id, "");
}

static uint64_t visited[8];
static size_t n_visited;

static void note_code(void *data, uint64_t address)
{
	ck_assert_uint_lt(n_visited, 8);
	visited[n_visited++] = address;
}

CASE(code, .setup = begin, .teardown = end)

TEST(poll_functions_and_calls_are_visited)
{
	static const uint64_t pcs[] = { 0x5001, 0x6001 };
	const struct tdt_event spawn = { .kind = TDT_EVENT_SPAWN, .time = 100, .c = 0x4000 };

	maker_add(maker, ring, spawn, NULL, 0);
	maker_stack(maker, pcs, 2, 0);
	block = maker_block(maker, &size);
	n_visited = 0;
	tdt__recording_visit_code(block, note_code, NULL);
	ck_assert_uint_eq(n_visited, 3);
	ck_assert_uint_eq(visited[0], 0x4000);
	ck_assert_uint_eq(visited[1], 0x5000);
	ck_assert_uint_eq(visited[2], 0x6000);
}

/* A damaged stack says that it is longer than the table. */
TEST(a_stack_that_leaves_the_table_is_not_visited)
{
	static const uint64_t pcs[] = { 0x5001 };
	struct tdt_recording_stack *stack;
	uint32_t number = maker_stack(maker, pcs, 1, 0);

	block = maker_block(maker, &size);
	stack = (void *)((char *)block + ((struct tdt_recording *)block)->stacks + 8 * number);
	ck_assert_uint_eq(stack->n, 1);
	stack->n = UINT16_MAX;
	n_visited = 0;
	tdt__recording_visit_code(block, note_code, NULL);
	ck_assert_uint_eq(n_visited, 0);
}

static int add_and_append(void *argument)
{
	struct tdt__supplement supplement = { 0 };

	for (int i = 0; i < 50; i++)
		add_task(&supplement, 7, "name", "file");
	return tdt__supplement_append(&supplement, &block, &size);
}

CASE(events)

TEST(without_memory_the_copy_stays_as_it_is)
{
	no_memory_each(add_and_append, NULL, 3);
	ck_assert_int_eq(tdt__recording_open(&recording, block, size), 0);
}
