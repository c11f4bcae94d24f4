// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The heavy side, which calls membarrier(2) where the kernel has it; and the fence that the light
 * side needs where the kernel has not.
 */

#include "host/barrier.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

atomic_bool tdt__barrier_fences;

static long membarrier(int command)
{
	int saved = errno;
	long result = syscall(SYS_membarrier, command, 0, 0);

	errno = saved;
	return result;
}

void tdt__barrier_init(void)
{
	atomic_store_explicit(&tdt__barrier_fences,
			      membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0,
			      memory_order_relaxed);
}

__attribute__((noinline)) void tdt__barrier_fence(void)
{
	/* Pairs with the fence in tdt__barrier_heavy(). */
	atomic_thread_fence(memory_order_seq_cst);
}

void tdt__barrier_heavy(void)
{
	/*
	 * This fence orders the heavy side's own store and load.  It pairs with the fence of the
	 * light side where the light side has one.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&tdt__barrier_fences, memory_order_relaxed) &&
	    membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0)
		atomic_store_explicit(&tdt__barrier_fences, true, memory_order_relaxed);
}
