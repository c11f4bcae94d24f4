// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A worker's own queue. */

#include "runtime/run_queue.h"
#include "runtime/task.h"

/*
 * Relaxed: a thief that reads a slot while the owner uses it again finds that `head` has moved, and
 * discards the value.  The acquire of `tail` makes the task that the slot points to visible.
 */
static struct tdt__task *get(struct tdt__run_queue *queue, uint32_t i)
{
	return atomic_load_explicit(&queue->slots[i % TDT__RUN_QUEUE_SIZE], memory_order_relaxed);
}

static void put_task(struct tdt__run_queue *queue, uint32_t i, struct tdt__task *task)
{
	atomic_store_explicit(&queue->slots[i % TDT__RUN_QUEUE_SIZE], task, memory_order_relaxed);
}

/*
 * Release: the reads of the slots come before the owner uses these slots again.  Pairs with the
 * acquire of `head` in push.
 */
static bool move_head(struct tdt__run_queue *queue, uint32_t from, uint32_t to)
{
	return atomic_compare_exchange_strong_explicit(
	    &queue->head, &from, to, memory_order_release, memory_order_relaxed);
}

bool tdt__run_queue_push(struct tdt__run_queue *queue, struct tdt__task *task)
{
	/* Acquire: pairs with move_head().  Only this thread writes `tail`. */
	uint32_t head = atomic_load_explicit(&queue->head, memory_order_acquire);
	uint32_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);

	if (tail - head >= TDT__RUN_QUEUE_SIZE)
		return false;
	put_task(queue, tail, task);
	/*
	 * This releases the slot and the task to thieves: pairs with the acquire in steal.  It is
	 * sequentially consistent for the reason in idle.h.
	 */
	atomic_store(&queue->tail, tail + 1);
	return true;
}

struct tdt__task *tdt__run_queue_halve(struct tdt__run_queue *queue, struct tdt__task **last)
{
	uint32_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);
	struct tdt__task *first = NULL, **end = &first;

	if (atomic_load_explicit(&queue->tail, memory_order_relaxed) - head < TDT__RUN_QUEUE_SIZE ||
	    !move_head(queue, head, head + TDT__RUN_QUEUE_HALF))
		return NULL;
	/* Only the owner of the queue, this thread, writes to the slots. */
	for (uint32_t i = 0; i < TDT__RUN_QUEUE_HALF; i++, end = &(*end)->next)
		*end = *last = get(queue, head + i);
	return first;
}

void tdt__run_queue_fill(struct tdt__run_queue *queue, struct tdt__task *first)
{
	uint32_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed); /* our own */

	/*
	 * The queue is empty, so the value of `head` is known.  The load is needed for its order:
	 * thieves have read the slots before we overwrite them.  Pairs with move_head().
	 */
	atomic_load_explicit(&queue->head, memory_order_acquire);
	for (; first != NULL; first = first->next)
		put_task(queue, tail++, first);
	atomic_store(&queue->tail, tail); /* as in push */
}

struct tdt__task *tdt__run_queue_pop(struct tdt__run_queue *queue)
{
	uint32_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed); /* our own */

	while (head != tail) {
		struct tdt__task *task = get(queue, head);

		if (move_head(queue, head, head + 1))
			return task;
		head = atomic_load_explicit(&queue->head, memory_order_relaxed);
	}
	return NULL;
}

struct tdt__task *tdt__run_queue_steal(struct tdt__run_queue *queue, struct tdt__run_queue *from)
{
	uint32_t own = atomic_load_explicit(&queue->tail, memory_order_relaxed);

	for (;;) {
		/*
		 * The acquire of `head` keeps the load of `tail` after it.  The acquire of `tail`
		 * pairs with push and fill.
		 */
		uint32_t head = atomic_load_explicit(&from->head, memory_order_acquire);
		uint32_t tail = atomic_load_explicit(&from->tail, memory_order_acquire);
		uint32_t n = tail - head;
		struct tdt__task *task;

		n -= n / 2;
		if (n == 0)
			return NULL;
		if (n > TDT__RUN_QUEUE_HALF)
			continue; /* other threads took tasks between the two loads */
		task = get(from, head);
		for (uint32_t i = 1; i < n; i++)
			put_task(queue, own + i - 1, get(from, head + i));
		if (!move_head(from, head, head + n))
			continue;
		if (n > 1)
			atomic_store(&queue->tail, own + n - 1); /* as in push */
		return task;
	}
}

bool tdt__run_queue_is_empty(struct tdt__run_queue *queue)
{
	return atomic_load(&queue->head) == atomic_load(&queue->tail);
}

bool tdt__run_queue_is_left(struct tdt__run_queue *queue, uint32_t *seen)
{
	/* Relaxed: the next call sees what this one misses. */
	uint32_t head = atomic_load_explicit(&queue->head, memory_order_relaxed), before = *seen;

	*seen = head;
	return head == before &&
	       head != atomic_load_explicit(&queue->tail, memory_order_relaxed);
}
