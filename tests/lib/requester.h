/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_REQUESTER_H
#define TESTS_REQUESTER_H

/*
 * A traced test future with the runtime that drives it, and a requester that never blocks, so that
 * a test can put polls and questions into any order on one thread.
 */

#include <tdt/tdt.h>

#include "lib/futures.h"
#include "lib/scoped.h"

/*
 * A traced task, and the waker of its runtime.  Starts with `future`, all zero but what the test
 * sets.
 */
struct test_task {
	struct test_future leaf;
	struct test_waker waker;
	struct tdt_context cx;
	struct tdt_future future; /* the wrapper */
	struct tdt_handle *handle;
};

/* Trace `child`, or `leaf` if that is NULL. */
void test_task_init(struct test_task *task, const struct tdt_future *child);
tdt_poll_t test_task_poll(struct test_task *task);

/*
 * Poll as a runtime would: only if it was woken since it was last polled.  Returns how many polls
 * it took to rest.
 */
int test_task_run(struct test_task *task);

/* Drop the future and the handle (what is left of them), and see that no waker is left behind. */
void test_task_fini(struct test_task *task);

/*
 * Declare a task that begins here and ends with the block, with a child or NULL.  The rest says
 * what its leaf does.
 */
#define TEST_TASK(task, child, ...)                                                                \
	SCOPED(test_task_fini)                                                                     \
	struct test_task task = { .leaf = { __VA_ARGS__ } };                                       \
	const bool task##_begun __attribute__((unused)) = (test_task_init(&task, child), true)

/* Give only the handle back: the future is another task's by now. */
static inline void test_task_release(struct test_task *task)
{
	tdt_handle_unref(task->handle);
}

/* Declare a task `inner`, as TEST_TASK() does, and a task `outer` whose child it is. */
#define NESTED_TASKS(outer, inner, child, ...)                                                     \
	SCOPED(test_task_release) struct test_task inner = { .leaf = { __VA_ARGS__ } };            \
	const bool inner##_begun __attribute__((unused)) = (test_task_init(&inner, child), true);  \
	TEST_TASK(outer, &inner.future)

/* A leaf that has things done in its poll. */
struct test_busy {
	void (*act)(void *argument); /* NULL: nothing */
	void *argument;
	tdt_poll_t result;
	int polls;
};

struct tdt_future test_busy_future(struct test_busy *busy);

/* A question. */
struct test_requester {
	struct tdt_future future; /* of tdt_backtrace_async() */
	struct test_waker waker;
	struct tdt_trace *trace;
	int error;
};

/* Ask. */
void test_ask(struct test_requester *requester, struct tdt_handle *handle);

/* Whether there is an answer, which is then in `trace` and `error`. */
bool test_answered(struct test_requester *requester);

/* The answer's info; it must be there, and be a trace. */
const struct tdt_task_info *test_answer(struct test_requester *requester);

/* Free the answer; withdraw the question if there was none. */
void test_requester_fini(struct test_requester *requester);

/* Declare a requester that asks here, and is done with at the end of the block. */
#define ASKED(name, handle)                                                                        \
	SCOPED(test_requester_fini) struct test_requester name;                                    \
	const bool name##_begun __attribute__((unused)) = (test_ask(&name, handle), true)

/* How many nodes of the trace's tree are of `function`. */
int test_nodes_of(const struct tdt_trace *trace, const char *function);

#endif
