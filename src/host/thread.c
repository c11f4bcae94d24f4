// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The records of threads. */

#include <config.h>

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "host/peek.h"
#include "host/readable.h"
#include "host/start.h"
#include "host/thread.h"

TDT__STATIC_TLS struct tdt__thread tdt__thread;

/*
 * Where the records of threads are, by their ids; NULL: unknown.  Of two threads that want one place it is the last to
 * come that gets it: ids are given one after the other, so that they have to be some thousands apart.  What a thread
 * leaves behind when it ends is memory that may be gone, and is looked at by the kernel alone.
 */
#define RECORDS 4096

static struct tdt__thread *_Atomic records[RECORDS];

__attribute__((noinline, cold)) uint32_t tdt__thread_id_find(void)
{
	uint32_t id = (uint32_t)gettid();

	tdt__thread.id = id;
	if (tdt__thread.stack_high == 0) /* else it was forked */
		tdt__stack_find();
	/* Relaxed: who looks for this thread has found it in a poll, which has released all of this. */
	atomic_store_explicit(&records[id % RECORDS], &tdt__thread, memory_order_relaxed);
	return id;
}

bool tdt__thread_peek(uint32_t id, struct tdt__thread *copy)
{
	const struct tdt__thread *record = atomic_load_explicit(&records[id % RECORDS], memory_order_relaxed);

	return record != NULL && tdt__peek(copy, (uintptr_t)record, sizeof *copy) == sizeof *copy && copy->id == id;
}

/* The ids that the thread that forked, and its parents', had in the processes before: the last few of them. */
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
}
