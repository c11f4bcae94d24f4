/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_WATCH_WATCH_H
#define TDT_SRC_WATCH_WATCH_H

/*
 * Watching.  A thread of its own, the ticker, advances the epoch once an interval; a poll that finds that its task was
 * last looked at in another epoch is captured (wrapper.c), and what was captured becomes the task's last tree (last_tree.h).
 * So a poll has no clock to read.  After an epoch in which many were captured the ticker waits longer.
 *
 *   ticker                              poller
 *     top up the pools                    epoch == record.own_epoch?  poll as ever
 *     epoch = the next                    record.own_epoch = epoch
 *     sleep                               take a capture, poll, keep its tree, give it back
 *
 * What is not in the pools is not waited for: the task is left out in this epoch.  (spare_captures.h,
 * last_tree.h)  But a task that is polled once and then hangs would never have a tree: so for each
 * task that is spawned there is room for one (last_tree.h).
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "capture/capture.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "watch/last_tree.h"
#include "watch/spare_captures.h"

/*
 * 0: nobody watches.  Otherwise another than before, and than for long.  Relaxed: nothing hangs on when it is seen.  Polls
 * read it, and it changes rarely: a cache line of its own.
 */
struct tdt__epoch {
	_Alignas(64) _Atomic uint16_t now;
};

extern struct tdt__epoch tdt__epoch __attribute__((visibility("hidden"))); /* reached without a detour */

static inline uint16_t tdt__epoch_now(void)
{
	return atomic_load_explicit(&tdt__epoch.now, memory_order_relaxed);
}

/* Captures a second that the ticker allows, and the longest that an epoch lasts for it, ns. */
#define TDT__WATCH_MOST 10000
#define TDT__WATCH_LONGEST UINT64_C(1000000000)

/* Bytes: two trees of 12 frames. */
#define TDT__WATCH_FETCHED 512

/*
 * A poll of the task begins, which will be captured by `*capture` if that is not NULL.  If it is to give the task its last
 * tree there is a capture afterwards, which says so.  One that sees less far than a watched poll does won't do: then it is
 * the next poll's turn.
 */
static inline void tdt__watch_begin(struct tdt_handle *task, struct tdt__capture **capture)
{
	uint16_t epoch = tdt__epoch_now(), seen = task->record.own_epoch;

	if (epoch == seen)
		return;
	if (epoch != 0 && *capture != NULL && (*capture)->max_frames < TDT_MAX_FRAMES)
		return;
	if (epoch != 0 && *capture == NULL)
		*capture = tdt__ready_take();
	if (*capture == NULL && epoch != 0 && tdt__is_promised(seen))
		return; /* the next poll will do */
	TDT__POKE(task->record.own_epoch, epoch);
	if (epoch == 0)
		tdt__watched_redeem(seen);
	if (epoch == 0 || *capture == NULL)
		return;
	(*capture)->watched = true;
	(*capture)->promised = seen;
	/* Fetch its trees, which are written when the poll is over: of many tasks they are in no cache by now. */
	for (uintptr_t line = 0; line < TDT__WATCH_FETCHED; line += 64)
		__builtin_prefetch((const void *)((uintptr_t)TDT__PEEK(task->record.tree) + line));
}

/*
 * That poll is over.  What it found is kept only if the task waits: where it was in the poll that ended it says little of
 * why, and what it waited for before may say more.
 */
static inline void tdt__watch_end(struct tdt_handle *task, const struct tdt__capture *capture)
{
	if (capture->facts.state == TDT_TASK_WAITING)
		tdt__watched_keep(task, capture);
	tdt__watched_redeem(capture->promised);
}

/* Do as the environment says, once a process. */
void tdt__watch_by_environment(void);

/* What the environment means, in nanoseconds; -1: nothing that is understood.  `text` may be NULL. */
int64_t tdt__watch_parse(const char *text);

/* What the ticker does once an interval, now, if somebody watches, after an interval that was long enough; for tests. */
void tdt__watch_tick(void);

/* The same after an interval of so long. */
void tdt__watch_pass(uint64_t ns);

/* What the calls in watch.c, and the ticker, have of their own.  Held across fork (fork.c). */
extern pthread_mutex_t tdt__watch_lock;

/* In a child of fork, under tdt__watch_lock: there is no ticker, and nobody watches. */
void tdt__watch_forked(void);

#endif
