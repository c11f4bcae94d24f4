// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What runtimes and leaves report: <tdt/hooks.h>. */

#include <config.h>

#include <tdt/hooks.h>

#include "base/clock.h"
#include "base/name.h"
#include "capture/capture.h"
#include "capture/chain.h"
#include "host/start.h"
#include "host/thread.h"
#include "probes/probes.h"
#include "registry/handle.h"
#include "task/substitute.h"

/* --- Workers ---------------------------------------------------------------- */

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

void tdt_worker_thread_start(void)
{
	tdt__thread.worker = true;
	PROBE(worker__thread__start);
}

void tdt_worker_thread_stop(void)
{
	PROBE(worker__thread__stop);
	tdt__thread.worker = false;
	tdt__thread.parked = 0;
	tdt__thread.now = 0;
}

void tdt_worker_thread_park(void)
{
	tdt__thread.parked = tdt__now();
	PROBE(worker__thread__park);
}

void tdt_worker_thread_unpark(void)
{
	tdt__thread.parked = 0;
	PROBE(worker__thread__unpark);
}

void tdt_worker_now(uint64_t monotonic_ns)
{
	tdt__thread.now = monotonic_ns;
}

/* --- Tasks and leaves ------------------------------------------------------- */

void tdt_task_woken(struct tdt_handle *handle)
{
	if (handle == NULL)
		return;
	if (handle != tdt__thread.waking) { /* a wake-up for a request does not end the wait */
		TDT__POKE(handle->record.woken, tdt__now());
		TDT__POKE(handle->record.woken_by, tdt_current_task_id());
		TDT__POKE(handle->record.woken_polls, (uint32_t)TDT__PEEK(handle->record.polls));
	}
	TDT__PROBE_TASK(task__wake, handle);
}

const struct tdt_waker *tdt_waker_beneath(const struct tdt_waker *waker)
{
	return waker != NULL ? tdt__waker_beneath(waker) : NULL;
}

/* Note the wait in the capture of a poll. */
static __attribute__((noinline, cold)) void capture_wait(struct tdt__capture *capture,
							 enum tdt_wait_kind kind,
							 const void *object, uint64_t owner,
							 const char *name)
{
	struct tdt_wait wait = { .kind = kind, .object = (uintptr_t)object, .owner = owner };

	if (name != NULL)
		tdt__name_copy(wait.name, name);
	tdt__capture_wait(capture, &wait);
}

void tdt_leaf_waits_on_named(enum tdt_wait_kind kind, const void *object, uint64_t owner,
			     const char *name)
{
	const struct tdt__poll *poll = tdt__thread.poll;
	struct tdt_task_record *record;
	uint32_t polls;

	if (poll == NULL)
		return;
	if (__builtin_expect(poll->capture != NULL, 0))
		capture_wait(poll->capture, kind, object, owner, name);
	record = &poll->task->record;
	polls = (uint32_t)record->polls;
	if (record->wait_count != 0 && record->wait_polls == polls) {
		if (record->wait_count < UINT8_MAX)
			TDT__POKE(record->wait_count, record->wait_count + 1);
		return;
	}
	/*
	 * Release: a reader that sees one of these values sees that this poll began, and a reader
	 * that sees the last one sees all of them.  Pairs with tdt__registry_read().
	 */
	__atomic_store_n(&record->wait_kind, (uint8_t)kind, __ATOMIC_RELEASE);
	__atomic_store_n(&record->wait_object, (uintptr_t)object, __ATOMIC_RELEASE);
	__atomic_store_n(&record->wait_owner, owner, __ATOMIC_RELEASE);
	__atomic_store_n(&record->wait_name, (uintptr_t)name, __ATOMIC_RELEASE);
	__atomic_store_n(&record->wait_count, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&record->wait_polls, polls, __ATOMIC_RELEASE);
}

void tdt_leaf_waits_on(enum tdt_wait_kind kind, const void *object, uint64_t owner)
{
	tdt_leaf_waits_on_named(kind, object, owner, NULL);
}
