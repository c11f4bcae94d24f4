// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Slabs of records, and how they are read. */

#include <config.h>

#include "registry.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "task.h"
#include "thread.h"
#include "watched.h"

#define SLAB_SIZE ((size_t)65536) /* and alignment: a record's slab is found by its address */
#define SHARDS 8

struct shard {
	_Alignas(64) pthread_mutex_t lock;
	struct tdt_handle *free; /* linked by child_state */
	struct slab *slab;       /* the one that is not used up, if any */
};

struct slab {
	struct tdt_registry_slab public;
	struct shard *shard; /* constant */
	_Alignas(64) struct tdt_handle task[];
};

#define ROOM ((SLAB_SIZE - sizeof(struct slab)) / sizeof(struct tdt_handle))

static struct shard shards[SHARDS] = { [0 ... SHARDS - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER } };

struct tdt_registry tdt_registry = {
	.magic = TDT_REGISTRY_MAGIC,
	.version = TDT_REGISTRY_VERSION,
	.size = sizeof(struct tdt_registry),
	.record_size = sizeof(struct tdt_record),
	.stride = sizeof(struct tdt_handle),
};

_Static_assert(sizeof(struct tdt_record) == 192, "the layout is public");
_Static_assert(sizeof(struct tdt_handle) == 256, "a task costs four cache lines");
_Static_assert(TDT_RECORD_NAME_SIZE == TDT_TASK_NAME_MAX + 1, "names fit");

/* --- Giving out and taking back ------------------------------------------ */

static struct shard *own_shard(void)
{
	return &shards[((uintptr_t)&tdt__thread >> 12) % SHARDS];
}

static struct slab *slab_of(const struct tdt_handle *task)
{
	return (struct slab *)((uintptr_t)task & ~(uintptr_t)(SLAB_SIZE - 1));
}

/* A new slab of the shard, in the list of all, where it stays. */
static struct slab *slab_new(struct shard *shard)
{
	struct slab *slab = aligned_alloc(SLAB_SIZE, SLAB_SIZE);
	uint64_t first = TDT__PEEK(tdt_registry.slabs);

	if (slab == NULL)
		return NULL;
	memset(slab, 0, sizeof *slab);
	slab->shard = shard;
	slab->public.records = (uintptr_t)&slab->task[0].record;
	slab->public.room = ROOM;
	do
		slab->public.next = first;
	/* Release the slab to who goes through the list.  Pairs with tdt__registry_next(). */
	while (!__atomic_compare_exchange_n(&tdt_registry.slabs, &first, (uintptr_t)slab, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED));
	return slab;
}

/* A record that was never used, of the shard, whose lock is held. */
static struct tdt_handle *first_use(struct shard *shard)
{
	struct tdt_handle *task;
	uint32_t used;

	if (shard->slab == NULL || shard->slab->public.used == ROOM)
		shard->slab = slab_new(shard);
	if (shard->slab == NULL)
		return NULL;
	used = shard->slab->public.used;
	task = &shard->slab->task[used];
	memset(task, 0, sizeof *task);
	/* Release the record, free as yet, to readers.  Pairs with tdt__registry_next(). */
	__atomic_store_n(&shard->slab->public.used, used + 1, __ATOMIC_RELEASE);
	return task;
}

/* As it was before it was used, but for `seq`, which only rises. */
static void clear(struct tdt_handle *task)
{
	uint64_t *words = (uint64_t *)(void *)&task->record;

	memset(task, 0, offsetof(struct tdt_handle, record));
	for (size_t i = 1; i < sizeof task->record / sizeof *words; i++)
		TDT__POKE(words[i], 0);
}

struct tdt_handle *tdt__registry_take(void)
{
	struct shard *shard = own_shard();
	struct tdt_handle *task;

	pthread_mutex_lock(&shard->lock);
	task = shard->free;
	if (task != NULL)
		shard->free = task->child_state;
	else
		task = first_use(shard);
	pthread_mutex_unlock(&shard->lock);
	if (task == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	TDT__POKE(task->record.seq, task->record.seq + 1);
	/* What is written from here on is not seen with the old `seq`.  Pairs with tdt__registry_read(). */
	atomic_thread_fence(memory_order_release);
	clear(task);
	return task;
}

void tdt__registry_publish(struct tdt_handle *task)
{
	/* Release all that was filled in.  Pairs with tdt__registry_read(). */
	__atomic_store_n(&task->record.seq, task->record.seq + 1, __ATOMIC_RELEASE);
}

void tdt__registry_give(struct tdt_handle *task)
{
	struct shard *shard = slab_of(task)->shard;

	TDT__POKE(task->record.state, TDT_RECORD_FREE);
	tdt__watched_drop(task);
	pthread_mutex_lock(&shard->lock);
	task->child_state = shard->free;
	shard->free = task;
	pthread_mutex_unlock(&shard->lock);
}

/* --- Reading --------------------------------------------------------------- */

struct tdt_handle *tdt__registry_next(struct tdt__cursor *cursor)
{
	if (!cursor->begun) {
		cursor->begun = true;
		/* Acquire: pairs with slab_new(). */
		cursor->slab = (void *)(uintptr_t)__atomic_load_n(&tdt_registry.slabs, __ATOMIC_ACQUIRE);
	}
	/* Acquire: pairs with first_use(). */
	while (cursor->slab != NULL && cursor->index == __atomic_load_n(&cursor->slab->used, __ATOMIC_ACQUIRE)) {
		cursor->slab = (void *)(uintptr_t)cursor->slab->next;
		cursor->index = 0;
	}
	return cursor->slab != NULL ? &((struct slab *)cursor->slab)->task[cursor->index++] : NULL;
}

bool tdt__registry_read(const struct tdt_handle *task, struct tdt_record *copy)
{
	const uint64_t *from = (const uint64_t *)(const void *)&task->record;
	uint64_t *to = (uint64_t *)(void *)copy;
	uint32_t seq;

	do {
		/* Acquire: what was filled in.  Pairs with tdt__registry_publish(). */
		seq = __atomic_load_n(&task->record.seq, __ATOMIC_ACQUIRE);
		if (seq % 2 != 0)
			return false;
		for (size_t i = 0; i < sizeof *copy / sizeof *to; i++)
			to[i] = TDT__PEEK(from[i]);
		/* All of it before `seq` again.  Pairs with the fence in tdt__registry_take(). */
		atomic_thread_fence(memory_order_acquire);
	} while (TDT__PEEK(task->record.seq) != seq);
	return copy->state != TDT_RECORD_FREE;
}

bool tdt__registry_ref(struct tdt_handle *task, uint64_t id)
{
	unsigned refs = atomic_load_explicit(&task->refs, memory_order_relaxed);

	do
		if (refs == 0)
			return false;
	/* Acquire: if it is another task's by now, its `id` is seen.  Pairs with the store in task.c's task_new(). */
	while (!atomic_compare_exchange_weak_explicit(&task->refs, &refs, refs + 1, memory_order_acquire,
						      memory_order_relaxed));
	if (TDT__PEEK(task->record.id) == id)
		return true;
	tdt_handle_unref(task);
	return false;
}

void tdt__registry_lock_all(void)
{
	for (int i = 0; i < SHARDS; i++)
		pthread_mutex_lock(&shards[i].lock);
}

void tdt__registry_unlock_all(void)
{
	for (int i = SHARDS; i-- > 0;)
		pthread_mutex_unlock(&shards[i].lock);
}
