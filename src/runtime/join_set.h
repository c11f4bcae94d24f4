/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A set of tasks.  Each task has a member, which is in one of two lists of the set: of the tasks
 * that live, or of those that have ended and were not taken out yet.  The gate has a permit for
 * each of the latter.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <tdt/future.h>

#include "runtime/gate.h"

struct tdt_handle;

struct tdt__set_member {
	struct tdt_join_set *set;	    /* a reference */
	struct tdt_handle *handle;	    /* a reference */
	TAILQ_ENTRY(tdt__set_member) entry; /* under the set's lock, as what follows */
	unsigned aborts;		    /* `aborts` of the set when it was aborted last */
	int outcome;			    /* once it has ended */
};

TAILQ_HEAD(tdt__set_members, tdt__set_member);

struct tdt_join_set {
	atomic_uint refs; /* of the caller, of members that live, and of futures */
	struct tdt_rt *rt;
	char *name; /* set before a task waits; NULL: none */

	pthread_mutex_t lock; /* protects what follows */
	bool freed;
	unsigned aborts; /* the number of calls of tdt_join_set_abort() */
	struct tdt__set_members living, ended;
	struct tdt__gate gate;
};

void tdt__join_set_unref(struct tdt_join_set *set);

/* The task of `member` has ended, and its future has been dropped.  Frees what is not needed. */
void tdt__set_member_end(struct tdt__set_member *member, int outcome);

/* Enter the task of `handle`, which is about to be scheduled, into the member's set. */
void tdt__set_member_begin(struct tdt__set_member *member, struct tdt_handle *handle);

/*
 * Take a task out that has ended.  False: `place` is in the line.  An empty set gives the id 0.
 */
bool tdt__join_set_take(struct tdt_join_set *set, struct tdt__gate_place *place, uint64_t *id,
			int *outcome);

/* Report, from the poll of a leaf, that it waits for any task, or for all. */
void tdt__join_set_report(struct tdt_join_set *set, bool all);
