// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/context, registry/contexts, facts/traceparent, tdt/context.h.  Which task gets a
 * trace context, who inherits it, what shows it, and what readers find while other threads set it.
 */

#include <tdt/integrate/leaf.h>

#include "facts/traceparent.h"
#include "lib/recorded.h"
#include "lib/requester.h"
#include "lib/test.h"
#include "registry/contexts.h"
#include "registry/handle.h"

static const struct tdt_trace_context one = { .trace_id = { 1 }, .span_id = { 2 }, .flags = 1 };
static const struct tdt_trace_context two = { .trace_id = { 3 }, .span_id = { 4 }, .valid = 77 };

static int copy_context(struct tdt_handle *handle, const struct tdt_task_info *info, void *arg)
{
	*(struct tdt_trace_context *)arg = info->context;
	return 0;
}

static struct tdt_trace_context context_of(struct tdt_handle *handle)
{
	struct tdt_trace_context context;

	ck_assert_int_eq(tdt_task_inspect(handle, copy_context, &context), 0);
	return context;
}

static void expect_same(const struct tdt_trace_context *found,
			const struct tdt_trace_context *expected)
{
	ck_assert_mem_eq(found->trace_id, expected->trace_id, sizeof found->trace_id);
	ck_assert_mem_eq(found->span_id, expected->span_id, sizeof found->span_id);
	ck_assert_uint_eq(found->flags, expected->flags);
	ck_assert_uint_eq(found->valid, 1);
	ck_assert_uint_eq(found->attrs_size, 0);
}

static void expect_context(struct tdt_handle *handle, const struct tdt_trace_context *expected)
{
	const struct tdt_trace_context found = context_of(handle);

	if (expected != NULL)
		expect_same(&found, expected);
	else
		ck_assert_uint_eq(found.valid, 0);
}

/* A task that does something in its first poll. */
static struct test_busy busy;
static struct test_task task;

static void setup(void)
{
	const struct tdt_future future = test_busy_future(&busy);

	busy = (struct test_busy){ .result = TDT_PENDING };
	test_task_init(&task, &future);
}

static void teardown(void)
{
	test_task_fini(&task);
}

static void poll_doing(void (*act)(void *argument), void *argument)
{
	busy.act = act;
	busy.argument = argument;
	test_task_poll(&task);
}

CASE(contexts, .setup = setup, .teardown = teardown)

TEST(a_task_has_none_until_it_gets_one)
{
	expect_context(task.handle, NULL);
	ck_assert_int_eq(tdt_task_context(task.handle, &one), 0);
	expect_context(task.handle, &one);
	ck_assert_int_eq(tdt_task_context(task.handle, &two), 0);
	expect_context(task.handle, &two);
	ck_assert_int_eq(tdt_task_context(task.handle, NULL), 0);
	expect_context(task.handle, NULL);
}

static void set_own(void *argument)
{
	ck_assert_int_eq(tdt_task_context(NULL, argument), 0);
}

TEST(without_a_handle_the_task_that_is_polled_gets_it)
{
	TEST_TASK(other, NULL, .name = 'o', .pending = 1);

	poll_doing(set_own, (void *)(uintptr_t)&one);
	expect_context(task.handle, &one);
	expect_context(other.handle, NULL);
}

TEST(without_a_handle_and_a_poll_there_is_no_task)
{
	ck_assert_fails(tdt_task_context(NULL, &one), ESRCH);
}

/* 0: the trace, 1: the span, 2: the size */
TEST(what_is_no_context_changes_nothing, .to = 3)
{
	struct tdt_trace_context wrong = two;

	if (_i == 0)
		wrong.trace_id[0] = 0;
	else if (_i == 1)
		wrong.span_id[0] = 0;
	else
		wrong.attrs_size = 2;
	ck_assert_int_eq(tdt_task_context(task.handle, &one), 0);
	ck_assert_fails(tdt_task_context(task.handle, &wrong), EINVAL);
	expect_context(task.handle, &one);
}

static void spawn_child(void *argument)
{
	test_task_init(argument, NULL);
}

TEST(a_child_inherits_what_its_spawner_has_then)
{
	struct test_task first = { .leaf = { .name = 'f', .pending = 1 } }, second = first;

	ck_assert_int_eq(tdt_task_context(task.handle, &one), 0);
	poll_doing(spawn_child, &first);
	ck_assert_int_eq(tdt_task_context(task.handle, &two), 0);
	poll_doing(spawn_child, &second);
	expect_context(first.handle, &one);
	expect_context(second.handle, &two);
	ck_assert_int_eq(tdt_task_context(task.handle, NULL), 0);
	ck_assert_int_eq(tdt_task_context(first.handle, NULL), 0);
	expect_context(second.handle, &two);
	test_task_fini(&first);
	test_task_fini(&second);
}

TEST(a_task_that_is_spawned_outside_of_polls_inherits_nothing)
{
	ck_assert_int_eq(tdt_task_context(task.handle, &one), 0);
	test_task_poll(&task);
	TEST_TASK(other, NULL, .name = 'o', .pending = 1);
	expect_context(other.handle, NULL);
}

TEST(a_task_without_a_future_has_one_while_its_thread_has_entered_it)
{
	FUTURELESS(handle, tdt_task_new(NULL));

	tdt_task_enter(handle);
	ck_assert_int_eq(tdt_task_context(NULL, &one), 0);
	tdt_task_leave(handle);
	expect_context(handle, &one);
}

TEST(a_record_that_is_used_again_has_none)
{
	struct test_task first = { .leaf = { .name = 'f', .pending = 1 } }, second = first;
	const struct tdt_handle *record;

	test_task_init(&first, NULL);
	record = first.handle;
	ck_assert_int_eq(tdt_task_context(first.handle, &one), 0);
	test_task_fini(&first);
	test_task_init(&second, NULL);
	ck_assert_ptr_eq(second.handle, record);
	expect_context(second.handle, NULL);
	test_task_fini(&second);
}

TEST(an_answer_and_a_dump_show_it)
{
	struct test_requester requester;
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	const struct tdt_print_options json = { .size = sizeof json, .format = TDT_PRINT_JSON };
	const struct tdt_dump_options options = { .size = sizeof options,
						  .print = &json,
						  .timeout_ns = 1000000 };

	ck_assert_int_eq(tdt_task_context(task.handle, &one), 0);
	test_task_poll(&task);
	test_ask(&requester, task.handle);
	test_task_poll(&task);
	expect_same(&test_answer(&requester)->context, &one);
	test_requester_fini(&requester);
	tdt_dump_with(file, &options);
	fclose(file);
	ck_assert_ptr_nonnull(strstr(text, "\"traceparent\":\"00-01000000000000000000000000000000-"
					   "0200000000000000-01\""));
	free(text);
}

TEST(without_memory_nothing_changes)
{
	int error;

	NEEDS_FAILING_MEMORY();
	no_memory_begin(0);
	error = tdt_task_context(task.handle, &one);
	no_memory_end();
	ck_assert_int_eq(error, -ENOMEM);
	expect_context(task.handle, NULL);
	ck_assert_int_eq(tdt_task_context(task.handle, &two), 0);
	expect_context(task.handle, &two);
}

/* Each place is another one's again as soon as nobody has it. */
TEST(contexts_are_used_again)
{
	uint64_t places[4] = { 0 };
	int n = 0;

	for (int i = 0; i < 1000; i++) {
		int known = 0;

		ck_assert_int_eq(tdt_task_context(task.handle, i % 2 == 0 ? &one : &two), 0);
		while (known < n && places[known] != task.handle->record.context)
			known++;
		ck_assert_int_lt(known, 4);
		places[known] = task.handle->record.context;
		n += known == n;
	}
}

/* --- Recordings --------------------------------------------------------------------- */

static const char *context_behind(const struct recorded *event)
{
	const char *at = event->payload + 16; /* the name of the task, and of the file */

	at += strlen(at) + 1;
	at += strlen(at) + 1;
	ck_assert_int_eq(event->payload + event->size - at, sizeof(struct tdt_trace_context));
	return at;
}

TEST(a_recording_says_who_gets_and_who_inherits_it)
{
	struct test_task child = { .leaf = { .name = 'c', .pending = 1 } };
	struct tdt_trace_context context;
	struct recorded event;
	uint64_t id = tdt_handle_id(task.handle);

	ck_assert_int_eq(tdt_recorder_start(NULL), 0);
	poll_doing(set_own, (void *)(uintptr_t)&one);
	event = recorded_last(TDT_RING_POLLS, TDT_EVENT_CONTEXT, id);
	ck_assert_uint_eq(event.size, sizeof context);
	memcpy(&context, event.payload, sizeof context);
	expect_same(&context, &one);
	ck_assert_uint_eq(event.event.c, id);
	poll_doing(spawn_child, &child);
	event = recorded_last(TDT_RING_POLLS, TDT_EVENT_SPAWN, tdt_handle_id(child.handle));
	memcpy(&context, context_behind(&event), sizeof context);
	expect_same(&context, &one);
	ck_assert_int_eq(tdt_task_context(task.handle, NULL), 0);
	event = recorded_last(TDT_RING_POLLS, TDT_EVENT_CONTEXT, id);
	ck_assert_uint_eq(event.size, 0);
	ck_assert_uint_eq(event.event.c, 0);
	test_task_fini(&child);
	event = recorded_last(TDT_RING_POLLS, TDT_EVENT_END, 0);
	memcpy(&context, context_behind(&event), sizeof context);
	expect_same(&context, &one);
	tdt_recorder_stop();
}

/* --- Several threads ---------------------------------------------------------------- */

static atomic_bool over;

/* Every byte of a context of this thread is the same. */
static void *set_often(void *argument)
{
	uint8_t byte = *(const uint8_t *)argument;
	struct tdt_trace_context context = { .flags = byte };

	memset(context.trace_id, byte, sizeof context.trace_id);
	memset(context.span_id, byte, sizeof context.span_id);
	for (unsigned i = times_here(20000); i > 0; i--)
		MUST(tdt_task_context(task.handle, &context) == 0);
	return NULL;
}

static void expect_whole(const struct tdt_trace_context *context)
{
	for (size_t i = 0; i < sizeof context->trace_id; i++)
		MUST(context->trace_id[i] == context->flags);
	for (size_t i = 0; i < sizeof context->span_id; i++)
		MUST(context->span_id[i] == context->flags);
}

static void *read_often(void *argument)
{
	struct tdt_trace_context context;

	while (!atomic_load(&over))
		if (tdt__context_read(task.handle, &task.handle->record, &context))
			expect_whole(&context);
	return NULL;
}

static void *inherit_often(void *argument)
{
	const struct tdt_future future = { .poll = stay_pending, .drop = drop_nothing };

	while (!atomic_load(&over)) {
		struct tdt_trace_context context;
		TRACED(heir, tdt_traced(future));

		tdt__context_inherit(heir.handle, task.handle);
		if (tdt__context_read(heir.handle, &heir.handle->record, &context))
			expect_whole(&context);
	}
	return NULL;
}

TEST(whoever_reads_or_inherits_meanwhile_gets_all_of_one)
{
	static uint8_t bytes[2] = { 0x11, 0x22 };
	pthread_t setter[2], reader, heir;

	MUST(pthread_create(&reader, NULL, read_often, NULL) == 0);
	MUST(pthread_create(&heir, NULL, inherit_often, NULL) == 0);
	for (int i = 0; i < 2; i++)
		MUST(pthread_create(&setter[i], NULL, set_often, &bytes[i]) == 0);
	for (int i = 0; i < 2; i++)
		pthread_join(setter[i], NULL);
	atomic_store(&over, true);
	pthread_join(reader, NULL);
	pthread_join(heir, NULL);
}

/* --- As text ------------------------------------------------------------------------ */

CASE(text)

TEST(a_traceparent_is_read_as_it_is_written)
{
	static const char text[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
	struct tdt_trace_context context;
	char again[TDT__TRACEPARENT_SIZE];

	ck_assert(tdt__traceparent_read(&context, text));
	ck_assert_uint_eq(context.trace_id[0], 0x4b);
	ck_assert_uint_eq(context.span_id[7], 0xb7);
	ck_assert_uint_eq(context.flags, 1);
	tdt__traceparent(again, &context);
	ck_assert_str_eq(again, text);
}

TEST(what_is_no_traceparent_is_not_read, .to = 5)
{
	static const char *const texts[] = {
		"",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01",
		"00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"00- bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	};
	struct tdt_trace_context context;

	ck_assert(!tdt__traceparent_read(&context, texts[_i]));
}

TEST(the_id_of_a_trace_may_lack_its_zeros)
{
	const struct tdt_trace_context context = {
		.trace_id = { 0, 0x0a, [15] = 0xff }, .span_id = { 1 }, .valid = 1
	};
	const struct tdt_trace_context none = { .valid = 0 };

	ck_assert(tdt__is_of_trace(&context, "000a00000000000000000000000000ff"));
	ck_assert(tdt__is_of_trace(&context, "A00000000000000000000000000FF"));
	ck_assert(!tdt__is_of_trace(&context, "a00000000000000000000000000ff0"));
	ck_assert(!tdt__is_of_trace(&none, "0"));
}
