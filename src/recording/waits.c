// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reading what a task waits for: see waits.h. */

#include "recording/waits.h"

#include <string.h>

#include "recording/recording.h"

/* What a listing of the task says lies in its payload.  It has no name. */
static bool read_listed_wait(const struct tdt__recording *recording,
			     const struct tdt__recorded_parts *parts, struct tdt_wait *wait)
{
	struct tdt__recorded_item item;
	struct tdt__listed_state listed;

	tdt__recording_part(recording, parts, 0, &item);
	if (item.event.a == 0 || item.event.b != TDT_STATE_IDLE ||
	    !tdt__recorded_listed(recording, &item, &listed))
		return false;
	*wait = (struct tdt_wait){ .size = sizeof *wait,
				   .kind = tdt__wait_kind(item.event.detail),
				   .object = listed.object,
				   .owner = listed.owner };
	return true;
}

bool tdt__recorded_wait(const struct tdt__recording *recording,
			const struct tdt__recorded_parts *parts, uint32_t i, struct tdt_wait *wait)
{
	const struct tdt__recorded_ring *ring = &recording->ring[parts->ring];
	uint32_t slot = ring->entry[parts->entry + i] >> TDT__ENTRY_BITS;
	const struct tdt_event *event = tdt__slot(ring, slot);
	char payload[TDT__PAYLOAD_MAX + 1];

	if (event->kind == TDT_EVENT_STATE)
		return read_listed_wait(recording, parts, wait);
	if (event->kind != TDT_EVENT_WAIT)
		return false;
	*wait = (struct tdt_wait){ .size = sizeof *wait,
				   .kind = tdt__wait_kind(event->detail),
				   .object = event->c,
				   .owner = event->time };
	if (tdt__slot_payload(ring, slot, payload) != 0)
		memcpy(wait->name, payload, strnlen(payload, TDT_WAIT_NAME_MAX));
	return true;
}

void tdt__recorded_waits(const struct tdt__recording *recording,
			 const struct tdt__recorded_parts *parts, struct tdt__recorded_waits *waits)
{
	const struct tdt__recorded_ring *ring = &recording->ring[parts->ring];

	*waits = (struct tdt__recorded_waits){ .n = 0 };
	for (uint32_t i = 0; i < parts->n; i++) {
		const struct tdt_event *event =
		    tdt__slot(ring, ring->entry[parts->entry + i] >> TDT__ENTRY_BITS);
		struct tdt_wait wait;

		if (event->kind == TDT_EVENT_STACK && waits->stack == 0)
			waits->stack = event->a;
		if (!tdt__recorded_wait(recording, parts, i, waits->n == 0 ? &waits->main : &wait))
			continue;
		if (waits->n != 0 && tdt__is_main_wait(&wait, &waits->main))
			waits->main = wait;
		waits->n += event->kind == TDT_EVENT_STATE ? event->a : 1;
	}
}

bool tdt__recorded_same_waits(const struct tdt__recording *recording,
			      const struct tdt__recorded_parts *a,
			      const struct tdt__recorded_parts *b)
{
	struct tdt__recorded_waits one, other;

	tdt__recorded_waits(recording, a, &one);
	tdt__recorded_waits(recording, b, &other);
	return one.n == other.n && one.main.kind == other.main.kind &&
	       one.main.object == other.main.object;
}
