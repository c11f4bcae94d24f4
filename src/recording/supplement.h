/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What is added to a copy of a recording (copy.h): events that the rings do not have, and that the
 * one who copies knows, in a ring of the service at the end.  With them the copy can be read
 * without the process.
 *
 *	struct tdt__supplement supplement = { 0 };
 *
 *	tdt__supplement_add(&supplement, &event, payload, size);
 *	...
 *	err = tdt__supplement_append(&supplement, &copy, &size);
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/layout/recording.h>

struct tdt__supplement {
	struct tdt_event *slot;
	size_t n, room;
	bool failed; /* there was no memory for an event */
};

void tdt__supplement_add(struct tdt__supplement *supplement, const struct tdt_event *event,
			 const char *payload, size_t size);

/* Add what the time was by all clocks, in nanoseconds, at `ticks`. */
void tdt__supplement_clock(struct tdt__supplement *supplement, uint64_t ticks, uint64_t monotonic,
			   uint64_t boot, uint64_t real);

/*
 * Append the events to the copy, and free the supplement.  Returns 0, or -ENOMEM: then the copy is
 * as it was.
 */
int tdt__supplement_append(struct tdt__supplement *supplement, void **copy, size_t *size);

/*
 * Call `visit(data, address)` for an address in each function that the copy names: the poll
 * functions of tasks, and the calls of stacks.  An address may come several times.
 */
typedef void tdt__visit_code_fn(void *data, uint64_t address);
void tdt__recording_visit_code(const struct tdt_recording *copy, tdt__visit_code_fn *visit,
			       void *data);
