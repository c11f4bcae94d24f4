// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reading the rings of this process. */

#include <config.h>

#include "lib/recorded.h"

#include <string.h>

#include <check.h>

#include <tdt/recorder.h>

#include "lib/must.h"
#include "registry/registry.h"

const struct tdt_recording *recorded_block(void)
{
	const struct tdt_recording *block = (const void *)(uintptr_t)tdt__registry.rings;

	ck_assert_ptr_nonnull(block);
	ck_assert_mem_eq(block->magic, TDT_RECORDING_MAGIC, sizeof block->magic);
	return block;
}

const char *recorded_path(void)
{
	static char path[4096];
	struct tdt_recorder_status info = { .size = sizeof info,
					    .path = path,
					    .path_size = sizeof path };

	MUST(tdt_recorder_info(&info) == 0);
	return path;
}

const struct tdt_recording_ring *recorded_ring(uint32_t index)
{
	const struct tdt_recording *block = recorded_block();

	ck_assert_uint_lt(index, block->n_rings);
	return (const struct tdt_recording_ring *)((const char *)block + block->rings) + index;
}

const struct tdt_recording_ring *recorded_ring_of(uint32_t thread,
						  enum tdt_recording_ring_kind kind)
{
	for (uint32_t i = 0; i < recorded_block()->n_rings; i++)
		if (recorded_ring(i)->kind == kind && TDT__PEEK(recorded_ring(i)->thread) == thread)
			return recorded_ring(i);
	return NULL;
}

/* Word by word, as it is written: the recorder's thread may write to its own ring. */
static struct tdt_event slot(const struct tdt_recording_ring *ring, uint64_t number)
{
	const tdt__record_word *from =
	    (const tdt__record_word *)(uintptr_t)TDT__PEEK(ring->address) +
	    4 * (number & (TDT__PEEK(ring->room) - 1));
	tdt__record_word words[4];
	struct tdt_event event;

	for (int i = 0; i < 4; i++)
		words[i] = TDT__PEEK(from[i]);
	memcpy(&event, words, sizeof event);
	return event;
}

static void add_payload(struct recorded *event, const struct tdt_event *slot)
{
	struct tdt_event_more more;

	memcpy(&more, slot, sizeof more);
	ck_assert_uint_le(event->size + more.n, sizeof event->payload - 1);
	memcpy(event->payload + event->size, more.text, more.n);
	event->size += more.n;
}

bool recorded_next(const struct tdt_recording_ring *ring, uint64_t *at, struct recorded *event)
{
	/* Acquire the slots.  Pairs with tdt__ring_advance(). */
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	uint32_t room = TDT__PEEK(ring->room);
	struct tdt_event more;

	if (head > room && *at < head - room)
		*at = head - room;
	while (*at < head && slot(ring, *at).kind == TDT_EVENT_MORE)
		(*at)++;
	if (*at >= head)
		return false;
	memset(event, 0, sizeof *event);
	event->ring = ring;
	event->event = slot(ring, (*at)++);
	for (; *at < head && (more = slot(ring, *at)).kind == TDT_EVENT_MORE; (*at)++)
		add_payload(event, &more);
	return true;
}

/* Count the events, and copy the last one of each ring to `*last` unless it is NULL. */
static unsigned look(enum tdt_recording_ring_kind ring, enum tdt_event_kind kind, uint64_t id,
		     struct recorded *last)
{
	struct recorded event;
	unsigned n = 0;

	for (uint32_t i = 0; i < recorded_block()->n_rings; i++) {
		uint64_t at = 0;

		if (recorded_ring(i)->kind != ring)
			continue;
		while (recorded_next(recorded_ring(i), &at, &event)) {
			if (event.event.kind != kind || (id != 0 && event.event.task != id))
				continue;
			n++;
			if (last != NULL)
				*last = event;
		}
	}
	return n;
}

unsigned recorded_count(enum tdt_recording_ring_kind ring, enum tdt_event_kind kind, uint64_t id)
{
	return look(ring, kind, id, NULL);
}

struct recorded recorded_last(enum tdt_recording_ring_kind ring, enum tdt_event_kind kind,
			      uint64_t id)
{
	struct recorded last;

	ck_assert_uint_gt(look(ring, kind, id, &last), 0);
	return last;
}

uint64_t recorded_duration(const struct tdt_event *event)
{
	return (uint64_t)event->a << (event->detail >> 4) * 4;
}
