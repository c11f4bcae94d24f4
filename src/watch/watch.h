/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The watch.  A thread of the library, the ticker, advances the epoch once in an interval.  A poll
 * is captured if its task was last looked at in another epoch (wrapper.c), and the capture becomes
 * the task's last tree (last_tree.h).  So a poll reads no clock.  After an epoch with many captures
 * the ticker waits longer.
 *
 *   ticker                              poller
 *     top up the pools                    epoch == record.own_epoch?  poll without a capture
 *     epoch = the next                    record.own_epoch = epoch
 *     sleep                               take a capture, poll, keep its tree, give it back
 *
 * A poll does not wait for what the pools lack: its task is left out in this epoch.
 */

#include <stdbool.h>
#include <stdint.h>

#include "capture/capture.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "watch/epoch.h"
#include "watch/last_tree.h"
#include "watch/spare_captures.h"

/*
 * The number of captures a second that the ticker allows; and the longest time that an epoch lasts
 * for that reason, in nanoseconds.
 */
#define TDT__WATCH_MOST 10000
#define TDT__WATCH_LONGEST UINT64_C(1000000000)

/* So many bytes of a task's trees are fetched: two trees of 12 frames. */
#define TDT__WATCH_FETCHED 512

/*
 * A poll of the task begins.  `*capture` is the capture of its requests; NULL: there is no request.
 * If a last tree of the task is due, it will be made of that capture, or of a spare capture, which
 * is put into `*capture`.  In both cases the capture is marked as watched.  If the request's limit
 * of frames is lower than that of the watch, the next poll provides the tree instead.
 */
static inline void tdt__watch_begin(struct tdt_handle *task, struct tdt__capture **capture)
{
	uint16_t epoch = tdt__epoch_now(), seen = task->record.own_epoch;

	if (epoch == seen)
		return;
	if (epoch != 0 && *capture != NULL && (*capture)->max_frames < TDT_MAX_FRAMES)
		return;
	if (epoch != 0 && *capture == NULL)
		*capture = tdt__spare_take();
	if (*capture == NULL && epoch != 0 && tdt__is_promised(seen))
		return; /* the promise holds, and the next poll tries again */
	TDT__POKE(task->record.own_epoch, epoch);
	if (epoch == 0)
		tdt__last_tree_redeem(seen);
	if (epoch == 0 || *capture == NULL)
		return;
	(*capture)->watched = true;
	(*capture)->promised = seen;
	/*
	 * Fetch the task's trees, which are written after the poll.  With many tasks, they are in
	 * no cache by now.
	 */
	for (uintptr_t line = 0; line < TDT__WATCH_FETCHED; line += 64)
		__builtin_prefetch((const void *)((uintptr_t)TDT__PEEK(task->record.tree) + line));
}

/*
 * The watched poll is over.  Its tree is kept only if the task waits: the place where the last poll
 * of a task ended does not say why it ended, and the place where it waited before may say more.
 */
static inline void tdt__watch_end(struct tdt_handle *task, const struct tdt__capture *capture)
{
	if (capture->facts.state == TDT_TASK_WAITING)
		tdt__last_tree_record(task, capture);
	tdt__last_tree_redeem(capture->promised);
}

/*
 * Fill the pool of spare captures, for the recorder: as a tick does, also while the watch is off.
 * Takes tdt__watch_lock.  False: not enough memory.
 */
bool tdt__watch_stock_spares(void);

/*
 * Readers outside want a watch with this interval, in nanoseconds; 0: they want none.  The shorter
 * of this interval and that of tdt_watch() is in force; `*in_force` gets it, 0: the watch is off.
 * Returns 0, -ENOMEM or -EAGAIN: then nothing has changed.
 */
int tdt__watch_outside(int64_t interval_ns, uint64_t *in_force);

/* Start the watch if the environment requests it. */
void tdt__watch_by_environment(void);

/*
 * The interval that `text`, the environment's value, means, in nanoseconds; -1: `text` is NULL or
 * is not understood.
 */
int64_t tdt__watch_parse(const char *text);

/*
 * If the watch is on, do now what the ticker does after an interval of `ns` nanoseconds; for tests.
 * After TDT__WATCH_LONGEST the epoch advances.
 */
void tdt__watch_pass(uint64_t ns);

/* In a child of fork, under tdt__watch_lock: there is no ticker, and the watch is off. */
void tdt__watch_forked(void);
