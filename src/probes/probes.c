// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The probes.  Each probe has one function, which contains the probe's only site.  The functions
 * are in a file of their own that is built without link-time optimization, and they are never
 * inlined, cloned or merged with another function.
 *
 * What tracers need (tried with bpftrace 0.17, perf 6.1 and gdb 13):
 *   - The arguments must be in registers.  perf drops an argument that is a constant.  An argument
 *     below the stack pointer, where Clang puts arguments if it may, is gone when the kernel's
 *     handler runs.
 *   - The page of a string must be in memory.  A tracer's handler cannot wait for the page to be
 *     read in, and shows an empty string.
 *   - Every function of ours must have a frame of its own.  Otherwise a tracer's ustack() leaves
 *     out the caller.  GCC makes no frame for a function that calls nothing, in spite of
 *     -mno-omit-leaf-frame-pointer: this is why there is OWN_FRAME().
 *
 * On x86-64 a site may be a nop of five bytes (TDT_NOP5).  From version 6.18 on, Linux replaces
 * this nop by a call when it is hit while a tracer is attached (arch/x86/kernel/uprobes.c of the
 * kernel).  A hit is then a system call, and not a breakpoint.  This needs the following:
 *   - The call, and the code that it calls, write to the 32 bytes below the stack pointer, so there
 *     must be no red zone at the site.  This file is compiled with -mno-red-zone, by the flags of
 *     configure that choose the nop.  The callers of the functions here have no red zone in use
 *     either, because their own call writes there too.
 *   - A nop that crosses a page is not replaced.  Each of our nops lies within eight aligned bytes,
 *     so that none crosses a cache line either.
 *   - A child of fork() inherits the calls, and in 6.18 it has nothing at the address that they
 *     call: see tdt__probes_forked().
 *
 * Kernels before 6.16 single-step every nop but the plain one, so a hit of ours costs several times
 * as much.  From 6.16 on the kernel emulates our nop like the plain one.  The kernel's commit
 * 554ba38456da (2026) replaces nops of ten bytes instead, because of red zones, and emulates ours;
 * but 6.18 refuses tracers at such a nop of ten bytes.
 */

#include <config.h>

#include <stdint.h>

#define _SDT_HAS_SEMAPHORES 1
#define STAP_SDT_ARG_CONSTRAINT r
#include <sys/sdt.h>

#ifdef TDT_NOP5
/*
 * sys/sdt.h puts its label 990 before _SDT_NOP.  The label is defined again here, because the
 * alignment moves the nop.
 */
#undef _SDT_NOP
#define _SDT_NOP .balign 8; 990: .nops 5
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "probes/probes.h"
#include "registry/handle.h"

#ifdef TDT_NOP5
/*
 * List the preceding site and its semaphore in a section of its own: a table whose ends the linker
 * knows.  A symbol at the site would not do.  Link-time optimization may put the code that uses the
 * symbol into another object, and a symbol that all objects know would be what tracers print for
 * the function.
 *
 * The relocation does nothing but refer to the entry: lld drops a section (--gc-sections, which
 * rustc gives it) that only the symbols of its ends refer to.
 */
#define STRING_OF(text) #text
#define STRING(text) STRING_OF(text)
#define LIST_SITE(name)                                                                            \
	__asm__ volatile(                                                                          \
	    ".reloc ., BFD_RELOC_NONE, 991f\n\t"                                                   \
	    ".pushsection tdt_sites, \"a\", @progbits\n\t.balign 4\n991:\t"                        \
	    ".long 990b - .\n\t.long " STRING(TDT__SEMAPHORE(name)) " - .\n\t.popsection")

struct site {
	int32_t code;      /* the distance from this field to the site */
	int32_t semaphore; /* the distance from this field to the semaphore */
};

extern const struct site __start_tdt_sites[] __attribute__((visibility("hidden")));
extern const struct site __stop_tdt_sites[] __attribute__((visibility("hidden")));
#else
#define LIST_SITE(name) (void)0
#endif

/*
 * On aarch64 a note names the whole register even for `line`, which has 32 bits; the note has the
 * size beside the register.
 */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wasm-operand-widths"
#endif

/* Tracers expect the semaphores in this section.  The kernel writes to its page. */
#define SEMAPHORE(name)                                                                            \
	volatile unsigned short TDT__SEMAPHORE(name) __attribute__((section(".probes")));
TDT__TASK_PROBES(SEMAPHORE)
TDT__WORKER_PROBES(SEMAPHORE)

#if __has_attribute(noipa)
#define ONE_SITE __attribute__((noipa))
#else
#define ONE_SITE __attribute__((noinline))
#endif

#define OWN_FRAME() __asm__ volatile("" : : "r"(__builtin_frame_address(0)))

/*
 * The register in which the ABI passes the n-th argument.  DTrace for Linux reads arguments there
 * and does not look at the note, which says for other tracers where they are.
 */
#ifdef __x86_64__
#define ARGUMENT_1 __asm__("rdi")
#define ARGUMENT_2 __asm__("rsi")
#define ARGUMENT_3 __asm__("rdx")
#define ARGUMENT_4 __asm__("rcx")
#elif defined(__aarch64__)
#define ARGUMENT_1 __asm__("x0")
#define ARGUMENT_2 __asm__("x1")
#define ARGUMENT_3 __asm__("x2")
#define ARGUMENT_4 __asm__("x3")
#endif

/*
 * Everything is read before the first register is set: reading may call a function of a sanitizer.
 */
#define TASK_PROBE(name)									   \
	ONE_SITE void tdt_probe_##name(const struct tdt_handle *task)				   \
	{											   \
		const struct tdt_task_record *from = &task->record;				   \
		const char *place = from->file != 0 ? (const char *)(uintptr_t)from->file : "";	   \
		uint32_t in_line = from->line, in_column = from->column;			   \
		uint64_t task_id;								   \
												   \
		OWN_FRAME();									   \
		(void)*(const volatile char *)place;						   \
		task_id = from->id;								   \
												   \
		register uint64_t id ARGUMENT_1 = task_id;					   \
		register const char *file ARGUMENT_2 = place;					   \
		register uint32_t line ARGUMENT_3 = in_line;					   \
		register uint32_t column ARGUMENT_4 = in_column;				   \
												   \
		STAP_PROBE4(TDT_USDT_PROVIDER, name, id, file, line, column);			   \
		LIST_SITE(name);								   \
	}
TDT__TASK_PROBES(TASK_PROBE)

#define WORKER_PROBE(name)                                                                         \
	ONE_SITE void tdt_probe_##name(void)                                                       \
	{                                                                                          \
		OWN_FRAME();                                                                       \
		STAP_PROBE(TDT_USDT_PROVIDER, name);                                               \
		LIST_SITE(name);                                                                   \
	}
TDT__WORKER_PROBES(WORKER_PROBE)

#ifdef TDT_NOP5
/* Whether the site is a call to an address where nothing is mapped. */
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

/* Returns the address that lies `*field` bytes from `field`. */
static void *at(const int32_t *field)
{
	return (void *)((uintptr_t)field + (uintptr_t)(intptr_t)*field);
}

/*
 * The kernel does not recognize such a site as one of its own, so it does not lower the semaphore
 * when the tracer detaches.  When a tracer attaches again, the kernel repairs the site and raises
 * the semaphore.
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
