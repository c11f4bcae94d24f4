// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers runtime/task, runtime/block_on, task/hooks.  Which wake-ups a task's record knows of. */

#include "lib/leaf.h"
#include "lib/rt.h"
#include "lib/test.h"
#include "registry/handle.h"
#include "task/request.h"

static struct tdt_rt *rt;

static void setup(void)
{
	rt = rt_of(1);
}

enum { OF_IDLE, OF_SCHEDULED, OF_RUNNING, OF_NOTIFIED, OF_STATES };

static struct tdt_handle *task_woken;
static const struct tdt_waker *waker_kept;

static bool is_reported(void)
{
	return tdt__was_woken(task_woken, TDT__PEEK(task_woken->record.polls));
}

/*
 * Wake the task.  A wake-up for a request is not reported, and may come first; a second wake-up
 * before the poll is not news.
 */
static void wake_reported(bool requested)
{
	if (requested)
		tdt__request_wake(task_woken, waker_kept, waker_kept->vtable->wake_by_ref);
	MUST(!is_reported());
	tdt_waker_wake_by_ref(waker_kept);
	MUST(is_reported());
	TDT__POKE(task_woken->record.woken, 1);
	tdt_waker_wake_by_ref(waker_kept);
	MUST(TDT__PEEK(task_woken->record.woken) == 1);
}

static void keep_waker(struct leaf *leaf, struct tdt_context *cx)
{
	int which = *(int *)leaf->data;

	if (leaf->polls == 1)
		waker_kept = tdt_waker_clone(cx->waker);
	else if (leaf->polls == 2 && which >= OF_RUNNING)
		wake_reported(which == OF_NOTIFIED);
}

/* On the only worker, so the task that is woken is not polled before this poll is over. */
static void wake_other(struct leaf *leaf, struct tdt_context *cx)
{
	int which = *(int *)leaf->data;

	if (which < OF_RUNNING)
		wake_reported(which == OF_SCHEDULED);
	else
		tdt_waker_wake_by_ref(waker_kept);
}

CASE(wake - ups, .setup = setup)

TEST(a_wake_up_is_reported_in_each_state_of_the_task, .to = OF_STATES)
{
	struct leaf leaf = { .on_poll = keep_waker, .data = &_i },
		    other = { .open = true, .on_poll = wake_other, .data = &_i };

	task_woken = tdt_rt_spawn(rt, leaf_future(&leaf), NULL);
	ck_assert_ptr_nonnull(task_woken);
	UNTIL(leaf.polls == 1 && leaf.waker != NULL);
	tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&other), NULL));
	UNTIL(other.drops == 1 && leaf.polls == (_i < OF_RUNNING ? 2 : 3));
	tdt_waker_drop(waker_kept);
	tdt_handle_unref(task_woken);
	tdt_rt_free(rt); /* which drops the leaf */
}

/* The first wake-up in the poll is for a request, and is not reported. */
static void wake_after_request(struct leaf *leaf, struct tdt_context *cx)
{
	struct tdt_handle *task = leaf->data;

	if (leaf->polls == 1) {
		tdt__request_wake(task, cx->waker, cx->waker->vtable->wake_by_ref);
		MUST(!tdt__was_woken(task, 1));
		tdt_waker_wake_by_ref(cx->waker);
		MUST(tdt__was_woken(task, 1));
	}
	leaf->open = leaf->polls == 2;
}

TEST(a_wake_up_after_one_for_a_request_is_reported)
{
	struct leaf leaf = { .on_poll = wake_after_request };
	struct tdt_traced traced = tdt_traced(leaf_future(&leaf));

	leaf.data = traced.handle;
	ck_assert_int_eq(tdt_rt_block_on(rt, traced.future), 0);
	ck_assert_int_eq(leaf.polls, 2);
	tdt_handle_unref(traced.handle);
	tdt_rt_free(rt);
}
