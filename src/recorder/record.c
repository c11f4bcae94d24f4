// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Writing the events that are not on the path of every poll. */

#include "recorder/record.h"

#include <string.h>

#include "base/name.h"
#include "recorder/block.h"
#include "recorder/trigger.h"
#include "recording/describe.h"
#include "registry/contexts.h"

/* Write an event to the ring of this thread, whichever it has.  A call would cost a tenth more. */
static inline __attribute__((always_inline)) void put(const struct tdt_event *event)
{
	struct tdt_recording_ring *ring;

	tdt__ring_enter();
	ring = tdt__ring_any();
	if (__builtin_expect(ring != NULL, 1))
		tdt__ring_put(ring, tdt__thread.slots, event);
	tdt__ring_leave();
	if (__builtin_expect(ring == NULL, 0))
		tdt__ring_missed(1, 0);
}

void tdt__record_long(const struct tdt_event *event, const void *payload, size_t size)
{
	struct tdt_recording_ring *ring;

	tdt__ring_enter();
	ring = tdt__ring_any();
	if (ring != NULL)
		tdt__ring_put_long(ring, tdt__thread.slots, event, payload, size);
	tdt__ring_leave();
	if (ring == NULL)
		tdt__ring_missed(1, 0);
}

/* --- Polls that a runtime reports ------------------------------------------ */

/*
 * Such a poll is the outermost one, unless a traced poll is in progress.  Otherwise what the ring
 * says is left from a poll whose end was never reported.
 */
void tdt__record_begin_hooked(struct tdt__record_poll *poll, uint64_t id)
{
	struct tdt_recording_ring *ring;
	bool inside = tdt__thread.poll != NULL && !tdt__is_reported_task(tdt__thread.poll->task);

	tdt__ring_enter();
	ring = tdt__ring_of_polls();
	*poll = (struct tdt__record_poll){ .ring = ring, .is_recorded = true };
	if (ring != NULL) {
		poll->outer_task = inside ? TDT__PEEK(ring->task) : 0;
		poll->outer_since = inside ? TDT__PEEK(ring->since) : 0;
		poll->outer_own = inside ? TDT__PEEK(ring->own) : TDT__RING_TAKEN;
		tdt__record_enter(poll, id, NULL);
	}
	tdt__ring_leave();
	if (ring == NULL)
		tdt__ring_missed(1, 1);
}

void tdt__record_end_hooked(struct tdt__record_poll *poll, uint64_t id, tdt_poll_t result)
{
	if (!tdt__thread.hooked_recorded) {
		tdt__record_end(poll, id, result);
		return;
	}
	tdt__ring_enter();
	if (poll->ring != NULL && poll->ring == tdt__ring_mine())
		tdt__record_leave(poll);
	tdt__ring_leave();
	poll->is_recorded = false;
}

/* --- What is remarkable ---------------------------------------------------- */

/* The ring of what is remarkable lies behind the ring of polls in the table. */
static void *remarkable_slots(const struct tdt_recording_ring *ring)
{
	return tdt__ring_slots(ring + 1);
}

void tdt__record_delay(const struct tdt__record_poll *poll, const struct tdt_handle *task,
		       uint64_t waited)
{
	const struct tdt_event event = { .kind = TDT_EVENT_DELAY,
					 .time = poll->start,
					 .task = task->record.id,
					 .c = waited };

	tdt__ring_put(poll->ring + 1, remarkable_slots(poll->ring), &event);
	tdt__trigger_wait(waited);
}

#define LOOK_BACK 256 /* so many slots before a remarkable poll may belong to it */

static const struct tdt_event *slot_at(const struct tdt_recording_ring *ring, uint64_t number)
{
	return (const struct tdt_event *)tdt__thread.slots + (number & (ring->room - 1));
}

/* The slot behind the previous poll of the task, or one that is far enough back. */
static uint64_t poll_first(const struct tdt_recording_ring *ring, uint64_t id, uint64_t head)
{
	uint64_t most = LOOK_BACK < ring->room ? LOOK_BACK : ring->room - 1,
		 end = head > most ? head - most : 0;

	for (; head > end; head--) {
		const struct tdt_event *event = slot_at(ring, head - 1);

		if (event->kind == TDT_EVENT_POLL && event->task == id)
			break;
	}
	return head;
}

/*
 * Copy what belongs to the poll whose event was written last: what its leaves wait for, and their
 * stacks.  A slot of the kind TDT_EVENT_MORE belongs to the event before it, and readers see both
 * or neither.
 */
static void copy_leaves(struct tdt_recording_ring *ring, uint64_t id)
{
	uint64_t head = TDT__PEEK(ring->head) - 1, to = TDT__PEEK(ring[1].head);
	tdt__record_word *words = remarkable_slots(ring);
	bool copies = false;

	for (uint64_t at = poll_first(ring, id, head); at < head; at++) {
		const struct tdt_event *event = slot_at(ring, at);

		if (event->kind != TDT_EVENT_MORE) {
			tdt__ring_advance(ring + 1, to);
			copies = event->task == id &&
				 (event->kind == TDT_EVENT_WAIT || event->kind == TDT_EVENT_STACK);
		}
		if (copies)
			tdt__slot_write(words + 4 * (to++ & (ring[1].room - 1)), event);
	}
	tdt__ring_advance(ring + 1, to);
}

/* --- Tasks ----------------------------------------------------------------- */

static size_t describe(const struct tdt_handle *task, char payload[TDT__IDENTITY_MAX])
{
	const char *file = (const char *)(uintptr_t)task->record.file;
	struct tdt_trace_context context;

	tdt__context_read(task, &task->record, &context);
	return tdt__describe_task(&task->record, file != NULL ? file : "", &context, payload);
}

/*
 * Other events that tell the task's name are overwritten long before this one.  A task that a
 * runtime only reports has no record.
 */
static void copy_identity(struct tdt_recording_ring *ring)
{
	const struct tdt_handle *task =
	    (void *)(uintptr_t)(TDT__PEEK(ring->own) & ~(uint64_t)TDT__RING_STATES);
	struct tdt_event event;
	char payload[TDT__IDENTITY_MAX];

	if (task == NULL)
		return;
	event = tdt__identity_event(&task->record, TDT_EVENT_TASK, tdt__ticks());
	tdt__ring_put_long(ring + 1, remarkable_slots(ring), &event, payload,
			   describe(task, payload));
}

void tdt__record_remarkable(struct tdt_recording_ring *ring, const struct tdt_event *poll)
{
	copy_identity(ring);
	copy_leaves(ring, poll->task);
	tdt__ring_put(ring + 1, remarkable_slots(ring), poll);
	tdt__trigger_poll(poll->time, (uint64_t)poll->a << (poll->detail >> 4) * 4, false);
}

void tdt__record_spawn(const struct tdt_handle *task)
{
	char payload[TDT__IDENTITY_MAX];
	size_t size = describe(task, payload);
	struct tdt_event event = tdt__identity_event(&task->record, TDT_EVENT_SPAWN, tdt__ticks());

	tdt__record_long(&event, payload, size);
}

/* A panic is remarkable: the same event goes to both rings, if the thread has both. */
void tdt__record_ended(const struct tdt_handle *task, uint8_t outcome)
{
	bool aborted = outcome == TDT_PENDING && tdt__record_aborted(&task->record);
	uint64_t by = aborted ? TDT__PEEK(task->record.woken_by) : 0;
	char payload[TDT__IDENTITY_MAX];
	size_t size = describe(task, payload);
	struct tdt_event event = tdt__identity_event(&task->record, TDT_EVENT_END, tdt__ticks());
	struct tdt_recording_ring *ring;

	event.detail |= outcome | (aborted ? TDT_EVENT_END_ABORTED : 0);
	event.a = (uint32_t)by;
	event.b = (uint16_t)(by >> 32);
	tdt__record_long(&event, payload, size);
	if (outcome != TDT_PANICKED)
		return;
	tdt__ring_enter();
	ring = tdt__ring_mine();
	if (ring != NULL && ring->kind == TDT_RING_POLLS)
		tdt__ring_put_long(ring + 1, remarkable_slots(ring), &event, payload, size);
	tdt__ring_leave();
	tdt__trigger_panic();
}

/* --- What runtimes and leaves report --------------------------------------- */

void tdt__record_wake(uint64_t id)
{
	const struct tdt_event event = { .kind = TDT_EVENT_WAKE,
					 .b = tdt__cpu(),
					 .time = tdt__ticks(),
					 .task = id,
					 .c = tdt_current_task_id() };

	put(&event);
}

/* Such tasks take turns on a thread in any order: their runs are not nested, as polls are. */
void tdt__record_run(uint64_t id, uint8_t detail)
{
	const struct tdt_event event = {
		.kind = TDT_EVENT_RUN, .detail = detail, .time = tdt__ticks(), .task = id
	};

	put(&event);
}

void tdt__record_hand(const struct tdt_lock *lock, uint64_t id)
{
	const struct tdt_event event = {
		.kind = TDT_EVENT_LOCK, .time = tdt__ticks(), .task = id, .c = (uintptr_t)lock
	};

	put(&event);
}

void tdt__record_context(uint64_t id, const struct tdt_trace_context *context)
{
	const struct tdt_event event = { .kind = TDT_EVENT_CONTEXT,
					 .time = tdt__ticks(),
					 .task = id,
					 .c = tdt_current_task_id() };

	tdt__record_long(&event, context, context != NULL ? sizeof *context : 0);
}

/* Unless the thread polls, its ring says since when it is idle; 0: it is not. */
static void note_idle(uint64_t since)
{
	struct tdt_recording_ring *ring;

	tdt__ring_enter();
	ring = tdt__ring_any();
	if (ring != NULL && TDT__PEEK(ring->task) == 0)
		TDT__POKE(ring->since, since);
	tdt__ring_leave();
}

void tdt__record_park(void)
{
	tdt__thread.ended = 0;
	tdt__thread.idle_since = tdt__ticks();
	note_idle(tdt__thread.idle_since);
}

void tdt__record_unpark(void)
{
	struct tdt_event event = { .kind = TDT_EVENT_PARK,
				   .b = tdt__cpu(),
				   .time = tdt__thread.idle_since };
	uint64_t now = tdt__ticks();

	if (event.time == 0)
		return;
	tdt__thread.idle_since = 0;
	note_idle(0);
	tdt__record_duration(&event, now > event.time ? now - event.time : 0);
	put(&event);
}

void tdt__record_wait(uint64_t id, enum tdt_wait_kind kind, const void *object, uint64_t owner,
		      const char *name)
{
	const struct tdt_event event = { .kind = TDT_EVENT_WAIT,
					 .detail = (uint8_t)kind,
					 .time = owner,
					 .task = id,
					 .c = (uintptr_t)object };

	if (name == NULL)
		put(&event);
	else
		tdt__record_long(&event, name, tdt__name_length(name));
}
