/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A gate: leaves wait in a line, and pass in their order, each with a permit.  It is what a mutex,
 * a semaphore, a notification, the two sides of a channel, and the ended tasks of a set share.
 * A permit is for the first place in the line, and is counted only if no leaf waits.  So no later
 * leaf overtakes the line, one leaf is woken for one permit, and waiting allocates nothing.
 *
 * Calls are made under the lock of the gate's owner, unless they take it themselves.  The wakers
 * that they return are woken without it.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/leaf_poll.h"
#include "runtime/slot.h"

/* Where a leaf is.  All zero at first. */
struct tdt__gate_place {
	struct tdt__gate_place *previous, *next; /* while in the line */
	enum {
		TDT__PLACE_OUTSIDE,
		TDT__PLACE_IN_LINE,
		TDT__PLACE_ADMITTED, /* it has a permit, and passes at its next poll */
		TDT__PLACE_RELEASED  /* it passes without a permit */
	} at;
	struct tdt__slot slot; /* the leaf's */
};

struct tdt__gate {
	size_t permits; /* 0 while a leaf waits */
	/* The head of a ring: `next` is the first place, `previous` the last. */
	struct tdt__gate_place line;
	/* A permit goes to a place, or to none: NULL.  The owner's, under the lock; may be NULL. */
	void (*hand)(struct tdt__gate *gate, struct tdt__gate_place *to);
};

void tdt__gate_init(struct tdt__gate *gate, size_t permits);

/* Take a permit, or the place's own.  False: the place is in the line now. */
bool tdt__gate_pass(struct tdt__gate *gate, struct tdt__gate_place *place);

/* The first place in the line; NULL: none. */
static inline struct tdt__gate_place *tdt__gate_first(struct tdt__gate *gate)
{
	return gate->line.next != &gate->line ? gate->line.next : NULL;
}

/* Add a permit: admit the first place in the line.  Returns the waker to wake. */
TDT_MUST_USE
const struct tdt_waker *tdt__gate_admit(struct tdt__gate *gate);

/*
 * Let all that wait now pass without a permit, and wake them.  Takes the lock itself.  The gate may
 * be gone once the last one is woken.
 */
void tdt__gate_release(struct tdt__gate *gate, pthread_mutex_t *lock);

/* Take the place out of the line.  Returns whether it has a permit, which the caller passes on. */
bool tdt__gate_take_out(struct tdt__gate_place *place);

/* The first member of the state of a future that waits at a gate.  All zero at first. */
struct tdt__gate_leaf {
	struct tdt__gate_place place;
	bool ended;
};

/*
 * Make such a future, whose fields are copied, and which takes one of the references of an object
 * that are counted in `refs`; NULL: the call that makes it has a wrong argument.
 */
struct tdt_future tdt__gate_leaf_new(atomic_uint *refs, const void *fields, size_t size,
				     tdt_poll_t (*poll)(void *state, struct tdt_context *cx),
				     void (*drop)(void *state));

/*
 * The poll of such a future, for TDT__LEAF().  `pass` takes the lock, and returns whether the
 * future is ready; `report` reports what it waits for.
 */
static inline __attribute__((always_inline)) tdt_poll_t
tdt__gate_leaf_poll(void *state, struct tdt_context *cx, bool (*pass)(void *state),
		    void (*report)(void *state))
{
	struct tdt__gate_leaf *leaf = state;

	if (leaf->ended)
		return TDT_PANICKED;
	leaf->ended = pass(state);
	if (!leaf->ended) {
		tdt__slot_register(&leaf->place.slot, cx->waker);
		/* It may have been admitted before the waker was registered. */
		leaf->ended = pass(state);
	}
	if (leaf->ended)
		return TDT_READY;
	report(state);
	return TDT_PENDING;
}

/*
 * Such a future is dropped: give up its place, unless it has ended, and pass on the permit of the
 * place, if it has one.
 */
void tdt__gate_leave(struct tdt__gate_leaf *leaf, struct tdt__gate *gate, pthread_mutex_t *lock);
