/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* What the files of the reader share: see read.h. */

#include "recording/read.h"

/* So many slots of a ring are read at most: the number of a slot has 29 bits in an entry. */
#define TDT__RING_ROOM_MAX (UINT32_C(1) << 29)

/* An entry of a sorted ring: the number of a slot, and below it what the slot stands for there. */
#define TDT__ENTRY_KIND 3u
#define TDT__ENTRY_PART 3u /* the others are enum tdt__recorded_kind */
#define TDT__ENTRY_BITS 2

/* From a STOP to the next START, ns. */
struct tdt__pause {
	uint64_t from, until;
	uint64_t before; /* in the pauses before */
};

static inline const struct tdt_event *tdt__slot(const struct tdt__recorded_ring *ring,
						uint32_t slot)
{
	return slot == ring->n ? &ring->current : &ring->slot[(ring->first + slot) & ring->mask];
}

/* How long a POLL or a PARK lasted, in ticks. */
static inline uint64_t tdt__event_duration(const struct tdt_event *event)
{
	return (uint64_t)event->a << (event->detail >> 4) * 4;
}

/* When a POLL or a PARK ended, in ticks. */
static inline uint64_t tdt__event_end(const struct tdt_event *event)
{
	uint64_t end = event->time + tdt__event_duration(event);

	return end < event->time ? UINT64_MAX : end;
}

static inline bool tdt__event_lasts(const struct tdt_event *event)
{
	return event->kind == TDT_EVENT_POLL || event->kind == TDT_EVENT_PARK;
}

/* Whether the event only belongs to the poll that follows: then it has no time. */
static inline bool tdt__event_is_part(const struct tdt_event *event)
{
	return event->kind == TDT_EVENT_WAIT ||
	       (event->kind == TDT_EVENT_STACK && event->time == 0);
}

/* When an event was written, in ticks; 0: it has no time of its own. */
static inline uint64_t tdt__event_written(const struct tdt_event *event)
{
	if (event->kind == TDT_EVENT_MORE || tdt__event_is_part(event))
		return 0;
	return tdt__event_lasts(event) ? tdt__event_end(event) : event->time;
}

/* Whether the header is one that can be read: 0, -EINVAL or -ENOTSUP. */
int tdt__recording_check(const struct tdt_recording *header);

static inline bool tdt__ring_has_room(const struct tdt_recording_ring *ring)
{
	return ring->room != 0 && (ring->room & (ring->room - 1)) == 0 &&
	       ring->room <= TDT__RING_ROOM_MAX;
}

/*
 * The oldest slot that is whole, if the entry was read after the slots.  The thread may be writing
 * an event over the oldest slots, or was killed then; but nobody writes to a snapshot.
 */
static inline uint64_t tdt__ring_first(const struct tdt_recording *header,
				       const struct tdt_recording_ring *ring)
{
	uint64_t margin = header->taken != 0 ? 0 : TDT_EVENT_SLOTS_MAX;
	uint64_t written = ring->head > UINT64_MAX - margin ? UINT64_MAX : ring->head + margin;
	uint64_t first = written > ring->room ? written - ring->room : 0;

	return first > ring->first ? first : ring->first;
}

/* Copy the payload of the event in `slot`, and a NUL behind it.  Returns its length. */
size_t tdt__slot_payload(const struct tdt__recorded_ring *ring, uint32_t slot,
			 char payload[TDT__PAYLOAD_MAX + 1]);

/* identities.c: collect what the events say of threads, tasks and modules.  0 or -ENOMEM. */
int tdt__recording_collect(struct tdt__recording *recording, const struct tdt__recorded_ring *ring);
/* The number of a thread, which is added if it is new; TDT__RECORDED_NONE: no memory. */
uint32_t tdt__recording_thread(struct tdt__recording *recording, uint32_t id);
/* The number of a thread that is there; TDT__RECORDED_NONE: it is not. */
uint32_t tdt__recording_find_thread(const struct tdt__recording *recording, uint32_t id);
void tdt__recording_forget(struct tdt__recording *recording);

/* The number of a lock; TDT__RECORDED_NONE: it was not handed to any task. */
uint32_t tdt__recording_lock(const struct tdt__recording *recording, uint64_t address);

/* clocks.c: find out how ticks become nanoseconds.  0 or -ENOMEM. */
int tdt__recording_read_clocks(struct tdt__recording *recording);
/* tdt__recording_ns(); `*near` is where the last call with this variable found its piece. */
uint64_t tdt__recording_ns_near(const struct tdt__recording *recording, uint64_t ticks,
				size_t *near);

/*
 * sort.c: fill in the entries of a ring.  Entries of a ring of remarkable events are left out if
 * the other rings have them.  0 or -ENOMEM.
 */
int tdt__recording_sort(const struct tdt__recording *recording, struct tdt__recorded_ring *ring);
