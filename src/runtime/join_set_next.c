// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The futures that wait for the tasks of a set.  Their polls have public names: mutex_lock.c. */

#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "base/leaf_poll.h"
#include "base/result.h"
#include "runtime/join_set.h"

struct joining {
	struct tdt_join_set *set; /* a reference */
	struct tdt__gate_place place;
	/* Of a struct tdt_joined, whose header has calls of the same names as polls below; or NULL.
	 */
	uint64_t *id;
	int *outcome;
	bool all, ended;
};

static bool try_join(struct joining *joining)
{
	uint64_t id;
	int outcome;

	do
		if (!tdt__join_set_take(joining->set, &joining->place, &id, &outcome))
			return false;
	while (joining->all && id != 0);
	joining->ended = true;
	if (joining->id != NULL) {
		*joining->id = id;
		*joining->outcome = outcome;
	}
	return true;
}

/* Always inlined, so that the leaf's own poll clones the waker (slot.h). */
static inline __attribute__((always_inline)) tdt_poll_t poll_join_set(struct joining *joining,
								      struct tdt_context *cx)
{
	if (joining->ended)
		return TDT_PANICKED;
	if (try_join(joining))
		return TDT_READY;
	tdt__slot_register(&joining->place.slot, cx->waker);
	if (try_join(joining)) /* a task ended before the waker was registered */
		return TDT_READY;
	tdt__join_set_report(joining->set, joining->all);
	return TDT_PENDING;
}

TDT__LEAF_POLL(tdt_join_set_next);

tdt_poll_t tdt_join_set_next(void *state, struct tdt_context *cx)
{
	return poll_join_set(state, cx);
}

TDT__LEAF_POLL(tdt_join_set_wait);

tdt_poll_t tdt_join_set_wait(void *state, struct tdt_context *cx)
{
	return poll_join_set(state, cx);
}

static void drop_joining(void *state)
{
	struct joining *joining = state;
	struct tdt_join_set *set = joining->set;
	const struct tdt_waker *waker;

	pthread_mutex_lock(&set->lock);
	waker = tdt__gate_leave(&set->gate, &joining->place);
	pthread_mutex_unlock(&set->lock);
	tdt_waker_wake(waker);
	tdt__slot_clear(&joining->place.slot);
	tdt__join_set_unref(set);
	free(joining);
}

static struct tdt_future joining_new(struct tdt_join_set *set, struct joining fields,
				     tdt_poll_t (*poll)(void *state, struct tdt_context *cx))
{
	struct joining *joining;

	if (set == NULL)
		return tdt__no_future(-EINVAL);
	joining = malloc(sizeof *joining);
	if (joining == NULL)
		return TDT_FUTURE_NONE;
	atomic_fetch_add_explicit(&set->refs, 1, memory_order_relaxed);
	fields.set = set;
	*joining = fields;
	return (struct tdt_future){ joining, poll, drop_joining };
}

struct tdt_future tdt__join_set_next_new(struct tdt_join_set *set, uint64_t *id, int *outcome)
{
	return joining_new(set, (struct joining){ .id = id, .outcome = outcome },
			   tdt_join_set_next);
}

struct tdt_future tdt__join_set_wait_new(struct tdt_join_set *set)
{
	return joining_new(set, (struct joining){ .all = true }, tdt_join_set_wait);
}
