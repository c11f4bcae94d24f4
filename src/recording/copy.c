// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A copy of a recording that is being written to: see copy.h.  The copy consists of the header, the
 * table of rings, the slots of each ring and the stacks.  The stacks are copied last, so that those
 * that the copied events refer to are among them.
 */

#include "recording/copy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "recording/recording.h"

#define SLOT sizeof(struct tdt_event)

struct copying {
	const struct tdt__recording_source *source;
	struct tdt_recording header; /* the source's */
	uint64_t slots_read;	     /* of all rings: no more than the source has */
	char *block;	     /* the copy */
	size_t size, room;
};

static int read_at(const struct copying *copying, uint64_t offset, void *to, size_t n)
{
	return copying->source->read(copying->source->data, copying->source->address + offset, to,
				     n);
}

#define PAGE_BYTES ((uintptr_t)4096)
#define OWN_MAPPING ((size_t)32 << 20) /* glibc's malloc() maps each block of this size */

/*
 * Ask for huge pages if the block is large: a third of the time would go into its page faults.  A
 * smaller block may lie among memory of the program, which is left as it is.
 */
static void use_huge_pages(void *memory, size_t n)
{
	uintptr_t start = ((uintptr_t)memory + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1),
		  end = ((uintptr_t)memory + n) & ~(PAGE_BYTES - 1);
	int saved = errno;

	if (n >= OWN_MAPPING)
		madvise((void *)start, end - start, MADV_HUGEPAGE);
	errno = saved;
}

/* Make room for `n` more bytes behind the copy, with any content.  False: no memory. */
static bool extend(struct copying *copying, size_t n)
{
	size_t room = copying->room;
	char *block;

	if (n > SIZE_MAX / 4 - copying->size)
		return false;
	if (copying->size + n > room) {
		room = 2 * (copying->size + n);
		block = realloc(copying->block, room);
		if (block == NULL)
			return false;
		copying->block = block;
		copying->room = room;
		use_huge_pages(block, room);
	}
	copying->size += n;
	return true;
}

/* The same, all 0. */
static bool extend_by_zeros(struct copying *copying, size_t n)
{
	bool is_extended = extend(copying, n);

	if (is_extended)
		memset(copying->block + copying->size - n, 0, n);
	return is_extended;
}

static bool lies_inside(const struct copying *copying, uint64_t offset, uint64_t n)
{
	/* What is read, and not the block: that has room which is mapped when a ring needs it. */
	uint64_t bytes = copying->source->bytes;

	return offset % 8 == 0 && offset <= copying->header.bytes &&
	       n <= copying->header.bytes - offset && (bytes == 0 || n <= bytes);
}

static int begin_copy(struct copying *copying)
{
	struct tdt_recording *header = &copying->header, *copy;
	int err = read_at(copying, 0, header, sizeof(*header));

	if (err == 0)
		err = tdt__recording_check(header);
	if (err != 0)
		return err;
	if (header->bytes % sizeof(uint64_t) != 0 || header->bytes < sizeof(*header) ||
	    header->bytes > UINT64_MAX - copying->source->address)
		return -EINVAL;
	if (!lies_inside(copying, header->rings, (uint64_t)header->n_rings * header->ring_size))
		return -EINVAL;
	if (!extend_by_zeros(copying, sizeof(*header)))
		return -ENOMEM;
	copy = (void *)copying->block;
	*copy = *header;
	copy->size = sizeof(*header);
	copy->rings = sizeof(*header);
	copy->n_rings = 0;
	copy->ring_size = sizeof(struct tdt_recording_ring);
	copy->stacks = 0;
	copy->taken = copying->source->now == 0 ? 1 : copying->source->now;
	return extend_by_zeros(copying, (size_t)header->n_rings * copy->ring_size) ? 0 : -ENOMEM;
}

/* Whether the slots of the ring lie in memory apart from the rest. */
static bool lies_apart(const struct copying *copying, const struct tdt_recording_ring *ring)
{
	return copying->source->address != 0 && ring->address != 0;
}

/* Whether the entry describes a ring, and there is memory for all rings that were described. */
static bool describes_ring(struct copying *copying, const struct tdt_recording_ring *ring)
{
	bool apart = lies_apart(copying, ring);
	uint64_t bytes = copying->source->bytes;

	if (!tdt__ring_has_room(ring))
		return false;
	if (apart ? ring->address % 8 != 0 : !lies_inside(copying, ring->slots, ring->room * SLOT))
		return false;
	copying->slots_read += ring->room;
	if (bytes == 0)
		return apart || copying->slots_read <= copying->header.bytes / SLOT;
	return copying->slots_read <= bytes / SLOT;
}

static int read_slots_at(const struct copying *copying, const struct tdt_recording_ring *ring,
			 uint64_t index, void *to, uint64_t n)
{
	const struct tdt__recording_source *source = copying->source;

	if (!lies_apart(copying, ring))
		return read_at(copying, ring->slots + index * SLOT, to, n * SLOT);
	return source->read(source->data, ring->address + index * SLOT, to, n * SLOT);
}

/* The slots of one ring in the copy: the slot with the number k is at k modulo `room`. */
struct put {
	size_t at;	     /* where they are in the copy */
	uint64_t room;	     /* a power of two */
	uint64_t first, end; /* the numbers of those that are there */
};

static struct tdt_event *slot_of(const struct copying *copying, const struct put *put, uint64_t k)
{
	return (struct tdt_event *)(void *)(copying->block + put->at) + (k & (put->room - 1));
}

/* How many slots follow each other in memory from the one with the number `k` on. */
static uint64_t run_of(uint64_t room, uint64_t k, uint64_t end)
{
	uint64_t n = room - (k & (room - 1));

	return n < end - k ? n : end - k;
}

/* The smallest power of two that is not less than `n`. */
static uint32_t room_for(uint64_t n)
{
	uint32_t room = 1;

	while (room < n)
		room *= 2;
	return room;
}

/* Read the slots of the ring up to `end` behind the copy. */
static int read_slots(struct copying *copying, const struct tdt_recording_ring *ring, uint64_t end,
		      struct put *put)
{
	uint64_t n;
	int err = 0;

	put->first = end > ring->room ? end - ring->room : 0;
	put->end = end;
	put->at = copying->size;
	put->room = room_for(end - put->first);
	if (!extend(copying, put->room * SLOT))
		return -ENOMEM;
	for (uint64_t k = put->first; k < end && err == 0; k += n) {
		n = run_of(put->room, k, run_of(ring->room, k, end) + k);
		err =
		    read_slots_at(copying, ring, k & (ring->room - 1), slot_of(copying, put, k), n);
	}
	if (put->end - put->first < put->room)
		memset(slot_of(copying, put, end), 0, (put->room - end) * SLOT);
	return err;
}

/*
 * Read an entry, twice.  If the task that is being polled changed in between, its time may be that
 * of another poll.  A ring gets its room after its address, so the second look has the address.
 */
static int read_current(struct copying *copying, uint64_t offset, struct tdt_recording_ring *ring)
{
	struct tdt_recording_ring again;
	int err = read_at(copying, offset, ring, sizeof(*ring));

	if (err == 0)
		err = read_at(copying, offset, &again, sizeof(again));
	if (err == 0 && (again.task != ring->task || again.since != ring->since)) {
		ring->task = 0;
		ring->since = 0;
	}
	if (err == 0)
		ring->address = again.address;
	return err;
}

/* The number of the oldest slot that is wanted: those before it are too old. */
static uint64_t first_wanted(const struct copying *copying, const struct tdt_recording_ring *ring,
			     const struct put *put)
{
	uint64_t wanted = put->first;

	if (ring->kind == TDT_RING_SERVICE || copying->source->since == 0)
		return wanted;
	for (uint64_t k = put->first; k < put->end; k++) {
		uint64_t written = tdt__event_written(slot_of(copying, put, k));

		if (written >= copying->source->since)
			break;
		if (written != 0)
			wanted = k + 1;
	}
	return wanted;
}

/* When the newest of the slots was written, in ticks; 0: none of them has a time. */
static uint64_t newest_time(const struct copying *copying, const struct put *put)
{
	uint64_t written = 0;

	for (uint64_t k = put->end; k-- > put->first && written == 0;)
		written = tdt__event_written(slot_of(copying, put, k));
	return written;
}

/* Leave only the slots from `first` on, in as little room as they need. */
static int shrink(struct copying *copying, struct put *put, uint64_t first)
{
	struct put less = { .at = put->at,
			    .room = room_for(put->end - first),
			    .first = first,
			    .end = put->end };
	struct tdt_event *kept;

	if (less.room < put->room) {
		kept = malloc(less.room * SLOT);
		if (kept == NULL)
			return -ENOMEM;
		memset(kept, 0, less.room * SLOT);
		for (uint64_t k = first; k < put->end; k++)
			kept[k & (less.room - 1)] = *slot_of(copying, put, k);
		memcpy(slot_of(copying, &less, 0), kept, less.room * SLOT);
		free(kept);
	}
	copying->size = less.at + less.room * SLOT;
	*put = less;
	return 0;
}

static void enter_ring(struct copying *copying, struct tdt_recording_ring ring,
		       const struct put *put)
{
	struct tdt_recording *header = (void *)copying->block;
	uint64_t newest = newest_time(copying, put);

	ring.room = (uint32_t)put->room;
	ring.first = put->first;
	ring.head = put->end;
	ring.slots = put->at;
	ring.own = 0;
	ring.address = 0;
	ring.ready = 0;
	memcpy(copying->block + header->rings + header->n_rings++ * sizeof(ring), &ring,
	       sizeof(ring));
	if (newest > header->taken)
		header->taken = newest;
}

/* Read the slots of a ring, and then its entry again.  Those that are not whole are taken away. */
static int read_ring_slots(struct copying *copying, uint64_t offset,
			   const struct tdt_recording_ring *ring, struct tdt_recording_ring *after,
			   struct put *put)
{
	uint64_t whole;
	int err = read_slots(copying, ring, ring->head, put);

	if (err == 0)
		err = read_current(copying, offset, after);
	if (err != 0)
		return err;
	whole = tdt__ring_first(&copying->header, after);
	if (after->room != ring->room) /* it became larger meanwhile: nothing is sure */
		whole = put->end;
	if (whole > put->first)
		put->first = whole < put->end ? whole : put->end;
	return 0;
}

/* Go on with what was read again of the entry.  False: it does not describe a ring any more. */
static bool take_over(struct copying *copying, struct tdt_recording_ring *before,
		      const struct tdt_recording_ring *after)
{
	bool grown = after->room != before->room;

	before->head = after->head;
	before->room = after->room;
	return !grown || describes_ring(copying, before);
}

#define TRIES 16

/*
 * The thread that copies may have to wait for a CPU, while the one that writes to a small ring goes
 * once around it.  Then nothing is whole, and the ring is read again, from its new head.  If that
 * does not help, the copy has an entry without slots, whose `first` says what is lost.
 */
static int copy_ring(struct copying *copying, uint64_t offset)
{
	struct tdt_recording_ring before, after = { .head = 0 };
	size_t size = copying->size;
	struct put put;
	uint64_t first;
	int err = read_current(copying, offset, &before), tries = 0;

	if (err != 0 || !describes_ring(copying, &before))
		return err;
	do {
		if (tries > 0 && !take_over(copying, &before, &after))
			return 0;
		copying->size = size;
		err = read_ring_slots(copying, offset, &before, &after, &put);
	} while (err == 0 && put.first == put.end && put.end != 0 && ++tries < TRIES);
	if (err != 0)
		return err;
	first = first_wanted(copying, &before, &put);
	if (first == put.end && after.since == 0 && tries < TRIES) {
		copying->size = size;
		return 0;
	}
	err = shrink(copying, &put, first);
	if (err != 0)
		return err;
	after.kind = before.kind;
	enter_ring(copying, after, &put);
	return 0;
}

static int copy_stacks(struct copying *copying)
{
	struct tdt_recording_stacks stacks;
	size_t at = copying->size;
	int err;

	if (copying->header.stacks == 0)
		return 0;
	err = read_at(copying, copying->header.stacks, &stacks, sizeof(stacks));
	if (err != 0)
		return err;
	if (stacks.used < stacks.bytes)
		stacks.bytes = stacks.used;
	stacks.bytes &= ~UINT64_C(7);
	if (stacks.bytes < sizeof(stacks) ||
	    !lies_inside(copying, copying->header.stacks, stacks.bytes))
		return -EINVAL;
	if (!extend(copying, stacks.bytes))
		return -ENOMEM;
	err = read_at(copying, copying->header.stacks, copying->block + at, stacks.bytes);
	memcpy(copying->block + at, &stacks, sizeof(stacks));
	((struct tdt_recording *)(void *)copying->block)->stacks = at;
	return err;
}

/*
 * From the last ring to the first one: a thread that gets another ring goes to one that lies before
 * its own (block.h).  So it is met in one of them, and what another thread writes to the ring that
 * it has left does not hide it.
 */
static int copy_all(struct copying *copying)
{
	int err = begin_copy(copying);

	for (uint32_t i = copying->header.n_rings; err == 0 && i-- > 0;)
		err = copy_ring(copying,
				copying->header.rings + (uint64_t)i * copying->header.ring_size);
	if (err == 0)
		err = copy_stacks(copying);
	if (err == 0)
		((struct tdt_recording *)(void *)copying->block)->bytes = copying->size;
	return err;
}

int tdt__recording_copy(const struct tdt__recording_source *source, void **copy, size_t *size)
{
	struct copying copying = { .source = source };
	int err = copy_all(&copying);

	*copy = NULL;
	*size = 0;
	if (err != 0) {
		free(copying.block);
		return err;
	}
	*copy = copying.block;
	*size = copying.size;
	return 0;
}
