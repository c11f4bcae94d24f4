// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Writing trace contexts while other threads read them, word by word, in the order that
 * <tdt/layout/registry.h> has for readers.  All loads acquire: a reader that has met what was
 * written for another task finds another context in the record; if the same task has got this one
 * again, the reader finds another `seq`.
 */

#include "registry/contexts.h"

#include <stdatomic.h>

#include "base/pool.h"
#include "base/refs.h"
#include "registry/handle.h"

_Static_assert(sizeof(struct tdt_trace_context) == 28, "the layout is public");
_Static_assert(sizeof(struct tdt_registry_context) == 48, "the layout is public");
_Static_assert(offsetof(struct tdt_registry_context, own_index) ==
		       offsetof(struct tdt__pool_item, index),
	       "it begins with what the pool has of it");

pthread_mutex_t tdt__contexts_lock = PTHREAD_MUTEX_INITIALIZER;

static struct tdt__pool contexts = { .size = sizeof(struct tdt_registry_context) };

static struct tdt_registry_context *take_context(void)
{
	struct tdt_registry_context *context = (void *)tdt__pool_take(&contexts);

	if (context != NULL)
		return context;
	pthread_mutex_lock(&tdt__contexts_lock);
	context = (void *)tdt__pool_make(&contexts);
	pthread_mutex_unlock(&tdt__contexts_lock);
	if (context != NULL)
		context->seq = 0;
	return context;
}

struct tdt_registry_context *tdt__context_new(const struct tdt_trace_context *from)
{
	struct tdt_registry_context *context = take_context();
	struct tdt__context_words words;

	if (context == NULL)
		return NULL;
	memcpy(&words, from, sizeof *from);
	TDT__POKE(context->seq, context->seq + 1);
	atomic_thread_fence(memory_order_release);
	TDT__POKE(tdt__words_of(context)->trace[0], words.trace[0]);
	TDT__POKE(tdt__words_of(context)->trace[1], words.trace[1]);
	TDT__POKE(tdt__words_of(context)->span, words.span);
	TDT__POKE(tdt__words_of(context)->rest, words.rest);
	__atomic_store_n(&context->seq, context->seq + 1, __ATOMIC_RELEASE);
	TDT__POKE(context->own_refs, 1);
	return context;
}

static void unref_context(struct tdt_registry_context *context)
{
	/* Release and acquire: whoever writes to the context next does so after this. */
	if (context != NULL &&
	    __atomic_sub_fetch(&context->own_refs, 1, __ATOMIC_ACQ_REL) == 0)
		tdt__pool_give(&contexts, (struct tdt__pool_item *)(void *)context);
}

/* Release the new one; acquire the old one.  Pairs with itself and with tdt__context_of(). */
void tdt__context_set(struct tdt_handle *task, struct tdt_registry_context *context)
{
	unref_context((void *)(uintptr_t)__atomic_exchange_n(
		&task->record.context, (uintptr_t)context, __ATOMIC_ACQ_REL));
}

/* Take a reference, unless there is none: then the context is in the pool. */
static bool ref_context(struct tdt_registry_context *context)
{
	uint32_t refs = TDT__PEEK(context->own_refs);

	do
		if (refs == 0)
			return false;
	while (!__atomic_compare_exchange_n(&context->own_refs, &refs, refs + 1, true,
					    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	return true;
}

void tdt__context_inherit(struct tdt_handle *task, const struct tdt_handle *from)
{
	struct tdt_registry_context *context;

	while ((context = tdt__context_of(from)) != NULL) {
		if (!ref_context(context))
			continue;
		if (tdt__context_of(from) == context)
			break;
		unref_context(context); /* another task may have it by now */
	}
	if (context != NULL)
		tdt__context_set(task, context);
}

bool tdt__context_read(const struct tdt_handle *task, const struct tdt_task_record *record,
		       struct tdt_trace_context *copy)
{
	tdt__context_copy(task, copy);
	if (copy->valid != 0 && TDT__PEEK(task->record.seq) == record->seq)
		return true;
	*copy = (struct tdt_trace_context){ .valid = 0 };
	return false;
}
