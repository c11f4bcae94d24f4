/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The clock of the recorder, whose unit is a *tick*.
 *
 * Reading the processor's counter takes half the time of clock_gettime().  It is used if it has a
 * constant rate and is the same on all CPUs: the kernel finds out whether that is true, and then
 * uses the counter as its own clock source.
 */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/layout/recording.h>

#include "base/clock.h"
#include "registry/registry.h"

/*
 * All that events need besides the rings, in one cache line: a poll that has done much work since
 * finds little in its cache.  Relaxed: a poll may use the old options while they change, and the
 * first three fields are set before the first recording and never change.
 */
struct tdt__record_options {
	_Alignas(64) uint32_t clock; /* enum tdt_recording_clock */
	int32_t cpu_at;              /* where the number of the CPU is, from the thread pointer;
					0: it is not known (cpu.h) */
	uint64_t hz;                 /* of the clock */
	uint64_t long_poll;          /* in ticks */
	uint64_t long_wait;          /* in nanoseconds */
	uint32_t every;              /* see `stack_every` in struct tdt_recording */
	bool stacks;                 /* stacks of captured polls are recorded */
};
extern struct tdt__record_options tdt__record_options __attribute__((visibility("hidden")));

/*
 * Choose the clock, once in a process; measuring the rate takes a millisecond.  Tests choose
 * TDT_RECORDING_MONOTONIC before the first call by storing it in `clock`.
 */
void tdt__ticks_begin(void);

/* The same moment by three clocks, as close together as can be had. */
struct tdt__moment {
	uint64_t ticks;
	uint64_t monotonic;
	uint64_t boot;
	uint64_t real;
};
void tdt__moment_now(struct tdt__moment *moment);

uint64_t tdt__ticks_of_ns(uint64_t ns);

static inline uint64_t tdt__ticks(void)
{
#if defined(__x86_64__)
	if (__builtin_expect(TDT__PEEK(tdt__record_options.clock) == TDT_RECORDING_TSC, 1))
		return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	if (__builtin_expect(TDT__PEEK(tdt__record_options.clock) == TDT_RECORDING_CNTVCT, 1)) {
		uint64_t ticks;

		asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
		return ticks;
	}
#endif
	return tdt__clock();
}
