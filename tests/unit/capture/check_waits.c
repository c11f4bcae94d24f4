// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers capture/capture, runtime/timer.  A task that waits in a future of ours
 * shows the call that made the future, however our libraries are compiled.
 */

#include <tdt/rt/net.h>
#include <tdt/rt/runtime.h>
#include <tdt/rt/sync.h>

#include "lib/poll_now.h"
#include "lib/printed.h"
#include "lib/request_waiting.h"
#include "lib/test.h"

static __attribute__((noinline)) tdt_poll_t user_poll(void *state, struct tdt_context *cx)
{
	return tdt_future_poll(state, cx);
}

/* Compare the stacks of `trace`, each but for the task it begins with. */
static void expect_stacks(const struct tdt_trace *trace, const char *expected)
{
	char *text = print(trace, OPTIONS(FOLDED)), *out = text;

	for (const char *line = text; *line != '\0';) {
		size_t length;

		line = strchr(line, ';') + 1;
		length = strcspn(line, "\n") + 1;
		memmove(out, line, length);
		out += length;
		line += length;
	}
	*out = '\0';
	ck_assert_str_eq(text, expected);
	free(text);
}

/* Start a task that awaits `future`, ask it, and compare its stacks. */
static void expect_waits_in(struct tdt_future future, const char *expected)
{
	struct poll_now task;

	ck_assert(!tdt_future_is_none(&future));
	poll_now_start(&task, future_of(user_poll, &future));
	ck_assert_uint_eq(task.result, TDT_PENDING);
	TRACE(trace, poll_now_ask(&task, 0));
	expect_stacks(trace, expected);
	poll_now_end(&task);
	tdt_future_drop(&future);
}

CASE(waits)

TEST(waiting_for_a_mutex)
{
	struct tdt_mutex *mutex = tdt_mutex_new();

	ck_assert(tdt_mutex_try_lock(mutex));
	expect_waits_in(tdt_mutex_lock(mutex), "user_poll;tdt_mutex_lock 1\n");
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	tdt_mutex_free(mutex);
}

TEST(waiting_for_a_value)
{
	struct tdt_oneshot_sender *sender;
	struct tdt_oneshot_receiver *receiver;
	void *value;

	ck_assert_int_eq(tdt_oneshot(&sender, &receiver, NULL), 0);
	expect_waits_in(tdt_oneshot_receive(receiver, &value, NULL),
			"user_poll;tdt_oneshot_receive 1\n");
	tdt_oneshot_receiver_free(receiver);
	tdt_oneshot_sender_free(sender);
}

TEST(waiting_for_the_end_of_a_task)
{
	TRACED(other, tdt_traced(tdt_yield_now()));

	expect_waits_in(tdt_join(other.handle, NULL), "user_poll;tdt_join 1\n");
}

static __attribute__((noinline)) tdt_poll_t yielding_poll(void *state, struct tdt_context *cx)
{
	struct tdt_future yield = tdt_yield_now();
	tdt_poll_t result = tdt_future_poll(&yield, cx);

	tdt_future_drop(&yield);
	return result;
}

TEST(letting_others_go_first)
{
	expect_waits_in(future_of(yielding_poll, NULL),
			"user_poll;yielding_poll;tdt_yield_now 1\n");
}

TEST(waiting_for_several_at_once)
{
	struct tdt_mutex *mutex = tdt_mutex_new();
	struct tdt_future both[2];

	ck_assert(tdt_mutex_try_lock(mutex));
	both[0] = tdt_mutex_lock(mutex);
	both[1] = future_of(yielding_poll, NULL);
	expect_waits_in(tdt_join_all(both, 2),
			"user_poll;tdt_join_all;tdt_mutex_lock 1\n"
			"user_poll;tdt_join_all;yielding_poll;tdt_yield_now 1\n");
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	tdt_mutex_free(mutex);
}

/* With nothing of the user's around it. */
TEST(a_task_that_is_nothing_else)
{
	struct tdt_mutex *mutex = tdt_mutex_new();
	struct poll_now task;

	ck_assert(tdt_mutex_try_lock(mutex));
	poll_now_start(&task, tdt_mutex_lock(mutex));
	TRACE(trace, poll_now_ask(&task, 0));
	expect_stacks(trace, "tdt_mutex_lock 1\n");
	poll_now_end(&task);
	tdt_mutex_free(mutex);
}

/* --- What only a thread of the runtime can wait for ------------------------------------------ */

static struct tdt_rt *rt;

/* As expect_waits_in(), of a task of the runtime.  Drops `future`. */
static void expect_task_waits_in(struct tdt_future future, const char *expected)
{
	struct tdt_handle *task;
	struct tdt_trace *trace;

	ck_assert(!tdt_future_is_none(&future));
	rt = tdt_rt_new(NULL);
	task = tdt_rt_spawn(rt, future_of(user_poll, &future), NULL);
	trace = request_waiting(task); /* it writes plenty */
	expect_stacks(trace, expected);
	tdt_trace_free(trace);
	tdt_handle_unref(task);
	tdt_rt_free(rt);
	tdt_future_drop(&future);
}

TEST(waiting_for_a_time)
{
	expect_task_waits_in(tdt_sleep_ms(UINT64_MAX), "user_poll;tdt_sleep_ms 1\n");
}

TEST(waiting_for_a_time_and_something_else)
{
	expect_task_waits_in(tdt_timeout_ms(future_of(yielding_poll, NULL), UINT64_MAX, NULL),
			     "user_poll;tdt_timeout_ms;yielding_poll;tdt_yield_now 1\n"
			     "user_poll;tdt_timeout_ms;tdt_sleep_ms 1\n");
}

/* Make a connection, of which nobody reads or writes an end. */
struct connecting {
	struct tdt_async async;
	struct tdt_tcp_listener *listener;
	struct tdt_tcp **ends;
	int errors[2];
};

static tdt_poll_t connect_poll(void *state, struct tdt_context *cx)
{
	struct connecting *it = state;

	TDT_BEGIN(&it->async, cx);
	TDT_AWAIT(tdt_tcp_connect("127.0.0.1", tdt_tcp_listener_port(it->listener), &it->ends[0],
				  &it->errors[0]));
	TDT_AWAIT(tdt_tcp_accept(it->listener, &it->ends[1], &it->errors[1]));
	TDT_END();
}

/* 0: to accept, 1: to read, 2: to write. */
TEST(waiting_for_a_socket, .to = 3)
{
	static char plenty[64 << 20];
	struct tdt_tcp_listener *listener = tdt_tcp_listen("127.0.0.1", 0);
	struct tdt_tcp *ends[2], *none;
	struct connecting connecting = { .listener = listener, .ends = ends };
	ssize_t n;
	int error;

	if (_i == 0) {
		expect_task_waits_in(tdt_tcp_accept(listener, &none, &error),
				     "user_poll;tdt_tcp_accept 1\n");
	} else {
		rt = tdt_rt_new(NULL);
		ck_assert_int_eq(tdt_rt_block_on(rt, TDT_ASYNC_NEW(connect_poll, connecting)), 0);
		tdt_rt_free(rt);
		ck_assert_ptr_nonnull(ends[0]);
		ck_assert_ptr_nonnull(ends[1]);
	}
	tdt_tcp_listener_free(listener);
	if (_i == 0)
		return;
	/* An accepted end has not waited on the runtime that is gone, so it can wait on another. */
	if (_i == 1)
		expect_task_waits_in(tdt_tcp_read(ends[1], plenty, 1, &n),
				     "user_poll;tdt_tcp_read 1\n");
	else
		expect_task_waits_in(tdt_tcp_write(ends[1], plenty, sizeof(plenty), &n),
				     "user_poll;tdt_tcp_write 1\n");
	tdt_tcp_free(ends[0]);
	tdt_tcp_free(ends[1]);
}

/* Start a task that awaits `future`, request its trace, and compare the name in its only wait. */
static void expect_wait_name(struct tdt_future future, const char *expected)
{
	const struct tdt_task_info *info;

	ck_assert(!tdt_future_is_none(&future));
	POLL_NOW(task, future);
	ck_assert_uint_eq(task.result, TDT_PENDING);
	TRACE(trace, poll_now_ask(&task, 0));
	info = tdt_trace_info(trace);
	ck_assert_uint_eq(info->n_waits, 1);
	ck_assert_str_eq(info->waits[0]->name, expected);
	ck_assert_uint_ne(info->waits[0]->object, 0);
}

TEST(a_mutex_is_shown_by_the_name_it_was_given)
{
	struct tdt_mutex *mutex = tdt_mutex_new();

	ck_assert(tdt_mutex_try_lock(mutex));
	expect_wait_name(tdt_mutex_lock(mutex), "");
	ck_assert_int_eq(tdt_mutex_set_name(mutex, "room 1"), 0);
	expect_wait_name(tdt_mutex_lock(mutex), "room 1");
	ck_assert_int_eq(tdt_mutex_set_name(mutex, "room 2"), 0);
	expect_wait_name(tdt_mutex_lock(mutex), "room 2");
	ck_assert_int_eq(tdt_mutex_set_name(mutex, NULL), 0);
	expect_wait_name(tdt_mutex_lock(mutex), "");
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	tdt_mutex_free(mutex);
}

TEST(so_is_a_channel)
{
	struct tdt_oneshot_sender *sender;
	struct tdt_oneshot_receiver *receiver;
	void *value;

	ck_assert_int_eq(tdt_oneshot(&sender, &receiver, NULL), 0);
	ck_assert_int_eq(tdt_oneshot_set_name(receiver, "result"), 0);
	expect_wait_name(tdt_oneshot_receive(receiver, &value, NULL), "result");
	tdt_oneshot_receiver_free(receiver);
	tdt_oneshot_sender_free(sender);
}

TEST(so_is_a_listener)
{
	struct tdt_tcp_listener *listener = tdt_tcp_listen("127.0.0.1", 0);
	struct tdt_future accepting;
	const struct tdt_task_info *info;
	struct tdt_handle *task;
	struct tdt_tcp *none;
	int error;

	ck_assert_int_eq(tdt_tcp_listener_set_name(listener, "front door"), 0);
	accepting = tdt_tcp_accept(listener, &none, &error);
	rt = tdt_rt_new(NULL);
	task = tdt_rt_spawn(rt, future_of(user_poll, &accepting), NULL);
	TRACE(trace, request_waiting(task));
	info = tdt_trace_info(trace);
	ck_assert_uint_eq(info->n_waits, 1);
	ck_assert_int_eq(info->waits[0]->kind, TDT_WAIT_IO);
	ck_assert_str_eq(info->waits[0]->name, "front door");
	tdt_handle_unref(task);
	tdt_rt_free(rt);
	tdt_future_drop(&accepting);
	tdt_tcp_listener_free(listener);
}
