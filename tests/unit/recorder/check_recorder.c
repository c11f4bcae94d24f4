// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers recorder/recorder, recorder/record, recorder/block, tdt/recorder.h, tdt/recording.h.  What
 * each event says, and how many there are; starting, stopping and the options.
 */

#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tdt/tdt.h>

#include "lib/hand.h"
#include "lib/must.h"
#include "lib/no_memory.h"
#include "lib/recorded.h"
#include "lib/test.h"
#include "recorder/clock.h"
#include "recorder/recorder.h"
#include "registry/handle.h"
#include "registry/registry.h"

static void start(const struct tdt_recorder_options *options)
{
	ck_assert_int_eq(tdt_recorder_start(options), 0);
}

/* --- What is recorded ------------------------------------------------------ */

START_TEST(each_poll_is_recorded_with_its_result_and_its_duration)
{
	struct hand hand;
	struct recorded last;
	uint64_t before, after;

	start(NULL);
	hand_begin(&hand, 2, TDT_READY, NULL);
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
	hand_end(&hand);
}
END_TEST

START_TEST(a_poll_follows_the_previous_one_if_the_runtime_has_not_read_the_clock_since)
{
	struct recorded first, second, third;
	struct hand hand;

	start(NULL);
	hand_begin(&hand, 5, TDT_READY, NULL);
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
	hand_end(&hand);
}
END_TEST

START_TEST(a_wake_up_says_which_task_made_it)
{
	struct recorded wake, poll;
	struct hand hand;

	start(NULL);
	hand_begin(&hand, 5, TDT_READY, NULL);
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
	hand_end(&hand);
}
END_TEST

static void check_identity(const struct recorded *event, uint64_t parent, unsigned line,
			   const char *name, const char *file)
{
	ck_assert_mem_eq(event->payload, &parent, 8);
	ck_assert_mem_eq(event->payload + 8, &line, 4);
	ck_assert_str_eq(event->payload + 16, name);
	ck_assert_str_eq(event->payload + 17 + strlen(name), file);
	ck_assert_uint_eq(event->size, 16 + strlen(name) + 1 + strlen(file) + 1);
}

START_TEST(a_task_is_recorded_with_its_identity_when_it_is_made_and_when_it_ends)
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
END_TEST

START_TEST(a_park_is_recorded_when_it_is_over_and_the_ring_shows_it_before)
{
	const struct tdt_recording_ring *ring;
	struct recorded park;
	struct hand hand;

	start(NULL);
	hand_begin(&hand, 5, TDT_READY, NULL);
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
	hand_end(&hand);
}
END_TEST

static tdt_poll_t waiting_poll(void *state, struct tdt_context *cx)
{
	const struct tdt_recording_ring *ring =
		recorded_ring_of((uint32_t)gettid(), TDT_RING_POLLS);

	(void)cx;
	ck_assert_uint_eq(ring->task, tdt_current_task_id());
	ck_assert_uint_ne(ring->since, 0);
	tdt_leaf_waits_on_named(TDT_WAIT_MUTEX, state, 9, "a lock with a name of more than a slot");
	tdt_leaf_waits_on(TDT_WAIT_TIMER, state, 0);
	return TDT_PENDING;
}

static void drop_nothing(void *state)
{
	(void)state;
}

START_TEST(what_leaves_wait_for_is_recorded_before_their_poll)
{
	struct tdt_traced task =
		tdt_traced(((struct tdt_future){ &task, waiting_poll, drop_nothing }));
	const struct tdt_recording_ring *ring;
	struct recorded event;
	struct test_waker waker;
	struct tdt_context cx = { &waker.waker };
	uint64_t at = 0;

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
	tdt_future_drop(&task.future);
	tdt_handle_unref(task.handle);
}
END_TEST

static void *wake_on_thread(void *arg)
{
	pthread_setname_np(pthread_self(), "waker");
	tdt_task_woken(arg);
	return NULL;
}

START_TEST(a_thread_that_only_wakes_has_a_small_ring_with_its_name)
{
	struct recorded thread, wake;
	pthread_t waking;
	struct hand hand;

	start(NULL);
	hand_begin(&hand, 5, TDT_READY, NULL);
	hand_poll(&hand);
	pthread_create(&waking, NULL, wake_on_thread, hand.task.handle);
	pthread_join(waking, NULL);
	wake = recorded_last(TDT_RING_OTHERS, TDT_EVENT_WAKE, hand_id(&hand));
	thread = recorded_last(TDT_RING_OTHERS, TDT_EVENT_THREAD, 0);
	ck_assert_str_eq(thread.payload, "waker");
	ck_assert_uint_eq(thread.event.a, wake.ring->thread);
	hand_end(&hand);
}
END_TEST

START_TEST(the_runs_of_a_fiber_are_recorded_as_polls)
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
END_TEST

/* --- Starting and stopping ------------------------------------------------- */

START_TEST(nothing_is_recorded_before_the_start_and_after_the_stop)
{
	struct hand hand;

	ck_assert_uint_eq(tdt__registry.rings, 0);
	ck_assert_int_eq(tdt_recorder_stop(), -EALREADY);
	hand_begin(&hand, 9, TDT_READY, NULL);
	hand_poll(&hand);
	start(NULL);
	hand_poll(&hand);
	ck_assert_int_eq(tdt_recorder_start(NULL), -EALREADY);
	ck_assert_int_eq(errno, EALREADY);
	ck_assert_int_eq(tdt_recorder_stop(), 0);
	hand_poll(&hand);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, hand_id(&hand)), 1);
	start(NULL);
	hand_poll(&hand);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, hand_id(&hand)), 2);
	ck_assert_uint_eq(recorded_count(TDT_RING_SERVICE, TDT_EVENT_START, 0), 2);
	ck_assert_uint_eq(recorded_count(TDT_RING_SERVICE, TDT_EVENT_STOP, 0), 1);
	hand_end(&hand);
}
END_TEST

START_TEST(options_that_are_not_understood_are_refused)
{
	struct tdt_recorder_options options = { .size = sizeof options, .ring_size = 4095 };

	ck_assert_int_eq(tdt_recorder_start(&options), -EINVAL);
	ck_assert_int_eq(errno, EINVAL);
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
	options.dir = "/nonexistent";
	ck_assert_int_eq(tdt_recorder_start(&options), -ENOENT);
	options.dir = NULL;
	options.size = 1;
	ck_assert_int_eq(tdt_recorder_start(&options), -EINVAL);
	ck_assert_uint_eq(tdt__registry.rings, 0);
	options.size = sizeof options;
	start(&options);
}
END_TEST

static bool no_threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	return no_threads ? EAGAIN : __real_pthread_create(thread, attr, run, arg);
}

START_TEST(without_a_thread_or_memory_for_the_rings_it_does_not_start)
{
	const struct tdt_recorder_options huge = { .size = sizeof huge,
						   .ring_size = (size_t)1 << 36,
						   .total_size = (size_t)1 << 52 };

	no_threads = true;
	ck_assert_int_eq(tdt_recorder_start(NULL), -EAGAIN);
	ck_assert_int_eq(errno, EAGAIN);
	no_threads = false;
	ck_assert_int_eq(tdt_recorder_start(&huge), -ENOMEM);
	ck_assert_uint_eq(tdt__registry.rings, 0);
	start(NULL);
}
END_TEST

/* In a directory, so that each start makes a file; with other options, so that it makes rings. */
START_TEST(each_allocation_of_a_start_may_fail)
{
	char dir[] = "/tmp/tdt-check-XXXXXX";
	struct tdt_recorder_options options = { .size = sizeof options,
						.ring_size = TDT_RING_SIZE_MIN,
						.stacks = TDT_STACKS_EVERY,
						.dir = dir,
						.dir_size = 1 << 30 };
	struct tdt_recorder_status info = { .size = sizeof info };
	int failed = 0;

	if (!no_memory_possible()) {
		puts("# not tried: allocations can't be made to fail here");
		return;
	}
	ck_assert_ptr_nonnull(mkdtemp(dir));
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
	ck_assert_int_eq(tdt_recorder_info(&info), 0);
	ck_assert_int_eq(unlink(info.path), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(sizes_are_rounded_down_and_the_total_is_a_bound)
{
	const struct tdt_recorder_options options = { .size = sizeof options,
						      .ring_size = 70000,
						      .total_size = 8 << 20 };
	uint64_t polls = 0;

	start(&options);
	ck_assert_uint_le(recorded_block()->bytes, 8 << 20);
	for (uint32_t i = 0; i < recorded_block()->n_rings; i++) {
		const struct tdt_recording_ring *ring = recorded_ring(i);

		ck_assert_uint_le(ring->slots + ring->room * sizeof(struct tdt_event),
				  recorded_block()->bytes);
		if (ring->kind == TDT_RING_POLLS) {
			ck_assert_uint_eq(ring->room, 65536 / sizeof(struct tdt_event));
			polls++;
		}
	}
	ck_assert_uint_gt(polls, 64);
}
END_TEST

START_TEST(other_sizes_make_other_rings_and_a_thread_takes_one_of_them)
{
	struct tdt_recorder_options options = { .size = sizeof options, .ring_size = 65536 };
	uint64_t first;
	struct hand hand;

	start(&options);
	hand_begin(&hand, 9, TDT_READY, NULL);
	hand_poll(&hand);
	first = tdt__registry.rings;
	ck_assert_int_eq(tdt_recorder_stop(), 0);
	options.ring_size = 131072;
	start(&options);
	ck_assert_uint_ne(tdt__registry.rings, first);
	hand_poll(&hand);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, hand_id(&hand)), 1);
	ck_assert_uint_eq(recorded_block()->missed, 0);
	hand_end(&hand);
}
END_TEST

static struct tdt_recorder_status info_now(void)
{
	struct tdt_recorder_status info = { .size = sizeof info };

	ck_assert_int_eq(tdt_recorder_info(&info), 0);
	return info;
}

START_TEST(the_environment_starts_it_at_the_first_traced_future)
{
	struct hand hand;

	setenv("TDT_RECORD", "64K", 1);
	setenv("TDT_RECORD_STACKS", "7", 1);
	ck_assert(!info_now().recording);
	hand_begin(&hand, 9, TDT_READY, NULL);
	ck_assert(info_now().recording);
	ck_assert_int_eq(info_now().environment, 0);
	ck_assert_uint_eq(recorded_block()->stack_every, 7);
	hand_poll(&hand);
	ck_assert_uint_eq(recorded_last(TDT_RING_POLLS, TDT_EVENT_POLL, 0).ring->room, 2048);
	hand_end(&hand);
}
END_TEST

START_TEST(a_value_of_the_environment_that_is_not_understood_is_reported)
{
	static const char *const wrong[] = { "x", "1x", "-1", "1MM", "99999999999999999999", "1" };
	struct hand hand;

	setenv("TDT_RECORD", wrong[_i], 1);
	hand_begin(&hand, 9, TDT_READY, NULL);
	ck_assert(!info_now().recording);
	ck_assert_int_eq(info_now().environment, -EINVAL);
	hand_end(&hand);
}
END_TEST

START_TEST(without_its_directory_it_records_in_memory_and_reports_why)
{
	struct hand hand;

	setenv("TDT_RECORD", "64K", 1);
	setenv("TDT_RECORD_DIR", "/nonexistent", 1);
	hand_begin(&hand, 9, TDT_READY, NULL);
	ck_assert(info_now().recording);
	ck_assert_int_eq(info_now().environment, -ENOENT);
	ck_assert_str_eq(info_now().path, "");
	hand_end(&hand);
}
END_TEST

START_TEST(a_call_goes_before_the_environment)
{
	struct hand hand;

	setenv("TDT_RECORD", "64K", 1);
	start(NULL);
	ck_assert_int_eq(tdt_recorder_stop(), 0);
	hand_begin(&hand, 9, TDT_READY, NULL);
	ck_assert(!info_now().recording);
	hand_end(&hand);
}
END_TEST

START_TEST(values_of_the_environment_are_read)
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
END_TEST

START_TEST(how_the_recorder_does_can_be_asked_with_any_size)
{
	struct {
		struct tdt_recorder_status info;
		char more[8];
	} larger = { .info = { .size = sizeof larger }, .more = "abcdefg" };
	size_t small[2] = { sizeof small, 5 };

	ck_assert_int_eq(tdt_recorder_info(NULL), -EINVAL);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(tdt_recorder_info(&larger.info), 0);
	ck_assert_str_eq(larger.more, "");
	ck_assert_int_eq(tdt_recorder_info((void *)small), 0);
	ck_assert_uint_eq(small[0], sizeof small);
	ck_assert_uint_eq(small[1], 0);
	small[0] = 4;
	ck_assert_int_eq(tdt_recorder_info((void *)small), -EINVAL);
}
END_TEST

/* --- At a fork ------------------------------------------------------------- */

static int child_of_fork(struct hand *hand)
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
	return 0;
}

START_TEST(a_child_goes_on_in_rings_of_its_own)
{
	struct hand hand;
	int status;
	pid_t child;

	start(NULL);
	hand_begin(&hand, 9, TDT_READY, NULL);
	hand_poll(&hand);
	child = fork();
	if (child == 0)
		_exit(child_of_fork(&hand));
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	hand_poll(&hand);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, 0), 2);
	ck_assert_uint_eq(recorded_block()->pid, (uint32_t)getpid());
	hand_end(&hand);
}
END_TEST

/* As some sandboxes make it. */
START_TEST(a_child_that_is_made_without_the_handlers_of_fork_does_no_harm)
{
	struct hand hand;
	int status;
	pid_t child;

	start(NULL);
	hand_begin(&hand, 9, TDT_READY, NULL);
	hand_poll(&hand);
	child = (pid_t)syscall(SYS_fork);
	if (child == 0) {
		hand_poll(&hand);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, 0), 1);
	hand_end(&hand);
}
END_TEST

START_TEST(a_child_of_a_process_that_stopped_records_nothing)
{
	struct hand hand;
	int status;
	pid_t child;

	start(NULL);
	hand_begin(&hand, 9, TDT_READY, NULL);
	hand_poll(&hand);
	tdt_recorder_stop();
	child = fork();
	if (child == 0) {
		hand_poll(&hand);
		MUST(tdt__registry.rings == 0);
		start(NULL);
		hand_poll(&hand);
		MUST(recorded_count(TDT_RING_POLLS, TDT_EVENT_POLL, 0) == 1);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	hand_end(&hand);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("recorder");
	TCase *events = tcase_create("events");
	TCase *switching = tcase_create("switching");
	TCase *forking = tcase_create("forking");

	tcase_add_test(events, each_poll_is_recorded_with_its_result_and_its_duration);
	tcase_add_test(events,
		       a_poll_follows_the_previous_one_if_the_runtime_has_not_read_the_clock_since);
	tcase_add_test(events, a_wake_up_says_which_task_made_it);
	tcase_add_test(events,
		       a_task_is_recorded_with_its_identity_when_it_is_made_and_when_it_ends);
	tcase_add_test(events, a_park_is_recorded_when_it_is_over_and_the_ring_shows_it_before);
	tcase_add_test(events, what_leaves_wait_for_is_recorded_before_their_poll);
	tcase_add_test(events, a_thread_that_only_wakes_has_a_small_ring_with_its_name);
	tcase_add_test(events, the_runs_of_a_fiber_are_recorded_as_polls);
	suite_add_tcase(suite, events);
	tcase_add_test(switching, nothing_is_recorded_before_the_start_and_after_the_stop);
	tcase_add_test(switching, options_that_are_not_understood_are_refused);
	tcase_add_test(switching, without_a_thread_or_memory_for_the_rings_it_does_not_start);
	tcase_add_test(switching, each_allocation_of_a_start_may_fail);
	tcase_add_test(switching, sizes_are_rounded_down_and_the_total_is_a_bound);
	tcase_add_test(switching, other_sizes_make_other_rings_and_a_thread_takes_one_of_them);
	tcase_add_test(switching, the_environment_starts_it_at_the_first_traced_future);
	tcase_add_loop_test(switching,
			    a_value_of_the_environment_that_is_not_understood_is_reported, 0, 6);
	tcase_add_test(switching, without_its_directory_it_records_in_memory_and_reports_why);
	tcase_add_test(switching, a_call_goes_before_the_environment);
	tcase_add_test(switching, values_of_the_environment_are_read);
	tcase_add_test(switching, how_the_recorder_does_can_be_asked_with_any_size);
	suite_add_tcase(suite, switching);
	tcase_add_test(forking, a_child_goes_on_in_rings_of_its_own);
	tcase_add_test(forking,
		       a_child_that_is_made_without_the_handlers_of_fork_does_no_harm);
	tcase_add_test(forking, a_child_of_a_process_that_stopped_records_nothing);
	suite_add_tcase(suite, forking);
	return test_run(suite);
}
