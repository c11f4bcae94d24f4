/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The records of a registry, read slab by slab while their tasks may come, be polled and go
 * (<tdt/layout/registry.h>, "Reading a record while the process runs").
 */

#include <tdt/layout/registry.h>

#include "facts/record.h"
#include "reader/target.h"

struct tdt__seen {
	uint64_t address;
	/*
	 * All fields were so at one moment.  Otherwise the task was polled all the time, and the
	 * fields may be of different polls.
	 */
	bool still;
	struct tdt_task_record record;
};

struct tdt__records {
	struct tdt__seen *seen; /* those that have a task, also one that has ended */
	size_t n, room;
	size_t being_made; /* records whose tasks were just being made */
	/*
	 * Not all records were read: a slab cannot be read, or contradicts itself, or there are too
	 * many of them.
	 */
	bool damaged;
};

/* Read all records.  Returns 0 or -ENOMEM; then there is nothing to free. */
int tdt__records_read(struct tdt__records *records, const struct tdt__target *target,
		      const struct tdt_registry *registry);
void tdt__records_fini(struct tdt__records *records);

/* Some records of a slab, which lie `stride` bytes apart. */
struct tdt__record_piece {
	uint64_t slab;  /* the address of the slab's first record */
	uint32_t first; /* the number of the first record here in its slab */
	size_t n;
	size_t stride;
	const char *records; /* borrowed */
};

/*
 * Read all records once only, which is quick, and call `each` for each piece of them.  A record
 * that changes meanwhile may have fields of several moments.  Returns 0, -ENOMEM, -EIO if not all
 * records can be read, or what `each` returned if that was not 0, which ends it.
 */
typedef int tdt__piece_fn(const struct tdt__record_piece *piece, void *arg);
int tdt__records_visit(const struct tdt__target *target, const struct tdt_registry *registry,
		       tdt__piece_fn *each, void *arg);

/* Read the record again.  Returns whether it can be read, and its task was not polled since. */
bool tdt__seen_stands(const struct tdt__target *target, const struct tdt__seen *seen,
		      struct tdt_task_record *now);

/* Read the trace context of the task; if `valid` is 0, it has none, or has just ended. */
void tdt__seen_context(const struct tdt__target *target, const struct tdt__seen *seen,
		       struct tdt_trace_context *context);

/* Whether the task was not polled, woken or replaced since, by a later copy. */
static inline bool tdt__seen_unchanged(const struct tdt__seen *seen,
				       const struct tdt_task_record *later)
{
	const struct tdt_task_record *record = &seen->record;

	return tdt__record_stands(record, later) && record->woken_polls == later->woken_polls &&
	       record->woken == later->woken && record->wait_name == later->wait_name &&
	       record->wait_polls == later->wait_polls &&
	       record->wait_object == later->wait_object &&
	       record->wait_owner == later->wait_owner && record->tree == later->tree;
}
