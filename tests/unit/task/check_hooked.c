// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/hooked.  What a runtime reports of tasks that need not be traced: which probes fire
 * for that, and what is recorded; also if the task is a traced one as well.  A semaphore is raised
 * here as the kernel would raise it, and the functions that hold the sites are wrapped (ld's
 * --wrap) by functions that write down which of them fired.
 */

#include <config.h>

#include <tdt/integrate/hooks.h>
#include <tdt/layout/recording.h>

#include "lib/hand.h"
#include "lib/recorded.h"
#include "lib/test.h"
#include "probes/probes.h"
#include "registry/handle.h"

/* --- Reports ---------------------------------------------------------------------------- */

#define PLACE .file = "runtime.rs, and more", .file_length = 10, .line = 7, .column = 9

static const struct tdt_task_attr seven = { .size = sizeof seven, .id = 7, PLACE },
				  eight = { .size = sizeof eight, .id = 8, PLACE };

/* A task that waits once is reported. */
static void report_life(const struct tdt_task_attr *attr)
{
	tdt_hook_spawn(attr);
	tdt_hook_poll_start(attr);
	tdt_hook_poll_end(attr);
	tdt_hook_poll_start(attr);
	tdt_hook_terminate(attr);
	tdt_hook_poll_end(attr);
}

/* A traced task that waits in `pending` polls, and may be one of the runtime's. */
static void hand_begin_later(struct hand *hand, int pending)
{
	struct test_future *leaf = &hand->leaf;

	memset(hand, 0, sizeof *hand);
	*leaf = (struct test_future){ .name = 'a', .pending = pending, .result = TDT_READY };
	test_waker_init(&hand->waker);
	hand->task = tdt_traced_with(test_future(leaf),
				     TDT_TASK_ATTR(.name = "traced", .id_later = 1));
	ck_assert_ptr_nonnull(hand->task.handle);
}

/* The runtime polls its task, which is the traced one. */
static void poll_reported(struct hand *hand, const struct tdt_task_attr *attr)
{
	tdt_hook_poll_start(attr);
	if (hand_poll(hand) == TDT_READY)
		tdt_hook_terminate(attr);
	tdt_hook_poll_end(attr);
}

#if TDT_PROBES

static char fired[512];

static void note_fired(const char *probe, const struct tdt_handle *task)
{
	size_t length = strlen(fired);

	snprintf(fired + length, sizeof fired - length, "%s:%" PRIu64 " ",
		 probe + sizeof "task__" - 1, task->record.id);
}

#define WRAPPED(probe)                                                                             \
	void __real_tdt_probe_##probe(const struct tdt_handle *task);                              \
	void __wrap_tdt_probe_##probe(const struct tdt_handle *task);                              \
	void __wrap_tdt_probe_##probe(const struct tdt_handle *task)                               \
	{                                                                                          \
		note_fired(#probe, task);                                                          \
		place_fired = (struct place){ (const char *)(uintptr_t)task->record.file,          \
					      task->record.line, task->record.column };            \
		__real_tdt_probe_##probe(task);                                                    \
	}

static struct place {
	const char *file;
	unsigned line, column;
} place_fired;

WRAPPED(task__spawn)
WRAPPED(task__poll__start)
WRAPPED(task__poll__end)
WRAPPED(task__terminate)

/* Each test has a process of its own, so that the tracer stays. */
static void attach(void)
{
	TDT__SEMAPHORE(task__spawn) = 1;
	TDT__SEMAPHORE(task__poll__start) = 1;
	TDT__SEMAPHORE(task__poll__end) = 1;
	TDT__SEMAPHORE(task__terminate) = 1;
}

static void detach(void)
{
	TDT__SEMAPHORE(task__spawn) = 0;
	TDT__SEMAPHORE(task__poll__start) = 0;
	TDT__SEMAPHORE(task__poll__end) = 0;
	TDT__SEMAPHORE(task__terminate) = 0;
	fired[0] = '\0';
}

static void expect_fired(const char *expected)
{
	ck_assert_str_eq(fired, expected);
	fired[0] = '\0';
}

CASE(probes, .setup = attach, .teardown = detach)

TEST(each_report_fires_its_probe_with_the_place)
{
	report_life(&seven);
	expect_fired("spawn:7 poll__start:7 poll__end:7 poll__start:7 terminate:7 poll__end:7 ");
	ck_assert_str_eq(place_fired.file, "runtime.rs");
	ck_assert_uint_eq(place_fired.line, 7);
	ck_assert_uint_eq(place_fired.column, 9);
}

TEST(without_a_tracer_no_report_fires)
{
	detach();
	report_life(&seven);
	expect_fired("");
}

TEST(a_report_without_a_task_fires_nothing)
{
	const struct tdt_task_attr none = { .size = sizeof none };
	const struct tdt_task_attr small = { .size = offsetof(struct tdt_task_attr, id), .id = 7 };

	report_life(NULL);
	report_life(&none);
	report_life(&small);
	expect_fired("");
}

TEST(without_memory_for_its_file_a_report_still_fires)
{
	const struct tdt_task_attr attr = {
		.size = sizeof attr, .id = 7, .file = "another.rs", .file_length = 10
	};

	NEEDS_FAILING_MEMORY();
	tdt_hook_spawn(&attr); /* the library starts */
	fired[0] = '\0';
	tdt_hook_poll_start(&(struct tdt_task_attr){
		.size = sizeof attr, .id = 7, .file = "third.rs", .file_length = 8 });
	ck_assert_str_eq(place_fired.file, "third.rs");
	no_memory_begin(0);
	tdt_hook_poll_start(&(struct tdt_task_attr){
		.size = sizeof attr, .id = 7, .file = "fourth.rs", .file_length = 9 });
	no_memory_end();
	ck_assert_ptr_null(place_fired.file);
	expect_fired("poll__start:7 poll__start:7 ");
}

TEST(a_task_that_is_traced_as_well_fires_each_probe_once)
{
	struct hand hand;

	hand_begin_later(&hand, 1);
	expect_fired("");
	tdt_hook_adopt(hand.task.handle, 7);
	tdt_hook_spawn(&seven);
	ck_assert_uint_eq(hand_id(&hand), 7);
	poll_reported(&hand, &seven);
	poll_reported(&hand, &seven);
	expect_fired("spawn:7 poll__start:7 poll__end:7 poll__start:7 terminate:7 poll__end:7 ");
	hand_end(&hand);
	expect_fired("");
}

TEST(so_does_one_that_is_dropped_between_its_polls)
{
	struct hand hand;

	hand_begin_later(&hand, 9);
	tdt_hook_adopt(hand.task.handle, 7);
	tdt_hook_spawn(&seven);
	poll_reported(&hand, &seven);
	hand_end(&hand);
	tdt_hook_terminate(&seven);
	expect_fired("spawn:7 poll__start:7 poll__end:7 terminate:7 ");
}

TEST(the_runtimes_task_may_go_on_when_the_traced_one_has_ended)
{
	struct hand hand;

	hand_begin_later(&hand, 0);
	tdt_hook_adopt(hand.task.handle, 7);
	tdt_hook_poll_start(&seven);
	ck_assert_int_eq(hand_poll(&hand), TDT_READY);
	hand_end(&hand);
	tdt_hook_poll_end(&seven);
	expect_fired("poll__start:7 poll__end:7 ");
	tdt_hook_terminate(&seven);
	expect_fired("terminate:7 ");
}

TEST(a_task_that_is_none_of_the_runtimes_fires_its_own_probes)
{
	struct hand hand;

	ck_assert_int_eq(tdt_task_id_base(100), 0);
	hand_begin_later(&hand, 0);
	tdt_hook_poll_start(&eight);
	tdt_hook_adopt(hand.task.handle, 0);
	hand_poll(&hand);
	tdt_hook_poll_end(&eight);
	expect_fired("poll__start:8 spawn:100 poll__start:100 terminate:100 poll__end:100 "
		     "poll__end:8 ");
	hand_end(&hand);
}
#endif

static uint64_t seen_id;

static tdt_poll_t see_id(void *state, struct tdt_context *cx)
{
	seen_id = tdt_current_task_id();
	return TDT_READY;
}

CASE(ids)

TEST(in_a_reported_poll_the_current_task_is_that_of_the_report)
{
	struct tdt_context cx = { NULL };
	TRACED(traced, tdt_traced_with((struct tdt_future){ NULL, see_id, drop_nothing },
				       TDT_TASK_ATTR(.id = 200)));

	tdt_hook_poll_start(&seven);
	ck_assert_uint_eq(tdt_current_task_id(), 7);
	tdt_future_poll(&traced.future, &cx);
	ck_assert_uint_eq(seen_id, 200);
	ck_assert_uint_eq(tdt_current_task_id(), 7);
	tdt_hook_poll_end(&seven);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
}

TEST(a_task_is_found_by_the_id_that_it_was_given)
{
	struct tdt_handle *found;
	struct hand hand;

	hand_begin_later(&hand, 1);
	ck_assert_uint_eq(hand_id(&hand), 1);
	tdt_hook_adopt(hand.task.handle, 7);
	found = tdt_task_find(7);
	ck_assert_ptr_eq(found, hand.task.handle);
	tdt_handle_unref(found);
	hand_end(&hand);
}

static void start_recorder(void)
{
	ck_assert_int_eq(tdt_recorder_start(NULL), 0);
}

static const struct tdt_recording_ring *ring_here(void)
{
	const struct tdt_recording_ring *ring =
		recorded_ring_of((uint32_t)gettid(), TDT_RING_POLLS);

	ck_assert_ptr_nonnull(ring);
	return ring;
}

static unsigned polls_of(uint64_t id)
{
	return recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, id);
}

static unsigned ends_of(uint64_t id)
{
	return recorded_count(TDT_RING_POLLS, TDT_EVENT_END, id);
}

/* What the last poll of the task returned. */
static int result_of(uint64_t id)
{
	return recorded_last(TDT_RING_POLLS, TDT_EVENT_POLL, id).event.detail & 3;
}

CASE(recorder, .setup = start_recorder)

TEST(a_task_that_nobody_traces_is_recorded)
{
	struct recorded event;
	uint32_t line;

	tdt_hook_spawn(&seven);
	tdt_hook_poll_start(&seven);
	ck_assert_uint_eq(ring_here()->task, 7);
	tdt_hook_poll_end(&seven);
	ck_assert_uint_eq(ring_here()->task, 0);
	ck_assert_int_eq(result_of(7), TDT_PENDING);
	tdt_hook_poll_start(&seven);
	tdt_hook_terminate(&seven);
	tdt_hook_poll_end(&seven);
	ck_assert_int_eq(result_of(7), TDT_READY);
	ck_assert_uint_eq(polls_of(7), 2);
	ck_assert_uint_eq(ends_of(7), 1);
	event = recorded_last(TDT_RING_POLLS, TDT_EVENT_END, 7);
	ck_assert_uint_eq(event.event.detail, TDT_READY);
	memcpy(&line, event.payload + 8, sizeof line);
	ck_assert_uint_eq(line, 7);
	ck_assert_str_eq(event.payload + 17, "runtime.rs");
	event = recorded_last(TDT_RING_OTHERS, TDT_EVENT_SPAWN, 7);
	ck_assert_str_eq(event.payload + 17, "runtime.rs");
}

TEST(a_task_that_did_not_end_in_a_poll_was_dropped)
{
	tdt_hook_poll_start(&seven);
	tdt_hook_poll_end(&seven);
	tdt_hook_terminate(&seven);
	ck_assert_uint_eq(recorded_last(TDT_RING_POLLS, TDT_EVENT_END, 7).event.detail,
			  TDT_PENDING);
}

TEST(of_a_task_that_is_traced_as_well_each_poll_is_recorded_once)
{
	struct recorded event;
	struct hand hand;

	hand_begin_later(&hand, 1);
	ck_assert_uint_eq(recorded_count(TDT_RING_OTHERS, TDT_EVENT_SPAWN, 0), 0);
	tdt_hook_adopt(hand.task.handle, 7);
	tdt_hook_spawn(&seven);
	poll_reported(&hand, &seven);
	ck_assert_uint_eq(polls_of(7), 1);
	ck_assert_uint_eq(ring_here()->task, 0);
	poll_reported(&hand, &seven);
	ck_assert_uint_eq(polls_of(7), 2);
	ck_assert_int_eq(result_of(7), TDT_READY);
	ck_assert_uint_eq(ends_of(7), 1);
	event = recorded_last(TDT_RING_POLLS, TDT_EVENT_END, 7);
	ck_assert_str_eq(event.payload + 16, "traced");
	hand_end(&hand);
}

TEST(the_end_of_a_traced_task_that_is_dropped_is_recorded_once)
{
	struct hand hand;

	hand_begin_later(&hand, 9);
	tdt_hook_adopt(hand.task.handle, 7);
	poll_reported(&hand, &seven);
	hand_end(&hand);
	tdt_hook_terminate(&seven);
	ck_assert_uint_eq(ends_of(7), 1);
}

TEST(a_poll_whose_end_is_not_reported_leaves_nothing_behind)
{
	tdt_hook_poll_start(&seven);
	tdt_hook_poll_start(&eight);
	tdt_hook_poll_end(&eight);
	ck_assert_uint_eq(ring_here()->task, 0);
	tdt_hook_poll_end(&seven);
	ck_assert_uint_eq(polls_of(7), 0);
	ck_assert_uint_eq(polls_of(8), 1);
}

TEST(a_poll_during_which_the_recorder_stops_is_over_for_the_next_recording)
{
	tdt_hook_poll_start(&seven);
	ck_assert_int_eq(tdt_recorder_stop(), 0);
	tdt_hook_poll_end(&seven);
	tdt_hook_poll_start(&seven);
	tdt_hook_poll_end(&seven);
	ck_assert_uint_le(polls_of(7), 1);
	start_recorder();
	tdt_hook_poll_start(&eight);
	tdt_hook_poll_end(&eight);
	ck_assert_uint_eq(polls_of(8), 1);
	ck_assert_uint_eq(ring_here()->task, 0);
}
