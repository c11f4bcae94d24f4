// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Adding events to a copy of a recording, and finding the code that it names. */

#include "recording/supplement.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static struct tdt_event *new_slot(struct tdt__supplement *supplement)
{
	if (tdt__array_grow(&supplement->slot, supplement->n, &supplement->room,
			    sizeof *supplement->slot))
		return &supplement->slot[supplement->n++];
	supplement->failed = true;
	return NULL;
}

void tdt__supplement_add(struct tdt__supplement *supplement, const struct tdt_event *event,
			 const char *payload, size_t size)
{
	struct tdt_event *slot = new_slot(supplement);

	if (slot != NULL)
		*slot = *event;
	for (size_t done = 0; done < size && slot != NULL; done += TDT_EVENT_TEXT) {
		size_t n = size - done < TDT_EVENT_TEXT ? size - done : TDT_EVENT_TEXT;
		struct tdt_event_more more = { .kind = TDT_EVENT_MORE, .n = (uint8_t)n };

		memcpy(more.text, payload + done, n);
		slot = new_slot(supplement);
		if (slot != NULL)
			memcpy(slot, &more, sizeof more);
	}
}

void tdt__supplement_clock(struct tdt__supplement *supplement, uint64_t ticks, uint64_t monotonic,
			   uint64_t boot, uint64_t real)
{
	const struct tdt_event event = {
		.kind = TDT_EVENT_CLOCK, .time = ticks, .task = monotonic, .c = boot
	};

	tdt__supplement_add(supplement, &event, (const char *)&real, sizeof real);
}

static struct tdt_recording_ring *ring_of_copy(const void *copy, uint32_t index)
{
	const struct tdt_recording *header = copy;

	return (struct tdt_recording_ring *)((uintptr_t)copy + header->rings) + index;
}

/* A new table of rings follows the copy, and then the slots of the last ring that it has. */
static int append_ring(const struct tdt__supplement *supplement, void **copy, size_t *size)
{
	const struct tdt_recording *old = *copy;
	size_t table = (old->n_rings + (size_t)1) * sizeof(struct tdt_recording_ring), room = 1;
	struct tdt_recording *block;

	while (room < supplement->n)
		room *= 2;
	block = realloc(*copy, *size + table + room * sizeof *supplement->slot);
	if (block == NULL)
		return -ENOMEM;
	*copy = block;
	memset((char *)block + *size, 0, table + room * sizeof *supplement->slot);
	memcpy((char *)block + *size, ring_of_copy(block, 0),
	       table - sizeof(struct tdt_recording_ring));
	block->rings = *size;
	*ring_of_copy(block, block->n_rings++) =
		(struct tdt_recording_ring){ .head = supplement->n,
					     .slots = *size + table,
					     .room = (uint32_t)room,
					     .kind = TDT_RING_SERVICE };
	if (supplement->n > 0)
		memcpy((char *)block + *size + table, supplement->slot,
		       supplement->n * sizeof *supplement->slot);
	*size += table + room * sizeof *supplement->slot;
	block->bytes = *size;
	return 0;
}

int tdt__supplement_append(struct tdt__supplement *supplement, void **copy, size_t *size)
{
	int error = supplement->failed ? -ENOMEM : append_ring(supplement, copy, size);

	free(supplement->slot);
	*supplement = (struct tdt__supplement){ 0 };
	return error;
}

static void visit_poll_functions(const struct tdt_recording *copy, tdt__visit_code_fn *visit,
				 void *data)
{
	for (uint32_t i = 0; i < copy->n_rings; i++) {
		const struct tdt_recording_ring *ring = ring_of_copy(copy, i);
		const struct tdt_event *slot = (const void *)((const char *)copy + ring->slots);

		for (uint64_t at = ring->first; at < ring->head; at++) {
			const struct tdt_event *event = &slot[at & (ring->room - 1)];

			if (event->kind == TDT_EVENT_SPAWN || event->kind == TDT_EVENT_END ||
			    event->kind == TDT_EVENT_TASK)
				visit(data, event->c);
		}
	}
}

/* A stack that was not written to its end when it was copied has no addresses. */
static void visit_stacks(const struct tdt_recording *copy, tdt__visit_code_fn *visit, void *data)
{
	const char *table = (const char *)copy + copy->stacks;
	const struct tdt_recording_stacks *stacks = (const void *)table;
	const struct tdt_recording_stack *stack;
	uint64_t at = (sizeof *stacks + stacks->n_buckets * sizeof(uint32_t) + 7) & ~UINT64_C(7);

	for (; at + sizeof *stack < stacks->bytes;
	     at += sizeof *stack + stack->n * sizeof(uint64_t)) {
		const uint64_t *pc;

		stack = (const void *)(table + at);
		pc = (const uint64_t *)(stack + 1);
		if (stack->n == 0 || at + sizeof *stack + stack->n * sizeof *pc > stacks->bytes)
			return;
		for (uint16_t i = 0; i < stack->n; i++)
			visit(data, pc[i] - 1);
	}
}

void tdt__recording_visit_code(const struct tdt_recording *copy, tdt__visit_code_fn *visit,
			       void *data)
{
	visit_poll_functions(copy, visit, data);
	if (copy->stacks != 0)
		visit_stacks(copy, visit, data);
}
