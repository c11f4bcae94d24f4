/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The probes: static tracing points (USDT).  tdt-probes(7) describes what each of them means, and
 * its arguments.
 *
 * Each probe has a *semaphore*, a counter in the program's data that the kernel raises while a
 * tracer is attached.  The library tests the semaphore before it prepares anything, so a probe
 * without a tracer costs a load and a branch.  The semaphore of task-waker-clone does more: while
 * it is raised, every poll is given a waker of ours (wrapper.c).
 *
 * The probe itself stands in one function (probes.c) that is never inlined or copied, because
 * tracers assume one site and one semaphore per name.
 */

#include <config.h>

#include <stdbool.h>

struct tdt_handle;

/* In a probe's C name `__` stands for the `-` of its name. */
#define TDT__TASK_PROBES(X)                                                                        \
	X(task__spawn)                                                                             \
	X(task__poll__start)                                                                       \
	X(task__poll__end)                                                                         \
	X(task__terminate)                                                                         \
	X(task__wake)                                                                              \
	X(task__waker__clone)

#define TDT__WORKER_PROBES(X)                                                                      \
	X(worker__thread__start)                                                                   \
	X(worker__thread__stop)                                                                    \
	X(worker__thread__park)                                                                    \
	X(worker__thread__unpark)

#if TDT_PROBES

/* The name that sys/sdt.h requires: provider_probe_semaphore. */
#define TDT__SEMAPHORE_OF(provider, name) provider##_##name##_semaphore
#define TDT__SEMAPHORE_IN(provider, name) TDT__SEMAPHORE_OF(provider, name)
#define TDT__SEMAPHORE(name) TDT__SEMAPHORE_IN(TDT_USDT_PROVIDER, name)

#define TDT__DECLARE(name)                                                                         \
	extern volatile unsigned short TDT__SEMAPHORE(name) __attribute__((visibility("hidden")));
TDT__TASK_PROBES(TDT__DECLARE)
TDT__WORKER_PROBES(TDT__DECLARE)
#undef TDT__DECLARE

/*
 * Whether a tracer is attached to the probe `name`.  Only the kernel writes the semaphore, at any
 * time.
 */
#define TDT__PROBED(name) __builtin_expect(TDT__SEMAPHORE(name) != 0, 0)

/*
 * Called in a child of fork(): probes that would crash there do not fire until a tracer attaches
 * again.
 */
void tdt__probes_forked(void);

#else
#define TDT__PROBED(name) false

static inline void tdt__probes_forked(void)
{
}
#endif

/*
 * Fire a probe, whether or not a tracer is attached.  TDT__PROBE_TASK() calls the functions of the
 * first list; only hooks.c calls those of the second.
 */
#define TDT__DECLARE(name) void tdt_probe_##name(const struct tdt_handle *task);
TDT__TASK_PROBES(TDT__DECLARE)
#undef TDT__DECLARE
#define TDT__DECLARE(name) void tdt_probe_##name(void);
TDT__WORKER_PROBES(TDT__DECLARE)
#undef TDT__DECLARE

/* Fire the probe `name` if a tracer is attached. */
#define TDT__PROBE_TASK(name, task)                                                                \
	do {                                                                                       \
		if (TDT__PROBED(name))                                                             \
			tdt_probe_##name(task);                                                    \
	} while (0)

/*
 * The same, unless the poll in progress is one of this task that the runtime reports.  Then the
 * runtime's reports fire the probe (task/hooked.c).
 */
#define TDT__PROBE_UNHOOKED(name, task)                                                            \
	do {                                                                                       \
		if (TDT__PROBED(name) && (task)->record.id != tdt__thread_here()->hooked)          \
			tdt_probe_##name(task);                                                    \
	} while (0)
