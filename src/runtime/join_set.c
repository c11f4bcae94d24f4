// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Sets of tasks.  Each task has a member, which is in one of two lists of the set: of the tasks
 * that live, or of those that have ended and were not taken out yet.  The gate has a permit for
 * each of the latter.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include <tdt/integrate/hooks.h>
#include <tdt/join.h>
#include <tdt/rt/join_set.h>
#include <tdt/tasks.h>

#include "base/hold.h"
#include "base/refs.h"
#include "base/result.h"
#include "runtime/gate.h"
#include "runtime/name.h"
#include "runtime/rt.h"
#include "runtime/task.h"

struct tdt__set_member {
	struct tdt_join_set *set;	    /* a reference */
	struct tdt_handle *handle;	    /* a reference */
	TAILQ_ENTRY(tdt__set_member) entry; /* under the set's lock, as what follows */
	unsigned aborts;		    /* `aborts` of the set when it was aborted last */
	int outcome;			    /* once it has ended */
};

TAILQ_HEAD(set_members, tdt__set_member);

struct tdt_join_set {
	atomic_uint refs; /* of the caller, of members that live, and of futures */
	struct tdt_rt *rt; /* a reference */
	char *name; /* set before a task waits; NULL: none */

	pthread_mutex_t lock; /* protects what follows */
	bool freed, forgets;
	unsigned aborts; /* the number of calls of tdt_join_set_abort() */
	struct set_members living, ended;
	struct tdt__gate gate;
};

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
	tdt__rt_ref(rt);
	pthread_mutex_init(&set->lock, NULL);
	TAILQ_INIT(&set->living);
	TAILQ_INIT(&set->ended);
	tdt__gate_init(&set->gate, 0);
	return set;
}

int tdt_join_set_set_name(struct tdt_join_set *set, const char *name)
{
	return tdt__name_set(set != NULL ? &set->name : NULL, name);
}

void tdt_join_set_forget(struct tdt_join_set *set)
{
	if (set == NULL)
		return;
	TDT__HOLD(&set->lock);
	set->forgets = true;
}

/* Of a member that is in no list.  NULL does nothing. */
static void free_member(struct tdt__set_member *member)
{
	if (member != NULL)
		tdt_handle_unref(member->handle);
	free(member);
}

static void unref_set(struct tdt_join_set *set)
{
	struct tdt__set_member *member;

	if (!tdt__refs_drop(&set->refs))
		return;
	while ((member = TAILQ_FIRST(&set->ended)) != NULL) {
		TAILQ_REMOVE(&set->ended, member, entry);
		free_member(member);
	}
	pthread_mutex_destroy(&set->lock);
	tdt__rt_unref(set->rt);
	free(set->name);
	free(set);
}

/* --- Members ---------------------------------------------------------------------- */

int tdt_join_set_go(struct tdt_join_set *set, struct tdt_future fut,
		    const struct tdt_task_attr *attr)
{
	struct tdt__set_member *member = set != NULL ? calloc(1, sizeof *member) : NULL;
	struct tdt_handle *handle = NULL;
	int error = set != NULL ? -ENOMEM : -EINVAL;

	if (member != NULL) {
		member->set = set;
		handle = tdt__task_spawn(set->rt, &fut, attr, member);
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
	TDT__HOLD(&set->lock);
	TAILQ_INSERT_TAIL(&set->living, member, entry);
}

static int note_aborted(struct tdt_handle *handle, const struct tdt_task_info *info, void *aborted)
{
	(void)handle;
	*(bool *)aborted = info->aborted != 0;
	return 0;
}

static int member_outcome(const struct tdt__set_member *member, tdt_poll_t result)
{
	bool aborted = result == TDT_PENDING;

	if (result == TDT_PANICKED)
		tdt_task_inspect(member->handle, note_aborted, &aborted);
	return result == TDT_READY ? 0 : aborted ? -ECANCELED : -ENOTRECOVERABLE;
}

/* Under the lock. */
static bool is_empty(const struct tdt_join_set *set)
{
	return set->freed || (TAILQ_EMPTY(&set->living) && TAILQ_EMPTY(&set->ended));
}

void tdt__set_member_end(struct tdt__set_member *member, tdt_poll_t result)
{
	struct tdt_join_set *set = member->set;
	int outcome = member_outcome(member, result);
	const struct tdt_waker *waker = NULL;
	bool forgets, last;

	pthread_mutex_lock(&set->lock);
	TAILQ_REMOVE(&set->living, member, entry);
	forgets = set->forgets;
	if (!forgets) {
		TAILQ_INSERT_TAIL(&set->ended, member, entry);
		member->outcome = outcome;
		waker = tdt__gate_admit(&set->gate);
	}
	last = forgets && is_empty(set);
	pthread_mutex_unlock(&set->lock);
	tdt_waker_wake(waker);
	if (last)
		tdt__gate_release(&set->gate, &set->lock);
	if (forgets)
		free_member(member);
	unref_set(set);
}

/* --- Waiting ---------------------------------------------------------------------- */

/*
 * Take a task out that has ended.  False: `place` is in the line.  An empty set gives the id 0.
 */
static bool take_ended(struct tdt_join_set *set, struct tdt__gate_place *place, uint64_t *id,
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
	if (last) /* the others wait for a task of a set that has none */
		tdt__gate_release(&set->gate, &set->lock);
	*id = member != NULL ? tdt_handle_id(member->handle) : 0;
	*outcome = member != NULL ? member->outcome : 0;
	free_member(member);
	return passed;
}

struct joining {
	struct tdt__gate_leaf leaf;
	struct tdt_join_set *set; /* a reference */
	uint64_t *id;		  /* may be NULL, as `outcome` */
	int *outcome;
	bool all;
};

static bool pass_set(void *state)
{
	struct joining *joining = state;
	uint64_t id;
	int outcome;

	do
		if (!take_ended(joining->set, &joining->leaf.place, &id, &outcome))
			return false;
	while (joining->all && id != 0);
	if (joining->id != NULL)
		*joining->id = id;
	if (joining->outcome != NULL)
		*joining->outcome = outcome;
	return true;
}

/* Where one task decides how long this takes, it waits for that task. */
static void report_set(void *state)
{
	const struct joining *joining = state;
	struct tdt_join_set *set = joining->set;
	const struct tdt__set_member *first;
	const void *object = set;
	uint64_t task = 0;

	pthread_mutex_lock(&set->lock);
	first = TAILQ_FIRST(&set->living);
	if (first != NULL && (joining->all || TAILQ_NEXT(first, entry) == NULL)) {
		object = first->handle;
		task = tdt_handle_id(first->handle);
	}
	pthread_mutex_unlock(&set->lock);
	tdt_leaf_waits_on_named(task != 0 ? TDT_WAIT_TASK : TDT_WAIT_OTHER, object, task,
				set->name);
}

TDT__LEAF(tdt_join_set_next, tdt__gate_leaf_poll, pass_set, report_set)
TDT__LEAF(tdt_join_set_wait, tdt__gate_leaf_poll, pass_set, report_set)

static void drop_joining(void *state)
{
	struct joining *joining = state;

	tdt__gate_leave(&joining->leaf, &joining->set->gate, &joining->set->lock);
	unref_set(joining->set);
	free(joining);
}

struct tdt_future tdt_join_set_next(struct tdt_join_set *set, uint64_t *id, int *outcome)
{
	const struct joining joining = { .set = set, .id = id, .outcome = outcome };

	return tdt__gate_leaf_new(set != NULL ? &set->refs : NULL, &joining, sizeof joining,
				  tdt_join_set_next_poll, drop_joining);
}

struct tdt_future tdt_join_set_wait(struct tdt_join_set *set)
{
	const struct joining joining = { .set = set, .all = true };

	return tdt__gate_leaf_new(set != NULL ? &set->refs : NULL, &joining, sizeof joining,
				  tdt_join_set_wait_poll, drop_joining);
}

/* --- Aborting --------------------------------------------------------------------- */

/* The next task to abort in this round, which then is the last one of the list; NULL: none. */
static struct tdt_handle *next_to_abort(struct tdt_join_set *set, unsigned round)
{
	struct tdt__set_member *member;

	TDT__HOLD(&set->lock);
	member = TAILQ_FIRST(&set->living);
	if (member == NULL || member->aborts == round)
		return NULL;
	member->aborts = round;
	TAILQ_REMOVE(&set->living, member, entry);
	TAILQ_INSERT_TAIL(&set->living, member, entry);
	return tdt_handle_ref(member->handle);
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
	tdt__gate_release(&set->gate, &set->lock);
	tdt_join_set_abort(set);
	unref_set(set);
}
