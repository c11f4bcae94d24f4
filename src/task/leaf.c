// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Lists that say where tasks wait: <tdt/integrate/leaf.h>. */

#include "task/leaf.h"

#include <errno.h>

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/chain.h"
#include "capture/leaf_list.h"
#include "host/barrier.h"
#include "host/thread.h"
#include "probes/probes.h"
#include "recorder/record.h"
#include "task/request.h"
#include "task/waits.h"

/*
 * So often the list of a task is read that goes on and waits again all the time.  Between two tries
 * the requests are listed, and the task's owner answers them if it comes by.
 */
#define ANSWER_TRIES 1000

bool tdt__leaf_answer(struct tdt_handle *task)
{
	int saved = errno;
	bool answered = false;

	for (int i = 0; i < ANSWER_TRIES && !answered && tdt__waits_at_list(task); i++) {
		struct tdt__request *requests = tdt__requests_take(task, NULL);
		struct tdt__capture *capture = tdt__request_capture(requests);

		answered = capture == NULL || tdt__leaf_list_capture(capture, task);
		if (answered)
			tdt__requests_answer(task, requests, capture, 0);
		else
			tdt__requests_return(task, requests);
		/* Either the owner sees requests that were returned, or the next try its list. */
		if (!answered)
			tdt__barrier_heavy();
	}
	errno = saved;
	return answered;
}

/* No list is in force any more. */
void tdt__leaf_go_on(struct tdt_handle *task)
{
	bool callback = tdt__is_callback_task(task);

	TDT__POKE(task->record.since, tdt__now());
	if (callback) {
		TDT__POKE(task->record.thread, tdt__thread_id());
		TDT__POKE(task->record.stack_top, 0);
		/*
		 * Release what was noted to readers that find the task running, as the wrapper
		 * does.
		 */
		__atomic_store_n(&task->record.state, TDT_TASK_RECORD_POLLING, __ATOMIC_RELEASE);
	}
	/*
	 * Release the state: a task that is seen idle, and without the list of these `polls`, was
	 * left without one.  Pairs with tdt__leaf_list_capture().
	 */
	__atomic_store_n(&task->record.polls, task->record.polls + 1, __ATOMIC_RELEASE);
	TDT__POKE(task->record.leaf, 0);
	if (callback) {
		TDT__PROBE_TASK(task__poll__start, task);
		if (tdt__recording())
			tdt__record_run(task->record.id, 0);
	}
	/* The caller may change the list after this.  Pairs with tdt__barrier_copied(). */
	tdt__barrier_copying();
}

/* `answers`: the list is all that the task waits for. */
static inline void set_leaf(struct tdt_handle *task, struct tdt_leaf *leaf, bool answers)
{
	if (answers && TDT__PEEK(task->record.wait_count) != 0)
		TDT__POKE(task->record.wait_count, 0);
	/*
	 * One by one: a load of `polls` that is as wide as a vector waits for the stores of
	 * `polls` and `since` before it to reach the cache, which takes 5 ns.
	 */
	leaf->task = TDT__PEEK(task->record.id);
	leaf->polls = TDT__PEEK(task->record.polls);
	atomic_store_explicit(&task->leaf_answers, answers, memory_order_relaxed);
	if (leaf->n_waits != 0)
		tdt__leaf_waits(task, leaf, true,
				tdt__recording() && !tdt__is_callback_task(task));
	/* Release the list.  Pairs with tdt__leaf_list_capture(). */
	__atomic_store_n(&task->record.leaf, (uintptr_t)leaf, __ATOMIC_RELEASE);
}

void tdt__leaf_pause(struct tdt_handle *task)
{
	TDT__PROBE_TASK(task__poll__end, task);
	if (tdt__recording())
		tdt__record_run(task->record.id, TDT_PENDING);
	/* Release all that the task did.  Pairs with the acquire in tdt__request_see(). */
	__atomic_store_n(&task->record.state, TDT_TASK_RECORD_IDLE, __ATOMIC_RELEASE);
}

static __attribute__((noinline, cold)) void capture_list(struct tdt__capture *capture,
							 const struct tdt_leaf *leaf)
{
	int saved = errno;

	tdt__leaf_list_record(capture, (uintptr_t)leaf, leaf->task, leaf->polls);
	errno = saved;
}

/*
 * A poll has the list as one leaf beside others.  A task that was entered waits at the list from
 * its leave on.  The record has the last list.
 */
static void set_inside(const struct tdt__poll *poll, struct tdt_leaf *leaf)
{
	struct tdt_handle *task = poll->task;

	if (leaf == NULL)
		TDT__POKE(task->record.leaf, 0);
	else
		set_leaf(task, leaf, tdt__is_callback_task(task));
	if (__builtin_expect(poll->capture != NULL, 0) && leaf != NULL)
		capture_list(poll->capture, leaf);
	/* The caller may change the list before this one.  Pairs with tdt__barrier_copied(). */
	tdt__barrier_copying();
}

/* The task waits at the list; it was idle, or is a callback task that ran. */
static void wait_at(struct tdt_handle *task, struct tdt_leaf *leaf)
{
	bool ran = TDT__PEEK(task->record.state) == TDT_TASK_RECORD_POLLING;

	set_leaf(task, leaf, true);
	if (ran)
		tdt__leaf_pause(task);
	tdt__barrier_light();
	if (__builtin_expect(TDT__PEEK(task->record.own_request) != 0, 0))
		tdt__leaf_answer(task);
}

static void set_outside(struct tdt_handle *task, struct tdt_leaf *leaf)
{
	uint32_t state = TDT__PEEK(task->record.state);
	bool callback = tdt__is_callback_task(task);

	if (state == TDT_TASK_RECORD_ENDED || (state == TDT_TASK_RECORD_POLLING && !callback))
		return;
	if (state == TDT_TASK_RECORD_IDLE && (callback || TDT__PEEK(task->record.leaf) != 0))
		tdt__leaf_go_on(task);
	if (leaf != NULL)
		wait_at(task, leaf);
}

void tdt_leaf_at(struct tdt_handle *task, struct tdt_leaf *leaf)
{
	const struct tdt__poll *poll = task != NULL ? tdt__poll_here(task) : tdt__thread.poll;

	if (poll != NULL)
		set_inside(poll, leaf);
	else if (task != NULL)
		set_outside(task, leaf);
}

void tdt_task_waits_on(struct tdt_handle *task, enum tdt_wait_kind kind, const void *object,
		       uint64_t owner, const char *name)
{
	if (task == NULL || TDT__PEEK(task->record.state) == TDT_TASK_RECORD_ENDED)
		return;
	if (tdt__recording())
		tdt__record_wait(task->record.id, kind, object, owner, name);
	tdt__note_wait(&task->record, kind, object, owner, name);
}
