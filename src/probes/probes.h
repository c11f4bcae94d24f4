/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_PROBES_PROBES_H
#define TDT_SRC_PROBES_PROBES_H

/*
 * The probes: static points (USDT) at which tracers join in.  tdt-probes(7) tells what each means and its arguments.
 *
 * Each has a *semaphore*, a counter in the program's data that the kernel raises while a tracer is attached.  Here it
 * is looked at before anything is prepared, so a probe nobody listens to costs a load and a branch.  That of
 * task-waker-clone does more: while it is up, every poll is given a waker of ours (wrapper.c).
 *
 * The probe itself stands in one function (probes.c) that is never inlined or copied, since tracers take it that a name
 * has one site and one semaphore.
 */

#include <stdbool.h>

struct tdt_handle;

/* In a probe's C name `__` stands for the `-` of its name. */
#define TDT__TASK_PROBES(X)                                                                                            \
	X(task__spawn)                                                                                                 \
	X(task__poll__start)                                                                                           \
	X(task__poll__end)                                                                                             \
	X(task__terminate)                                                                                             \
	X(task__wake)                                                                                                  \
	X(task__waker__clone)

#define TDT__WORKER_PROBES(X)                                                                                          \
	X(worker__thread__start)                                                                                       \
	X(worker__thread__stop)                                                                                        \
	X(worker__thread__park)                                                                                        \
	X(worker__thread__unpark)

#if TDT_PROBES

/* Named as sys/sdt.h wants it: provider_probe_semaphore. */
#define TDT__SEMAPHORE_OF(provider, name) provider##_##name##_semaphore
#define TDT__SEMAPHORE_IN(provider, name) TDT__SEMAPHORE_OF(provider, name)
#define TDT__SEMAPHORE(name) TDT__SEMAPHORE_IN(TDT_USDT_PROVIDER, name)

#define TDT__DECLARE(name) extern volatile unsigned short TDT__SEMAPHORE(name) __attribute__((visibility("hidden")));
TDT__TASK_PROBES(TDT__DECLARE)
TDT__WORKER_PROBES(TDT__DECLARE)
#undef TDT__DECLARE

/* Whether somebody listens to the probe `name`.  Only the kernel writes it, and at any time. */
#define TDT__PROBED(name) __builtin_expect(TDT__SEMAPHORE(name) != 0, 0)

/* In a child of fork(): probes that would crash there are not fired until a tracer attaches anew. */
void tdt__probes_forked(void);

#else
#define TDT__PROBED(name) false

static inline void tdt__probes_forked(void)
{
}
#endif

/* Fire the probe: what the macro below calls; those of workers are for thread.c alone. */
#define TDT__DECLARE(name) void tdt_probe_##name(const struct tdt_handle *task);
TDT__TASK_PROBES(TDT__DECLARE)
#undef TDT__DECLARE
#define TDT__DECLARE(name) void tdt_probe_##name(void);
TDT__WORKER_PROBES(TDT__DECLARE)
#undef TDT__DECLARE

/* Fire the probe `name` if somebody listens. */
#define TDT__PROBE_TASK(name, task)                                                                                    \
	do {                                                                                                           \
		if (TDT__PROBED(name))                                                                                 \
			tdt_probe_##name(task);                                                                        \
	} while (0)

#endif
