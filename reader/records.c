// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Reading records.  Each piece of a slab is read twice in one call.  Where the two copies of a
 * record differ, that record is read again by itself.
 */

#include "reader/records.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define MOST_SLABS 65536
#define MOST_RECORDS (UINT64_C(1) << 22) /* with which 4 GiB of memory are enough */
#define PIECE ((size_t)1 << 18) /* bytes that are read at once, twice */
#define TRIES_SEEN 100 /* to see a record that does not change its task meanwhile */
#define TRIES_STILL 10 /* to see a record that does not change at all */

struct record_reading {
	struct tdt__records *records;
	const struct tdt__target *target;
	const struct tdt_registry *registry;
	uint64_t read; /* records so far */
	char *piece;   /* room for two copies of a piece */
	tdt__piece_fn *each; /* NULL: keep the records, which are read twice */
	void *arg;
};

static bool has_task(const struct tdt_task_record *record)
{
	return record->seq % 2 == 0 && record->state != TDT_TASK_RECORD_FREE &&
	       record->state <= TDT_TASK_RECORD_ENDED;
}

/* Returns 0 or -ENOMEM. */
static int add_seen(struct tdt__records *records, uint64_t address,
		    const struct tdt_task_record *record, bool still)
{
	struct tdt__seen *seen;

	if (!tdt__array_grow(&records->seen, records->n, &records->room, sizeof *seen))
		return -ENOMEM;
	seen = &records->seen[records->n++];
	seen->address = address;
	seen->still = still;
	seen->record = *record;
	/* Names may hold anything, but from here on they end. */
	seen->record.name[TDT_TASK_RECORD_NAME_SIZE - 1] = '\0';
	return 0;
}

/*
 * Read a record by itself, until its task stays the same.  The second copy lies between two looks
 * at `seq`, so all of it is of one task; the first may have parts of two.
 */
static int read_again(struct record_reading *reading, uint64_t address)
{
	uint64_t at_seq = address + offsetof(struct tdt_task_record, seq);
	struct tdt_task_record first, record;
	uint32_t seq;

	for (int i = 0; i < TRIES_SEEN; i++) {
		struct tdt__memory_range range[] = {
			{ address, &first, sizeof first, false },
			{ address, &record, sizeof record, false },
			{ at_seq, &seq, sizeof seq, false },
		};
		bool still;

		if (tdt__target_read_ranges(reading->target, range, 3) != 3)
			return 0;
		if (first.seq != record.seq || seq != record.seq)
			continue;
		if (!has_task(&record)) {
			reading->records->being_made += record.seq % 2;
			return 0;
		}
		still = memcmp(&first, &record, sizeof record) == 0;
		if (still || i >= TRIES_STILL)
			return add_seen(reading->records, address, &record, still);
	}
	return 0;
}

static int use_record(struct record_reading *reading, uint64_t address, const char *first,
		      const char *second)
{
	struct tdt_task_record a, b;

	memcpy(&a, first, sizeof a);
	memcpy(&b, second, sizeof b);
	if (memcmp(&a, &b, sizeof a) != 0)
		return read_again(reading, address);
	if (has_task(&b))
		return add_seen(reading->records, address, &b, true);
	reading->records->being_made += b.seq % 2;
	return 0;
}

/* Returns 0, -ENOMEM, or -EIO if the piece cannot be read. */
static int read_piece(struct record_reading *reading, uint64_t address, size_t n)
{
	size_t stride = reading->registry->stride;
	/* Behind the last record, memory need not go on for a whole stride. */
	size_t size = (n - 1) * stride + sizeof(struct tdt_task_record);
	struct tdt__memory_range range[] = { { address, reading->piece, size, false },
				      { address, reading->piece + PIECE, size, false } };
	int error = 0;

	if (tdt__target_read_ranges(reading->target, range, 2) != 2)
		return -EIO;
	for (size_t i = 0; i < n && error == 0; i++)
		error = use_record(reading, address + i * stride, reading->piece + i * stride,
				   reading->piece + PIECE + i * stride);
	return error;
}

/* Returns 0, -ENOMEM, -EIO, or what `each` has returned. */
static int visit_piece(struct record_reading *reading, const struct tdt_registry_slab *slab,
		       uint32_t first, size_t n)
{
	size_t stride = reading->registry->stride;
	const struct tdt__record_piece piece = { .slab = slab->records,
						 .first = first,
						 .n = n,
						 .stride = stride,
						 .records = reading->piece };

	if (!tdt__target_read(reading->target, slab->records + (uint64_t)first * stride,
			      reading->piece, (n - 1) * stride + sizeof(struct tdt_task_record)))
		return -EIO;
	return reading->each(&piece, reading->arg);
}

static int read_slab(struct record_reading *reading, const struct tdt_registry_slab *slab)
{
	size_t most = PIECE / reading->registry->stride;
	int error = 0;

	if (slab->used > slab->room || reading->read + slab->used > MOST_RECORDS)
		return -EIO;
	reading->read += slab->used;
	for (uint32_t at = 0; at < slab->used && error == 0;) {
		size_t n = slab->used - at < most ? slab->used - at : most;

		if (reading->each != NULL)
			error = visit_piece(reading, slab, at, n);
		else
			error = read_piece(reading,
					   slab->records + at * (uint64_t)reading->registry->stride,
					   n);
		at += (uint32_t)n;
	}
	return error;
}

/* What can be read is kept, even if a slab is damaged. */
static int read_slabs(struct record_reading *reading)
{
	struct tdt_registry_slab slab;
	int error = 0, n = 0;

	for (uint64_t at = reading->registry->slabs; at != 0 && error == 0; at = slab.next)
		if (n++ == MOST_SLABS || !tdt__target_read(reading->target, at, &slab, sizeof slab))
			error = -EIO;
		else
			error = read_slab(reading, &slab);
	return error;
}

int tdt__records_read(struct tdt__records *records, const struct tdt__target *target,
		      const struct tdt_registry *registry)
{
	struct record_reading reading = { .records = records,
					  .target = target,
					  .registry = registry,
					  .piece = malloc(2 * PIECE) };
	int error = -ENOMEM;

	*records = (struct tdt__records){ 0 };
	if (reading.piece != NULL)
		error = read_slabs(&reading);
	free(reading.piece);
	records->damaged = error == -EIO;
	if (records->damaged)
		error = 0;
	if (error != 0)
		tdt__records_fini(records);
	return error;
}

int tdt__records_visit(const struct tdt__target *target, const struct tdt_registry *registry,
		       tdt__piece_fn *each, void *arg)
{
	struct record_reading reading = { .target = target,
					  .registry = registry,
					  .piece = malloc(PIECE),
					  .each = each,
					  .arg = arg };
	int error = reading.piece != NULL ? read_slabs(&reading) : -ENOMEM;

	free(reading.piece);
	return error;
}

bool tdt__seen_stands(const struct tdt__target *target, const struct tdt__seen *seen,
		      struct tdt_task_record *now)
{
	return tdt__target_read(target, seen->address, now, sizeof *now) &&
	       tdt__record_stands(&seen->record, now);
}

/* See "Trace contexts" in <tdt/layout/registry.h>. */
void tdt__seen_context(const struct tdt__target *target, const struct tdt__seen *seen,
		       struct tdt_trace_context *context)
{
	uint64_t at = seen->record.context, now;
	struct tdt_registry_context found;
	uint32_t record_seq, seq;

	*context = (struct tdt_trace_context){ .valid = 0 };
	for (int i = 0; i < TRIES_SEEN && at != 0; i++, at = now) {
		struct tdt__memory_range range[] = {
			{ at, &found, sizeof found, false },
			{ seen->address + offsetof(struct tdt_task_record, context), &now,
			  sizeof now, false },
			{ seen->address + offsetof(struct tdt_task_record, seq), &record_seq,
			  sizeof record_seq, false },
			{ at + offsetof(struct tdt_registry_context, seq), &seq, sizeof seq,
			  false },
		};

		if (tdt__target_read_ranges(target, range, 4) != 4 ||
		    record_seq != seen->record.seq)
			return;
		if (now != at || seq != found.seq || seq % 2 != 0)
			continue;
		if (found.context.valid == 1)
			*context = found.context;
		return;
	}
}

void tdt__records_fini(struct tdt__records *records)
{
	free(records->seen);
	*records = (struct tdt__records){ 0 };
}
