// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The items of all rings in the order of time: each ring is sorted, and a heap of their next items
 * merges them.
 */

#include "recording/recording.h"

#include <errno.h>
#include <stdlib.h>

/* The next item of a ring. */
struct tdt__recording_head {
	uint64_t ns;
	size_t near; /* see tdt__recording_ns_near() */
	uint32_t ring;
	uint32_t entry;
	uint32_t n_parts;
	uint32_t thread; /* the number of the thread at this entry */
	unsigned kind;
};

/* Find the next entry that is no part.  False: there is none. */
static bool load(const struct tdt__recording *recording, struct tdt__recording_head *head)
{
	const struct tdt__recorded_ring *ring = &recording->ring[head->ring];
	const struct tdt_event *event;
	uint32_t entry;

	head->n_parts = 0;
	for (;; head->entry++, head->n_parts++) {
		if (head->entry == ring->n_entries)
			return false;
		entry = ring->entry[head->entry];
		head->kind = entry & TDT__ENTRY_KIND;
		if (head->kind != TDT__ENTRY_PART)
			break;
	}
	event = tdt__slot(ring, entry >> TDT__ENTRY_BITS);
	if (event->kind == TDT_EVENT_THREAD)
		head->thread = tdt__recording_find_thread(recording, event->a);
	head->ns = tdt__recording_ns_near(
	    recording, head->kind == TDT__RECORDED_END ? tdt__event_end(event) : event->time,
	    &head->near);
	return true;
}

/*
 * Whether `a` comes before `b`.  At the same time polls end first, and begin last: so a wake-up is
 * from after the poll that ended, and from before the poll that it led to.
 */
static bool is_earlier(const struct tdt__recording_head *a, const struct tdt__recording_head *b)
{
	static const unsigned char rank[] = {
		[TDT__RECORDED_END] = 0, [TDT__RECORDED_EVENT] = 1, [TDT__RECORDED_BEGIN] = 2
	};

	if (a->ns != b->ns)
		return a->ns < b->ns;
	if (a->kind != b->kind)
		return rank[a->kind] < rank[b->kind];
	return a->ring < b->ring;
}

static void sift_down(struct tdt__recording_cursor *cursor, size_t at)
{
	struct tdt__recording_head *heap = cursor->head, moved = heap[at];

	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < cursor->n && is_earlier(&heap[child + 1], &heap[child]))
			child++;
		if (child >= cursor->n || !is_earlier(&heap[child], &moved))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moved;
}

int tdt__recording_begin(struct tdt__recording_cursor *cursor,
			 const struct tdt__recording *recording)
{
	*cursor = (struct tdt__recording_cursor){
		.recording = recording,
		.head = calloc(recording->n_rings + 1, sizeof(*cursor->head)),
	};
	if (cursor->head == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < recording->n_rings; i++) {
		struct tdt__recording_head *head = &cursor->head[cursor->n];

		*head = (struct tdt__recording_head){
			.ring = (uint32_t)i,
			.thread =
			    tdt__recording_find_thread(recording, recording->ring[i].thread_before),
		};
		cursor->n += load(recording, head);
	}
	for (size_t i = cursor->n / 2; i-- > 0;)
		sift_down(cursor, i);
	return 0;
}

static void fill(const struct tdt__recording *recording, struct tdt__recording_head *head,
		 struct tdt__recorded_item *item)
{
	const struct tdt__recorded_ring *ring = &recording->ring[head->ring];
	uint32_t slot = ring->entry[head->entry] >> TDT__ENTRY_BITS;

	*item = (struct tdt__recorded_item){
		.kind = (enum tdt__recorded_kind)head->kind,
		.event = *tdt__slot(ring, slot),
		.ns = head->ns,
		.thread = head->thread,
		.remarkable = ring->kind == TDT_RING_REMARKABLE,
		.parts = { head->n_parts, head->ring, head->entry - head->n_parts },
		.slot = slot,
	};
	if (item->event.kind == TDT_EVENT_STATE)
		item->parts.n = 1;
	if (head->kind == TDT__RECORDED_EVENT)
		return;
	item->begin = tdt__recording_ns_near(recording, item->event.time, &head->near);
	item->end =
	    slot == ring->n
		? UINT64_MAX
		: tdt__recording_ns_near(recording, tdt__event_end(&item->event), &head->near);
}

bool tdt__recording_next(struct tdt__recording_cursor *cursor, struct tdt__recorded_item *item)
{
	struct tdt__recording_head *top = cursor->head;

	if (cursor->n == 0)
		return false;
	fill(cursor->recording, top, item);
	/* Times go back where a file is damaged, or the clocks of two CPUs differ a little. */
	if (item->ns < cursor->last)
		item->ns = cursor->last;
	cursor->last = item->ns;
	top->entry++;
	if (!load(cursor->recording, top))
		*top = cursor->head[--cursor->n];
	if (cursor->n > 0)
		sift_down(cursor, 0);
	return true;
}

void tdt__recording_end(struct tdt__recording_cursor *cursor)
{
	free(cursor->head);
	cursor->head = NULL;
	cursor->n = 0;
}

void tdt__recording_part(const struct tdt__recording *recording,
			 const struct tdt__recorded_parts *parts, uint32_t i,
			 struct tdt__recorded_item *part)
{
	const struct tdt__recorded_ring *ring = &recording->ring[parts->ring];
	uint32_t slot = ring->entry[parts->entry + i] >> TDT__ENTRY_BITS;

	*part = (struct tdt__recorded_item){
		.event = *tdt__slot(ring, slot),
		.parts.ring = parts->ring,
		.slot = slot,
	};
}
