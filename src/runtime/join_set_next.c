// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The futures that wait for the tasks of a set.  Their polls have public names: mutex_lock.c. */

#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "base/leaf_poll.h"
#include "base/result.h"
#include "runtime/join_set.h"

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
		if (!tdt__join_set_take(joining->set, &joining->leaf.place, &id, &outcome))
			return false;
	while (joining->all && id != 0);
	if (joining->id != NULL)
		*joining->id = id;
	if (joining->outcome != NULL)
		*joining->outcome = outcome;
	return true;
}

static void report_set(void *state)
{
	const struct joining *joining = state;

	tdt__join_set_report(joining->set, joining->all);
}

TDT__LEAF_POLL_BY(tdt_join_set_next, tdt__gate_leaf_poll(state, cx, pass_set, report_set))
TDT__LEAF_POLL_BY(tdt_join_set_wait, tdt__gate_leaf_poll(state, cx, pass_set, report_set))

static void drop_joining(void *state)
{
	struct joining *joining = state;

	tdt__gate_leave(&joining->set->gate, &joining->leaf.place, &joining->set->lock);
	tdt__slot_clear(&joining->leaf.place.slot);
	tdt__join_set_unref(joining->set);
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
    TDT__LEAF_CALL(tdt_join_set_next);
struct tdt_future tdt__join_set_wait_new(struct tdt_join_set *set)
    TDT__LEAF_CALL(tdt_join_set_wait);

struct tdt_future tdt__join_set_next_new(struct tdt_join_set *set, uint64_t *id, int *outcome)
{
	return joining_new(set, (struct joining){ .id = id, .outcome = outcome },
			   tdt_join_set_next);
}

struct tdt_future tdt__join_set_wait_new(struct tdt_join_set *set)
{
	return joining_new(set, (struct joining){ .all = true }, tdt_join_set_wait);
}
