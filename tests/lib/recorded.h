/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_RECORDED_H
#define TESTS_RECORDED_H

/*
 * Reading the rings of this process, for tests of what is written into them: one event after the
 * other, while no thread writes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/layout/recording.h>

/* An event with its payload. */
struct recorded {
	struct tdt_event event;
	const struct tdt_recording_ring *ring;
	size_t size;
	char payload[TDT_EVENT_SLOTS_MAX * TDT_EVENT_TEXT + 1]; /* and a NUL */
};

/* The block; fails the test if there is none. */
const struct tdt_recording *recorded_block(void);

/* The path of the recorder's file, until the next call; empty: there is none. */
const char *recorded_path(void);

/* The ring with this index in the table. */
const struct tdt_recording_ring *recorded_ring(uint32_t index);

/* The ring of that kind that the thread writes to, or wrote to last; NULL: there is none. */
const struct tdt_recording_ring *recorded_ring_of(uint32_t thread,
						  enum tdt_recording_ring_kind kind);

/*
 * The next event of the ring.  `*at` is the number of the slot to begin with, and then that of the
 * one behind the event; begin with 0.  False: there are no more.
 */
bool recorded_next(const struct tdt_recording_ring *ring, uint64_t *at, struct recorded *event);

/* How many events of that kind and task are in all rings of that kind; id 0: of any task. */
unsigned recorded_count(enum tdt_recording_ring_kind ring, enum tdt_event_kind kind, uint64_t id);

/* The newest event of that kind and task in any ring of that kind; fails the test without one. */
struct recorded recorded_last(enum tdt_recording_ring_kind ring, enum tdt_event_kind kind,
			      uint64_t id);

/* The duration of a TDT_EVENT_POLL or TDT_EVENT_PARK, in ticks. */
uint64_t recorded_duration(const struct tdt_event *event);

#endif
