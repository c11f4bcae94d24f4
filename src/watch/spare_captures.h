/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_WATCH_SPARE_CAPTURES_H
#define TDT_SRC_WATCH_SPARE_CAPTURES_H

/*
 * Captures that are ready beforehand, for polls that are captured though nobody has asked: they have their room, and know
 * the code as it is loaded, so that nothing has to be allocated and no lock to be taken.
 *
 * They are few, since each is in use only during a poll, and get only what room they have.  Of a PC that is seen first
 * they have to learn, under a lock: at most TDT__READY_LEARNS a poll, where its leaves are cut then.  What was learned
 * serves the next.
 */

#include <stdbool.h>
#include <stdint.h>

#include "unwind/walk.h"

struct tdt__capture;

#define TDT__READY_LEARNS 8

/* The poller's side.  NULL: there is none left. */
struct tdt__capture *tdt__ready_take(void);
void tdt__ready_give(struct tdt__capture *capture);

/* How many were taken so far, modulo 2^32. */
uint32_t tdt__ready_taken(void);

/*
 * The ticker's side, under tdt__watch_lock: have all of them walk as `walk` is ready to, which is taken over; and have
 * enough of them.  False: no memory for all, or the former was never done.
 */
void tdt__ready_know(struct tdt__walk *walk);
bool tdt__ready_stock(void);

#endif
