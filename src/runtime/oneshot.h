/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_ONESHOT_H
#define TDT_RUNTIME_ONESHOT_H

/*
 * A channel for one value: its two ends (oneshot.c), and the future that awaits the value
 * (oneshot_receive.c).
 *
 * The owner of the value:
 *
 *            send         receive
 *   sender ───────▶ SENT ─────────▶ receiver
 *                     │ if no future receives the value, the last end that is freed frees it
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
	_Atomic int state; /* enum tdt__channel_state */
	atomic_uint ends;  /* the number of ends that are not freed yet */
	void *value;	   /* the sender writes it while OPEN, the receiver reads it when SENT */
	void (*value_free)(void *value); /* may be NULL.  Constant */
	struct tdt__slot slot;		 /* the receiver's */

	/* Only the receiver uses these. */
	char *name; /* NULL: none */
	void **out;
	int *error; /* may be NULL */
	bool ended; /* the future has returned its result; a value that was SENT is its awaiter's */
};

/* Free the receiver's end. */
void tdt__channel_leave(struct tdt__channel *channel);

struct tdt_future tdt__oneshot_receive_new(struct tdt_oneshot_receiver *receiver, void **value,
					   int *error);

#endif
