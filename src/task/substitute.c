// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The substitute's four functions.
 *
 * A leaf may do things to a borrowed waker that it must not do: consume it by a wake-up, drop it,
 * or keep the pointer.  It does so to real wakers too, and may get away with it.  So here `wake`
 * does the same as `wake_by_ref`, and `drop` does nothing.  After the poll there is no real waker
 * any more: then `clone` gives NULL, and a wake-up does nothing.
 */

#include "task/substitute.h"

#include <errno.h>

#include "capture/capture.h"
#include "capture/chain.h"
#include "host/thread.h"
#include "probes/probes.h"
#include "task/handshake.h"
#include "unwind/registers.h"

static struct tdt__substitute *substitute_of(const struct tdt_waker *waker)
{
	return (struct tdt__substitute *)(uintptr_t)waker;
}

static const struct tdt_waker *real_of(const struct tdt__substitute *substitute)
{
	return atomic_load_explicit(&substitute->real, memory_order_relaxed);
}

static struct tdt_handle *task_of_substitute(struct tdt__substitute *substitute)
{
	return (struct tdt_handle *)(void *)((char *)substitute -
					     offsetof(struct tdt_handle, substitute));
}

/*
 * Returns the poll that the leaf is in, or NULL if the leaf is on another thread.
 *
 * The leaf called nothing that may set errno, so errno is restored.  This function is always
 * inlined: the stacks that tracers take here then hold only the user's functions and the call that
 * the leaf made.
 */
static inline __attribute__((always_inline)) struct tdt__poll *
record(struct tdt__substitute *substitute, struct tdt__registers at)
{
	struct tdt_handle *task = task_of_substitute(substitute);
	struct tdt__poll *poll = tdt__poll_here(task);
	int saved = errno;

	if (poll != NULL)
		tdt__capture_leaf(poll, at);
	else
		atomic_fetch_add_explicit(&task->elsewhere, 1, memory_order_relaxed);
	TDT__PROBE_TASK(task__waker__clone, task);
	errno = saved;
	return poll;
}

/* What the leaf gets in place of `clone`. */
static const struct tdt_waker *counted_clone_for(const struct tdt_handle *task,
						 struct tdt__poll *poll,
						 const struct tdt_waker *clone)
{
	const struct tdt_waker *given = tdt__counted_give(poll, clone);

	return given != clone || (TDT__PEEK(task->record.own_request) & TDT__FOLLOWED) == 0
		       ? given
		       : tdt__counted_follow(clone);
}

static __attribute__((noinline)) const struct tdt_waker *
tdt_substitute_clone(const struct tdt_waker *waker)
{
	struct tdt__substitute *substitute = substitute_of(waker);
	const struct tdt_waker *real = real_of(substitute), *clone;
	struct tdt__poll *poll;

	if (real == NULL)
		return NULL;
	poll = record(substitute, TDT__CALLER_REGISTERS());
	clone = real->vtable->clone(real);
	if (poll != NULL && clone != NULL)
		clone = counted_clone_for(task_of_substitute(substitute), poll, clone);
	TDT_KEEP_FRAME();
	return clone;
}

/* A leaf that wakes its task during its poll yields: it waits for its turn, and it waits here. */
static __attribute__((noinline)) void tdt_substitute_wake_by_ref(const struct tdt_waker *waker)
{
	struct tdt__substitute *substitute = substitute_of(waker);
	const struct tdt_waker *real = real_of(substitute);

	if (real == NULL)
		return;
	record(substitute, TDT__CALLER_REGISTERS());
	tdt__counted_wake_now(real);
	TDT_KEEP_FRAME();
}

static void tdt_substitute_drop(const struct tdt_waker *waker)
{
	(void)waker;
}

const struct tdt_waker_vtable tdt__substitute_vtable = {
	.clone = tdt_substitute_clone,
	.wake = tdt_substitute_wake_by_ref,
	.wake_by_ref = tdt_substitute_wake_by_ref,
	.drop = tdt_substitute_drop,
};
