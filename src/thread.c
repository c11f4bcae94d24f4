// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The thread's own record, and the hooks that only set it. */

#include <config.h>

#include <tdt/hooks.h>

#include "thread.h"

TDT__STATIC_TLS struct tdt__thread tdt__thread;

void tdt_worker_thread_start(void)
{
	tdt__thread.worker = true;
}

void tdt_worker_thread_stop(void)
{
	tdt__thread.worker = false;
	tdt__thread.now = 0;
}

void tdt_worker_now(uint64_t monotonic_ns)
{
	tdt__thread.now = monotonic_ns;
}
