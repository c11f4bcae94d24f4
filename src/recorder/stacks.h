/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The table of distinct stacks, in the layout of <tdt/layout/recording.h>.
 *
 * Any thread adds stacks, without a lock.  It reserves room by adding to `used`, writes the stack
 * there, and exchanges the bucket's newest stack for it.  A stack never changes after that.
 */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/layout/recording.h>

#include "host/thread.h"
#include "recorder/record.h"

struct tdt__capture;
struct tdt__stacks;

/* The most return addresses of a stack; the others are cut off. */
#define TDT__RECORD_STACK_MAX 128

/* The number of this stack, which is added unless it is there; 0: there is no room for it. */
uint32_t tdt__stack_number(struct tdt_recording_stacks *table, const uint64_t *pc, uint32_t n,
			   uint8_t cut);

/* The number of the innermost stack of one leaf of `stacks`, which begins with frame `index`. */
uint32_t tdt__stack_number_of(struct tdt_recording *block, const struct tdt__stacks *stacks,
			      uint32_t index);

/*
 * Record where the leaves of a captured poll wait, before the event of the poll is written: at most
 * TDT__RECORD_LEAVES_MAX of them.
 */
#define TDT__RECORD_LEAVES_MAX 32
void tdt__record_stacks(uint64_t id, const struct tdt__stacks *stacks);

/*
 * A poll begins on this thread.  Whether it is to be captured, because as many polls were not as
 * the options say.
 */
static inline bool tdt__record_capture_due(void)
{
	uint32_t every = TDT__PEEK(tdt__record_options.every);

	return every != 0 && ++tdt__thread.uncaptured >= every;
}

/*
 * The poll may be captured for the recorder.  Returns a spare capture if that is due, and begins
 * the count again; NULL: it is not due.  It also returns NULL if no spare capture is left: then the
 * stacks of this poll count as lost, and the thread's next poll is due.
 */
struct tdt__capture *tdt__record_capture(void);
