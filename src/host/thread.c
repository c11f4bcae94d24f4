// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The records of threads, and finding the record of another thread. */

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include <tdt/layout/registry.h>

#include "host/peek.h"
#include "host/readable.h"
#include "host/start.h"
#include "host/thread.h"

/* Used: by instructions that the compiler does not read, in tdt__thread_here(). */
__attribute__((used)) TDT__STATIC_TLS struct tdt__thread tdt__thread;

struct tdt__thread *_Atomic tdt__threads[TDT__THREAD_SLOTS];

#define SAME(field)                                                                                \
	_Static_assert(offsetof(struct tdt__thread, field) ==                                      \
			       offsetof(struct tdt_registry_thread, field),                        \
		       "the layout is public")
SAME(id);
SAME(worker);
SAME(parked);
SAME(now);
SAME(entered);
SAME(ring);
_Static_assert(sizeof(struct tdt_registry_thread) == 56, "the layout is public");

__attribute__((noinline, cold)) uint32_t tdt__thread_id_find(void)
{
	uint32_t id = (uint32_t)gettid();

	tdt__thread.id = id;
	if (tdt__thread.stack_high == 0) /* in a child of fork() the stack is known already */
		tdt__stack_find();
	/*
	 * Relaxed: a thread that looks for this one has found its id in the record of a poll, whose
	 * release store came after this store.
	 */
	atomic_store_explicit(&tdt__threads[id % TDT__THREAD_SLOTS], &tdt__thread,
			      memory_order_relaxed);
	return id;
}

bool tdt__thread_peek(uint32_t id, struct tdt__thread *copy)
{
	const struct tdt__thread *record =
		atomic_load_explicit(&tdt__threads[id % TDT__THREAD_SLOTS], memory_order_relaxed);

	return record != NULL &&
	       tdt__peek(copy, (uintptr_t)record, sizeof *copy) == sizeof *copy && copy->id == id;
}

/*
 * The ids of the threads that called fork() in the ancestor processes, each to make the next
 * process; only the last few.  All of these threads live on as the main thread of this process.
 */
static struct {
	uint32_t id[16];
	unsigned n;
} lineage;

bool tdt__thread_is_here(uint32_t id)
{
	if (tdt__forks == 0 || id == 0)
		return true;
	for (unsigned i = 0; i < sizeof lineage.id / sizeof lineage.id[0]; i++)
		if (lineage.id[i] == id)
			return true;
	return tgkill(getpid(), (pid_t)id, 0) == 0;
}

void tdt__thread_forked(void)
{
	lineage.id[lineage.n++ % (sizeof lineage.id / sizeof lineage.id[0])] = tdt__thread.id;
	tdt__thread.id = 0;
	tdt__thread.ring = 0;
	tdt__thread.generation = 0;
	tdt__thread.no_ring = 0;
}
