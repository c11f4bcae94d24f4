// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What runtimes and leaves report: <tdt/integrate/hooks.h>. */

#include <tdt/integrate/hooks.h>

#include "base/clock.h"
#include "base/name.h"
#include "capture/capture.h"
#include "capture/chain.h"
#include "host/barrier.h"
#include "host/start.h"
#include "host/thread.h"
#include "probes/probes.h"
#include "recorder/record.h"
#include "registry/handle.h"
#include "registry/holders.h"
#include "task/lost.h"
#include "task/request.h"
#include "task/substitute.h"
#include "task/waits.h"
#include "tree/futurelocks.h"

/*
 * Fire a probe of workers.  This may be the first call in the process.  In a child of fork()
 * tdt__probes_forked() has to look at sites that were hit, and tdt__start() sees to that.
 */
#define PROBE(name)                                                                                \
	do {                                                                                       \
		if (TDT__PROBED(name)) {                                                           \
			tdt__start();                                                              \
			tdt_probe_##name();                                                        \
		}                                                                                  \
	} while (0)

void tdt_worker_thread_start(const struct tdt_worker_attr *attr)
{
	tdt__thread.worker = true;
	tdt__thread.all_wakes = attr != NULL && attr->size >= sizeof *attr &&
				(attr->flags & TDT_WORKER_ALL_WAKES) != 0;
	PROBE(worker__thread__start);
}

void tdt_worker_thread_stop(void)
{
	PROBE(worker__thread__stop);
	tdt__ring_give();
	tdt__thread.worker = tdt__thread.all_wakes = false;
	tdt__thread.parked = 0;
	tdt__thread.now = 0;
}

void tdt_worker_thread_park(void)
{
	tdt__thread.parked = tdt__now();
	if (tdt__recording())
		tdt__record_park();
	PROBE(worker__thread__park);
}

void tdt_worker_thread_unpark(void)
{
	tdt__thread.parked = 0;
	if (tdt__recording())
		tdt__record_unpark();
	PROBE(worker__thread__unpark);
}

void tdt_worker_now(uint64_t monotonic_ns)
{
	tdt__thread.now = monotonic_ns;
}

/* False: nothing is news of this wake-up. */
static bool note_woken_task(struct tdt_handle *handle)
{
	uint64_t polls = TDT__PEEK(handle->record.polls);

	if (tdt__was_woken(handle, polls) || tdt__record_aborted(&handle->record))
		return false;
	TDT__POKE(handle->record.woken, tdt__now());
	TDT__POKE(handle->record.woken_by, tdt_current_task_id());
	TDT__POKE(handle->record.woken_polls, (uint32_t)polls);
	if (tdt__recording() && TDT__PEEK(handle->record.state) != TDT_TASK_RECORD_ENDED)
		tdt__record_wake(handle->record.id);
	return true;
}

void tdt_task_woken(struct tdt_handle *handle)
{
	bool news = true;

	if (handle == NULL)
		return;
	if (handle == tdt__thread.waking) { /* a wake-up for a request does not end the wait */
		tdt__request_told(handle);
	} else {
		if (__builtin_expect(tdt__thread.suspect != NULL, 0))
			tdt__suspect_wakes(handle);
		news = note_woken_task(handle);
		/* Orders what was noted before the load.  Pairs with suspect_lost() in lost.c. */
		tdt__barrier_light();
		if (__builtin_expect(atomic_load_explicit(&tdt__lost_open, memory_order_relaxed) !=
					 0, 0))
			tdt__lost_wake(handle);
	}
	if (news)
		TDT__PROBE_TASK(task__wake, handle);
}

const struct tdt_waker *tdt_waker_beneath(const struct tdt_waker *waker)
{
	return waker != NULL ? tdt__waker_beneath(waker) : NULL;
}

/* Note the wait in the capture of a poll.  `handed`: as in a struct tdt_lock. */
static __attribute__((noinline, cold)) void capture_wait(struct tdt__capture *capture,
							 enum tdt_wait_kind kind,
							 const void *object, uint64_t owner,
							 const char *name, uint64_t handed)
{
	struct tdt_wait wait = { .size = sizeof wait,
				 .kind = kind,
				 .object = (uintptr_t)object,
				 .owner = owner };

	if (name != NULL)
		tdt__name_copy(wait.name, name);
	if (owner != 0)
		wait.handed_ns = tdt__handed_ns(handed, tdt__clock());
	tdt__capture_wait(capture, &wait);
}

static inline void report_wait(enum tdt_wait_kind kind, const void *object, uint64_t owner,
			       const char *name, uint64_t handed)
{
	const struct tdt__poll *poll = tdt__thread.poll;

	if (poll == NULL)
		return;
	if (__builtin_expect(poll->capture != NULL, 0))
		capture_wait(poll->capture, kind, object, owner, name, handed);
	if (tdt__recording())
		tdt__record_wait(poll->task->record.id, kind, object, owner, name);
	tdt__note_wait(&poll->task->record, kind, object, owner, name);
}

void tdt_leaf_waits_on_named(enum tdt_wait_kind kind, const void *object, uint64_t owner,
			     const char *name)
{
	report_wait(kind, object, owner, name, 0);
}

void tdt_leaf_waits_on(enum tdt_wait_kind kind, const void *object, uint64_t owner)
{
	report_wait(kind, object, owner, NULL, 0);
}

void tdt_leaf_waits_on_lock(const struct tdt_lock *lock, const char *name)
{
	if (lock != NULL)
		report_wait(TDT_WAIT_MUTEX, lock, TDT__PEEK(lock->owner), name,
			    TDT__PEEK(lock->handed));
}

/*
 * A reader copies the struct twice, and uses it if both copies are the same (tree/futurelocks.h).
 * No order of these stores makes a lock seem handed to a task that it was not handed to.
 */
void tdt_lock_take(struct tdt_lock *lock, uint64_t task)
{
	if (lock == NULL)
		return;
	tdt__holder_pass(TDT__PEEK(lock->owner), task);
	TDT__POKE(lock->handed, 0);
	TDT__POKE(lock->owner, task);
}

void tdt_lock_hand(struct tdt_lock *lock, uint64_t task)
{
	if (lock == NULL)
		return;
	tdt_lock_take(lock, task);
	TDT__POKE(lock->handed, tdt__clock());
	if (tdt__recording())
		tdt__record_hand(lock, task);
}
