// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Who owns which slot. */

#include "host/slot.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/refs.h"
#include "base/sanitized.h"

/*
 * The ids of the owners; 0: nobody owns the slot.  The upper half counts the owners, so that a
 * thread with the id of an earlier owner is told from it.
 */
static _Atomic uint64_t owners[TDT__SLOTS];

/*
 * The process whose threads these are.  Relaxed: each thread tries to set it before it looks, and
 * a child of fork() changes it while it has one thread.  In a child
 * that was made without the handlers of fork() nobody knows who is gone.
 */
static _Atomic uint32_t process;

/*
 * ThreadSanitizer, here or in the host alone, does not see what orders the end of a thread.  A
 * filter may refuse the call with any error: then this thread is not found either.
 */
static bool is_gone(uint32_t id, uint32_t pid)
{
	return !TDT__TSAN && AnnotateHappensAfter == NULL &&
	       atomic_load_explicit(&process, memory_order_relaxed) == pid &&
	       tgkill((pid_t)pid, (pid_t)id, 0) != 0 && errno == ESRCH &&
	       tgkill((pid_t)pid, (pid_t)tdt__thread_id(), 0) == 0;
}

static bool claim(_Atomic uint64_t *owner, uint32_t self, uint32_t pid)
{
	uint64_t was = atomic_load_explicit(owner, memory_order_relaxed);
	uint64_t next = ((was >> 32) + 1) << 32 | self;

	if ((uint32_t)was != 0 && !is_gone((uint32_t)was, pid))
		return false;
	/* What the owner did came before its end, which the kernel told: read nothing before it. */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_compare_exchange_strong_explicit(owner, &was, next, memory_order_acquire,
						       memory_order_relaxed);
}

__attribute__((noinline, cold)) uint32_t tdt__slot_find(void)
{
	uint32_t self = tdt__thread_id(), pid = (uint32_t)getpid(), nobody = 0, slot = 1;
	int saved = errno;

	atomic_compare_exchange_strong_explicit(&process, &nobody, pid, memory_order_relaxed,
						memory_order_relaxed);
	while (slot < TDT__SLOTS && !claim(&owners[slot], self, pid))
		slot++;
	errno = saved;
	slot %= TDT__SLOTS;
	tdt__thread.slot = slot + 1;
	return slot;
}

void tdt__slots_forked(void)
{
	for (uint32_t slot = 1; slot < TDT__SLOTS; slot++)
		atomic_store_explicit(&owners[slot],
				      slot + 1 == tdt__thread.slot ? (uint64_t)gettid() : 0,
				      memory_order_relaxed);
	atomic_store_explicit(&process, (uint32_t)getpid(), memory_order_relaxed);
}
