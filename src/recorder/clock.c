// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Choosing the recorder's clock, and measuring its rate. */

#include "recorder/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/proc_text.h"
#include "recorder/cpu.h"

struct tdt__record_options tdt__record_options;

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define MEASURED_NS 1000000
#define MOMENT_TRIES 5

#if defined(__x86_64__)

/* Whether the time stamp counter has a constant rate, also while the processor sleeps. */
static bool is_invariant(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & 1u << 8) != 0;
}

/* Whether the kernel itself tells the time by it, so that all CPUs agree. */
static bool is_clock_source(void)
{
	char name[16];

	tdt__proc_text(AT_FDCWD, CLOCK_SOURCE, name, sizeof name);
	return strcmp(name, "tsc\n") == 0;
}

static uint32_t best_clock(void)
{
	return is_invariant() && is_clock_source() ? TDT_RECORDING_TSC : TDT_RECORDING_MONOTONIC;
}

#else

static uint32_t best_clock(void)
{
	return TDT_RECORDING_CNTVCT;
}

#endif

/*
 * The thread may lose its CPU between two of these calls.  So the best of several tries is taken:
 * the one in which the least time passed.
 */
void tdt__moment_now(struct tdt__moment *moment)
{
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < MOMENT_TRIES; i++) {
		uint64_t before = tdt__ticks(), monotonic = tdt__clock(),
			 after = tdt__ticks(), boot = tdt__clock_of(CLOCK_BOOTTIME),
			 real = tdt__clock_of(CLOCK_REALTIME), all = tdt__ticks() - before;

		if (all < shortest) {
			shortest = all;
			moment->ticks = before + (after - before) / 2;
			moment->monotonic = monotonic;
			moment->boot = boot;
			moment->real = real;
		}
	}
}

static uint64_t measured_hz(void)
{
	const struct timespec pause = { 0, MEASURED_NS };
	struct tdt__moment from, to;

	tdt__moment_now(&from);
	nanosleep(&pause, NULL);
	tdt__moment_now(&to);
	if (to.monotonic <= from.monotonic || to.ticks <= from.ticks)
		return TDT__SECOND;
	return (uint64_t)((unsigned __int128)(to.ticks - from.ticks) * TDT__SECOND /
			  (to.monotonic - from.monotonic));
}

uint64_t tdt__ticks_of_ns(uint64_t ns)
{
	unsigned __int128 ticks =
		(unsigned __int128)ns * TDT__PEEK(tdt__record_options.hz) / TDT__SECOND;

	return ticks <= UINT64_MAX ? (uint64_t)ticks : UINT64_MAX;
}

static void choose_clock(void)
{
	int saved = errno;

	if (tdt__record_options.clock == 0)
		TDT__POKE(tdt__record_options.clock, best_clock());
	TDT__POKE(tdt__record_options.hz, tdt__record_options.clock == TDT_RECORDING_MONOTONIC
					      ? TDT__SECOND
					      : measured_hz());
	TDT__POKE(tdt__record_options.cpu_at, tdt__cpu_find());
	errno = saved;
}

void tdt__ticks_begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, choose_clock);
}
