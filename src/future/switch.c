// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Switching from one stack to another, in both ways: by contexts, and by instructions of our own.
 */

#include "future/switch.h"

#if TDT__SWITCH_BY_CONTEXT

#include <pthread.h>
#include <signal.h>

void tdt__context_make(struct tdt__context *context, void *low, size_t size, void (*entry)(void))
{
	getcontext(&context->place);
	context->place.uc_stack.ss_sp = low;
	context->place.uc_stack.ss_size = size;
	context->place.uc_link = NULL;
	makecontext(&context->place, entry, 0);
}

/* The signal mask belongs to the thread, and stays as it is: a context would bring its own mask. */
__attribute__((noinline)) void tdt__context_switch(struct tdt__context *from,
						   struct tdt__context *to)
{
	pthread_sigmask(SIG_SETMASK, NULL, &to->place.uc_sigmask);
	swapcontext(&from->place, &to->place);
}

/* Both functions of the C library store the registers as they are behind the call. */
struct tdt__registers tdt__context_registers(const struct tdt__context *context)
{
#if defined(__aarch64__)
	const mcontext_t *left = &context->place.uc_mcontext;

	return (struct tdt__registers){ left->pc, left->sp, left->regs[29] };
#else
#error "tdt: this architecture is not known; add its registers here"
#endif
}

#else

#include <stdint.h>

/* What lies on a stack that was left, from its stack pointer upwards. */
struct left {
	uint32_t mxcsr; /* the modes of SSE */
	uint16_t x87;	/* the modes of the x87 */
	uint16_t unused;
	uintptr_t r15, r14, r13, r12, rbx, rbp;
	void (*pc)(void);
	uintptr_t caller; /* of a function that has not begun: none */
};

void tdt__switch_stacks(void **from, void *to); /* switch_x86_64.S */

void tdt__context_make(struct tdt__context *context, void *low, size_t size, void (*entry)(void))
{
	uintptr_t end = ((uintptr_t)low + size) & ~(uintptr_t)15;
	struct left *left = (struct left *)(end - sizeof(struct left));

	/* A function begins with its stack aligned to 16 bytes, except for the return address. */
	_Static_assert(sizeof(struct left) == 72, "as tdt__switch_stacks() has it");
	*left = (struct left){ .pc = entry };
	__asm__("stmxcsr %0" : "=m"(left->mxcsr));
	__asm__("fnstcw %0" : "=m"(left->x87));
	context->sp = left;
}

__attribute__((noinline)) void tdt__context_switch(struct tdt__context *from,
						   struct tdt__context *to)
{
	tdt__switch_stacks(&from->sp, to->sp);
}

struct tdt__registers tdt__context_registers(const struct tdt__context *context)
{
	const struct left *left = context->sp;

	return (struct tdt__registers){ (uintptr_t)left->pc, (uintptr_t)&left->caller, left->rbp };
}

#endif
