// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers recorder/recorder, recorder/record, recorder/block, recorder/request, tdt/recorder.h,
 * tdt/layout/recording.h.  What each event says, and how many there are; starting, stopping and the
 * options.
 */

#include <sys/syscall.h>

#include <tdt/integrate/fiber.h>
#include <tdt/integrate/hooks.h>
#include <tdt/integrate/leaf.h>
#include <tdt/layout/recording.h>

#include "lib/folder.h"
#include "lib/hand.h"
#include "lib/no_threads.h"
#include "lib/recorded.h"
#include "lib/requester.h"
#include "lib/test.h"
#include "recorder/clock.h"
#include "recorder/recorder.h"
#include "registry/handle.h"
#include "registry/registry.h"

static void start(const struct tdt_recorder_options *options)
{
	ck_assert_int_eq(tdt_recorder_start(options), 0);
}

CASE(events)

TEST(each_poll_is_recorded_with_its_result_and_its_duration)
{
	struct recorded last;
	uint64_t before, after;

	start(NULL);
	HAND(hand, 2, TDT_READY, NULL);
	hand_poll(&hand);
	hand_poll(&hand);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, hand_id(&hand)), 2);
	last = recorded_last(TDT_RING_POLLS, TDT_EVENT_POLL, hand_id(&hand));
	ck_assert_uint_eq(last.event.detail & 3, TDT_PENDING);
	before = tdt__ticks();
	hand_poll(&hand);
	after = tdt__ticks();
	last = recorded_last(TDT_RING_POLLS, TDT_EVENT_POLL, hand_id(&hand));
	ck_assert_uint_eq(last.event.detail & 7, TDT_READY);
	ck_assert_uint_ge(last.event.time, before);
	ck_assert_uint_le(last.event.time + recorded_duration(&last.event), after);
}

TEST(a_poll_follows_the_previous_one_if_the_runtime_has_not_read_the_clock_since)
{
	struct recorded first, second, third;

	start(NULL);
	HAND(hand, 5, TDT_READY, NULL);
	tdt_worker_now(1000);
	hand_poll(&hand);
	first = recorded_last(TDT_RING_POLLS, TDT_EVENT_POLL, 0);
	hand_poll(&hand);
	second = recorded_last(TDT_RING_POLLS, TDT_EVENT_POLL, 0);
	tdt_worker_now(2000);
	hand_poll(&hand);
	third = recorded_last(TDT_RING_POLLS, TDT_EVENT_POLL, 0);
	ck_assert_uint_eq(first.event.detail & 4, 0);
	ck_assert_uint_eq(second.event.detail & 4, 4);
	ck_assert_uint_eq(second.event.time, first.event.time + recorded_duration(&first.event));
	ck_assert_uint_eq(third.event.detail & 4, 0);
	tdt_worker_thread_park();
	tdt_worker_thread_unpark();
	hand_poll(&hand);
	third = recorded_last(TDT_RING_POLLS, TDT_EVENT_POLL, 0);
	ck_assert_uint_eq(third.event.detail & 4, 0);
	tdt_worker_now(0);
}

TEST(a_poll_for_a_request_is_recorded_as_one)
{
	struct test_requester requester;
	TEST_TASK(task, NULL, .name = 'a', .pending = 99);
	uint64_t id = tdt_handle_id(task.handle);

	ck_assert_int_eq(tdt_recorder_start(NULL), 0);
	test_task_poll(&task);
	ck_assert_uint_eq(recorded_last(TDT_RING_POLLS, TDT_EVENT_POLL, id).event.detail &
				  TDT_EVENT_POLL_REQUESTED, 0);
	test_ask(&requester, task.handle);
	test_task_poll(&task);
	ck_assert_uint_ne(recorded_last(TDT_RING_POLLS, TDT_EVENT_POLL, id).event.detail &
				  TDT_EVENT_POLL_REQUESTED, 0);
	test_requester_fini(&requester);
	test_ask(&requester, task.handle);
	tdt_task_woken(task.handle); /* the task goes on by itself, too */
	test_task_poll(&task);
	ck_assert_uint_eq(recorded_last(TDT_RING_POLLS, TDT_EVENT_POLL, id).event.detail &
				  TDT_EVENT_POLL_REQUESTED, 0);
	test_requester_fini(&requester);
}

TEST(a_wake_up_says_which_task_made_it)
{
	struct recorded wake, poll;

	start(NULL);
	HAND(hand, 5, TDT_READY, NULL);
	hand_poll(&hand);
	tdt_task_woken(hand.task.handle);
	wake = recorded_last(TDT_RING_POLLS, TDT_EVENT_WAKE, hand_id(&hand));
	ck_assert_uint_eq(wake.event.c, 0);
	TDT__POKE(hand.task.handle->record.woken_by, 77);
	hand_poll(&hand);
	poll = recorded_last(TDT_RING_POLLS, TDT_EVENT_POLL, hand_id(&hand));
	ck_assert_uint_eq(poll.event.c, 77);
	hand_poll(&hand);
	poll = recorded_last(TDT_RING_POLLS, TDT_EVENT_POLL, hand_id(&hand));
	ck_assert_uint_eq(poll.event.c, 0);
}

static void check_identity(const struct recorded *event, uint64_t parent, unsigned line,
			   const char *name, const char *file)
{
	ck_assert_mem_eq(event->payload, &parent, 8);
	ck_assert_mem_eq(event->payload + 8, &line, 4);
	ck_assert_str_eq(event->payload + 16, name);
	ck_assert_str_eq(event->payload + 17 + strlen(name), file);
	ck_assert_uint_eq(event->size, 16 + strlen(name) + 1 + strlen(file) + 1);
}

TEST(a_task_is_recorded_with_its_identity_when_it_is_made_and_when_it_ends)
{
	struct recorded made, ended;
	const char *file;
	unsigned line;
	struct hand hand;
	uint64_t id;

	start(NULL);
	hand_begin(&hand, 0, TDT_READY, "a name");
	line = hand.task.handle->record.line;
	file = (const char *)(uintptr_t)hand.task.handle->record.file;
	id = hand_id(&hand);
	made = recorded_last(TDT_RING_OTHERS, TDT_EVENT_SPAWN, id);
	check_identity(&made, 0, line, "a name", file);
	ck_assert_uint_eq(made.event.c, hand.task.handle->record.poll);
	hand_poll(&hand);
	ended = recorded_last(TDT_RING_POLLS, TDT_EVENT_END, id);
	check_identity(&ended, 0, line, "a name", file);
	ck_assert_uint_eq(ended.event.detail, TDT_READY);
	hand_end(&hand);
	hand_begin(&hand, 9, TDT_READY, NULL);
	id = hand_id(&hand);
	hand_end(&hand);
	ended = recorded_last(TDT_RING_POLLS, TDT_EVENT_END, id);
	ck_assert_uint_eq(ended.event.detail, TDT_PENDING);
}

TEST(a_park_is_recorded_when_it_is_over_and_the_ring_shows_it_before)
{
	const struct tdt_recording_ring *ring;
	struct recorded park;

	start(NULL);
	HAND(hand, 5, TDT_READY, NULL);
	hand_poll(&hand);
	ring = recorded_ring_of((uint32_t)gettid(), TDT_RING_POLLS);
	tdt_worker_thread_park();
	ck_assert_uint_ne(ring->since, 0);
	ck_assert_uint_eq(ring->task, 0);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_PARK, 0), 0);
	park.event.time = ring->since;
	tdt_worker_thread_unpark();
	ck_assert_uint_eq(ring->since, 0);
	ck_assert_uint_eq(recorded_last(TDT_RING_POLLS, TDT_EVENT_PARK, 0).event.time,
			  park.event.time);
}

static tdt_poll_t waiting_poll(void *state, struct tdt_context *cx)
{
	const struct tdt_recording_ring *ring =
		recorded_ring_of((uint32_t)gettid(), TDT_RING_POLLS);

	ck_assert_uint_eq(ring->task, tdt_current_task_id());
	ck_assert_uint_ne(ring->since, 0);
	tdt_leaf_waits_on_named(TDT_WAIT_MUTEX, state, 9, "a lock with a name of more than a slot");
	tdt_leaf_waits_on(TDT_WAIT_TIMER, state, 0);
	return TDT_PENDING;
}

TEST(what_leaves_wait_for_is_recorded_before_their_poll)
{
	const struct tdt_recording_ring *ring;
	struct recorded event;
	struct test_waker waker;
	struct tdt_context cx = { &waker.waker };
	uint64_t at = 0;
	TRACED(task, tdt_traced(((struct tdt_future){ &task, waiting_poll, drop_nothing })));

	test_waker_init(&waker);
	start(NULL);
	tdt_future_poll(&task.future, &cx);
	ring = recorded_ring_of((uint32_t)gettid(), TDT_RING_POLLS);
	ck_assert(recorded_next(ring, &at, &event) && event.event.kind == TDT_EVENT_THREAD);
	ck_assert(recorded_next(ring, &at, &event) && event.event.kind == TDT_EVENT_WAIT);
	ck_assert_uint_eq(event.event.detail, TDT_WAIT_MUTEX);
	ck_assert_uint_eq(event.event.time, 9);
	ck_assert_uint_eq(event.event.c, (uintptr_t)&task);
	ck_assert_str_eq(event.payload, "a lock with a name of more than a slot");
	ck_assert(recorded_next(ring, &at, &event) && event.event.kind == TDT_EVENT_WAIT);
	ck_assert_uint_eq(event.event.detail, TDT_WAIT_TIMER);
	ck_assert_uint_eq(event.size, 0);
	ck_assert(recorded_next(ring, &at, &event) && event.event.kind == TDT_EVENT_POLL);
	ck_assert(!recorded_next(ring, &at, &event));
	ck_assert_uint_eq(ring->task, 0);
}

static void *wake_on_thread(void *arg)
{
	pthread_setname_np(pthread_self(), "waker");
	tdt_task_woken(arg);
	return NULL;
}

TEST(a_lock_that_is_handed_to_a_task_is_recorded)
{
	struct tdt_lock lock = { .magic = TDT_LOCK_MAGIC };
	struct recorded handed;

	tdt_lock_hand(&lock, 77);
	start(NULL);
	tdt_lock_hand(&lock, 78);
	tdt_lock_take(&lock, 79);
	handed = recorded_last(TDT_RING_OTHERS, TDT_EVENT_LOCK, 0);
	ck_assert_uint_eq(handed.event.task, 78);
	ck_assert_uint_eq(handed.event.c, (uintptr_t)&lock);
	ck_assert_uint_eq(recorded_count(TDT_RING_OTHERS, TDT_EVENT_LOCK, 0), 1);
}

TEST(a_thread_that_only_wakes_has_a_small_ring_with_its_name)
{
	struct recorded thread, wake;
	pthread_t waking;

	start(NULL);
	HAND(hand, 5, TDT_READY, NULL);
	hand_poll(&hand);
	pthread_create(&waking, NULL, wake_on_thread, hand.task.handle);
	pthread_join(waking, NULL);
	wake = recorded_last(TDT_RING_OTHERS, TDT_EVENT_WAKE, hand_id(&hand));
	thread = recorded_last(TDT_RING_OTHERS, TDT_EVENT_THREAD, 0);
	ck_assert_str_eq(thread.payload, "waker");
	ck_assert_uint_eq(thread.event.a, wake.ring->thread);
}

TEST(a_task_without_polls_is_recorded_as_running_and_waiting)
{
	struct tdt_leaf leaf = { .kind = TDT_LEAF_NAMED };
	uint64_t id, at = 0;
	struct recorded event;
	char seen[8] = "";
	size_t n = 0;

	start(NULL);
	FUTURELESS(task, tdt_task_new(TDT_TASK_ATTR(.name = "a request")));
	id = tdt_handle_id(task);
	tdt_leaf_at(task, &leaf);
	tdt_leaf_at(task, NULL);
	while (recorded_next(recorded_ring_of((uint32_t)gettid(), TDT_RING_OTHERS), &at, &event))
		if (event.event.kind == TDT_EVENT_RUN && event.event.task == id)
			seen[n++] = event.event.detail == TDT_PENDING ? 'w' : 'r';
	ck_assert_str_eq(seen, "rwr");
}

/* The kinds of the waits that the ring has, in their order. */
static const char *waits_recorded(uint64_t id)
{
	static char seen[16];
	struct recorded event;
	uint64_t at = 0;
	size_t n = 0;

	while (recorded_next(recorded_ring_of((uint32_t)gettid(), TDT_RING_POLLS), &at, &event))
		if (event.event.task == id && event.event.kind == TDT_EVENT_WAIT)
			seen[n++] = (char)('0' + event.event.detail);
		else if (event.event.task == id && event.event.kind == TDT_EVENT_POLL)
			seen[n++] = '|';
	seen[n] = '\0';
	return seen;
}

TEST(of_the_lists_of_a_run_the_last_one_is_recorded)
{
	static const struct tdt_leaf_wait one = { TDT_WAIT_TIMER, 0, NULL, 0, NULL },
					  two[] = { { TDT_WAIT_IO, 0, NULL, 0, NULL },
						    { TDT_WAIT_TASK, 0, NULL, 0, "a child" } };
	struct tdt_leaf first = { .kind = TDT_LEAF_NAMED, .waits = &one, .n_waits = 1 },
			last = { .kind = TDT_LEAF_NAMED, .waits = two, .n_waits = 2 };
	struct tdt_handle *task;
	char expected[16];

	start(NULL);
	task = tdt_task_new(TDT_TASK_ATTR(.name = "a request"));
	MUST(task != NULL);
	tdt_task_enter(task);
	tdt_leaf_at(task, &first);
	tdt_leaf_at(task, &last);
	tdt_task_leave(task);
	tdt_task_enter(task); /* it waits there again */
	tdt_task_leave(task);
	tdt_task_enter(task);
	tdt_leaf_at(task, &last);
	tdt_leaf_at(task, NULL);
	tdt_task_leave(task);
	snprintf(expected, sizeof expected, "%d%d|%d%d||", TDT_WAIT_IO, TDT_WAIT_TASK, TDT_WAIT_IO,
		 TDT_WAIT_TASK);
	ck_assert_str_eq(waits_recorded(tdt_handle_id(task)), expected);
	tdt_task_end(task);
}

TEST(the_runs_of_a_fiber_are_recorded_as_polls)
{
	static char stack[4096];
	struct tdt_fiber *fiber;
	const struct tdt_recording_ring *ring;
	struct recorded last;
	uint64_t id;

	start(NULL);
	fiber = tdt_fiber_new(stack, sizeof stack, TDT_TASK_ATTR(.name = "a fiber"));
	ck_assert_ptr_nonnull(fiber);
	id = tdt_handle_id(tdt_fiber_handle(fiber));
	last = recorded_last(TDT_RING_OTHERS, TDT_EVENT_SPAWN, id);
	ck_assert_str_eq(last.payload + 16, "a fiber");
	tdt_fiber_resume(fiber);
	ring = recorded_ring_of((uint32_t)gettid(), TDT_RING_POLLS);
	ck_assert_uint_eq(ring->task, id);
	tdt_fiber_suspend(fiber);
	ck_assert_uint_eq(ring->task, 0);
	last = recorded_last(TDT_RING_POLLS, TDT_EVENT_POLL, id);
	ck_assert_uint_eq(last.event.detail & 3, TDT_PENDING);
	tdt_fiber_resume(fiber);
	tdt_fiber_end(fiber);
	last = recorded_last(TDT_RING_POLLS, TDT_EVENT_POLL, id);
	ck_assert_uint_eq(last.event.detail & 3, TDT_READY);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, id), 2);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_END, id), 1);
	ck_assert_uint_eq(ring->task, 0);
}

CASE(switching)

TEST(nothing_is_recorded_before_the_start_and_after_the_stop)
{
	ck_assert_uint_eq(tdt__registry.rings, 0);
	ck_assert_int_eq(tdt_recorder_stop(), -EALREADY);
	HAND(hand, 9, TDT_READY, NULL);
	hand_poll(&hand);
	start(NULL);
	hand_poll(&hand);
	ck_assert_fails(tdt_recorder_start(NULL), EALREADY);
	ck_assert_int_eq(tdt_recorder_stop(), 0);
	hand_poll(&hand);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, hand_id(&hand)), 1);
	start(NULL);
	hand_poll(&hand);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, hand_id(&hand)), 2);
	ck_assert_uint_eq(recorded_count(TDT_RING_SERVICE, TDT_EVENT_START, 0), 2);
	ck_assert_uint_eq(recorded_count(TDT_RING_SERVICE, TDT_EVENT_STOP, 0), 1);
}

TEST(options_that_are_not_understood_are_refused)
{
	struct tdt_recorder_options options = { .size = sizeof options, .ring_size = 4095 };

	ck_assert_fails(tdt_recorder_start(&options), EINVAL);
	options.ring_size = 65536;
	options.total_size = 65536;
	ck_assert_int_eq(tdt_recorder_start(&options), -EINVAL);
	options.total_size = 0;
	options.stacks = TDT_STACKS_EVERY + 1;
	ck_assert_int_eq(tdt_recorder_start(&options), -EINVAL);
	options.stacks = -1;
	ck_assert_int_eq(tdt_recorder_start(&options), -EINVAL);
	options.stacks = 0;
	options.dir = "";
	ck_assert_int_eq(tdt_recorder_start(&options), -EINVAL);
	options.dir = "/nonexistent/either";
	ck_assert_int_eq(tdt_recorder_start(&options), -ENOENT);
	options.dir = NULL;
	options.size = 1;
	ck_assert_int_eq(tdt_recorder_start(&options), -EINVAL);
	ck_assert_uint_eq(tdt__registry.rings, 0);
	options.size = sizeof options;
	start(&options);
}

TEST(without_a_thread_or_memory_for_the_rings_it_does_not_start)
{
	const struct tdt_recorder_options huge = { .size = sizeof huge,
						   .ring_size = (size_t)1 << 36,
						   .total_size = (size_t)1 << 52 };
	const struct rlimit limit = { (rlim_t)1 << 36, RLIM_INFINITY };

	threads_left = 0;
	ck_assert_fails(tdt_recorder_start(NULL), EAGAIN);
	threads_left = -1;
	if (!ASAN && !TSAN) {
		ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
		ck_assert_int_eq(tdt_recorder_start(&huge), -ENOMEM);
	}
	ck_assert_uint_eq(tdt__registry.rings, 0);
	start(NULL);
}

/* In a directory, so that each start makes a file; with other options, so that it makes rings. */
TEST(each_allocation_of_a_start_may_fail)
{
	char dir[FOLDER_SIZE];
	struct tdt_recorder_options options = { .size = sizeof options,
						.ring_size = TDT_RING_SIZE_MIN,
						.stacks = TDT_STACKS_EVERY,
						.dir = dir,
						.dir_size = 1 << 30 };
	int failed = 0;

	NOT_TRIED_IF(!no_memory_possible(), "allocations can't be made to fail here");
	ck_assert(make_folder(dir));
	start(NULL);
	for (int first = 0, made = 1; made >= first; first++, options.dir_size++) {
		int error;

		ck_assert_int_eq(tdt_recorder_stop(), 0);
		no_memory_begin(first);
		error = tdt_recorder_start(&options);
		made = no_memory_end();
		ck_assert_int_le(error, 0);
		failed += error != 0;
		if (error != 0)
			start(NULL);
	}
	ck_assert_int_gt(failed, 0);
	ck_assert_int_eq(unlink(recorded_path()), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}

static void remove_recording(const char *dir)
{
	ck_assert_int_eq(strncmp(recorded_path(), dir, strlen(dir)), 0);
	ck_assert_int_eq(unlink(recorded_path()), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}

TEST(the_last_component_of_the_directory_is_made)
{
	char above[] = "/tmp/tdt-check-XXXXXX", dir[64], below[80];
	struct tdt_recorder_options options = { .size = sizeof options,
						.ring_size = TDT_RING_SIZE_MIN,
						.dir = below };
	struct stat about;

	ck_assert_ptr_nonnull(mkdtemp(above));
	snprintf(dir, sizeof dir, "%s/made", above);
	snprintf(below, sizeof below, "%s/below", dir);
	ck_assert_int_eq(tdt_recorder_start(&options), -ENOENT);
	ck_assert_int_eq(access(dir, F_OK), -1);
	snprintf(below, sizeof below, "%s//", dir);
	start(&options);
	ck_assert_int_eq(stat(dir, &about), 0);
	ck_assert_int_eq(about.st_mode, S_IFDIR | 0700);
	remove_recording(dir);
	ck_assert_int_eq(rmdir(above), 0);
}

TEST(the_directory_must_not_be_a_symbolic_link)
{
	char dir[] = "/tmp/tdt-check-XXXXXX", link[64], slash[65];
	struct tdt_recorder_options options = { .size = sizeof options,
						.ring_size = TDT_RING_SIZE_MIN,
						.dir = link };

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(link, sizeof link, "%s.link", dir);
	snprintf(slash, sizeof slash, "%s/", link);
	ck_assert_int_eq(symlink(dir, link), 0);
	ck_assert_int_eq(tdt_recorder_start(&options), -ELOOP);
	options.dir = slash;
	ck_assert_int_eq(tdt_recorder_start(&options), -ELOOP);
	ck_assert_int_eq(unlink(link), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}

/* Somebody who may write to the folder above put a link in its place meanwhile. */
TEST(a_restarted_recorder_makes_no_file_where_a_link_leads)
{
	char dir[] = "/tmp/tdt-check-XXXXXX", other[] = "/tmp/tdt-check-XXXXXX";
	struct tdt_recorder_options options = { .size = sizeof options,
						.ring_size = TDT_RING_SIZE_MIN,
						.dir = dir };

	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_ptr_nonnull(mkdtemp(other));
	start(&options);
	remove_recording(dir);
	ck_assert_int_eq(symlink(other, dir), 0);
	ck_assert_int_eq(tdt_recorder_stop(), 0);
	options.ring_size *= 2;
	ck_assert_int_eq(tdt_recorder_start(&options), -ELOOP);
	ck_assert_int_eq(unlink(dir), 0);
	ck_assert_int_eq(rmdir(other), 0);
}

TEST(sizes_are_rounded_down_and_the_total_is_a_bound)
{
	const struct tdt_recorder_options options = { .size = sizeof options,
						      .ring_size = 70000,
						      .total_size = 8 << 20 };
	uint64_t polls = 0, end;

	start(&options);
	for (uint32_t i = 0; i < recorded_block()->n_rings; i++) {
		const struct tdt_recording_ring *ring = recorded_ring(i);

		end = ring->slots + TDT__PEEK(ring->room) * sizeof(struct tdt_event);
		ck_assert_uint_le(end, 8 << 20);
		if (ring->kind == TDT_RING_POLLS) {
			ck_assert_uint_eq(ring->most, 65536 / sizeof(struct tdt_event));
			end = ring->slots + ring->most * sizeof(struct tdt_event);
			ck_assert_uint_le(end, 8 << 20);
			polls++;
		}
	}
	ck_assert_uint_gt(polls, 64);
}

TEST(other_sizes_make_other_rings_and_a_thread_takes_one_of_them)
{
	struct tdt_recorder_options options = { .size = sizeof options, .ring_size = 65536 };
	uint64_t first;

	start(&options);
	HAND(hand, 9, TDT_READY, NULL);
	hand_poll(&hand);
	first = tdt__registry.rings;
	ck_assert_int_eq(tdt_recorder_stop(), 0);
	options.ring_size = 131072;
	start(&options);
	ck_assert_uint_ne(tdt__registry.rings, first);
	hand_poll(&hand);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, hand_id(&hand)), 1);
	ck_assert_uint_eq(recorded_block()->missed, 0);
}

static struct tdt_recorder_status info_now(void)
{
	struct tdt_recorder_status info = { .size = sizeof info };

	ck_assert_int_eq(tdt_recorder_info(&info), 0);
	return info;
}

TEST(the_environment_starts_it_at_the_first_traced_future)
{
	setenv("TDT_RECORD", "64K", 1);
	setenv("TDT_RECORD_STACKS", "7", 1);
	ck_assert(!info_now().recording);
	HAND(hand, 9, TDT_READY, NULL);
	ck_assert(info_now().recording);
	ck_assert_int_eq(info_now().environment, 0);
	ck_assert_uint_eq(recorded_block()->stack_every, 7);
	hand_poll(&hand);
	ck_assert_uint_eq(recorded_last(TDT_RING_POLLS, TDT_EVENT_POLL, 0).ring->most, 2048);
}

TEST(a_value_of_the_environment_that_is_not_understood_is_reported, .to = 10)
{
	static const char *const wrong[] = { "x", "1x", "-1", "1MM", "99999999999999999999" };

	setenv("TDT_RECORD", _i % 2 == 0 ? wrong[_i / 2] : "64K", 1);
	setenv("TDT_RECORD_DIR_SIZE", _i % 2 == 0 ? "1G" : wrong[_i / 2], 1);
	HAND(hand, 9, TDT_READY, NULL);
	ck_assert(!info_now().recording);
	ck_assert_int_eq(info_now().environment, -EINVAL);
}

TEST(without_its_directory_it_records_in_memory_and_reports_why)
{
	setenv("TDT_RECORD", "64K", 1);
	setenv("TDT_RECORD_DIR", "/nonexistent/either", 1);
	HAND(hand, 9, TDT_READY, NULL);
	ck_assert(info_now().recording);
	ck_assert_int_eq(info_now().environment, -ENOENT);
	ck_assert_str_eq(recorded_path(), "");
}

/* --- What is said of the environment -------------------------------------------------------- */

static tdt_poll_t ready_poll(void *state, struct tdt_context *cx)
{
	return TDT_READY;
}

static void nothing_drop(void *state)
{
}

/*
 * What a program does that was started with the environment: "daemon" puts another file in the
 * place of standard error; "limit" must not make files larger.  The limit comes in the program,
 * since ThreadSanitizer's runtime writes a file before main().
 */
int test_play(int argc, char **argv)
{
	const struct rlimit none = { 0, 0 };
	struct tdt_traced task;
	FILE *other;

	MUST(argc == 2);
	if (strcmp(argv[1], "daemon") == 0) {
		other = tmpfile();
		MUST(other != NULL && dup2(fileno(other), STDERR_FILENO) >= 0);
	}
	MUST(strcmp(argv[1], "limit") != 0 || setrlimit(RLIMIT_FSIZE, &none) == 0);
	task = tdt_traced(((struct tdt_future){ NULL, ready_poll, nothing_drop }));
	end_traced(&task);
	return lseek(STDERR_FILENO, 0, SEEK_END) > 0 && strcmp(argv[1], "daemon") == 0;
}

/* Start a program, whose standard error is `descriptor`.  Returns its status. */
static int play(const char *mode, int descriptor)
{
	char self[PATH_MAX] = "", *arguments[] = { self, (char *)(uintptr_t)mode, NULL };
	pid_t child;

	ck_assert_int_gt(readlink("/proc/self/exe", self, sizeof self - 1), 0);
	child = fork();
	if (child == 0) {
		dup2(descriptor, STDERR_FILENO);
		execv(self, arguments);
		_exit(99);
	}
	return child_status(child);
}

/* What the program has written. */
static const char *said(const char *mode)
{
	static char text[1024];
	FILE *file = tmpfile();

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(play(mode, fileno(file)), 0);
	rewind(file);
	text[fread(text, 1, sizeof text - 1, file)] = '\0';
	fclose(file);
	return text;
}

TEST(what_the_environment_cannot_have_is_said_in_one_line)
{
	setenv("TDT_RECORD", "64Q", 1);
	ck_assert_str_eq(said("plain"),
			 "tdt: TDT_RECORD=64Q: Invalid argument: nothing is recorded\n");
	setenv("TDT_RECORD", "64K", 1);
	ck_assert_str_eq(said("plain"), "");
	setenv("TDT_RECORD_STACKS", "0", 1);
	ck_assert_str_eq(said("plain"), "tdt: TDT_RECORD_STACKS=0: Invalid argument: "
					"nothing is recorded\n");
	unsetenv("TDT_RECORD_STACKS");
	setenv("TDT_RECORD_DIR", "/nonexistent/either", 1);
	ck_assert_str_eq(said("plain"), "tdt: TDT_RECORD_DIR=/nonexistent/either: No such file or "
					"directory: recording in memory only\n");
}

TEST(nothing_is_written_to_what_has_the_place_of_standard_error)
{
	setenv("TDT_RECORD", "64Q", 1);
	ck_assert_str_eq(said("daemon"), "");
}

TEST(a_standard_error_that_cannot_be_written_to_does_no_harm)
{
	FILE *file = tmpfile();
	int ends[2];

	setenv("TDT_RECORD", "64Q", 1);
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_gt(fcntl(ends[1], F_SETFL, O_NONBLOCK), -1);
	while (write(ends[1], "", 1) == 1)
		;
	ck_assert_int_eq(fcntl(ends[1], F_SETFL, 0), 0);
	ck_assert_int_eq(play("plain", ends[1]), 0); /* a full pipe is not waited for */
	ck_assert_int_eq(pipe(ends), 0);
	close(ends[0]);
	ck_assert_int_eq(play("plain", ends[1]), 0);
	ck_assert_int_eq(play("limit", fileno(file)), 0);
}

TEST(a_call_goes_before_the_environment)
{
	setenv("TDT_RECORD", "64K", 1);
	start(NULL);
	ck_assert_int_eq(tdt_recorder_stop(), 0);
	HAND(hand, 9, TDT_READY, NULL);
	ck_assert(!info_now().recording);
}

TEST(values_of_the_environment_are_read)
{
	struct tdt_recorder_options options = { 0 };

	ck_assert_int_eq(tdt__recorder_parse_size(""), 0);
	ck_assert_int_eq(tdt__recorder_parse_size("0"), 0);
	ck_assert_int_eq(tdt__recorder_parse_size("4096"), 4096);
	ck_assert_int_eq(tdt__recorder_parse_size("3K"), 3072);
	ck_assert_int_eq(tdt__recorder_parse_size("2M"), 2097152);
	ck_assert_int_eq(tdt__recorder_parse_size("1G"), 1073741824);
	ck_assert_int_eq(tdt__recorder_parse_size("9999999999G"), -1);
	ck_assert(tdt__recorder_parse_stacks("off", &options));
	ck_assert_int_eq(options.stacks, TDT_STACKS_OFF);
	ck_assert(tdt__recorder_parse_stacks("remarkable", &options));
	ck_assert_int_eq(options.stacks, TDT_STACKS_REMARKABLE);
	ck_assert(tdt__recorder_parse_stacks("12", &options));
	ck_assert_int_eq(options.stacks, TDT_STACKS_EVERY);
	ck_assert_uint_eq(options.every, 12);
	ck_assert(!tdt__recorder_parse_stacks("0", &options));
	ck_assert(!tdt__recorder_parse_stacks("12x", &options));
	ck_assert(!tdt__recorder_parse_stacks("4294967296", &options));
	ck_assert(!tdt__recorder_parse_stacks("every", &options));
}

TEST(how_the_recorder_does_can_be_asked_with_any_size)
{
	struct {
		struct tdt_recorder_status info;
		char more[8];
	} larger = { .info = { .size = sizeof larger }, .more = "abcdefg" };
	size_t small[2] = { sizeof small, 5 };

	ck_assert_fails(tdt_recorder_info(NULL), EINVAL);
	ck_assert_int_eq(tdt_recorder_info(&larger.info), 0);
	ck_assert_str_eq(larger.more, "");
	ck_assert_int_eq(tdt_recorder_info((void *)small), 0);
	ck_assert_uint_eq(small[0], sizeof small);
	ck_assert_uint_eq(small[1], 0);
	small[0] = 4;
	ck_assert_int_eq(tdt_recorder_info((void *)small), -EINVAL);
}

TEST(the_path_of_the_file_is_written_where_it_has_room)
{
	char path[] = "there is none";
	struct tdt_recorder_status info = { .size = sizeof info, .missed = 7, .path = path };

	ck_assert_fails(tdt_recorder_info(&info), ERANGE);
	ck_assert_uint_eq(info.missed, 7);
	info.path_size = 1;
	ck_assert_int_eq(tdt_recorder_info(&info), 0);
	ck_assert_str_eq(path, "");
	ck_assert_ptr_eq(info.path, path);
	ck_assert_uint_eq(info.missed, 0);
}

static void child_of_fork(struct hand *hand)
{
	const struct tdt_recording_ring *service = recorded_ring(0);
	struct hand own;

	MUST(recorded_block()->pid == (uint32_t)getpid());
	MUST(service->head > 0);
	MUST(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, 0) == 0);
	hand_poll(hand);
	MUST(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, hand_id(hand)) == 1);
	hand_begin(&own, 9, TDT_READY, NULL);
	hand_poll(&own);
	MUST(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, 0) == 2);
	MUST(recorded_block()->missed == 0);
	MUST(tdt_recorder_stop() == 0 && tdt_recorder_start(NULL) == 0);
	hand_end(&own);
}

CASE(forking)

TEST(a_child_goes_on_in_rings_of_its_own)
{
	start(NULL);
	HAND(hand, 9, TDT_READY, NULL);
	hand_poll(&hand);
	IN_A_CHILD
		child_of_fork(&hand);
	hand_poll(&hand);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, 0), 2);
	ck_assert_uint_eq(recorded_block()->pid, (uint32_t)getpid());
}

/* As some sandboxes make it. */
TEST(a_child_that_is_made_without_the_handlers_of_fork_does_no_harm)
{
	pid_t child;

	start(NULL);
	HAND(hand, 9, TDT_READY, NULL);
	hand_poll(&hand);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (child == 0) {
		hand_poll(&hand);
		_exit(0);
	}
	ck_assert_int_eq(child_status(child), 0);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, 0), 1);
}

TEST(a_child_of_a_process_that_stopped_records_nothing)
{
	start(NULL);
	HAND(hand, 9, TDT_READY, NULL);
	hand_poll(&hand);
	tdt_recorder_stop();
	IN_A_CHILD {
		hand_poll(&hand);
		MUST(tdt__registry.rings == 0);
		start(NULL);
		hand_poll(&hand);
		MUST(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, 0) == 1);
	}
}
