/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Spare captures, for polls that are captured without a request.  They have their room, and know
 * the code that is loaded, so that a poll neither allocates nor takes a lock.
 *
 * Few are needed, because each is in use only during a poll.  They do not grow.  A PC that is met
 * for the first time must be learned, under a lock.  A poll may learn at most TDT__SPARE_LEARNS
 * PCs; at the next new PC its leaves are truncated.  Later polls use what was learned.
 */

#include <stdbool.h>
#include <stdint.h>

#include "unwind/walk.h"

struct tdt__capture;

#define TDT__SPARE_LEARNS 8

/* The poller's side.  tdt__spare_take() returns NULL if none is left. */
struct tdt__capture *tdt__spare_take(void);
void tdt__spare_give(struct tdt__capture *capture);

/* How many captures were taken so far, modulo 2^32. */
uint32_t tdt__spare_taken(void);

/*
 * The ticker's side, under tdt__watch_lock.  tdt__spare_know() gives all captures the rules of
 * `walk`, which it takes over.  tdt__spare_stock() makes captures until there are enough; false:
 * there is no memory for all of them, or tdt__spare_know() was never called.
 */
void tdt__spare_know(struct tdt__walk *walk);
bool tdt__spare_stock(void);
