/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The trace contexts of tasks, in the layout of <tdt/layout/registry.h>.  A context does not change
 * as long as a task has it.  Tasks that inherit it share it, and the last one gives its memory back
 * to a pool, never to malloc.  So a reader that has reached a context may read it
 * at any time, and finds out afterwards, by `seq` and by the record, whose it was.
 *
 *   tdt__context_new                 any thread; takes a lock if the pool is empty
 *   tdt__context_set, inherit, read  any thread, for any record, at any time, without a lock
 */

#include <pthread.h>
#include <stdbool.h>

#include <tdt/layout/registry.h>

#include "registry/registry.h"

struct tdt_handle;

/* Protects the making of contexts.  Held across fork (fork.c). */
extern pthread_mutex_t tdt__contexts_lock;

/* A copy of `context`, with one reference, which is the caller's.  NULL: no memory. */
struct tdt_registry_context *tdt__context_new(const struct tdt_trace_context *context);

/* Give the task this context, with the caller's reference to it; NULL: none. */
void tdt__context_set(struct tdt_handle *task, struct tdt_registry_context *context);

/* Give the task, which no other thread knows yet, the context that `from` has now. */
void tdt__context_inherit(struct tdt_handle *task, const struct tdt_handle *from);

/*
 * Copy the context of the task of which `record` is the record, or was a copy of it.  False: it has
 * none, and `valid` of the copy is 0, or the record has another task by now.
 */
bool tdt__context_read(const struct tdt_handle *task, const struct tdt_task_record *record,
		       struct tdt_trace_context *copy);
