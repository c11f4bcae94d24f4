// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The probes, one function for each, which holds its only site: in a file of its own that is built without link-time
 * optimization, and never inlined, cloned or merged with another.
 *
 * What tracers need (tried with bpftrace 0.17, perf 6.1 and gdb 13):
 *   - the arguments in registers.  perf drops an argument that is a constant, and one below the stack pointer, where
 *     Clang puts them if it may, is gone when the kernel's handler runs;
 *   - the page of a string in memory: a tracer's handler can't wait for it to be read in, and shows it empty;
 *   - a frame pointer in every function of ours, or a tracer's ustack() ends here.
 */

#include <config.h>

#define _SDT_HAS_SEMAPHORES 1
#define STAP_SDT_ARG_CONSTRAINT r
#include <sys/sdt.h>

#include "probes.h"
#include "task.h"

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

#define TASK_PROBE(name)                                                                                               \
	ONE_SITE void tdt_probe_##name(const struct tdt_handle *task)                                                  \
	{                                                                                                              \
		uint64_t id = task->record.id;                                                                                \
		const char *file = task->record.file != 0 ? (const char *)(uintptr_t)task->record.file : "";                                               \
		uint32_t line = task->record.line, column = task->record.column;                                                     \
                                                                                                                       \
		(void)*(const volatile char *)file;                                                                    \
		STAP_PROBE4(TDT_USDT_PROVIDER, name, id, file, line, column);                                          \
	}
TDT__TASK_PROBES(TASK_PROBE)

#define WORKER_PROBE(name)                                                                                             \
	ONE_SITE void tdt_probe_##name(void)                                                                           \
	{                                                                                                              \
		STAP_PROBE(TDT_USDT_PROVIDER, name);                                                                   \
	}
TDT__WORKER_PROBES(WORKER_PROBE)
