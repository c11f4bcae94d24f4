/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_ONESHOT_H
#define TDT_RUNTIME_ONESHOT_H

/*
 * A channel for one value, between its two ends (oneshot.c) and the future that awaits it (oneshot_receive.c).
 *
 * Who owns the value:
 *
 *            send         receive
 *   sender ───────▶ SENT ─────────▶ receiver
 *                     │ nobody receives: whoever gives up the last end frees it
 *
 *   OPEN ──send──▶ SENT,  OPEN ──the sender is freed──▶ CLOSED,  OPEN ──the receiver is──▶ GONE
 *
 * Of the three the first one counts, and what comes too late fails: a value that meets GONE stays its sender's.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/slot.h"

struct tdt_oneshot_receiver;

enum tdt__channel_state { TDT__OPEN, TDT__SENT, TDT__CLOSED, TDT__GONE };

struct tdt__channel {
	_Atomic int state;		 /* enum tdt__channel_state */
	atomic_uint ends;		 /* not given up yet: 2, 1 */
	void *value;			 /* the sender's to write while OPEN, the receiver's to read when SENT */
	void (*value_free)(void *value); /* may be NULL.  Constant */
	struct tdt__slot slot;		 /* of the receiver */

	/* The receiver's alone. */
	void **out;
	int *error; /* may be NULL */
	bool ended; /* told whoever awaited it; if SENT, the value is his */
};

/* Give up the receiver's end. */
void tdt__channel_leave(struct tdt__channel *channel);

struct tdt_future tdt__oneshot_receive_new(struct tdt_oneshot_receiver *receiver, void **value, int *error);

#endif
