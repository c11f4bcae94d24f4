/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Writing the events.  <tdt/layout/recording.h> describes what each of them contains.
 *
 * The recorder is switched by a bit of the epoch (watch/epoch.h), which polls read anyway.  All
 * other events test the same bit.  Each function here is called only if tdt__recording() is true,
 * or was when the poll began.
 */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/integrate/hooks.h>
#include <tdt/layout/recording.h>

#include "capture/chain.h"
#include "host/thread.h"
#include "recorder/clock.h"
#include "recorder/cpu.h"
#include "recorder/rings.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "watch/epoch.h"

/* A bit of `detail` of a TDT_EVENT_POLL: the poll began when the previous one ended. */
#define TDT__RECORD_FOLLOWS 4

static inline bool tdt__recording(void)
{
	return __builtin_expect(tdt__epoch_word() & TDT__EPOCH_RECORDING, 0);
}

/* --- Polls ----------------------------------------------------------------- */

/* A poll of the task was late, or lasted, or panicked. */
void tdt__record_delay(const struct tdt__record_poll *poll, const struct tdt_handle *task,
		       uint64_t waited);
/* The ring still says that the poll goes on. */
void tdt__record_remarkable(struct tdt_recording_ring *ring, const struct tdt_event *poll);

/*
 * When a poll begins: when the previous one ended, if the runtime has not read the clock since.
 * Otherwise the clock is read.  A poll inside of another poll always reads it, because the outer
 * poll did something in between.
 */
static inline void tdt__record_start(struct tdt__record_poll *poll)
{
	bool follows = tdt__thread.ended != 0 && tdt__thread.now != 0 &&
		       tdt__thread.now == tdt__thread.ended_now && poll->outer_task == 0;

	poll->start = follows ? tdt__thread.ended : tdt__ticks();
	poll->detail = follows ? TDT__RECORD_FOLLOWS : 0;
}

/* How long the task waited for this poll since it was woken or spawned; 0: that is unknown. */
static inline uint64_t tdt__record_waited(const struct tdt_handle *task)
{
	uint64_t polls = task->record.polls - 1, now = task->record.since, then = 0;

	if (tdt__was_woken(task, polls))
		then = TDT__PEEK(task->record.woken);
	else if (polls == 0)
		then = task->record.spawned;
	return then != 0 && now > then ? now - then : 0;
}

/* From now on the ring says which task is polled.  `task` is NULL for a task without a record. */
static inline void tdt__record_enter(struct tdt__record_poll *poll, uint64_t id,
				     const struct tdt_handle *task)
{
	struct tdt_recording_ring *ring = poll->ring;

	tdt__record_start(poll);
	TDT__POKE(ring->since, poll->start);
	TDT__POKE(ring->task, id);
	/* Release the task: its record may be new.  Pairs with service.c, look_at_poll(). */
	__atomic_store_n(&ring->own, (uintptr_t)task | TDT__RING_TAKEN, __ATOMIC_RELEASE);
}

/*
 * The poll of the task has begun: its record says so already.  What is not filled in here is not
 * read, if there is no ring.
 */
static inline void tdt__record_begin(struct tdt__record_poll *poll, const struct tdt_handle *task)
{
	struct tdt_recording_ring *ring;
	uint64_t waited;

	poll->is_recorded = true;
	if (task->record.id == tdt__thread.hooked)
		tdt__thread.hooked_recorded = true;
	tdt__ring_enter();
	poll->ring = ring = tdt__ring_of_polls();
	if (ring == NULL) {
		tdt__ring_leave();
		tdt__ring_missed(1, 1);
		return;
	}
	poll->woken_by = tdt__was_woken(task, task->record.polls - 1)
				 ? TDT__PEEK(task->record.woken_by)
				 : 0;
	poll->outer_task = TDT__PEEK(ring->task);
	poll->outer_since = TDT__PEEK(ring->since);
	poll->outer_own = TDT__PEEK(ring->own);
	tdt__record_enter(poll, task->record.id, task);
	waited = tdt__record_waited(task);
	if (__builtin_expect(waited >= TDT__PEEK(tdt__record_options.long_wait), 0))
		tdt__record_delay(poll, task, waited);
	tdt__ring_leave();
}

/* A duration as an event holds it: shifted right until it fits.  The shift goes to `detail`. */
static inline void tdt__record_duration(struct tdt_event *event, uint64_t ticks)
{
	uint8_t shift = 0;

	for (; __builtin_expect(ticks > UINT32_MAX, 0); ticks >>= 4)
		shift++;
	event->a = (uint32_t)ticks;
	event->detail |= (uint8_t)(shift << 4);
}

/* The ring says again what the thread polled before. */
static inline void tdt__record_leave(const struct tdt__record_poll *poll)
{
	TDT__POKE(poll->ring->task, poll->outer_task);
	TDT__POKE(poll->ring->since, poll->outer_since);
	TDT__POKE(poll->ring->own, poll->outer_own);
}

/* The poll is over; `result` is what it returned. */
static inline void tdt__record_end(struct tdt__record_poll *poll, uint64_t id, tdt_poll_t result)
{
	struct tdt_recording_ring *ring = poll->ring;
	struct tdt_event event = { .kind = TDT_EVENT_POLL,
				   .detail = (uint8_t)(poll->detail | (result & 3)),
				   .b = tdt__cpu(),
				   .time = poll->start,
				   .task = id,
				   .c = poll->woken_by };
	uint64_t end, length;

	poll->is_recorded = false;
	tdt__ring_enter();
	if (ring == NULL || ring != tdt__ring_mine()) {
		tdt__ring_leave();
		/* Given back in the poll; otherwise it is one of an earlier recording. */
		if (ring == NULL || tdt__thread.generation == 0)
			tdt__ring_missed(ring != NULL, ring != NULL);
		return;
	}
	end = tdt__ticks();
	length = end > poll->start ? end - poll->start : 0;
	tdt__record_duration(&event, length);
	tdt__ring_put(ring, tdt__thread.slots, &event);
	if (__builtin_expect(length >= TDT__PEEK(tdt__record_options.long_poll), 0) ||
	    __builtin_expect(result == TDT_PANICKED, 0))
		tdt__record_remarkable(ring, &event);
	tdt__record_leave(poll);
	tdt__thread.ended = end;
	tdt__thread.ended_now = tdt__thread.now;
	tdt__ring_leave();
}

/*
 * The same two for a poll that a runtime reports (task/hooked.c).  Its task may have no record.  If
 * a traced task has recorded the poll, nothing is written at its end.
 */
void tdt__record_begin_hooked(struct tdt__record_poll *poll, uint64_t id);
void tdt__record_end_hooked(struct tdt__record_poll *poll, uint64_t id, tdt_poll_t result);

/* --- Other events ---------------------------------------------------------- */

/* Write an event with a payload to the ring of this thread, whichever it has. */
void tdt__record_long(const struct tdt_event *event, const void *payload, size_t size);

void tdt__record_wake(uint64_t id);
void tdt__record_spawn(const struct tdt_handle *task);
void tdt__record_ended(const struct tdt_handle *task, uint8_t outcome);
void tdt__record_park(void);
void tdt__record_unpark(void);
/* A task of tdt_task_new() goes on (0), or waits (TDT_PENDING). */
void tdt__record_run(uint64_t id, uint8_t detail);
void tdt__record_hand(const struct tdt_lock *lock, uint64_t id);
/* A context of NULL: the task has none any more. */
void tdt__record_context(uint64_t id, const struct tdt_trace_context *context);
void tdt__record_wait(uint64_t id, enum tdt_wait_kind kind, const void *object, uint64_t owner,
		      const char *name);
