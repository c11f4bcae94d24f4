// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Hits a probe of the library's time and again while a tracer is attached, with other values in all
 * registers, the flags and the stack each time, and says what did not survive:
 *
 *	patched		waits for a tracer at worker-thread-park and at tdt_test:leaf, and for a line of
 *			input: that the tracer counts, too, for which the kernel has changed the sites before
 *
 * A call may change most of these; the probe must not, since the compiler takes it that the nop
 * does nothing.  The functions of the worker probes hold little else, so that what they were called
 * with is what their site has.
 *
 * The other probe stands in a leaf function that keeps what it has below the stack pointer, as
 * compilers do.  It shows that this can tell.
 */

#include <config.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tdt/integrate/hooks.h>

#include "lib/must.h"
#include "probes/probes.h"

#if TDT_PROBES && defined __x86_64__

#include <sys/sdt.h>
#undef _SDT_NOP
#define _SDT_NOP                                                                                   \
	.byte 0x0f;                                                                                \
	.byte 0x1f;                                                                                \
	.byte 0x44;                                                                                \
	.byte 0;                                                                                   \
	.byte 0

enum {
	HITS = 100000,
	FRAME = 32,
	FLAGS = 0xcd5 /* carry, parity, adjust, zero, sign, direction, overflow */
};

struct values {
	uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15, flags;
	uint64_t xmm[16][2];
	uint64_t frame[FRAME]; /* from the stack pointer up */
};

/* Call `probe` with all of `before`, and note what is there when it returns. */
void call_with(void (*probe)(void), const struct values *before, struct values *after);
__asm__(".text\n"
	".type call_with, @function\n"
	"call_with:\n"
	"	push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
	"	sub $8, %rsp\n" /* for rax */
	"	push %rdx; push %rdi\n"
	"	sub $(32*8), %rsp\n"
	"	mov %rsi, %rax\n"
	"	lea 384(%rax), %rsi; mov %rsp, %rdi; mov $32, %ecx; rep movsq\n"
	"	movups 128(%rax), %xmm0; movups 144(%rax), %xmm1; movups 160(%rax), %xmm2; movups "
	"176(%rax), %xmm3\n"
	"	movups 192(%rax), %xmm4; movups 208(%rax), %xmm5; movups 224(%rax), %xmm6; movups "
	"240(%rax), %xmm7\n"
	"	movups 256(%rax), %xmm8; movups 272(%rax), %xmm9; movups 288(%rax), %xmm10; movups "
	"304(%rax), %xmm11\n"
	"	movups 320(%rax), %xmm12; movups 336(%rax), %xmm13; movups 352(%rax), %xmm14; "
	"movups 368(%rax), %xmm15\n"
	"	pushq 120(%rax); popfq\n"
	"	mov 8(%rax), %rbx; mov 16(%rax), %rcx; mov 24(%rax), %rdx; mov 32(%rax), %rsi; mov "
	"40(%rax), %rdi\n"
	"	mov 48(%rax), %rbp; mov 56(%rax), %r8; mov 64(%rax), %r9; mov 72(%rax), %r10; mov "
	"80(%rax), %r11\n"
	"	mov 88(%rax), %r12; mov 96(%rax), %r13; mov 104(%rax), %r14; mov 112(%rax), %r15; "
	"mov (%rax), %rax\n"
	"	call *256(%rsp)\n"
	"	mov %rax, 272(%rsp)\n"
	"	mov 264(%rsp), %rax\n"
	"	mov %rbx, 8(%rax); mov %rcx, 16(%rax); mov %rdx, 24(%rax); mov %rsi, 32(%rax); mov "
	"%rdi, 40(%rax)\n"
	"	mov %rbp, 48(%rax); mov %r8, 56(%rax); mov %r9, 64(%rax); mov %r10, 72(%rax); mov "
	"%r11, 80(%rax)\n"
	"	mov %r12, 88(%rax); mov %r13, 96(%rax); mov %r14, 104(%rax); mov %r15, 112(%rax)\n"
	"	pushfq; popq 120(%rax); cld\n"
	"	mov 272(%rsp), %rcx; mov %rcx, (%rax)\n"
	"	movups %xmm0, 128(%rax); movups %xmm1, 144(%rax); movups %xmm2, 160(%rax); movups "
	"%xmm3, 176(%rax)\n"
	"	movups %xmm4, 192(%rax); movups %xmm5, 208(%rax); movups %xmm6, 224(%rax); movups "
	"%xmm7, 240(%rax)\n"
	"	movups %xmm8, 256(%rax); movups %xmm9, 272(%rax); movups %xmm10, 288(%rax); movups "
	"%xmm11, 304(%rax)\n"
	"	movups %xmm12, 320(%rax); movups %xmm13, 336(%rax); movups %xmm14, 352(%rax); "
	"movups %xmm15, 368(%rax)\n"
	"	lea 384(%rax), %rdi; mov %rsp, %rsi; mov $32, %ecx; rep movsq\n"
	"	add $(32*8 + 24), %rsp\n"
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\n"
	"	ret\n"
	".size call_with, . - call_with\n");

/*
 * Whether the values of a volatile array, which small leaf functions have below the stack pointer,
 * survive.
 */
static __attribute__((noinline)) bool leaf(uint64_t value)
{
	volatile uint64_t kept[8];

	for (unsigned i = 0; i < 8; i++)
		kept[i] = value + i;
	STAP_PROBE(tdt_test, leaf);
	for (unsigned i = 0; i < 8; i++)
		if (kept[i] != value + i)
			return false;
	return true;
}

/* A number like no other. */
static uint64_t scramble(uint64_t n)
{
	n *= UINT64_C(0x9e3779b97f4a7c15);
	return n ^ n >> 29;
}

static void survive(void)
{
	unsigned registers = 0, flags = 0, stack = 0, leaves = 0;

	for (uint64_t i = 0; i < HITS; i++) {
		struct values before, after;
		uint64_t *words = (uint64_t *)&before;

		for (size_t j = 0; j < sizeof before / sizeof *words; j++)
			words[j] = scramble(1000 * i + j);
		before.flags &= FLAGS;
		call_with(tdt_probe_worker__thread__park, &before, &after);
		registers += memcmp(&before, &after, offsetof(struct values, flags)) != 0 ||
			     memcmp(before.xmm, after.xmm, sizeof before.xmm) != 0;
		flags += before.flags != (after.flags & FLAGS);
		stack += memcmp(before.frame, after.frame, sizeof before.frame) != 0;
		leaves += !leaf(scramble(i));
	}
	printf("registers %u\nflags %u\nstack %u\nleaf %u\n", registers, flags, stack, leaves);
}

/* --- The sites ----------------------------------------------------------------------- */

struct code {
	void (*function)(void);
	unsigned char was[160];
};

static void remember(struct code *code, void (*function)(void))
{
	code->function = function;
	memcpy(code->was, (const void *)(uintptr_t)function, sizeof code->was);
}

/* What the first byte that has changed since is now; 0: none has. */
static unsigned changed(const struct code *code)
{
	const volatile unsigned char *now = (const void *)(uintptr_t)code->function;

	for (size_t i = 0; i < sizeof code->was; i++)
		if (now[i] != code->was[i])
			return now[i];
	return 0;
}

int main(void)
{
	struct code ours, leafs;
	int status;

	remember(&ours, tdt_probe_worker__thread__park);
	remember(&leafs, (void (*)(void))(uintptr_t)leaf);
	for (int i = 0; i < 30000 && (changed(&ours) == 0 || changed(&leafs) == 0 ||
				      !TDT__PROBED(worker__thread__park));
	     i++)
		usleep(10000);
	MUST(changed(&ours) != 0 && changed(&leafs) != 0 && TDT__PROBED(worker__thread__park));
	MUST(getchar() != EOF);
	survive();
	printf("site %x\n", changed(&ours));

	/* All that a process need have done of the library's before it forks is to hit a probe. */
	tdt_worker_thread_park();
	fflush(stdout);
	if (fork() == 0) {
		for (int i = 0; i < 1000; i++)
			tdt_worker_thread_park();
		_exit(0);
	}
	MUST(wait(&status) != -1);
	printf("child %d\n", status);
	fflush(stdout);
	/* The semaphore first, then the site. */
	for (int i = 0; i < 30000 && (TDT__PROBED(worker__thread__park) || changed(&ours) != 0);
	     i++)
		usleep(10000);
	printf("semaphore %d\nsite %x\n", TDT__PROBED(worker__thread__park) ? 1 : 0,
	       changed(&ours));
	return EXIT_SUCCESS;
}

#else

int main(void)
{
	puts("no site is patched here");
	return 77;
}

#endif
