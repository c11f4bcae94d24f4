// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * From ticks to nanoseconds of CLOCK_MONOTONIC: a line that is straight between two CLOCK events.
 * The header is the first of its corners.
 */

#include "recording/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Corners closer than this are left out, ns: the slope between them would be that of the error of
 * reading two clocks, and all that comes later would be reckoned by it.
 */
#define NEAR UINT64_C(10000000)

/* Only the ring of the service has CLOCK events: the others are not searched, being large. */
static bool is_service(const struct tdt__recording *recording, size_t ring)
{
	return recording->ring[ring].kind == TDT_RING_SERVICE;
}

static size_t count_clocks(const struct tdt__recording *recording)
{
	size_t n = 1;

	for (size_t i = 0; i < recording->n_rings; i++)
		for (uint32_t k = 0; k < recording->ring[i].n && is_service(recording, i); k++)
			n += tdt__slot(&recording->ring[i], k)->kind == TDT_EVENT_CLOCK;
	return n;
}

static void add_clock(struct tdt__recording *recording, const struct tdt__recorded_ring *ring,
		      uint32_t slot)
{
	const struct tdt_event *event = tdt__slot(ring, slot);
	struct tdt__recorded_clock clock = { .ticks = event->time,
					     .monotonic = event->task,
					     .boot = event->c };
	char payload[TDT__PAYLOAD_MAX + 1];

	if (tdt__slot_payload(ring, slot, payload) < sizeof(clock.real))
		return;
	memcpy(&clock.real, payload, sizeof(clock.real));
	recording->clock[recording->n_clocks++] = clock;
}

/* Sort the corners, and leave out those that are too near or not possible. */
static void clean(struct tdt__recording *recording)
{
	struct tdt__recorded_clock *clock = recording->clock;
	size_t n = 1;

	tdt__array_sort(clock, recording->n_clocks, sizeof(*clock));
	for (size_t i = 1; i < recording->n_clocks; i++)
		if (clock[i].ticks > clock[n - 1].ticks &&
		    clock[i].monotonic > clock[n - 1].monotonic &&
		    clock[i].monotonic - clock[n - 1].monotonic >= NEAR)
			clock[n++] = clock[i];
	recording->n_clocks = n;
}

static void find_scales(struct tdt__recording *recording)
{
	uint64_t hz = recording->header.hz;
	double scale = hz == 0 ? 1 : 1e9 / (double)hz;

	for (size_t i = 0; i < recording->n_clocks; i++) {
		struct tdt__recorded_clock *clock = &recording->clock[i];

		if (i + 1 < recording->n_clocks)
			scale = (double)(clock[1].monotonic - clock->monotonic) /
				(double)(clock[1].ticks - clock->ticks);
		clock->scale = scale;
	}
}

int tdt__recording_read_clocks(struct tdt__recording *recording)
{
	const struct tdt_recording *header = &recording->header;
	size_t n = count_clocks(recording);

	recording->clock = calloc(n, sizeof(*recording->clock));
	if (recording->clock == NULL)
		return -ENOMEM;
	recording->clock[recording->n_clocks++] =
	    (struct tdt__recorded_clock){ header->start_ticks, header->start, header->start_boot,
					  header->start_real, 0 };
	for (size_t i = 0; i < recording->n_rings; i++)
		for (uint32_t k = 0; k < recording->ring[i].n && is_service(recording, i); k++)
			if (tdt__slot(&recording->ring[i], k)->kind == TDT_EVENT_CLOCK)
				add_clock(recording, &recording->ring[i], k);
	clean(recording);
	find_scales(recording);
	return 0;
}

static bool is_in_piece(const struct tdt__recording *recording, size_t i, uint64_t ticks)
{
	return (i == 0 || recording->clock[i].ticks <= ticks) &&
	       (i + 1 == recording->n_clocks || ticks < recording->clock[i + 1].ticks);
}

/* Times of damaged files are clamped to 127 years, so that sums of two do not overflow. */
#define LATEST UINT64_C(4000000000000000000)

uint64_t tdt__recording_ns_near(const struct tdt__recording *recording, uint64_t ticks,
				size_t *near)
{
	const struct tdt__recorded_clock *clock;
	double after;

	if (recording->header.clock == TDT_RECORDING_MONOTONIC)
		return ticks < LATEST ? ticks : LATEST;
	if (!is_in_piece(recording, *near, ticks)) {
		*near = tdt__array_up_to(recording->clock, recording->n_clocks,
					 sizeof(recording->clock[0]), ticks);
		*near -= *near != 0;
	}
	clock = &recording->clock[*near];
	/* The sum is made of integers: a double holds no nanoseconds of months. */
	after = (double)(int64_t)(ticks - clock->ticks) * clock->scale;
	if (after < 0)
		return -after < (double)clock->monotonic ? clock->monotonic - (uint64_t)-after : 0;
	if (after > (double)LATEST || clock->monotonic > LATEST - (uint64_t)after)
		return LATEST;
	return clock->monotonic + (uint64_t)after;
}

uint64_t tdt__recording_ns(const struct tdt__recording *recording, uint64_t ticks)
{
	size_t near = 0;

	return tdt__recording_ns_near(recording, ticks, &near);
}

/* The first corner is always there. */
uint64_t tdt__recording_wall(const struct tdt__recording *recording, uint64_t ns)
{
	size_t n = tdt__array_up_to(&recording->clock->monotonic, recording->n_clocks,
				    sizeof(recording->clock[0]), ns);
	const struct tdt__recorded_clock *clock = &recording->clock[n - (n != 0)];

	return ns + (clock->real - clock->monotonic);
}

uint64_t tdt__recording_real(const struct tdt__recording *recording)
{
	return tdt__recording_wall(recording, UINT64_MAX) - UINT64_MAX;
}
