/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The payloads of events that describe tasks and modules (tdt/layout/recording.h), for those who
 * write such events.
 */

#include <stddef.h>
#include <stdint.h>

#include <tdt/layout/registry.h>

#include "recording/read.h"
#include "tree/futurelocks.h"

/* A payload of either kind has at most so many bytes. */
#define TDT__DESCRIPTION_MAX 512

/* A task whose identity is written. */
struct tdt__identified {
	const struct tdt_task_record *record;
	uint64_t entry;	  /* by tdt__task_entry() */
	const char *file; /* where it was spawned; of a long name, the last bytes are kept */
	struct tdt_trace_context context; /* if `valid` is not 1, it has none */
};

/*
 * Have the event be about the task, and write its identity.  Returns the size, which is at most
 * TDT__IDENTITY_MAX.
 */
#define TDT__IDENTITY_MAX 304
size_t tdt__describe_task(struct tdt_event *event, const struct tdt__identified *task,
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
