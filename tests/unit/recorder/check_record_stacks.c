// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers recorder/stacks, recorder/service.  The table of distinct stacks, the stacks of captured
 * polls and of polls that last, and what is remarkable.
 */

#include <tdt/integrate/hooks.h>
#include <tdt/layout/recording.h>

#include "lib/hand.h"
#include "lib/recorded.h"
#include "lib/test.h"
#include "recorder/block.h"
#include "recorder/stacks.h"
#include "watch/watch.h"

#define MS UINT64_C(1000000)

static struct tdt_recorder_options options = { .size = sizeof options, .ring_size = 65536 };

static void start(void)
{
	ck_assert_int_eq(tdt_recorder_start(&options), 0);
}

/* Sleep until the condition holds; if it never does, Check ends the test. */
#define UNTIL(condition)                                                                           \
	while (!(condition))                                                                       \
	usleep(1000)

static struct tdt_recording_stacks *table(void)
{
	return (void *)((uintptr_t)recorded_block() + recorded_block()->stacks);
}

/* The stack that an event refers to. */
static const struct tdt_recording_stack *stack_of(const struct tdt_event *event)
{
	ck_assert_uint_ne(event->a, 0);
	ck_assert_uint_lt((uint64_t)event->a * 8, TDT__PEEK(table()->used));
	return (const void *)((const char *)table() + (uint64_t)event->a * 8);
}

static bool calls(const struct tdt_recording_stack *stack, uintptr_t function)
{
	const uint64_t *pc = (const uint64_t *)(stack + 1);

	for (uint32_t i = 0; i < stack->n; i++)
		if (pc[i] > function && pc[i] < function + (ASAN || TSAN ? 2000 : 200))
			return true;
	return false;
}

CASE(stacks)

TEST(equal_stacks_have_one_number_and_others_have_others)
{
	const uint64_t a[] = { 1, 2, 3 }, b[] = { 1, 2, 4 };
	uint32_t number;

	start();
	number = tdt__stack_number(table(), a, 3, 0);
	ck_assert_uint_ne(number, 0);
	ck_assert_uint_eq(tdt__stack_number(table(), a, 3, 0), number);
	ck_assert_uint_ne(tdt__stack_number(table(), b, 3, 0), number);
	ck_assert_uint_ne(tdt__stack_number(table(), a, 2, 0), number);
	ck_assert_uint_ne(tdt__stack_number(table(), a, 3, 1), number);
	ck_assert_uint_eq(tdt__stack_number(table(), a, 3, 0), number);
	ck_assert_uint_eq(table()->lost, 0);
}

TEST(what_a_full_table_has_no_room_for_is_counted_and_the_others_are_found)
{
	uint64_t pc[2] = { 0, 7 };
	uint32_t first, added = 0;

	start();
	first = tdt__stack_number(table(), pc, 2, 0);
	for (pc[0] = 1; pc[0] < 10000; pc[0]++)
		added += tdt__stack_number(table(), pc, 2, 0) != 0;
	ck_assert_uint_gt(added, 1000);
	ck_assert_uint_eq(added + table()->lost, 9999);
	ck_assert_uint_le(table()->used, table()->bytes);
	pc[0] = 0;
	ck_assert_uint_eq(tdt__stack_number(table(), pc, 2, 0), first);
}

#define ADDERS 4
#define ADDED 300

static void *add_many(void *arg)
{
	uint32_t *number = arg;

	for (uint64_t i = 0; i < ADDED; i++) {
		const uint64_t pc[] = { i, i + 1, i + 2 };

		number[i] = tdt__stack_number(table(), pc, 3, 0);
	}
	return NULL;
}

TEST(threads_that_add_at_once_find_what_they_added)
{
	static uint32_t number[ADDERS][ADDED];
	pthread_t thread[ADDERS];

	start();
	for (int i = 0; i < ADDERS; i++)
		MUST(pthread_create(&thread[i], NULL, add_many, number[i]) == 0);
	threads_join(thread, ADDERS);
	for (int i = 0; i < ADDERS; i++)
		for (uint64_t j = 0; j < ADDED; j++) {
			const struct tdt_event event = { .a = number[i][j] };
			const struct tdt_recording_stack *stack = stack_of(&event);

			ck_assert_uint_eq(stack->n, 3);
			ck_assert_uint_eq(((const uint64_t *)(stack + 1))[0], j);
		}
}

/* --- Captured polls -------------------------------------------------------- */

static __attribute__((noinline)) tdt_poll_t two_leaves_poll(void *state, struct tdt_context *cx)
{
	static const struct tdt_waker *kept[2];

	for (int i = 0; i < 2; i++) {
		if (kept[i] != NULL)
			tdt_waker_drop(kept[i]);
		kept[i] = tdt_waker_clone(cx->waker);
	}
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

static void poll_task(struct tdt_traced *task)
{
	static struct test_waker waker;
	struct tdt_context cx = { &waker.waker };

	if (waker.waker.vtable == NULL)
		test_waker_init(&waker);
	tdt_future_poll(&task->future, &cx);
}

TEST(each_nth_poll_has_the_stacks_of_its_leaves_before_it)
{
	const struct tdt_recording_ring *ring;
	uint8_t kinds[32];
	struct recorded event;
	uint64_t at = 0;
	unsigned n = 0;
	TRACED(task, tdt_traced(((struct tdt_future){ NULL, two_leaves_poll, drop_nothing })));

	options.stacks = TDT_STACKS_EVERY;
	options.every = 3;
	start();
	for (int i = 0; i < 6; i++)
		poll_task(&task);
	ring = recorded_ring_of((uint32_t)gettid(), TDT_RING_POLLS);
	while (recorded_next(ring, &at, &event)) {
		kinds[n++] = event.event.kind;
		if (event.event.kind != TDT_EVENT_STACK)
			continue;
		ck_assert_uint_eq(event.event.c, 2);
		ck_assert_uint_eq(event.event.time, 0);
		ck_assert(calls(stack_of(&event.event), (uintptr_t)two_leaves_poll));
	}
	ck_assert_uint_eq(n, 11);
	ck_assert_mem_eq(
	    kinds,
	    ((uint8_t[]){ TDT_EVENT_THREAD, TDT_EVENT_POLL, TDT_EVENT_POLL, TDT_EVENT_STACK,
			  TDT_EVENT_STACK, TDT_EVENT_POLL, TDT_EVENT_POLL, TDT_EVENT_POLL,
			  TDT_EVENT_STACK, TDT_EVENT_STACK, TDT_EVENT_POLL }),
	    n);
}

/*
 * The recorder's thread is held in the middle of renewing the spare captures, which it does after a
 * poll has met new code: there it makes a capture empty.
 */
static struct {
	_Atomic bool armed;
	sem_t reached, go;
} renewal;
static _Thread_local bool is_tests_thread;

void __real_tdt__capture_clear(struct tdt__capture *capture);

void __wrap_tdt__capture_clear(struct tdt__capture *capture)
{
	if (!is_tests_thread && atomic_exchange(&renewal.armed, false)) {
		sem_post(&renewal.reached);
		sem_wait(&renewal.go);
	}
	__real_tdt__capture_clear(capture);
}

static void start_and_hold_renewal(struct tdt_traced *task)
{
	is_tests_thread = true;
	sem_init(&renewal.reached, 0, 0);
	sem_init(&renewal.go, 0, 0);
	atomic_store(&renewal.armed, true);
	start();
	poll_task(task); /* is captured, and meets new code */
	while (sem_wait(&renewal.reached) != 0)
		;
}

static unsigned leaves_recorded(void)
{
	return recorded_count(TDT_RING_POLLS, TDT_EVENT_STACK, 0);
}

static uint64_t lost_stacks(void)
{
	struct tdt_recorder_status status = { .size = sizeof status };

	ck_assert_int_eq(tdt_recorder_info(&status), 0);
	return status.lost_stacks;
}

TEST(a_poll_that_is_due_while_captures_are_renewed_has_its_stacks)
{
	TRACED(task, tdt_traced(((struct tdt_future){ NULL, two_leaves_poll, drop_nothing })));

	options.stacks = TDT_STACKS_EVERY;
	options.every = 1;
	start_and_hold_renewal(&task);
	ck_assert_uint_eq(leaves_recorded(), 2);
	poll_task(&task);
	ck_assert_uint_eq(leaves_recorded(), 4);
	ck_assert_uint_eq(lost_stacks(), 0);
	sem_post(&renewal.go);
}

#define CAPTURES_MOST 128 /* more than there are at first */

TEST(a_poll_that_finds_no_capture_is_counted_and_the_next_one_is_captured)
{
	struct tdt__capture *taken[CAPTURES_MOST];
	unsigned n = 0;
	TRACED(task, tdt_traced(((struct tdt_future){ NULL, two_leaves_poll, drop_nothing })));

	options.stacks = TDT_STACKS_EVERY;
	options.every = 2;
	is_tests_thread = true;
	start();
	poll_task(&task);
	ck_assert_uint_eq(leaves_recorded(), 0);
	/* Nobody makes more captures meanwhile. */
	pthread_mutex_lock(&tdt__watch_lock);
	while (n < CAPTURES_MOST && (taken[n] = tdt__spare_take()) != NULL)
		n++;
	ck_assert_uint_lt(n, CAPTURES_MOST);
	poll_task(&task);
	ck_assert_uint_eq(leaves_recorded(), 0);
	tdt__spare_give(taken[--n]);
	poll_task(&task);
	ck_assert_uint_eq(leaves_recorded(), 2);
	pthread_mutex_unlock(&tdt__watch_lock);
	ck_assert_uint_eq(lost_stacks(), 1);
	while (n > 0)
		tdt__spare_give(taken[--n]);
}

TEST(without_stacks_none_are_recorded)
{
	TRACED(task, tdt_traced(((struct tdt_future){ NULL, two_leaves_poll, drop_nothing })));

	options.stacks = TDT_STACKS_OFF;
	start();
	ck_assert_int_eq(tdt_watch(1, NULL), 0);
	poll_task(&task);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, 0), 1);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_STACK, 0), 0);
	tdt_recorder_stop();
	options.stacks = TDT_STACKS_REMARKABLE;
	start();
	usleep(5000);
	UNTIL((poll_task(&task), recorded_count(TDT_RING_POLLS, TDT_EVENT_STACK, 0)) != 0);
}

/* --- What is remarkable ---------------------------------------------------- */

static tdt_poll_t named_poll(void *state, struct tdt_context *cx)
{
	tdt_leaf_waits_on_named(TDT_WAIT_MUTEX, state, 9,
				"a lock with a name of more than one slot");
	return TDT_PENDING;
}

CASE(remarkable)

TEST(a_long_poll_is_copied_with_what_it_waits_for)
{
	struct tdt_traced task =
		tdt_traced(((struct tdt_future){ &task, named_poll, drop_nothing }));
	struct tdt_traced other =
		tdt_traced(((struct tdt_future){ NULL, named_poll, drop_nothing }));
	struct recorded wait, poll;

	options.long_poll_ns = 1;
	start();
	poll_task(&other);
	poll_task(&task);
	poll_task(&task);
	ck_assert_uint_eq(recorded_count(TDT_RING_REMARKABLE, TDT_EVENT_POLL, 0), 3);
	ck_assert_uint_eq(recorded_count(TDT_RING_REMARKABLE, TDT_EVENT_WAIT, 0), 3);
	wait = recorded_last(TDT_RING_REMARKABLE, TDT_EVENT_TASK, tdt_handle_id(task.handle));
	ck_assert_uint_gt(wait.size, 16); /* the name, or the place */
	wait = recorded_last(TDT_RING_REMARKABLE, TDT_EVENT_WAIT, tdt_handle_id(task.handle));
	ck_assert_str_eq(wait.payload, "a lock with a name of more than one slot");
	ck_assert_uint_eq(wait.event.c, (uintptr_t)&task);
	poll = recorded_last(TDT_RING_REMARKABLE, TDT_EVENT_POLL, 0);
	ck_assert_uint_eq(poll.event.task, tdt_handle_id(task.handle));
	tdt_future_drop(&task.future);
	tdt_future_drop(&other.future);
	tdt_handle_unref(task.handle);
	tdt_handle_unref(other.handle);
}

TEST(a_short_poll_is_not_remarkable)
{
	options.long_poll_ns = UINT64_MAX / 2;
	start();
	HAND(hand, 9, TDT_READY, NULL);
	hand_poll(&hand);
	ck_assert_uint_eq(recorded_count(TDT_RING_REMARKABLE, TDT_EVENT_POLL, 0), 0);
}

TEST(a_long_wait_for_a_worker_is_remarkable)
{
	struct recorded delay;

	start();
	tdt_worker_now(1000 * MS);
	HAND(hand, 9, TDT_READY, NULL);
	tdt_worker_now(1099 * MS);
	hand_poll(&hand);
	ck_assert_uint_eq(recorded_count(TDT_RING_REMARKABLE, TDT_EVENT_DELAY, 0), 0);
	tdt_task_woken(hand.task.handle);
	tdt_worker_now(1299 * MS);
	hand_poll(&hand);
	delay = recorded_last(TDT_RING_REMARKABLE, TDT_EVENT_DELAY, hand_id(&hand));
	ck_assert_uint_eq(delay.event.c, 200 * MS);
	ck_assert_uint_eq(delay.event.time,
			  recorded_last(TDT_RING_POLLS, TDT_EVENT_POLL, 0).event.time);
	tdt_worker_now(9000 * MS);
	hand_poll(&hand); /* not woken */
	ck_assert_uint_eq(recorded_count(TDT_RING_REMARKABLE, TDT_EVENT_DELAY, 0), 1);
	tdt_worker_now(0);
}

TEST(a_panic_is_remarkable)
{
	struct recorded end;
	uint64_t id;

	start();
	HAND(hand, 0, TDT_PANICKED, "the name");
	id = hand_id(&hand);
	hand_poll(&hand);
	end = recorded_last(TDT_RING_REMARKABLE, TDT_EVENT_END, id);
	ck_assert_uint_eq(end.event.detail, TDT_PANICKED);
	ck_assert_str_eq(end.payload + 16, "the name");
	ck_assert_uint_eq(recorded_last(TDT_RING_REMARKABLE, TDT_EVENT_POLL, id).event.detail & 3,
			  TDT_PANICKED);
	ck_assert_uint_eq(recorded_last(TDT_RING_POLLS, TDT_EVENT_END, id).event.detail,
			  TDT_PANICKED);
}

static sem_t go;

static __attribute__((noinline)) tdt_poll_t blocking_poll(void *state, struct tdt_context *cx)
{
	while (sem_wait(&go) != 0)
		;
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

static void *poll_on_thread(void *arg)
{
	poll_task(arg);
	return NULL;
}

/*
 * Whether the recorder has read the poll while it is blocked: `*event` is that.  A thread that was
 * held up before is read there first.
 */
static bool is_read(uint64_t id, struct tdt_event *event)
{
	if (recorded_count(TDT_RING_SERVICE, TDT_EVENT_STACK, id) == 0)
		return false;
	*event = recorded_last(TDT_RING_SERVICE, TDT_EVENT_STACK, id).event;
	return calls(stack_of(event), (uintptr_t)blocking_poll);
}

/*
 * The same of a poll that begins here.  The recorder tries that some times and no more, so on a
 * slow machine it may read none of them in time.
 */
static bool read_while_it_polls(struct tdt_traced *task, struct tdt_event *event)
{
	pthread_t thread;
	bool read = false;

	MUST(pthread_create(&thread, NULL, poll_on_thread, task) == 0);
	for (int i = 0; i < 2000 && !read; i++) {
		usleep(1000);
		read = is_read(tdt_handle_id(task->handle), event);
	}
	sem_post(&go);
	pthread_join(thread, NULL);
	return read;
}

TEST(a_poll_that_lasts_is_read_where_it_runs)
{
	struct tdt_traced task;
	struct tdt_event stack;

	NOT_TRIED_IF(in_valgrind(), "under valgrind threads are not where the kernel says");
	sem_init(&go, 0, 0);
	start();
	task = tdt_traced(((struct tdt_future){ NULL, blocking_poll, drop_nothing }));
	while (!read_while_it_polls(&task, &stack))
		;
	ck_assert_uint_ne(stack.time, 0);
	ck_assert_ptr_nonnull(recorded_ring_of((uint32_t)stack.c, TDT_RING_POLLS));
	end_traced(&task);
}

CASE(stacks)

/*
 * Whether the module of the code at `pc` was recorded.  There may be others: on a busy machine the
 * poll lasts, and is read wherever it is then, for example in the vDSO.
 */
static bool has_module_of(uintptr_t pc, struct recorded *module)
{
	uint64_t at = 0;

	while (recorded_next(recorded_ring(TDT__RING_MODULES), &at, module))
		if (module->event.kind == TDT_EVENT_MODULE && module->event.task <= pc &&
		    module->event.c > pc)
			return true;
	return false;
}

/* A module whose code lies in a stack that was recorded. */
TEST(the_module_of_each_stack_is_recorded)
{
	struct recorded module;
	TRACED(task, tdt_traced(((struct tdt_future){ NULL, two_leaves_poll, drop_nothing })));

	options.stacks = TDT_STACKS_EVERY;
	options.every = 1;
	start();
	poll_task(&task);
	UNTIL(has_module_of((uintptr_t)two_leaves_poll, &module));
	ck_assert_ptr_nonnull(
	    strstr(module.payload + 9 + module.payload[8], "check_record_stacks"));
}
