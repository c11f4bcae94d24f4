// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/label, host/process_context.  A reader that was written from the specifications (OTEP
 * 4947 and 4719 of OpenTelemetry) finds which trace a thread works for, while a task is polled, and
 * what the process says of that.
 */

#include <dlfcn.h>

#include <tdt/integrate/fiber.h>

#include "lib/requester.h"
#include "lib/test.h"

/* --- The reader --------------------------------------------------------------------- */

static const uint8_t *volatile *pointer_here(void)
{
	return dlsym(RTLD_DEFAULT, "otel_thread_ctx_v1");
}

static const char *no_pointer(void)
{
	return pointer_here() == NULL ? "built without a shared library: nothing is exported"
				      : NULL;
}

/* What the record says at its offsets. */
struct seen {
	bool there, valid;
	uint8_t trace, span, flags;
	uint16_t size;
};

static struct seen look(void)
{
	const uint8_t *record = *pointer_here();
	struct seen seen = { .there = record != NULL };

	if (record == NULL)
		return seen;
	ck_assert_uint_eq((uintptr_t)record % 2, 0);
	seen.trace = record[0];
	seen.span = record[16];
	seen.valid = record[24] == 1;
	seen.flags = record[25];
	memcpy(&seen.size, record + 26, sizeof seen.size);
	return seen;
}

static void expect_label(const struct seen *seen, uint8_t trace)
{
	ck_assert(seen->there && seen->valid);
	ck_assert_uint_eq(seen->trace, trace);
	ck_assert_uint_eq(seen->span, trace + 1);
	ck_assert_uint_eq(seen->flags, 1);
	ck_assert_uint_eq(seen->size, 0);
}

static void expect_none(const struct seen *seen)
{
	ck_assert(!seen->there || !seen->valid);
}

/* --- Tasks -------------------------------------------------------------------------- */

/* The context of a trace by its first byte. */
static int set_trace(struct tdt_handle *handle, uint8_t trace)
{
	const struct tdt_trace_context context = { .trace_id = { trace },
						   .span_id = { (uint8_t)(trace + 1) },
						   .flags = 1 };

	return tdt_task_context(handle, trace != 0 ? &context : NULL);
}

static struct test_busy busy;
static struct test_task task;
static struct seen seen;

static void see(void *argument)
{
	seen = look();
}

static void setup(void)
{
	const struct tdt_future future = test_busy_future(&busy);

	busy = (struct test_busy){ .act = see, .result = TDT_PENDING };
	test_task_init(&task, &future);
	ck_assert_int_eq(set_trace(task.handle, 5), 0);
	ck_assert_int_eq(tdt_context_labels(true), 0);
}

static void teardown(void)
{
	test_task_fini(&task);
	ck_assert(!look().there);
}

CASE(labels, .setup = setup, .teardown = teardown, .skip = no_pointer)

TEST(a_poll_has_the_context_of_its_task)
{
	test_task_poll(&task);
	expect_label(&seen, 5);
	ck_assert(!look().there);
	set_trace(task.handle, 7);
	test_task_poll(&task);
	expect_label(&seen, 7);
}

TEST(switched_off_it_has_none)
{
	ck_assert_int_eq(tdt_context_labels(false), 0);
	test_task_poll(&task);
	ck_assert(!seen.there);
}

TEST(a_task_without_a_context_has_no_label)
{
	set_trace(task.handle, 0);
	test_task_poll(&task);
	expect_none(&seen);
}

/* 0: for a request, 1: recorded, 2: watched, 3: the one that ends the task */
TEST(so_has_a_poll_of_any_kind, .to = 4)
{
	struct test_requester requester;

	test_task_poll(&task);
	seen = (struct seen){ 0 };
	if (_i == 0)
		test_ask(&requester, task.handle);
	else if (_i == 1)
		ck_assert_int_eq(tdt_recorder_start(NULL), 0);
	else if (_i == 2)
		ck_assert_int_eq(tdt_watch(1000000, NULL), 0);
	else
		busy.result = TDT_PANICKED;
	test_task_poll(&task);
	expect_label(&seen, 5);
	ck_assert(!look().there);
	if (_i == 0)
		test_requester_fini(&requester);
	tdt_watch(0, NULL);
	tdt_recorder_stop();
}

static struct seen first, second;

static void poll_inner(void *argument)
{
	test_task_poll(argument);
	first = look();
}

TEST(of_two_polls_the_inner_one_counts)
{
	struct test_busy inner_busy = { .act = see, .result = TDT_PENDING };
	const struct tdt_future future = test_busy_future(&inner_busy);
	TEST_TASK(inner, &future, .name = 'i');

	set_trace(inner.handle, 9);
	busy.act = poll_inner;
	busy.argument = &inner;
	test_task_poll(&task);
	expect_label(&seen, 9);
	expect_label(&first, 5);
}

static tdt_poll_t poll_inside(void *state, struct tdt_context *cx)
{
	return tdt_future_poll(&((struct test_task *)state)->future, cx);
}

static void drop_inside(void *state)
{
	tdt_future_drop(&((struct test_task *)state)->future);
}

/* Readers and tdt-join-ustack find a poll by this function, whatever kind of poll it is. */
TEST(a_labelled_poll_inside_another_one_has_the_frame_of_a_traced_poll)
{
	TEST_TASK(inner, NULL, .name = 'i', .pending = 3);
	const struct tdt_future future = { .state = &inner,
					   .poll = poll_inside,
					   .drop = drop_inside };
	TEST_TASK(outer, &future, .name = 'o');

	test_task_poll(&outer);
	ASKED(requester, outer.handle);
	test_task_poll(&outer);
	ck_assert_uint_eq(test_answer(&requester)->state, TDT_TASK_WAITING);
	ck_assert_int_eq(test_nodes_of(requester.trace, "tdt__recorded_poll"), 1);
	ck_assert_int_eq(test_nodes_of(requester.trace, "tdt__traced_poll"), 1);
}

static void set_in_poll(void *argument)
{
	set_trace(NULL, 11);
	first = look();
	set_trace(NULL, 0);
	second = look();
}

TEST(what_a_poll_sets_is_seen_at_once)
{
	busy.act = set_in_poll;
	test_task_poll(&task);
	expect_label(&first, 11);
	expect_none(&second);
}

static void *set_elsewhere(void *argument)
{
	set_trace(task.handle, 13);
	return NULL;
}

static void have_it_set(void *argument)
{
	run_on_thread(set_elsewhere, NULL);
	seen = look();
}

TEST(what_another_thread_sets_is_seen_from_the_next_poll_on)
{
	busy.act = have_it_set;
	test_task_poll(&task);
	expect_label(&seen, 5);
	busy.act = see;
	test_task_poll(&task);
	expect_label(&seen, 13);
}

static struct tdt_fiber *fiber;

static void suspend_in_poll(void *argument)
{
	tdt_fiber_suspend(fiber);
	first = look();
	tdt_fiber_resume(fiber);
}

/* The stack of the fiber, on which the label is, may be unmapped by another thread. */
TEST(a_suspended_fiber_leaves_no_label_behind)
{
	fiber = tdt_fiber_new(NULL, 0, TDT_TASK_ATTR(.name = "f"));
	ck_assert_ptr_nonnull(fiber);
	tdt_fiber_resume(fiber);
	busy.act = suspend_in_poll;
	test_task_poll(&task);
	tdt_fiber_end(fiber);
	ck_assert(!first.there);
	ck_assert(!look().there);
}

TEST(a_fiber_has_the_context_of_its_task_while_it_runs)
{
	fiber = tdt_fiber_new(NULL, 0, TDT_TASK_ATTR(.name = "f"));
	ck_assert_ptr_nonnull(fiber);
	set_trace(tdt_fiber_handle(fiber), 15);
	ck_assert(!look().there);
	for (int i = 0; i < 2; i++) {
		tdt_fiber_resume(fiber);
		first = look();
		expect_label(&first, (uint8_t)(15 + 2 * i));
		test_task_poll(&task);
		expect_label(&seen, 5);
		set_trace(NULL, 17);
		first = look();
		expect_label(&first, 17);
		tdt_fiber_suspend(fiber);
		ck_assert(!look().there);
	}
	tdt_fiber_resume(fiber);
	tdt_fiber_end(fiber);
	ck_assert(!look().there);
}

TEST(of_two_fibers_the_inner_one_counts)
{
	struct tdt_fiber *inner = tdt_fiber_new(NULL, 0, TDT_TASK_ATTR(.name = "i"));

	fiber = tdt_fiber_new(NULL, 0, TDT_TASK_ATTR(.name = "f"));
	ck_assert(inner != NULL && fiber != NULL);
	set_trace(tdt_fiber_handle(fiber), 15);
	set_trace(tdt_fiber_handle(inner), 21);
	tdt_fiber_resume(fiber);
	tdt_fiber_resume(inner);
	first = look();
	expect_label(&first, 21);
	tdt_fiber_suspend(inner);
	first = look();
	expect_label(&first, 15);
	tdt_fiber_resume(inner);
	tdt_fiber_suspend(fiber); /* the inner one goes with it */
	ck_assert(!look().there);
	tdt_fiber_end(inner);
	tdt_fiber_end(fiber);
	ck_assert(!look().there);
}

static void *resume_and_suspend(void *argument)
{
	tdt_fiber_resume(fiber);
	first = look();
	tdt_fiber_suspend(fiber);
	second = look();
	return NULL;
}

TEST(the_context_of_a_fiber_goes_with_it_to_another_thread)
{
	pthread_t thread;

	fiber = tdt_fiber_new(NULL, 0, TDT_TASK_ATTR(.name = "f"));
	ck_assert_ptr_nonnull(fiber);
	set_trace(tdt_fiber_handle(fiber), 15);
	tdt_fiber_resume(fiber);
	tdt_fiber_suspend(fiber);
	MUST(pthread_create(&thread, NULL, resume_and_suspend, NULL) == 0);
	pthread_join(thread, NULL);
	expect_label(&first, 15);
	ck_assert(!second.there);
	tdt_fiber_end(fiber);
}

/* --- An SDK ------------------------------------------------------------------------- */

static const uint8_t of_sdk[28] = { [0] = 99, [24] = 1 };

TEST(a_pointer_of_an_sdk_is_left_alone)
{
	*pointer_here() = of_sdk;
	test_task_poll(&task);
	ck_assert_uint_eq(seen.trace, 99);
	ck_assert_ptr_eq(*pointer_here(), of_sdk);
	*pointer_here() = NULL;
	test_task_poll(&task);
	expect_label(&seen, 5);
}

static void attach(void *argument)
{
	*pointer_here() = of_sdk;
}

TEST(so_is_one_that_it_sets_in_a_poll)
{
	busy.act = attach;
	test_task_poll(&task);
	ck_assert_ptr_eq(*pointer_here(), of_sdk);
	busy.act = see;
	test_task_poll(&task);
	ck_assert_uint_eq(seen.trace, 99);
	*pointer_here() = NULL;
	test_task_poll(&task);
	expect_label(&seen, 5);
}

/* --- The process -------------------------------------------------------------------- */

/* How many mappings have the name; `*first_of` is the address of the first one. */
static int published(const uint8_t **first_of)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof line, maps) != NULL)
		if ((strstr(line, "/memfd:OTEL_CTX") != NULL ||
		     strstr(line, "[anon_shmem:OTEL_CTX") != NULL ||
		     strstr(line, "[anon:OTEL_CTX") != NULL) &&
		    n++ == 0)
			*first_of = (const uint8_t *)(uintptr_t)strtoull(line, NULL, 16);
	fclose(maps);
	return n;
}

/* A field of a message of protobuf: all that is used here has a length. */
static bool next_field(const uint8_t **at, const uint8_t *end, unsigned *number,
		       const uint8_t **value, size_t *size)
{
	if (*at == end)
		return false;
	ck_assert_int_ge(end - *at, 2);
	ck_assert_uint_eq((*at)[0] & 7, 2);
	*number = (*at)[0] >> 3;
	ck_assert_uint_lt((*at)[1], 128);
	*size = (*at)[1];
	*value = *at + 2;
	ck_assert_int_le((ptrdiff_t)*size, end - *value);
	*at = *value + *size;
	return true;
}

/* "key=" and the number of the kind of the value, with what it has if that is text. */
static void print_attribute(FILE *out, const uint8_t *at, const uint8_t *end)
{
	const uint8_t *value;
	unsigned number;
	size_t size;

	ck_assert(next_field(&at, end, &number, &value, &size) && number == 1);
	fprintf(out, "%.*s=", (int)size, (const char *)value);
	ck_assert(next_field(&at, end, &number, &value, &size) && number == 2 && at == end);
	at = value;
	ck_assert(next_field(&at, value + size, &number, &value, &size));
	fprintf(out, "%u:%.*s ", number, number == 1 ? (int)size : 0, (const char *)value);
}

static void expect_process_context(const uint8_t *header)
{
	const uint8_t *at, *end, *value;
	uint32_t version, payload_size;
	uint64_t published_at, payload;
	unsigned number;
	size_t size;
	char *text;
	FILE *out = open_memstream(&text, &size);

	ck_assert_mem_eq(header, "OTEL_CTX", 8);
	memcpy(&version, header + 8, sizeof version);
	memcpy(&payload_size, header + 12, sizeof payload_size);
	memcpy(&published_at, header + 16, sizeof published_at);
	memcpy(&payload, header + 24, sizeof payload);
	ck_assert_uint_eq(version, 2);
	ck_assert_uint_ne(published_at, 0);
	at = (const uint8_t *)(uintptr_t)payload;
	end = at + payload_size;
	while (next_field(&at, end, &number, &value, &size))
		if (number == 2)
			print_attribute(out, value, value + size);
	fclose(out);
	ck_assert_str_eq(text, "threadlocal.schema_version=1:tlsdesc_v1_dev "
			       "threadlocal.attribute_key_map=5: ");
	free(text);
}

CASE(process)

TEST(the_process_says_that_there_are_labels)
{
	const uint8_t *header;

	ck_assert_int_eq(published(&header), 0);
	ck_assert_int_eq(tdt_context_labels(true), 0);
	ck_assert_int_eq(tdt_context_labels(false), 0);
	ck_assert_int_eq(tdt_context_labels(true), 0);
	ck_assert_int_eq(published(&header), 1);
	expect_process_context(header);
}

TEST(what_an_sdk_has_published_stays_alone)
{
	int fd = memfd_create("OTEL_CTX", 0);
	const uint8_t *header = NULL;
	void *of_the_sdk;

	MUST(fd >= 0 && ftruncate(fd, 4096) == 0);
	of_the_sdk = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	MUST(of_the_sdk != MAP_FAILED);
	ck_assert_int_eq(tdt_context_labels(true), 0);
	ck_assert_int_eq(published(&header), 1);
	ck_assert_ptr_eq(header, of_the_sdk);
}

TEST(a_child_of_fork_says_it_if_the_sdks_is_gone)
{
	int fd = memfd_create("OTEL_CTX", 0);
	void *of_the_sdk;

	MUST(fd >= 0 && ftruncate(fd, 4096) == 0);
	of_the_sdk = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	MUST(of_the_sdk != MAP_FAILED);
	ck_assert_int_eq(tdt_context_labels(true), 0);
	IN_A_CHILD {
		const uint8_t *header;

		MUST(munmap(of_the_sdk, 4096) == 0); /* as MADV_DONTFORK does, where it is known */
		ck_assert_int_eq(published(&header), 0);
		ck_assert_int_eq(tdt_context_labels(true), 0);
		ck_assert_int_eq(published(&header), 1);
		expect_process_context(header);
	}
}

TEST(a_child_of_fork_says_it_itself)
{
	ck_assert_int_eq(tdt_context_labels(true), 0);
	IN_A_CHILD {
		const uint8_t *header;

		ck_assert_int_ge(published(&header), 1);
		expect_process_context(header);
	}
}

TEST(the_environment_switches_labels_on)
{
	const uint8_t *header;

	setenv("TDT_CONTEXT_LABELS", "1", 1);
	TEST_TASK(traced, NULL, .name = 't', .pending = 1);
	ck_assert_int_eq(published(&header), 1);
}
