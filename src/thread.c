// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The thread's own record, and the hooks that tell of it. */

#include <config.h>

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include <tdt/coroutine.h>
#include <tdt/hooks.h>

#include "peek.h"
#include "probes.h"
#include "registers.h"
#include "stack.h"
#include "start.h"
#include "thread.h"
#include "walk.h"

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

/* Fire a probe of workers.  It may be the first call in the process; a child must know of what was hit: see probes.c. */
#define PROBE(name)                                                                                                    \
	do {                                                                                                           \
		if (TDT__PROBED(name)) {                                                                               \
			tdt__start();                                                                              \
			tdt_probe_##name();                                                                            \
		}                                                                                                      \
	} while (0)

void tdt_worker_thread_start(void)
{
	tdt__thread.worker = true;
	PROBE(worker__thread__start);
}

void tdt_worker_thread_stop(void)
{
	PROBE(worker__thread__stop);
	tdt__thread.worker = false;
	tdt__thread.now = 0;
}

void tdt_worker_thread_park(void)
{
	PROBE(worker__thread__park);
}

void tdt_worker_thread_unpark(void)
{
	PROBE(worker__thread__unpark);
}

void tdt_worker_now(uint64_t monotonic_ns)
{
	tdt__thread.now = monotonic_ns;
}

/* The frames outside are those of the caller, who waits in its switch to the stack. */
__attribute__((noinline)) void tdt_stack_enter(struct tdt_stack *stack)
{
	struct tdt__registers caller = TDT__CALLER_REGISTERS();

	if (stack == NULL)
		return;
	stack->outer = tdt__thread.entered;
	stack->level = stack->outer != NULL ? stack->outer->level + 1 : 1;
	stack->entry = ++tdt__thread.entries;
	stack->pc = caller.pc;
	stack->sp = caller.sp;
	stack->fp = caller.fp;
	/* A signal handler may poll: what it finds entered is whole. */
	atomic_signal_fence(memory_order_release);
	tdt__thread.entered = stack;
}

void tdt_stack_leave(struct tdt_stack *stack)
{
	if (stack != NULL)
		tdt__thread.entered = stack->outer;
}
