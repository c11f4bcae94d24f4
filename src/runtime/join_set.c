// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Sets of tasks: all calls but those that wait (join_set_next.c). */

#include <config.h>

#include "runtime/join_set.h"

#include <errno.h>
#include <stdlib.h>

#include <tdt/integrate/hooks.h>
#include <tdt/join.h>
#include <tdt/rt/join_set.h>

#include "base/refs.h"
#include "base/result.h"
#include "runtime/name.h"
#include "runtime/task.h"

struct tdt_join_set *tdt_join_set_new(struct tdt_rt *rt)
{
	struct tdt_join_set *set;

	if (rt == NULL)
		return tdt__nothing(-EINVAL);
	set = calloc(1, sizeof *set);
	if (set == NULL)
		return NULL;
	atomic_init(&set->refs, 1);
	set->rt = rt;
	pthread_mutex_init(&set->lock, NULL);
	TAILQ_INIT(&set->living);
	TAILQ_INIT(&set->ended);
	tdt__gate_init(&set->gate, 0);
	return set;
}

int tdt_join_set_set_name(struct tdt_join_set *set, const char *name)
{
	if (set != NULL)
		return tdt__name_set(&set->name, name);
	return tdt__result(-EINVAL);
}

static void free_members(struct tdt__set_members *members)
{
	struct tdt__set_member *member;

	while ((member = TAILQ_FIRST(members)) != NULL) {
		TAILQ_REMOVE(members, member, entry);
		tdt_handle_unref(member->handle);
		free(member);
	}
}

void tdt__join_set_unref(struct tdt_join_set *set)
{
	if (!tdt__refs_drop(&set->refs))
		return;
	free_members(&set->ended);
	pthread_mutex_destroy(&set->lock);
	free(set->name);
	free(set);
}

/* --- Members ---------------------------------------------------------------------- */

int tdt_join_set_go(struct tdt_join_set *set, struct tdt_future fut,
		    const struct tdt_task_attr *attr)
{
	struct tdt__set_member *member = NULL;
	struct tdt_handle *handle = NULL;
	int error = -EINVAL;

	if (set != NULL) {
		member = calloc(1, sizeof *member);
		error = -ENOMEM;
	}
	if (member != NULL) {
		member->set = set;
		handle = tdt__task_spawn(set->rt, fut, attr, member);
		error = handle != NULL ? 0 : -errno;
	}
	if (error != 0) {
		tdt_future_drop(&fut);
		free(member);
	}
	tdt_handle_unref(handle);
	return tdt__result(error);
}

void tdt__set_member_begin(struct tdt__set_member *member, struct tdt_handle *handle)
{
	struct tdt_join_set *set = member->set;

	member->handle = tdt_handle_ref(handle);
	atomic_fetch_add_explicit(&set->refs, 1, memory_order_relaxed);
	pthread_mutex_lock(&set->lock);
	TAILQ_INSERT_TAIL(&set->living, member, entry);
	pthread_mutex_unlock(&set->lock);
}

void tdt__set_member_end(struct tdt__set_member *member, int outcome)
{
	struct tdt_join_set *set = member->set;
	const struct tdt_waker *waker;

	pthread_mutex_lock(&set->lock);
	TAILQ_REMOVE(&set->living, member, entry);
	TAILQ_INSERT_TAIL(&set->ended, member, entry);
	member->outcome = outcome;
	waker = tdt__gate_admit(&set->gate);
	pthread_mutex_unlock(&set->lock);
	tdt_waker_wake(waker);
	tdt__join_set_unref(set);
}

/* --- Waiting ---------------------------------------------------------------------- */

/* Under the lock. */
static bool is_empty(const struct tdt_join_set *set)
{
	return set->freed || (TAILQ_EMPTY(&set->living) && TAILQ_EMPTY(&set->ended));
}

/* Let all leaves go on that wait for a task of a set that has none. */
static void release_waiters(struct tdt_join_set *set)
{
	const struct tdt_waker *waker;
	bool more;

	do {
		pthread_mutex_lock(&set->lock);
		more = is_empty(set) && tdt__gate_release(&set->gate, &waker);
		pthread_mutex_unlock(&set->lock);
		if (more)
			tdt_waker_wake(waker);
	} while (more);
}

bool tdt__join_set_take(struct tdt_join_set *set, struct tdt__gate_place *place, uint64_t *id,
			int *outcome)
{
	struct tdt__set_member *member = NULL;
	bool passed = true, last = false;

	pthread_mutex_lock(&set->lock);
	if (place->at == TDT__PLACE_RELEASED)
		place->at = TDT__PLACE_OUTSIDE;
	if (is_empty(set))
		tdt__gate_take_out(place);
	else
		passed = tdt__gate_pass(&set->gate, place);
	if (!is_empty(set) && passed) {
		member = TAILQ_FIRST(&set->ended);
		TAILQ_REMOVE(&set->ended, member, entry);
		last = is_empty(set);
	}
	pthread_mutex_unlock(&set->lock);
	if (last)
		release_waiters(set);
	*id = member != NULL ? tdt_handle_id(member->handle) : 0;
	*outcome = member != NULL ? member->outcome : 0;
	if (member != NULL)
		tdt_handle_unref(member->handle);
	free(member);
	return passed;
}

void tdt__join_set_report(struct tdt_join_set *set, bool all)
{
	const struct tdt__set_member *first;
	const void *object = set;
	uint64_t task = 0;

	pthread_mutex_lock(&set->lock);
	first = TAILQ_FIRST(&set->living);
	if (first != NULL && (all || TAILQ_NEXT(first, entry) == NULL)) {
		object = first->handle;
		task = tdt_handle_id(first->handle);
	}
	pthread_mutex_unlock(&set->lock);
	tdt_leaf_waits_on_named(task != 0 ? TDT_WAIT_TASK : TDT_WAIT_OTHER, object, task,
				set->name);
}

/* --- Aborting --------------------------------------------------------------------- */

/* The next task to abort in this round, which then is the last one of the list; NULL: none. */
static struct tdt_handle *next_to_abort(struct tdt_join_set *set, unsigned round)
{
	struct tdt_handle *handle = NULL;
	struct tdt__set_member *member;

	pthread_mutex_lock(&set->lock);
	member = TAILQ_FIRST(&set->living);
	if (member != NULL && member->aborts != round) {
		member->aborts = round;
		TAILQ_REMOVE(&set->living, member, entry);
		TAILQ_INSERT_TAIL(&set->living, member, entry);
		handle = tdt_handle_ref(member->handle);
	}
	pthread_mutex_unlock(&set->lock);
	return handle;
}

void tdt_join_set_abort(struct tdt_join_set *set)
{
	struct tdt_handle *handle;
	int saved = errno;
	unsigned round;

	if (set == NULL)
		return;
	pthread_mutex_lock(&set->lock);
	round = ++set->aborts;
	pthread_mutex_unlock(&set->lock);
	/* One by one: the lock is not held while wakers are called. */
	while ((handle = next_to_abort(set, round)) != NULL) {
		tdt_task_abort(handle);
		tdt_handle_unref(handle);
	}
	errno = saved;
}

void tdt_join_set_free(struct tdt_join_set *set)
{
	if (set == NULL)
		return;
	pthread_mutex_lock(&set->lock);
	set->freed = true;
	pthread_mutex_unlock(&set->lock);
	release_waiters(set);
	tdt_join_set_abort(set);
	tdt__join_set_unref(set);
}
