// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Traced tasks and questions for tests. */

#include <config.h>

#include "lib/requester.h"

#include <check.h>
#include <string.h>

void test_task_init(struct test_task *task, const struct tdt_future *child)
{
	struct tdt_traced traced = tdt_traced(child != NULL ? *child : test_future(&task->leaf));

	ck_assert_ptr_nonnull(traced.handle);
	test_waker_init(&task->waker);
	task->cx = (struct tdt_context){ &task->waker.waker };
	task->future = traced.future;
	task->handle = traced.handle;
}

tdt_poll_t test_task_poll(struct test_task *task)
{
	return tdt_future_poll(&task->future, &task->cx);
}

int test_task_run(struct test_task *task)
{
	int polls = 0;

	while (atomic_exchange(&task->waker.wakes, 0) > 0) {
		polls++;
		if (test_task_poll(task) != TDT_PENDING)
			break;
	}
	return polls;
}

void test_task_fini(struct test_task *task)
{
	tdt_future_drop(&task->future);
	tdt_handle_unref(task->handle);
	task->handle = NULL;
	ck_assert_int_eq(task->waker.alive, 0);
}

static tdt_poll_t act_in_poll(void *state, struct tdt_context *cx)
{
	struct test_busy *busy = state;

	busy->polls++;
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	if (busy->act != NULL)
		busy->act(busy->argument);
	return busy->result;
}

struct tdt_future test_busy_future(struct test_busy *busy)
{
	return (struct tdt_future){ busy, act_in_poll, drop_nothing };
}

void test_ask(struct test_requester *requester, struct tdt_handle *handle)
{
	struct tdt_context cx = { &requester->waker.waker };

	*requester = (struct test_requester){ .error = 1 };
	test_waker_init(&requester->waker);
	requester->future = tdt_backtrace_async(handle, NULL, &requester->trace, &requester->error);
	ck_assert(!tdt_future_is_none(&requester->future));
	ck_assert_int_eq(tdt_future_poll(&requester->future, &cx), TDT_PENDING);
	ck_assert(requester->trace == NULL && requester->error == 1);
}

bool test_answered(struct test_requester *requester)
{
	struct tdt_context cx = { &requester->waker.waker };
	bool woken = requester->waker.wakes > 0;
	tdt_poll_t result = tdt_future_poll(&requester->future, &cx);

	ck_assert_int_eq(result, woken ? TDT_READY : TDT_PENDING);
	return woken;
}

const struct tdt_task_info *test_answer(struct test_requester *requester)
{
	ck_assert(test_answered(requester));
	ck_assert_int_eq(requester->error, 0);
	ck_assert_ptr_nonnull(requester->trace);
	return tdt_trace_info(requester->trace);
}

void test_requester_fini(struct test_requester *requester)
{
	tdt_future_drop(&requester->future);
	tdt_trace_free(requester->trace);
	requester->trace = NULL;
	ck_assert_int_eq(requester->waker.alive, 0);
}

int test_nodes_of(const struct tdt_trace *trace, const char *function)
{
	int found = 0;

	for (const struct tdt_node *node = tdt_trace_root(trace); node != NULL;
	     node = tdt_node_next(node)) {
		const char *name = tdt_node_frame(node)->function;

		found += name != NULL && strcmp(name, function) == 0;
	}
	return found;
}
