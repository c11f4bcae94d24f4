/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The payloads of events that describe tasks and modules (tdt/layout/recording.h), for those who
 * write such events.
 */

#include <stddef.h>
#include <stdint.h>

#include <tdt/layout/registry.h>

#include "facts/record.h"
#include "recording/read.h"
#include "tree/futurelocks.h"

/* A payload of either kind has at most so many bytes. */
#define TDT__DESCRIPTION_MAX 512

/* An event that has the identity of the task of `record`. */
static inline struct tdt_event tdt__identity_event(const struct tdt_task_record *record,
						   enum tdt_event_kind kind, uint64_t time)
{
	const unsigned hint = __atomic_load_n(&record->own_hint, __ATOMIC_RELAXED);

	return (struct tdt_event){
		.kind = (uint8_t)kind,
		.detail = (hint & TDT__HINT_BLOCKING) != 0 ? TDT_EVENT_TASK_BLOCKING : 0,
		.time = time,
		.task = record->id,
		.c = record->poll,
	};
}

/*
 * Write the identity of the task of `record`, which was spawned in `file`.  Of a long name of a
 * file, the last bytes are kept.  If `valid` of the context is not 1, the task has none.  Returns
 * the size, which is at most TDT__IDENTITY_MAX.
 */
#define TDT__IDENTITY_MAX 304
size_t tdt__describe_task(const struct tdt_task_record *record, const char *file,
			  const struct tdt_trace_context *context,
			  char payload[TDT__IDENTITY_MAX]);

/*
 * Make the event and the payload for what a task does, by a copy of its record that was made after
 * `time`.  With it, the events since then say all of a task that has been waiting for hours, or
 * whose poll has gone on since before there was a ring.
 */
struct tdt_event tdt__describe_state(const struct tdt_task_record *record,
				     struct tdt__lock_places *locks, uint64_t time,
				     struct tdt__listed_state *listed);

/*
 * Write the bias, the build-id, which is given in hexadecimal, and the path of a module.  Returns
 * the size.
 */
size_t tdt__describe_module(uint64_t bias, const char *build_id, const char *path,
			    char payload[TDT__DESCRIPTION_MAX]);
