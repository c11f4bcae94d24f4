// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Recordings of given events: see recording_maker.h. */

#include <config.h>

#include "lib/recording_maker.h"

#include <stdlib.h>
#include <string.h>

#include "lib/must.h"

#define BUCKETS 64

struct ring {
	struct tdt_recording_ring entry;
	struct tdt_event *slot;
};

struct maker {
	struct tdt_recording header;
	struct ring *ring;
	unsigned n_rings;
	char *stacks; /* the table */
	size_t stacks_size;
};

static void *grown(void *memory, size_t size)
{
	memory = realloc(memory, size);
	MUST(memory != NULL);
	return memory;
}

struct maker *maker_new(void)
{
	struct maker *maker = calloc(1, sizeof(*maker));

	MUST(maker != NULL);
	memcpy(maker->header.magic, TDT_RECORDING_MAGIC, sizeof(maker->header.magic));
	maker->header.version = TDT_RECORDING_VERSION;
	maker->header.size = sizeof(maker->header);
	maker->header.ring_size = sizeof(struct tdt_recording_ring);
	maker->header.pid = 4242;
	maker->header.clock = TDT_RECORDING_MONOTONIC;
	maker->header.hz = 1000000000;
	maker->header.start_real = UINT64_C(1700000000000000000);
	maker->header.long_poll = 1000000;
	maker->header.long_wait = 100000000;
	strcpy(maker->header.library, "0.1");
	strcpy(maker->header.program, "made");
	return maker;
}

void maker_free(struct maker *maker)
{
	for (unsigned i = 0; i < maker->n_rings; i++)
		free(maker->ring[i].slot);
	free(maker->ring);
	free(maker->stacks);
	free(maker);
}

struct tdt_recording *maker_header(struct maker *maker)
{
	return &maker->header;
}

struct tdt_recording_ring *maker_entry(struct maker *maker, unsigned ring)
{
	return &maker->ring[ring].entry;
}

unsigned maker_ring(struct maker *maker, uint32_t kind, uint32_t room, uint32_t thread)
{
	struct ring *ring;

	maker->ring = grown(maker->ring, (maker->n_rings + 1) * sizeof(*ring));
	ring = &maker->ring[maker->n_rings];
	*ring = (struct ring){
		.entry = { .room = room, .kind = kind, .thread = thread },
		.slot = calloc(room, sizeof(*ring->slot)),
	};
	MUST(ring->slot != NULL);
	return maker->n_rings++;
}

static void *next_slot(struct ring *ring)
{
	return &ring->slot[ring->entry.head++ & (ring->entry.room - 1)];
}

void maker_add(struct maker *maker, unsigned ring, struct tdt_event event, const void *payload,
	       size_t n)
{
	struct ring *to = &maker->ring[ring];
	const char *from = payload;

	memcpy(next_slot(to), &event, sizeof(event));
	while (n > 0) {
		struct tdt_event_more more = { .kind = TDT_EVENT_MORE };

		more.n = n < TDT_EVENT_TEXT ? (uint8_t)n : TDT_EVENT_TEXT;
		memcpy(more.text, from, more.n);
		memcpy(next_slot(to), &more, sizeof(more));
		from += more.n;
		n -= more.n;
	}
}

/* `duration` as the fields `a` and `detail` hold it. */
static void set_duration(struct tdt_event *event, uint64_t duration)
{
	unsigned shift = 0;

	while (duration >> 4 * shift > UINT32_MAX)
		shift++;
	event->a = (uint32_t)(duration >> 4 * shift);
	event->detail |= (uint8_t)(shift << 4);
}

void maker_poll_on(struct maker *maker, unsigned ring, uint64_t begin, uint64_t duration,
		   uint64_t task, uint8_t result, uint64_t woken_by, uint16_t cpu)
{
	struct tdt_event event = { .kind = TDT_EVENT_POLL,
				   .detail = result,
				   .b = cpu,
				   .time = begin,
				   .task = task,
				   .c = woken_by };

	set_duration(&event, duration);
	maker_add(maker, ring, event, NULL, 0);
}

void maker_poll(struct maker *maker, unsigned ring, uint64_t begin, uint64_t duration,
		uint64_t task, uint8_t result)
{
	maker_poll_on(maker, ring, begin, duration, task, result, 0, UINT16_MAX);
}

void maker_wake(struct maker *maker, unsigned ring, uint64_t time, uint64_t task, uint64_t by)
{
	maker_add(maker, ring,
		  (struct tdt_event){
		      .kind = TDT_EVENT_WAKE, .b = 1, .time = time, .task = task, .c = by },
		  NULL, 0);
}

void maker_park(struct maker *maker, unsigned ring, uint64_t begin, uint64_t duration)
{
	struct tdt_event event = { .kind = TDT_EVENT_PARK, .b = 1, .time = begin };

	set_duration(&event, duration);
	maker_add(maker, ring, event, NULL, 0);
}

void maker_wait(struct maker *maker, unsigned ring, uint64_t task, enum tdt_wait_kind kind,
		uint64_t object, uint64_t owner, const char *name)
{
	maker_add(maker, ring,
		  (struct tdt_event){ .kind = TDT_EVENT_WAIT,
				      .detail = (uint8_t)kind,
				      .time = owner,
				      .task = task,
				      .c = object },
		  name, name == NULL ? 0 : strlen(name));
}

void maker_leaf(struct maker *maker, unsigned ring, uint64_t task, uint32_t stack, uint16_t leaf,
		uint64_t leaves)
{
	maker_add(maker, ring,
		  (struct tdt_event){
		      .kind = TDT_EVENT_STACK, .b = leaf, .a = stack, .task = task, .c = leaves },
		  NULL, 0);
}

void maker_identity(struct maker *maker, unsigned ring, uint8_t kind, uint64_t time, uint64_t task,
		    uint8_t outcome, uint64_t parent, const char *name, const char *file,
		    uint32_t line)
{
	char payload[16 + 2 * 256];
	uint32_t column = 3;
	size_t name_size = strlen(name) + 1, file_size = strlen(file) + 1;

	MUST(name_size <= 256 && file_size <= 256);
	memcpy(payload, &parent, 8);
	memcpy(payload + 8, &line, 4);
	memcpy(payload + 12, &column, 4);
	memcpy(payload + 16, name, name_size);
	memcpy(payload + 16 + name_size, file, file_size);
	maker_add(maker, ring,
		  (struct tdt_event){
		      .kind = kind, .detail = outcome, .time = time, .task = task, .c = 0x1000 },
		  payload, 16 + name_size + file_size);
}

void maker_thread(struct maker *maker, unsigned ring, uint64_t time, uint32_t thread,
		  uint32_t previous, int worker, const char *name)
{
	maker_add(maker, ring,
		  (struct tdt_event){ .kind = TDT_EVENT_THREAD,
				      .detail = worker != 0,
				      .a = thread,
				      .time = time,
				      .c = previous },
		  name, strlen(name) + 1);
}

void maker_clock(struct maker *maker, unsigned ring, uint64_t ticks, uint64_t monotonic,
		 uint64_t boot, uint64_t real)
{
	maker_add(maker, ring,
		  (struct tdt_event){
		      .kind = TDT_EVENT_CLOCK, .time = ticks, .task = monotonic, .c = boot },
		  &real, sizeof(real));
}

void maker_module(struct maker *maker, unsigned ring, uint64_t time, uint64_t start, uint64_t end,
		  uint64_t bias, const char *build_id, uint8_t build_id_size, const char *path)
{
	char payload[9 + 255 + 512];
	size_t path_size = strlen(path) + 1;

	MUST(path_size <= 512);
	memcpy(payload, &bias, 8);
	payload[8] = (char)build_id_size;
	memcpy(payload + 9, build_id, build_id_size);
	memcpy(payload + 9 + build_id_size, path, path_size);
	maker_add(
	    maker, ring,
	    (struct tdt_event){ .kind = TDT_EVENT_MODULE, .time = time, .task = start, .c = end },
	    payload, 9 + build_id_size + path_size);
}

void maker_delay(struct maker *maker, unsigned ring, uint64_t begin, uint64_t task, uint64_t ns)
{
	maker_add(
	    maker, ring,
	    (struct tdt_event){ .kind = TDT_EVENT_DELAY, .time = begin, .task = task, .c = ns },
	    NULL, 0);
}

void maker_user(struct maker *maker, unsigned ring, uint64_t time, uint64_t task,
		const char *provider, const char *name, uint8_t n_arguments, const void *arguments,
		size_t n)
{
	char payload[900];
	size_t provider_size = strlen(provider) + 1, name_size = strlen(name) + 1;

	MUST(provider_size + name_size + n <= sizeof(payload));
	memcpy(payload, provider, provider_size);
	memcpy(payload + provider_size, name, name_size);
	if (n != 0)
		memcpy(payload + provider_size + name_size, arguments, n);
	maker_add(
	    maker, ring,
	    (struct tdt_event){
		.kind = TDT_EVENT_USER, .detail = n_arguments, .b = 1, .time = time, .task = task },
	    payload, provider_size + name_size + n);
}

struct tdt_recording_stacks *maker_stacks(struct maker *maker)
{
	if (maker->stacks == NULL) {
		maker->stacks_size = sizeof(struct tdt_recording_stacks) + 4 * BUCKETS;
		maker->stacks = grown(NULL, maker->stacks_size);
		memset(maker->stacks, 0, maker->stacks_size);
		((struct tdt_recording_stacks *)(void *)maker->stacks)->n_buckets = BUCKETS;
	}
	return (void *)maker->stacks;
}

uint32_t maker_stack(struct maker *maker, const uint64_t *pcs, uint16_t n, uint8_t cut)
{
	struct tdt_recording_stack stack = { .n = n, .cut = cut, .hash = n > 0 ? pcs[0] : 0 };
	uint32_t *bucket, number;
	size_t at;

	maker_stacks(maker);
	at = maker->stacks_size;
	number = (uint32_t)(at / 8);
	maker->stacks_size += sizeof(stack) + 8 * (size_t)n;
	maker->stacks = grown(maker->stacks, maker->stacks_size);
	bucket = (uint32_t *)(void *)(maker->stacks + sizeof(struct tdt_recording_stacks));
	bucket += stack.hash % BUCKETS;
	stack.next = *bucket;
	*bucket = number;
	memcpy(maker->stacks + at, &stack, sizeof(stack));
	memcpy(maker->stacks + at + sizeof(stack), pcs, 8 * (size_t)n);
	return number;
}

/* Where everything lies in the block: the header, the rings, the stacks, and then the slots. */
static size_t lay_out(struct maker *maker)
{
	struct tdt_recording *header = &maker->header;
	size_t at = sizeof(*header);

	header->rings = at;
	header->n_rings = maker->n_rings;
	at += maker->n_rings * sizeof(struct tdt_recording_ring);
	header->stacks = maker->stacks != NULL ? at : 0;
	at += maker->stacks_size;
	for (unsigned i = 0; i < maker->n_rings; i++) {
		maker->ring[i].entry.slots = at;
		at += maker->ring[i].entry.room * sizeof(struct tdt_event);
	}
	header->bytes = at;
	return at;
}

void *maker_block(struct maker *maker, size_t *size)
{
	char *block;

	*size = lay_out(maker);
	block = grown(NULL, *size);
	memcpy(block, &maker->header, sizeof(maker->header));
	if (maker->stacks != NULL) {
		maker_stacks(maker)->bytes = maker->stacks_size;
		maker_stacks(maker)->used = maker->stacks_size;
		memcpy(block + maker->header.stacks, maker->stacks, maker->stacks_size);
	}
	for (unsigned i = 0; i < maker->n_rings; i++) {
		const struct ring *ring = &maker->ring[i];

		memcpy(block + maker->header.rings + i * sizeof(ring->entry), &ring->entry,
		       sizeof(ring->entry));
		memcpy(block + ring->entry.slots, ring->slot,
		       ring->entry.room * sizeof(*ring->slot));
	}
	return block;
}
