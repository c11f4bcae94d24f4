/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A channel for one value: its two ends (oneshot.c), and the futures that await the value, one at a
 * time (oneshot_receive.c).
 *
 * The owner of the value:
 *
 *            send         receive
 *   sender ───────▶ SENT ─────────▶ the awaiter, and `taken` is set
 *                     │ if no future receives the value, the last holder of the channel frees it
 *
 * The states:
 *
 *   OPEN ──the value is sent──▶ SENT
 *   OPEN ──the sender is freed──▶ CLOSED
 *   OPEN ──the receiver is freed──▶ GONE
 *
 * Only the first of these three events changes the state; a later one fails.  A send that finds the
 * state GONE fails, and the value stays the sender's.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/slot.h"

struct tdt_oneshot_receiver;

enum tdt__channel_state { TDT__OPEN, TDT__SENT, TDT__CLOSED, TDT__GONE };

struct tdt__channel {
	_Atomic int state;   /* enum tdt__channel_state */
	atomic_uint holders; /* of its ends and of its future, those that are not freed yet */
	void *value;	     /* the sender writes it while OPEN, the future reads it when SENT */
	void (*value_free)(void *value); /* may be NULL.  Constant */
	struct tdt__slot slot;		 /* the future's */

	/* Only the receiver and its future use these. */
	char *name; /* NULL: none */
	void **out; /* of the future; NULL: there is no future */
	int *error; /* of the future; may be NULL */
	bool ended; /* the future has returned its result */
	bool taken; /* a future has returned the value, which is its awaiter's */
};

/* Give up what one end, or the future, holds. */
void tdt__channel_unref(struct tdt__channel *channel);

struct tdt_future tdt__oneshot_receive_new(struct tdt_oneshot_receiver *receiver, void **value,
					   int *error);
