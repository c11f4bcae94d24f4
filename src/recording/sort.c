// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The order of one ring.  A poll is written when it ends, behind all that happened in it, but a
 * reader wants to hear of its beginning first.  So the ring is read backwards, from the newest
 * event to the oldest, and the entries are put down backwards, too: there the end of a poll comes
 * first, and its beginning is put down as soon as an event from before it is met.  The polls whose
 * beginning is still to come are nested, so they form a stack, and all takes linear time.
 *
 * What belongs to a poll (WAIT, STACK) is collected with it, and lies right before its beginning.
 */

#include "recording/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* The poll to which a part belongs is sought among so many. */
#define NESTED_MAX 16

/* A poll or an idling whose beginning is still to come. */
struct unbegun {
	uint32_t slot;
	uint64_t begin; /* ticks */
	uint64_t task;
	/* Its parts, the last first, in a list through sorting.next; 0: none. */
	uint32_t last_part, first_part;
};

struct sorting {
	const struct tdt__recorded_ring *ring;
	uint32_t *entry; /* filled from the end */
	size_t at;
	struct unbegun *open;
	size_t n_open, open_room;
	uint32_t *next; /* of each slot that is a part: the part before it in its list, plus 1 */
	/* Of a ring of remarkable events: the thread that is reached, and what others know of it.
	 */
	uint32_t thread;
	uint64_t whole_from; /* ticks: what was written from then on is in the other rings */
};

static void put_entry(struct sorting *sorting, uint32_t slot, unsigned kind)
{
	sorting->entry[--sorting->at] = slot << TDT__ENTRY_BITS | kind;
}

/* Put down the beginning of the topmost poll, and its parts before it. */
static void begin_topmost(struct sorting *sorting)
{
	const struct unbegun *top = &sorting->open[--sorting->n_open];

	put_entry(sorting, top->slot, TDT__RECORDED_BEGIN);
	for (uint32_t part = top->last_part; part != 0; part = sorting->next[part - 1])
		put_entry(sorting, part - 1, TDT__ENTRY_PART);
}

static bool open_poll(struct sorting *sorting, uint32_t slot)
{
	const struct tdt_event *event = tdt__slot(sorting->ring, slot);

	if (!tdt__array_grow(&sorting->open, sorting->n_open, &sorting->open_room,
			     sizeof(*sorting->open)))
		return false;
	sorting->open[sorting->n_open++] = (struct unbegun){
		.slot = slot,
		.begin = event->time,
		.task = event->kind == TDT_EVENT_POLL ? event->task : 0,
	};
	return true;
}

/* The poll of the task to which a part belongs; NULL: it was overwritten, or is left out. */
static struct unbegun *poll_of(struct sorting *sorting, uint64_t task)
{
	size_t n = sorting->n_open < NESTED_MAX ? sorting->n_open : NESTED_MAX;

	for (size_t i = 1; i <= n; i++)
		if (sorting->open[sorting->n_open - i].task == task)
			return &sorting->open[sorting->n_open - i];
	return NULL;
}

static void add_part(struct sorting *sorting, uint32_t slot)
{
	struct unbegun *poll = poll_of(sorting, tdt__slot(sorting->ring, slot)->task);

	if (poll == NULL)
		return;
	/* Backwards, each part comes before those that the list has. */
	if (poll->last_part == 0)
		poll->last_part = slot + 1;
	else
		sorting->next[poll->first_part - 1] = slot + 1;
	poll->first_part = slot + 1;
	sorting->next[slot] = 0;
}

/*
 * Put down the beginnings from after `time`.  An event of the very same time as a beginning is from
 * before it, unless it says that it was in the poll of `inside`.
 */
static void begin_later_than(struct sorting *sorting, uint64_t time, uint64_t inside)
{
	while (sorting->n_open > 0) {
		const struct unbegun *top = &sorting->open[sorting->n_open - 1];

		if (top->begin < time || (top->begin == time && inside != 0 && top->task == inside))
			return;
		begin_topmost(sorting);
	}
}

/* The task in whose poll an event was, if it says so; 0: it does not. */
static uint64_t task_inside(const struct tdt_event *event)
{
	switch (event->kind) {
	case TDT_EVENT_WAKE:
	case TDT_EVENT_CONTEXT:
		return event->c;
	case TDT_EVENT_USER:
	case TDT_EVENT_END:
		return event->task;
	default:
		return 0;
	}
}

static void reach_thread(struct sorting *sorting, const struct tdt__recording *recording,
			 uint32_t id)
{
	uint32_t i = tdt__recording_find_thread(recording, id);

	sorting->thread = id;
	sorting->whole_from =
	    i == TDT__RECORDED_NONE ? UINT64_MAX : recording->thread[i].whole_from;
}

/* Whether an event of a ring of remarkable events is in another ring, too. */
static bool is_copy(const struct sorting *sorting, const struct tdt_event *event)
{
	return sorting->ring->kind == TDT_RING_REMARKABLE && event->kind != TDT_EVENT_THREAD &&
	       event->kind != TDT_EVENT_DELAY && tdt__event_written(event) >= sorting->whole_from;
}

/* False: no memory. */
static bool put_event(struct sorting *sorting, const struct tdt__recording *recording,
		      uint32_t slot)
{
	const struct tdt_event *event = tdt__slot(sorting->ring, slot);

	if (event->kind == TDT_EVENT_MORE || is_copy(sorting, event))
		return true;
	if (tdt__event_is_part(event)) {
		add_part(sorting, slot);
		return true;
	}
	if (tdt__event_lasts(event)) {
		begin_later_than(sorting, tdt__event_end(event), 0);
		put_entry(sorting, slot, TDT__RECORDED_END);
		return open_poll(sorting, slot);
	}
	begin_later_than(sorting, event->kind == TDT_EVENT_THREAD ? 0 : event->time,
			 task_inside(event));
	put_entry(sorting, slot, TDT__RECORDED_EVENT);
	if (event->kind == TDT_EVENT_THREAD)
		reach_thread(sorting, recording, (uint32_t)event->c);
	return true;
}

static bool put_all(struct sorting *sorting, const struct tdt__recording *recording)
{
	const struct tdt__recorded_ring *ring = sorting->ring;

	reach_thread(sorting, recording, ring->thread_after);
	if (ring->current.kind != TDT_EVENT_MORE && !open_poll(sorting, ring->n))
		return false;
	for (uint32_t slot = ring->n; slot-- > 0;)
		if (!put_event(sorting, recording, slot))
			return false;
	while (sorting->n_open > 0)
		begin_topmost(sorting);
	return true;
}

int tdt__recording_sort(const struct tdt__recording *recording, struct tdt__recorded_ring *ring)
{
	size_t room = 2 * (size_t)ring->n + 2;
	struct sorting sorting = {
		.ring = ring,
		.entry = malloc(room * sizeof(*sorting.entry)),
		.at = room,
		.next = malloc((size_t)(ring->n + 1) * sizeof(*sorting.next)),
	};
	bool done = sorting.entry != NULL && sorting.next != NULL && put_all(&sorting, recording);

	free(sorting.open);
	free(sorting.next);
	if (!done) {
		free(sorting.entry);
		return -ENOMEM;
	}
	ring->n_entries = (uint32_t)(room - sorting.at);
	memmove(sorting.entry, sorting.entry + sorting.at, ring->n_entries * sizeof(uint32_t));
	ring->entry = sorting.entry;
	return 0;
}
