// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Lists that say where tasks wait, and tasks that have nothing else: <tdt/integrate/leaf.h>. */

#include <config.h>

#include "task/leaf.h"

#include <errno.h>

#include <tdt/integrate/hooks.h>
#include <tdt/integrate/leaf.h>

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/chain.h"
#include "capture/leaf_list.h"
#include "host/barrier.h"
#include "host/thread.h"
#include "probes/probes.h"
#include "recorder/record.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "task/request.h"
#include "task/waits.h"
#include "task/wrapper.h"

/* --- Requests --------------------------------------------------------------------------- */

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

/* --- Lists ------------------------------------------------------------------------------ */

/* The task goes on: no list is in force any more. */
static void go_on(struct tdt_handle *task)
{
	TDT__POKE(task->record.leaf, 0);
	TDT__POKE(task->record.since, tdt__now());
	TDT__POKE(task->record.polls, task->record.polls + 1);
	if (tdt__is_callback_task(task)) {
		TDT__POKE(task->record.thread, tdt__thread_id());
		/*
		 * Release what was noted to readers that find the task running, as the wrapper
		 * does.
		 */
		__atomic_store_n(&task->record.state, TDT_TASK_RECORD_POLLING, __ATOMIC_RELEASE);
		TDT__PROBE_TASK(task__poll__start, task);
		if (tdt__recording())
			tdt__record_run(task->record.id, 0);
	}
	/* The caller may change the list after this.  Pairs with tdt__barrier_copied(). */
	tdt__barrier_light();
}

/* `answers`: the list is all that the task waits for. */
static void set_leaf(struct tdt_handle *task, struct tdt_leaf *leaf, bool answers)
{
	leaf->task = task->record.id;
	leaf->polls = task->record.polls;
	atomic_store_explicit(&task->leaf_answers, answers, memory_order_relaxed);
	/* Release the list.  Pairs with tdt__leaf_list_capture(). */
	__atomic_store_n(&task->record.leaf, (uintptr_t)leaf, __ATOMIC_RELEASE);
}

/* The task, which has nothing but callbacks, ran. */
static void end_run(struct tdt_handle *task)
{
	TDT__PROBE_TASK(task__poll__end, task);
	if (tdt__recording())
		tdt__record_run(task->record.id, TDT_PENDING);
	/* Release all that the task did.  Pairs with the acquire in tdt__request_see(). */
	__atomic_store_n(&task->record.state, TDT_TASK_RECORD_IDLE, __ATOMIC_RELEASE);
}

/* The record has the last list of the poll. */
static void set_in_poll(const struct tdt__poll *poll, struct tdt_leaf *leaf)
{
	struct tdt_handle *task = poll->task;
	int saved = errno;

	if (leaf == NULL) {
		TDT__POKE(task->record.leaf, 0);
		return;
	}
	set_leaf(task, leaf, false);
	if (__builtin_expect(poll->capture == NULL, 1))
		return;
	tdt__leaf_list_record(poll->capture, (uintptr_t)leaf, leaf->task, leaf->polls);
	errno = saved;
}

/* The task waits at the list; it was idle, or is a callback task that ran. */
static void wait_at(struct tdt_handle *task, struct tdt_leaf *leaf)
{
	bool ran = TDT__PEEK(task->record.state) == TDT_TASK_RECORD_POLLING;

	set_leaf(task, leaf, true);
	if (ran)
		end_run(task);
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
		go_on(task);
	if (leaf != NULL)
		wait_at(task, leaf);
}

void tdt_leaf_at(struct tdt_handle *task, struct tdt_leaf *leaf)
{
	const struct tdt__poll *poll = task != NULL ? tdt__poll_here(task) : tdt__thread.poll;

	if (poll != NULL)
		set_in_poll(poll, leaf);
	else if (task != NULL)
		set_outside(task, leaf);
}

void tdt_task_waits_on(struct tdt_handle *task, enum tdt_wait_kind kind, const void *object,
		       uint64_t owner, const char *name)
{
	if (task != NULL)
		tdt__note_wait(&task->record, kind, object, owner, name);
}

/* --- Callback tasks --------------------------------------------------------------------- */

static void drop_callback(void *state)
{
	(void)state;
}

struct tdt_handle *tdt_task_new(const struct tdt_task_attr *attr)
{
	const struct tdt_future none = { NULL, tdt__callback_poll, drop_callback };
	struct tdt_handle *task = tdt_traced_with(none, attr).handle;

	if (task != NULL)
		go_on(task);
	return task;
}

static const struct tdt_waker *clone_none(const struct tdt_waker *waker)
{
	return waker;
}

static void wake_none(const struct tdt_waker *waker)
{
	(void)waker;
}

void tdt_task_end(struct tdt_handle *task)
{
	static const struct tdt_waker_vtable vtable = { clone_none, wake_none, wake_none,
							wake_none };
	static const struct tdt_waker none = { &vtable };
	struct tdt_context cx = { &none };

	if (task == NULL || !tdt__is_callback_task(task))
		return;
	/* The last poll ends the task: before it, the task is idle. */
	if (TDT__PEEK(task->record.state) == TDT_TASK_RECORD_POLLING)
		end_run(task);
	tdt__traced_poll(task, &cx);
	tdt__traced_drop(task);
	tdt_handle_unref(task);
}
