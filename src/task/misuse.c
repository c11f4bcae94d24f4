// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Noting the first misuse of the library: <tdt/misuse.h>. */

#include "task/misuse.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "registry/handle.h"
#include "registry/registry.h"

static const char *const reasons[] = {
	[TDT_MISUSE_ORDER] = "the polls of a thread ended out of order, since a coroutine was "
			     "switched away from in the middle of a poll of a traced future",
	[TDT_MISUSE_THREAD] = "a poll of a traced future ended on another thread than it began on",
	[TDT_MISUSE_NESTED] = "a traced future was polled while a poll of it had not ended",
	[TDT_MISUSE_FIBER_RESUME] = "a fiber was resumed that had not been suspended",
	[TDT_MISUSE_FIBER_SUSPEND] = "a fiber was suspended that did not run on that thread",
	[TDT_MISUSE_TASK_ENTER] = "a task was entered that had not been left",
	[TDT_MISUSE_TASK_LEAVE] = "a task was left that the thread had not entered, or had entered "
				  "before another one that it had not left",
	[TDT_MISUSE_FIBER_END] = "a fiber or a task was ended by another thread while it ran",
};

/*
 * The thread that sets `noting` writes `first`.  It then stores the address in the registry, with
 * release, which pairs with the acquire in tdt_misused().  (If the process forks in between, the
 * child notes no misuse.)
 */
static atomic_flag noting = ATOMIC_FLAG_INIT;
static struct tdt_misuse first;

_Static_assert(sizeof(void *) != 8 || offsetof(struct tdt_misuse, reason) == 96,
	       "the offsets are those of the header");

/* A task is being polled somewhere, so its record may be read but may not stand still. */
static void note_misuser(const struct tdt_task_record *record)
{
	tdt__record_word name[sizeof record->name / sizeof(tdt__record_word)];

	for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
		name[i] = TDT__PEEK(((const tdt__record_word *)(const void *)record->name)[i]);
	memcpy(first.name, name, sizeof first.name - 1);
	first.task = TDT__PEEK(record->id);
	first.poll = (const void *)(uintptr_t)TDT__PEEK(record->poll);
}

__attribute__((cold)) void tdt__misuse(enum tdt_misuse_kind kind, const struct tdt_handle *task)
{
	/* Relaxed: this thread only writes. */
	if (atomic_flag_test_and_set_explicit(&noting, memory_order_relaxed))
		return;
	first.size = sizeof first;
	first.kind = kind;
	first.reason = reasons[kind];
	if (task != NULL)
		note_misuser(&task->record);
	__atomic_store_n(&tdt__registry.misuse, (uintptr_t)&first, __ATOMIC_RELEASE);
}

const struct tdt_misuse *tdt_misused(void)
{
	uint64_t misuse = __atomic_load_n(&tdt__registry.misuse, __ATOMIC_ACQUIRE);

	return (const struct tdt_misuse *)(uintptr_t)misuse;
}
