// SPDX-License-Identifier: Apache-2.0 OR MIT
/* From one stack to another: both ways. */

#include <config.h>

#include "switch.h"

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

/* The signal mask is the thread's, and stays as it is: a context would bring its own along. */
__attribute__((noinline)) void tdt__context_switch(struct tdt__context *from, struct tdt__context *to)
{
	pthread_sigmask(SIG_SETMASK, NULL, &to->place.uc_sigmask);
	swapcontext(&from->place, &to->place);
}

#else

#include <stdint.h>

/* What lies on a stack that was left, from its sp upwards. */
struct left {
	uint32_t mxcsr; /* the modes of SSE, */
	uint16_t x87;	/* and of the x87 */
	uint16_t unused;
	uintptr_t r15, r14, r13, r12, rbx, rbp;
	void (*pc)(void);
	uintptr_t caller; /* of a function that has not begun: none */
};

void tdt__switch_stacks(void **from, void *to);

__asm__(".text\n"
	".p2align 4\n"
	".hidden tdt__switch_stacks\n"
	".globl tdt__switch_stacks\n"
	".type tdt__switch_stacks, @function\n"
	"tdt__switch_stacks:\n"
	"	.cfi_startproc\n"
	"	pushq %rbp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset %rbp, 0\n"
	"	pushq %rbx\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset %rbx, 0\n"
	"	pushq %r12\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset %r12, 0\n"
	"	pushq %r13\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset %r13, 0\n"
	"	pushq %r14\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset %r14, 0\n"
	"	pushq %r15\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset %r15, 0\n"
	"	subq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	stmxcsr (%rsp)\n"
	"	fnstcw 4(%rsp)\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n" /* what was left there looks the same */
	"	ldmxcsr (%rsp)\n"
	"	fldcw 4(%rsp)\n"
	"	addq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %r15\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_restore %r15\n"
	"	popq %r14\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_restore %r14\n"
	"	popq %r13\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_restore %r13\n"
	"	popq %r12\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_restore %r12\n"
	"	popq %rbx\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_restore %rbx\n"
	"	popq %rbp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_restore %rbp\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size tdt__switch_stacks, . - tdt__switch_stacks\n");

void tdt__context_make(struct tdt__context *context, void *low, size_t size, void (*entry)(void))
{
	uintptr_t end = ((uintptr_t)low + size) & ~(uintptr_t)15;
	struct left *left = (struct left *)(end - sizeof(struct left));

	/* A function begins with its stack aligned to 16, but for the return address. */
	_Static_assert(sizeof(struct left) == 72, "as tdt__switch_stacks() has it");
	*left = (struct left){ .pc = entry };
	__asm__("stmxcsr %0" : "=m"(left->mxcsr));
	__asm__("fnstcw %0" : "=m"(left->x87));
	context->sp = left;
}

__attribute__((noinline)) void tdt__context_switch(struct tdt__context *from, struct tdt__context *to)
{
	tdt__switch_stacks(&from->sp, to->sp);
}

#endif
