// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Awaiting the end of a task.
 *
 * The task's record lists its joiners: the futures that await its end.  A task that ends exchanges
 * its `outcome` once, and looks at the list only if the old value says that there are joiners.
 * That exchange is the whole cost for a task that nobody awaits.
 *
 *   joiner, under the lock           the task's end
 *     outcome: NOBODY -> SOMEBODY      outcome -> how it ended
 *       the task has ended: done         the old value was SOMEBODY: take joiner by joiner out of
 *     enter the list                       the list, under the lock; wake each without the lock
 */

#include "task/join.h"

#include <errno.h>
#include <stdlib.h>

#include <tdt/integrate/hooks.h>
#include <tdt/join.h>

#include "base/leaf_poll.h"
#include "base/result.h"
#include "registry/handle.h"
#include "task/request.h"

struct tdt__joiner {
	struct tdt_handle *task; /* a reference */
	int *outcome;		 /* may be NULL */
	bool ended;

	/* Protected by tdt__request_lock(task). */
	struct tdt__joiner *next;
	bool listed;
	const struct tdt_waker *waker; /* owned; NULL: none yet, or it could not be cloned */
};

/*
 * Acquire what the task did before its end.  Pairs with the exchange in wrapper.c's
 * tdt__task_end().
 */
static enum tdt__outcome outcome_of(struct tdt_handle *task)
{
	return atomic_load_explicit(&task->outcome, memory_order_acquire);
}

static bool has_ended(struct tdt_handle *task)
{
	return outcome_of(task) >= TDT__OUTCOME_READY;
}

/* The list of a task's joiners, under tdt__request_lock.  Its first one is in the record. */
static struct tdt__joiner *first_of(const struct tdt_handle *task)
{
	return (struct tdt__joiner *)(uintptr_t)task->record.joiners;
}

static void set_first(struct tdt_handle *task, const struct tdt__joiner *joiner)
{
	task->record.joiners = (uintptr_t)joiner;
}

/*
 * Enter the list, unless the task has ended; then its end wakes `waker` (owned).  Returns the waker
 * that the caller has to drop.
 */
static const struct tdt_waker *enter_list(struct tdt__joiner *joiner, const struct tdt_waker *waker)
{
	struct tdt_handle *task = joiner->task;
	pthread_mutex_t *lock = tdt__request_lock(task);
	uint8_t nobody = TDT__OUTCOME_NOBODY;
	const struct tdt_waker *old;

	pthread_mutex_lock(lock);
	/* Relaxed: the lock orders the list, and outcome_of() acquires the outcome. */
	atomic_compare_exchange_strong_explicit(&task->outcome, &nobody, TDT__OUTCOME_SOMEBODY,
						memory_order_relaxed, memory_order_relaxed);
	if (!joiner->listed && !has_ended(task)) {
		joiner->listed = true;
		joiner->next = first_of(task);
		set_first(task, joiner);
	}
	old = waker;
	if (joiner->listed) {
		old = joiner->waker;
		joiner->waker = waker;
	}
	pthread_mutex_unlock(lock);
	return old;
}

TDT__LEAF_POLL(tdt_join);

tdt_poll_t tdt_join_poll(void *state, struct tdt_context *cx)
{
	static const int results[] = {
		[TDT__OUTCOME_READY] = 0,
		[TDT__OUTCOME_PANICKED] = -ENOTRECOVERABLE,
		[TDT__OUTCOME_DROPPED] = -ECANCELED,
	};
	struct tdt__joiner *joiner = state;

	if (joiner->ended)
		return TDT_PANICKED;
	if (!has_ended(joiner->task)) {
		const struct tdt_waker *clone = tdt_waker_clone(cx->waker);

		if (clone == NULL) /* nothing could wake this task: it has to try again */
			tdt_waker_wake_by_ref(cx->waker);
		tdt_waker_drop(enter_list(joiner, clone));
		if (!has_ended(joiner->task)) {
			tdt_leaf_waits_on(TDT_WAIT_TASK, joiner->task, tdt_handle_id(joiner->task));
			return TDT_PENDING;
		}
	}
	joiner->ended = true;
	if (joiner->outcome != NULL)
		*joiner->outcome = results[outcome_of(joiner->task)];
	return TDT_READY;
}

/* Take the first joiner out of the list, and its waker.  Returns whether there was one. */
static bool take_first_joiner(struct tdt_handle *task, const struct tdt_waker **waker)
{
	pthread_mutex_t *lock = tdt__request_lock(task);
	struct tdt__joiner *first;

	pthread_mutex_lock(lock);
	first = first_of(task);
	if (first != NULL) {
		set_first(task, first->next);
		first->listed = false;
		*waker = first->waker;
		first->waker = NULL;
	}
	pthread_mutex_unlock(lock);
	return first != NULL;
}

void tdt__joiners_wake(struct tdt_handle *task)
{
	const struct tdt_waker *waker;

	while (take_first_joiner(task, &waker))
		tdt_waker_wake(waker);
}

static void unlist_joiner(struct tdt__joiner *joiner)
{
	struct tdt__joiner *before = first_of(joiner->task);

	if (before == joiner) {
		set_first(joiner->task, joiner->next);
		return;
	}
	while (before->next != joiner)
		before = before->next;
	before->next = joiner->next;
}

static void drop_joiner(void *state)
{
	struct tdt__joiner *joiner = state;
	pthread_mutex_t *lock = tdt__request_lock(joiner->task);

	pthread_mutex_lock(lock);
	if (joiner->listed)
		unlist_joiner(joiner);
	pthread_mutex_unlock(lock);
	tdt_waker_drop(joiner->waker);
	tdt_handle_unref(joiner->task);
	free(joiner);
}

struct tdt_future tdt_join(struct tdt_handle *task, int *outcome)
{
	struct tdt__joiner *joiner;

	if (task == NULL)
		return tdt__no_future(-EINVAL);
	joiner = calloc(1, sizeof *joiner);
	if (joiner == NULL)
		return TDT_FUTURE_NONE;
	joiner->task = tdt_handle_ref(task);
	joiner->outcome = outcome;
	return (struct tdt_future){ joiner, tdt_join_poll, drop_joiner };
}
