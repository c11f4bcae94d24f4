// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Which part of memory is a readable stack. */

#include "host/readable.h"

#include <errno.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include "host/peek.h"

#define PAGE 4096 /* the size of the kernel's pages, or a part of it */
#define PAGES_MAX 1024 /* IOV_MAX; a walk over more of a foreign stack is not worth the trouble */

/*
 * If the main thread's stack has a greater limit, or none, this one is used instead.  It is less
 * than the kernel leaves free below that stack.
 */
#define MAIN_STACK_MAX ((rlim_t)64 << 20)

/*
 * Find the main thread's stack, if `here` is on it: the stack lies below the data that the kernel
 * has put on its end.  The C library would go through all of /proc/self/maps, which has two lines
 * for each coroutine of ours.
 */
static bool find_main_stack(uintptr_t here, struct tdt__thread *thread)
{
	uintptr_t end = (getauxval(AT_EXECFN) | (PAGE - 1)) + 1;
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur > MAIN_STACK_MAX)
		limit.rlim_cur = MAIN_STACK_MAX;
	if (here >= end || end - here >= limit.rlim_cur)
		return false;
	thread->stack_low = end - limit.rlim_cur;
	thread->stack_high = end;
	return true;
}

__attribute__((noinline, cold)) void tdt__stack_find(void)
{
	struct tdt__thread *thread = &tdt__thread;
	int saved = errno;
	pthread_attr_t attr;
	void *low;
	size_t size;

	/* In a child of fork() the main thread is that which called fork(), on its old stack. */
	if (gettid() == getpid() &&
	    find_main_stack((uintptr_t)__builtin_frame_address(0), thread)) {
		errno = saved;
		return;
	}
	thread->stack_low = thread->stack_high = 1; /* searched for, and not known */
	if (pthread_getattr_np(pthread_self(), &attr) == 0) {
		if (pthread_attr_getstack(&attr, &low, &size) == 0) {
			thread->stack_low = (uintptr_t)low;
			thread->stack_high = (uintptr_t)low + size;
		}
		pthread_attr_destroy(&attr);
	}
	errno = saved;
}

/* The same as probe(), page by page, for systems that refuse process_vm_readv(). */
static bool probe_each(const struct iovec *page, unsigned n)
{
	char byte;

	for (unsigned i = 0; i < n; i++)
		if (tdt__peek(&byte, (uintptr_t)page[i].iov_base, 1) != 1)
			return false;
	return true;
}

/* Read a byte of each page through the kernel, which returns an error where we would fault. */
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
		ssize_t got;

		for (; n < batch && at < high; at += PAGE)
			from[n++] = (struct iovec){ (void *)at, 1 };
		got = process_vm_readv(getpid(), &to, 1, from, n, 0);
		readable = got == (ssize_t)n || (got < 0 && errno != EFAULT && probe_each(from, n));
	}
	return readable;
}

bool tdt__stack_readable(uintptr_t low, uintptr_t high)
{
	if (low >= high)
		return false;
	if (__builtin_expect(tdt__thread.stack_high == 0, 0))
		tdt__stack_find();
	return tdt__stack_is_own(low, high) || probe(low, high);
}
