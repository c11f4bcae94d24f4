// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Opening a recording: checks the block, and reads its rings.  See read.h. */

#include "recording/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Whether `n` bytes at `offset`, a multiple of 8, lie in the block. */
static bool is_in_block(const struct tdt__recording *recording, uint64_t offset, uint64_t n)
{
	return offset % 8 == 0 && offset <= recording->size && n <= recording->size - offset;
}

int tdt__recording_check(const struct tdt_recording *header)
{
	if (memcmp(header->magic, TDT_RECORDING_MAGIC, sizeof(header->magic)) != 0)
		return -EINVAL;
	return header->version == TDT_RECORDING_VERSION && header->size >= sizeof(*header) &&
		       header->ring_size >= sizeof(struct tdt_recording_ring)
		   ? 0
		   : -ENOTSUP;
}

static int check_header(struct tdt__recording *recording, const void *block, size_t size)
{
	struct tdt_recording *header = &recording->header;
	int err;

	if (size < sizeof(*header) || (uintptr_t)block % 8 != 0)
		return -EINVAL;
	memcpy(header, block, sizeof(*header));
	err = tdt__recording_check(header);
	if (err != 0)
		return err;
	recording->block = block;
	recording->size = header->bytes < size ? header->bytes : size;
	header->program[sizeof(header->program) - 1] = '\0';
	header->library[sizeof(header->library) - 1] = '\0';
	if (!is_in_block(recording, header->rings, (uint64_t)header->n_rings * header->ring_size))
		return -EINVAL;
	return 0;
}

static void skip_broken_event(struct tdt__recorded_ring *ring)
{
	while (ring->n > 0 && tdt__slot(ring, 0)->kind == TDT_EVENT_MORE) {
		ring->first++;
		ring->n--;
	}
}

static void find_threads(struct tdt__recorded_ring *ring, uint32_t thread)
{
	bool found = false;

	ring->thread_before = thread;
	ring->thread_after = thread;
	for (uint32_t i = 0; i < ring->n; i++) {
		const struct tdt_event *event = tdt__slot(ring, i);

		if (event->kind != TDT_EVENT_THREAD)
			continue;
		if (!found && event->c != 0)
			ring->thread_before = (uint32_t)event->c;
		ring->thread_after = event->a;
		found = true;
	}
}

/* When the newest event of the ring was written, in ticks; 0: there is none. */
static uint64_t last_written(const struct tdt__recorded_ring *ring)
{
	uint64_t written = 0;

	for (uint32_t i = ring->n; i-- > 0 && written == 0;)
		written = tdt__event_written(tdt__slot(ring, i));
	return written;
}

/* Whether the poll of the entry is the newest one in the ring. */
static bool is_newest_poll(const struct tdt__recorded_ring *ring,
			   const struct tdt_recording_ring *entry)
{
	for (uint32_t i = ring->n; i-- > 0;) {
		const struct tdt_event *event = tdt__slot(ring, i);

		if (event->kind == TDT_EVENT_POLL)
			return event->task == entry->task && event->time == entry->since;
	}
	return false;
}

/*
 * The poll or the idling that was going on.  If it began before the newest event was written, it
 * had ended meanwhile, or the ring had gone on when its entry was copied.
 */
static void find_current(struct tdt__recorded_ring *ring, const struct tdt_recording_ring *entry)
{
	bool polls = entry->task != 0;

	ring->current = (struct tdt_event){ .kind = TDT_EVENT_MORE };
	if (ring->kind != TDT_RING_POLLS || entry->since == 0 ||
	    entry->since < last_written(ring) || is_newest_poll(ring, entry))
		return;
	ring->current = (struct tdt_event){
		.kind = polls ? TDT_EVENT_POLL : TDT_EVENT_PARK,
		.b = UINT16_MAX,
		.time = entry->since,
		.task = entry->task,
	};
}

static bool is_ring(const struct tdt__recording *recording, const struct tdt_recording_ring *entry)
{
	return entry->kind >= TDT_RING_POLLS && entry->kind <= TDT_RING_SERVICE &&
	       tdt__ring_has_room(entry) &&
	       is_in_block(recording, entry->slots,
			   (uint64_t)entry->room * sizeof(struct tdt_event));
}

static void read_ring(struct tdt__recording *recording, const struct tdt_recording_ring *entry)
{
	struct tdt__recorded_ring *ring = &recording->ring[recording->n_rings];
	uint64_t first = tdt__ring_first(&recording->header, entry);

	if (!is_ring(recording, entry))
		return;
	ring->slot = (const void *)(recording->block + entry->slots);
	ring->mask = entry->room - 1;
	ring->kind = entry->kind;
	ring->first = first;
	ring->n = first < entry->head ? (uint32_t)(entry->head - first) : 0;
	skip_broken_event(ring);
	find_threads(ring, entry->thread);
	find_current(ring, entry);
	if (ring->n != 0 || ring->current.kind != TDT_EVENT_MORE)
		recording->n_rings++;
}

static int list_rings(struct tdt__recording *recording)
{
	const struct tdt_recording *header = &recording->header;
	const char *at = recording->block + header->rings;

	recording->ring = calloc((size_t)header->n_rings + 1, sizeof(*recording->ring));
	if (recording->ring == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < header->n_rings; i++, at += header->ring_size) {
		struct tdt_recording_ring entry;

		memcpy(&entry, at, sizeof(entry));
		read_ring(recording, &entry);
	}
	return 0;
}

/* When the oldest event that is no part was written, in ticks. */
static uint64_t first_written(const struct tdt__recorded_ring *ring)
{
	uint64_t written = 0;

	for (uint32_t i = 0; i < ring->n && written == 0; i++)
		written = tdt__event_written(tdt__slot(ring, i));
	if (written != 0)
		return written;
	return ring->current.kind != TDT_EVENT_MORE ? ring->current.time : UINT64_MAX;
}

/* Whether threads write their events to the ring: not only what is remarkable in them. */
static bool is_of_thread(const struct tdt__recorded_ring *ring)
{
	return ring->kind == TDT_RING_POLLS || ring->kind == TDT_RING_OTHERS;
}

/*
 * The ring has all events from `ticks` on that the thread wrote to it.  The thread may have had
 * other rings before: see reckon_whole().  (whole_from is in ticks until all is read.)
 */
static int note_thread(struct tdt__recording *recording, const struct tdt__recorded_ring *ring,
		       uint32_t id, uint64_t ticks)
{
	uint32_t number = tdt__recording_thread(recording, id);
	struct tdt__recorded_thread *thread;

	if (number == TDT__RECORDED_NONE)
		return -ENOMEM;
	thread = &recording->thread[number];
	if (is_of_thread(ring) && ticks < thread->whole_from)
		thread->whole_from = ticks;
	if (is_of_thread(ring) && ring->first != 0 && id == ring->thread_before &&
	    ticks > thread->lost_until)
		thread->lost_until = ticks;
	if (ring->kind == TDT_RING_POLLS)
		thread->worker |= ring->current.kind == TDT_EVENT_PARK;
	return 0;
}

static int note_threads(struct tdt__recording *recording, const struct tdt__recorded_ring *ring)
{
	int err = note_thread(recording, ring, ring->thread_before, first_written(ring));

	for (uint32_t i = 0; i < ring->n && err == 0; i++) {
		const struct tdt_event *event = tdt__slot(ring, i);

		if (event->kind == TDT_EVENT_THREAD)
			err = note_thread(recording, ring, event->a, event->time);
	}
	return err;
}

static void note_times(struct tdt__recording *recording, struct tdt__recorded_ring *ring)
{
	uint64_t last = last_written(ring);

	ring->from = tdt__recording_ns(recording, first_written(ring));
	ring->thread = tdt__recording_find_thread(recording, ring->thread_after);
	ring->first_thread = tdt__recording_find_thread(recording, ring->thread_before);
	if (last != 0 && tdt__recording_ns(recording, last) > recording->until)
		recording->until = tdt__recording_ns(recording, last);
	if (ring->from < recording->from)
		recording->from = ring->from;
	if (ring->first != 0 && is_of_thread(ring) && ring->from > recording->sure_from)
		recording->sure_from = ring->from;
}

/* An event that found no ring is as missing as one that was overwritten. */
static void note_missed(struct tdt__recording *recording)
{
	const struct tdt_recording *header = &recording->header;
	uint64_t last = header->missed_last != 0 ? tdt__recording_ns(recording, header->missed_last)
						 : UINT64_MAX;

	if (header->missed != 0 && last > recording->sure_from)
		recording->sure_from = last;
}

/* What a thread wrote to a small ring does not help if its large one has lost what followed. */
static void reckon_whole(struct tdt__recording *recording)
{
	for (size_t i = 0; i < recording->n_threads; i++) {
		struct tdt__recorded_thread *thread = &recording->thread[i];

		if (thread->whole_from < thread->lost_until)
			thread->whole_from = thread->lost_until;
	}
}

static int begin_pause(struct tdt__recording *recording, uint64_t ns)
{
	size_t n = recording->n_pauses;
	const struct tdt__pause *last;

	if (!tdt__array_grow(&recording->pause, n, &recording->pauses_room, sizeof(*last)))
		return -ENOMEM;
	last = n > 0 ? &recording->pause[n - 1] : NULL;
	recording->pause[recording->n_pauses++] =
	    (struct tdt__pause){ ns, UINT64_MAX,
				 last != NULL ? last->before + (last->until - last->from) : 0 };
	return 0;
}

/* Note the pauses, if the ring is the one in which the recorder notes them. */
static int note_pauses(struct tdt__recording *recording, const struct tdt__recorded_ring *ring)
{
	int err = 0;

	for (uint32_t i = 0; i < ring->n && ring->kind == TDT_RING_SERVICE && err == 0; i++) {
		const struct tdt_event *event = tdt__slot(ring, i);
		struct tdt__pause *last =
		    recording->n_pauses > 0 ? &recording->pause[recording->n_pauses - 1] : NULL;
		bool paused = last != NULL && last->until == UINT64_MAX;
		uint64_t ns = tdt__recording_ns(recording, event->time);

		if (event->kind == TDT_EVENT_START && paused && ns >= last->from)
			last->until = ns;
		else if (event->kind == TDT_EVENT_STOP && !paused &&
			 (last == NULL || ns >= last->until))
			err = begin_pause(recording, ns);
	}
	return err;
}

/* How long the pauses before `ns` are. */
static uint64_t paused_before(const struct tdt__recording *recording, uint64_t ns)
{
	size_t n = tdt__array_up_to(recording->pause, recording->n_pauses,
				    sizeof(recording->pause[0]), ns);
	const struct tdt__pause *pause;

	if (n == 0)
		return 0;
	pause = &recording->pause[n - 1];
	return pause->before + (pause->until < ns ? pause->until : ns) - pause->from;
}

uint64_t tdt__recording_time(const struct tdt__recording *recording, uint64_t from, uint64_t until)
{
	if (until <= from)
		return 0;
	return until - from - (paused_before(recording, until) - paused_before(recording, from));
}

static int collect(struct tdt__recording *recording)
{
	int err = tdt__recording_read_clocks(recording);

	for (size_t i = 0; i < recording->n_rings && err == 0; i++) {
		err = note_threads(recording, &recording->ring[i]);
		if (err == 0)
			err = note_pauses(recording, &recording->ring[i]);
		if (err == 0)
			err = tdt__recording_collect(recording, &recording->ring[i]);
	}
	reckon_whole(recording);
	return err;
}

/* The times of the whole, when all threads are known. */
static void reckon_times(struct tdt__recording *recording)
{
	recording->from = UINT64_MAX;
	for (size_t i = 0; i < recording->n_rings; i++)
		note_times(recording, &recording->ring[i]);
	note_missed(recording);
	for (size_t i = 0; i < recording->n_threads; i++)
		if (recording->thread[i].whole_from != UINT64_MAX)
			recording->thread[i].whole_from =
			    tdt__recording_ns(recording, recording->thread[i].whole_from);
	if (recording->from == UINT64_MAX)
		recording->from = recording->header.start;
	if (recording->header.taken != 0 &&
	    tdt__recording_ns(recording, recording->header.taken) > recording->until)
		recording->until = tdt__recording_ns(recording, recording->header.taken);
	if (recording->until < recording->from)
		recording->until = recording->from;
}

static int read_block(struct tdt__recording *recording, const void *block, size_t size)
{
	int err = check_header(recording, block, size);

	if (err == 0)
		err = list_rings(recording);
	if (err == 0)
		err = collect(recording);
	for (size_t i = 0; i < recording->n_rings && err == 0; i++)
		err = tdt__recording_sort(recording, &recording->ring[i]);
	if (err == 0)
		reckon_times(recording);
	return err;
}

int tdt__recording_open(struct tdt__recording **recording, const void *block, size_t size)
{
	struct tdt__recording *new = calloc(1, sizeof(*new));
	int err = new == NULL ? -ENOMEM : read_block(new, block, size);

	*recording = new;
	if (err == 0)
		return 0;
	tdt__recording_close(new);
	*recording = NULL;
	return err;
}

void tdt__recording_close(struct tdt__recording *recording)
{
	if (recording == NULL)
		return;
	for (size_t i = 0; i < recording->n_rings; i++)
		free(recording->ring[i].entry);
	free(recording->ring);
	free(recording->clock);
	free(recording->pause);
	tdt__recording_forget(recording);
	free(recording);
}

uint64_t tdt__recording_whole_from(const struct tdt__recording *recording)
{
	size_t n = recording->n_pauses;
	uint64_t whole = recording->sure_from;

	return n > 0 && recording->pause[n - 1].until > whole ? recording->pause[n - 1].until
							      : whole;
}

static bool has_tasks(const struct tdt__recorded_ring *ring)
{
	for (uint32_t i = 0; i < ring->n; i++)
		if (tdt__slot(ring, i)->kind == TDT_EVENT_TASK)
			return true;
	return false;
}

/* A listing that is overwritten in part says nothing of the tasks that it lacks. */
uint64_t tdt__recording_listed(const struct tdt__recording *recording)
{
	uint64_t listed = recording->header.listed;

	for (size_t i = 0; i < recording->n_rings && listed != 0; i++) {
		const struct tdt__recorded_ring *ring = &recording->ring[i];

		if (ring->kind == TDT_RING_SERVICE && ring->first != 0 && has_tasks(ring) &&
		    first_written(ring) > listed)
			return 0;
	}
	return listed != 0 ? tdt__recording_ns(recording, listed) : 0;
}

static const struct tdt_recording_stacks *stack_table(const struct tdt__recording *recording)
{
	uint64_t table = recording->header.stacks;

	if (table == 0 || !is_in_block(recording, table, sizeof(struct tdt_recording_stacks)))
		return NULL;
	return (const void *)(recording->block + table);
}

uint32_t tdt__recording_stacks_lost(const struct tdt__recording *recording)
{
	const struct tdt_recording_stacks *stacks = stack_table(recording);

	return stacks == NULL ? 0 : stacks->lost;
}

size_t tdt__recording_stack(const struct tdt__recording *recording, uint32_t number,
			    const uint64_t **pcs, enum tdt_cut *cut)
{
	const struct tdt_recording_stacks *stacks = stack_table(recording);
	uint64_t at = (uint64_t)number * 8, table = recording->header.stacks;
	struct tdt_recording_stack stack;

	if (stacks == NULL || number == 0)
		return 0;
	if (stacks->bytes > recording->size - table || at > stacks->bytes ||
	    sizeof(stack) > stacks->bytes - at)
		return 0;
	memcpy(&stack, recording->block + table + at, sizeof(stack));
	if (8 * (uint64_t)stack.n > stacks->bytes - at - sizeof(stack))
		return 0;
	*pcs = (const void *)(recording->block + table + at + sizeof(stack));
	*cut = stack.cut <= TDT_CUT_UNSUPPORTED ? (enum tdt_cut)stack.cut : TDT_CUT_CORRUPT;
	return stack.n;
}
