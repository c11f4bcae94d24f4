// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Which part of memory is stack. */

#include <config.h>

#include "stack.h"

#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

#include "thread.h"

#define PAGE 4096 /* or a part of one */
#define PAGES_MAX 1024 /* IOV_MAX; a walk over more of a foreign stack is not worth the trouble */

static __attribute__((noinline)) void find_own_stack(void)
{
	struct tdt__thread *thread = &tdt__thread;
	pthread_attr_t attr;
	void *low;
	size_t size;

	thread->stack_low = thread->stack_high = 1; /* asked, and not known */
	if (pthread_getattr_np(pthread_self(), &attr) == 0) {
		if (pthread_attr_getstack(&attr, &low, &size) == 0) {
			thread->stack_low = (uintptr_t)low;
			thread->stack_high = (uintptr_t)low + size;
		}
		pthread_attr_destroy(&attr);
	}
}

/* Read a byte of each page through the kernel, which says no where we would fault. */
static __attribute__((noinline)) bool probe(uintptr_t low, uintptr_t high)
{
	static const unsigned batch = 64; /* 1 KiB of this stack */
	struct iovec from[64];
	char bytes[64];
	struct iovec to = { bytes, sizeof bytes };
	uintptr_t at = low & ~(uintptr_t)(PAGE - 1);
	bool readable = (high - at) / PAGE < PAGES_MAX;

	while (readable && at < high) {
		unsigned n = 0;

		for (; n < batch && at < high; at += PAGE)
			from[n++] = (struct iovec){ (void *)at, 1 };
		readable = process_vm_readv(getpid(), &to, 1, from, n, 0) == (ssize_t)n;
	}
	return readable;
}

bool tdt__stack_readable(uintptr_t low, uintptr_t high)
{
	const struct tdt__thread *thread = &tdt__thread;

	if (low >= high)
		return false;
	if (__builtin_expect(thread->stack_high == 0, 0))
		find_own_stack();
	if (low >= thread->stack_low && high <= thread->stack_high)
		return true;
	return probe(low, high);
}
