/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The trace contexts of tasks, in the layout of <tdt/layout/registry.h>.  A context does not change
 * as long as a task has it.  Tasks that inherit it share it, and the last one gives its memory back
 * to a pool, never to malloc.  So a reader that has reached a context may read it
 * at any time, and finds out afterwards, by `seq` and by the record, whose it was.
 *
 *   tdt__context_new                 any thread; takes a lock if the pool is empty
 *   tdt__context_set, inherit, copy, read  any thread, for any record, at any time, without a lock
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <tdt/layout/registry.h>

#include "registry/handle.h"
#include "registry/registry.h"

/* Protects the making of contexts.  Held across fork (fork.c). */
extern pthread_mutex_t tdt__contexts_lock;

/* A copy of `context`, with one reference, which is the caller's.  NULL: no memory. */
struct tdt_registry_context *tdt__context_new(const struct tdt_trace_context *context);

/* Give the task this context, with the caller's reference to it; NULL: none. */
void tdt__context_set(struct tdt_handle *task, struct tdt_registry_context *context);

/* Give the task, which no other thread knows yet, the context that `from` has now. */
void tdt__context_inherit(struct tdt_handle *task, const struct tdt_handle *from);

/* A context as the words that are read and written at once. */
struct tdt__context_words {
	uint64_t trace[2], span;
	uint32_t rest;
} __attribute__((may_alias));

static inline struct tdt__context_words *tdt__words_of(const struct tdt_registry_context *context)
{
	return (struct tdt__context_words *)(uintptr_t)&context->context;
}

/* Acquire what is in it.  Pairs with tdt__context_set(). */
static inline struct tdt_registry_context *tdt__context_of(const struct tdt_handle *task)
{
	return (void *)(uintptr_t)__atomic_load_n(&task->record.context, __ATOMIC_ACQUIRE);
}

/*
 * Copy the context that the task has now.  If it has none, `valid` of the copy is 0.
 *
 * Inlined, because each poll that is labelled does it.  Word by word: what was stored so cannot be
 * loaded at once without a delay.
 */
static inline void tdt__context_copy(const struct tdt_handle *task, struct tdt_trace_context *copy)
{
	const struct tdt_registry_context *context;

	while ((context = tdt__context_of(task)) != NULL) {
		const struct tdt__context_words *words = tdt__words_of(context);
		uint32_t seq = __atomic_load_n(&context->seq, __ATOMIC_ACQUIRE);
		uint64_t first = __atomic_load_n(&words->trace[0], __ATOMIC_ACQUIRE);
		uint64_t second = __atomic_load_n(&words->trace[1], __ATOMIC_ACQUIRE);
		uint64_t span = __atomic_load_n(&words->span, __ATOMIC_ACQUIRE);
		uint32_t rest = __atomic_load_n(&words->rest, __ATOMIC_ACQUIRE);

		if (seq % 2 != 0 || tdt__context_of(task) != context ||
		    TDT__PEEK(context->seq) != seq)
			continue;
		memcpy(copy->trace_id, &first, 8);
		memcpy(copy->trace_id + 8, &second, 8);
		memcpy(copy->span_id, &span, 8);
		memcpy(&copy->valid, &rest, 4);
		return;
	}
	copy->valid = 0;
}

/*
 * The same for the task of which `record` is the record, or was a copy of it.  False: the task has
 * no context, and `valid` of the copy is 0, or the record has another task by now.
 */
bool tdt__context_read(const struct tdt_handle *task, const struct tdt_task_record *record,
		       struct tdt_trace_context *copy);
