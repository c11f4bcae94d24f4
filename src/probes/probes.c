// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The probes, one function for each, which holds its only site: in a file of its own that is built without link-time
 * optimization, and never inlined, cloned or merged with another.
 *
 * What tracers need (tried with bpftrace 0.17, perf 6.1 and gdb 13):
 *   - the arguments in registers.  perf drops an argument that is a constant, and one below the stack pointer, where
 *     Clang puts them if it may, is gone when the kernel's handler runs;
 *   - the page of a string in memory: a tracer's handler can't wait for it to be read in, and shows it empty;
 *   - a frame of its own for every function of ours, or a tracer's ustack() leaves out who called it.  GCC gives none to
 *     one that calls nothing, in spite of -mno-omit-leaf-frame-pointer: so OWN_FRAME().
 *
 * On x86-64 a site may be a nop of five bytes (TDT_NOP5), which Linux makes a call from 6.18 on when it is hit with a tracer
 * attached (its arch/x86/kernel/uprobes.c): a hit is then a system call, not a breakpoint.  What that asks for:
 *   - The call, and what it goes to, write to the 32 bytes below the stack pointer, so there must be no red zone where
 *     the site is.  This file is compiled with -mno-red-zone, by the flags of configure that choose the nop.  Those who
 *     call the functions here have none in use either: their own call writes there, too.
 *   - A nop that crosses a page stays as it is.  Ours are each within eight bytes that are aligned, so that none crosses
 *     a cache line either.
 *   - A child of fork() has the calls, and in 6.18 nothing at the address that they call: tdt__probes_forked().
 * Kernels before 6.16 step over any nop but the plain one, which makes a hit there several times as dear.  From 6.16 on
 * it is emulated as the plain one is.  The kernel's commit 554ba38456da (2026) moves the patch to nops of ten bytes, for
 * the sake of red zones, and leaves ours emulated; but at such a nop of ten 6.18 refuses tracers.
 */

#include <config.h>

#include <stdint.h>

#define _SDT_HAS_SEMAPHORES 1
#define STAP_SDT_ARG_CONSTRAINT r
#include <sys/sdt.h>

#ifdef TDT_NOP5
/* It stands behind sys/sdt.h's label 990, which is put again where it is. */
#undef _SDT_NOP
#define _SDT_NOP .balign 8; 990: .nops 5
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "probes/probes.h"
#include "registry/handle.h"

#ifdef TDT_NOP5
/*
 * List the site just before, with its semaphore, in a section of their own: a table whose ends the linker knows.  A name
 * of the site would not do: link-time optimization may put what uses it into another object, and a symbol that all objects
 * know would be what tracers print for the function.
 */
#define STRING_OF(text) #text
#define STRING(text) STRING_OF(text)
#define LIST_SITE(name)                                                                                                \
	__asm__ volatile(".pushsection tdt_sites, \"a\", @progbits\n\t.balign 4\n\t"                                   \
			 ".long 990b - .\n\t.long " STRING(TDT__SEMAPHORE(name)) " - .\n\t.popsection")

struct site {
	int32_t code;      /* where it is, from here */
	int32_t semaphore; /* the same of that */
};

extern const struct site __start_tdt_sites[] __attribute__((visibility("hidden")));
extern const struct site __stop_tdt_sites[] __attribute__((visibility("hidden")));
#else
#define LIST_SITE(name) (void)0
#endif

/* On aarch64 a note names the whole register also for a line of 32 bits; the size stands beside it. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wasm-operand-widths"
#endif

/* Their section is where tracers expect them; the kernel writes to the page. */
#define SEMAPHORE(name) volatile unsigned short TDT__SEMAPHORE(name) __attribute__((section(".probes")));
TDT__TASK_PROBES(SEMAPHORE)
TDT__WORKER_PROBES(SEMAPHORE)

#if __has_attribute(noipa)
#define ONE_SITE __attribute__((noipa))
#else
#define ONE_SITE __attribute__((noinline))
#endif

#define OWN_FRAME() __asm__ volatile("" : : "r"(__builtin_frame_address(0)))

#define TASK_PROBE(name)                                                                                               \
	ONE_SITE void tdt_probe_##name(const struct tdt_handle *task)                                                  \
	{                                                                                                              \
		uint64_t id = task->record.id;                                                                         \
		const char *file = task->record.file != 0 ? (const char *)(uintptr_t)task->record.file : "";           \
		uint32_t line = task->record.line, column = task->record.column;                                       \
                                                                                                                       \
		OWN_FRAME();                                                                                           \
		(void)*(const volatile char *)file;                                                                    \
		STAP_PROBE4(TDT_USDT_PROVIDER, name, id, file, line, column);                                          \
		LIST_SITE(name);                                                                                       \
	}
TDT__TASK_PROBES(TASK_PROBE)

#define WORKER_PROBE(name)                                                                                             \
	ONE_SITE void tdt_probe_##name(void)                                                                           \
	{                                                                                                              \
		OWN_FRAME();                                                                                           \
		STAP_PROBE(TDT_USDT_PROVIDER, name);                                                                   \
		LIST_SITE(name);                                                                                       \
	}
TDT__WORKER_PROBES(WORKER_PROBE)

#ifdef TDT_NOP5
/* Whether the site is a call to where nothing is mapped. */
static bool leads_nowhere(const unsigned char *site)
{
	uintptr_t page_size = (uintptr_t)sysconf(_SC_PAGESIZE), target;
	unsigned char in_memory;
	int saved = errno;
	int32_t distance;
	bool mapped;

	if (*site != 0xe8)
		return false;
	memcpy(&distance, site + 1, sizeof distance);
	target = (uintptr_t)site + 5 + (uintptr_t)(intptr_t)distance;
	mapped = mincore((void *)(target - target % page_size), 1, &in_memory) == 0;
	errno = saved;
	return !mapped;
}

/* What lies so far from the field. */
static void *at(const int32_t *field)
{
	return (void *)((uintptr_t)field + (uintptr_t)(intptr_t)*field);
}

/*
 * The kernel does not know such a site for one of its own, and so does not lower the semaphore when the tracer leaves.
 * When one comes anew the kernel puts the site in order and raises the semaphore.
 */
void tdt__probes_forked(void)
{
	for (const struct site *site = __start_tdt_sites; site < __stop_tdt_sites; site++)
		if (leads_nowhere(at(&site->code)))
			*(volatile unsigned short *)at(&site->semaphore) = 0;
}
#else
void tdt__probes_forked(void)
{
}
#endif
