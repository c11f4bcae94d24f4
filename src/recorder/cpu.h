/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The number of the CPU that the thread runs on.  The kernel keeps it in a struct that glibc
 * registers for each thread (rseq), so reading it takes no call.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/rseq.h>

#include "recorder/clock.h"
#include "registry/registry.h"

static inline uintptr_t tdt__thread_pointer(void)
{
	uintptr_t pointer;

#if defined(__x86_64__)
	asm("mov %%fs:0, %0" : "=r"(pointer));
#else
	asm("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
	return pointer;
}

/* Where it is, from the thread pointer; 0: rseq is not registered. */
static inline int32_t tdt__cpu_find(void)
{
	return __rseq_size != 0 ? (int32_t)__rseq_offset + (int32_t)offsetof(struct rseq, cpu_id)
				: 0;
}

/* UINT16_MAX: unknown.  The kernel writes the number, for the thread that runs. */
static inline uint16_t tdt__cpu(void)
{
	intptr_t at = TDT__PEEK(tdt__record_options.cpu_at);
	uint32_t cpu = UINT32_MAX;

	if (__builtin_expect(at != 0, 1))
		cpu = *(const volatile uint32_t *)(tdt__thread_pointer() + (uintptr_t)at);
	return cpu < UINT16_MAX ? (uint16_t)cpu : UINT16_MAX;
}
