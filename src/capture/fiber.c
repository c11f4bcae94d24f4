// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The memory of fibers. */

#include "capture/fiber.h"

#include <string.h>

#include "host/slot.h"

pthread_mutex_t tdt__fibers_lock = PTHREAD_MUTEX_INITIALIZER;

static struct tdt__pool fibers = { .size = sizeof(struct tdt_fiber) };

_Static_assert(sizeof(struct tdt_fiber) % 8 == 0, "as a pool has it");
_Static_assert(sizeof(struct tdt_registry_fiber) == 64, "the layout is public");

/* Make memory for one more fiber. */
static struct tdt_fiber *make(void)
{
	struct tdt__pool_item *item;

	pthread_mutex_lock(&tdt__fibers_lock);
	item = tdt__pool_make(&fibers);
	pthread_mutex_unlock(&tdt__fibers_lock);
	if (item != NULL) {
		((struct tdt_fiber *)item)->stack = (struct tdt_registry_fiber){ 0 };
		((struct tdt_fiber *)item)->has_record = false;
		atomic_init(&((struct tdt_fiber *)item)->reported, 0);
		atomic_init(&((struct tdt_fiber *)item)->ended, 0);
	}
	return (struct tdt_fiber *)item;
}

/* What the threads that own slots keep for themselves, besides the pool. */
static struct kept {
	_Alignas(64) uint32_t n;
	struct tdt_fiber *fiber[15];
} kept[TDT__SLOTS];

struct tdt_fiber *tdt__fiber_take(void)
{
	struct kept *own = &kept[tdt__own_slot()];
	struct tdt__pool_item *item;

	if (own->n != 0)
		return own->fiber[--own->n];
	item = tdt__pool_take(&fibers);
	return item != NULL ? (struct tdt_fiber *)item : make();
}

void tdt__fiber_give(struct tdt_fiber *fiber)
{
	uint32_t slot = tdt__own_slot();
	struct kept *own = &kept[slot];

	if (slot != 0 && own->n < sizeof own->fiber / sizeof own->fiber[0]) {
		own->fiber[own->n] = fiber;
		/* Released: a child of fork() finds the list as it was before this or after. */
		__atomic_store_n(&own->n, own->n + 1, __ATOMIC_RELEASE);
		return;
	}
	if (fiber->has_record)
		tdt__registry_give(fiber->task);
	fiber->has_record = false;
	tdt__pool_give(&fibers, &fiber->item);
}

struct tdt_fiber *tdt__fiber_at(uint32_t index)
{
	return (struct tdt_fiber *)tdt__pool_at(&fibers, index);
}

bool tdt__fiber_stack(const struct tdt_handle *task, struct tdt_stack *stack)
{
	const struct tdt_fiber *fiber = NULL;

	if (tdt__is_callback_task(task)) {
		*stack = (struct tdt_stack){ .base = TDT__PEEK(task->record.stack_top) };
		return true;
	}
	if (tdt__is_fiber(task))
		fiber = tdt__fiber_at(TDT__PEEK(task->record.own_fiber));
	if (fiber == NULL)
		return false;
	*stack = (struct tdt_stack){ .low = (void *)(uintptr_t)TDT__PEEK(fiber->stack.low),
				     .size = TDT__PEEK(fiber->stack.size),
				     .base = TDT__PEEK(fiber->stack.base) };
	return true;
}
