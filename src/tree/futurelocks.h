/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Locks that were handed to a task which has not taken them, in this process, in another one, or in
 * a core file.
 *
 * The same is true for a moment whenever a lock changes hands.  It is a *futurelock* if the task
 * was polled long after the lock was handed to it: then the task does not poll the future that the
 * lock was handed to.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/integrate/hooks.h>
#include <tdt/layout/registry.h>
#include <tdt/tree.h>

struct tdt__member;

/* Where the tasks and their locks are. */
struct tdt__lock_places {
	void *arg;
	/* Copy memory of the process.  False: it cannot be read. */
	bool (*read)(void *arg, uint64_t address, void *to, size_t size);
	struct tdt__member *(*member)(void *arg, size_t index);
	/* Read the member's record as it is now.  False: that is not possible. */
	bool (*record)(void *arg, size_t index, struct tdt_task_record *record);
	/*
	 * Call `see` with the id of each task that lives now, or has ended but not dropped its
	 * future: only these can hold locks and give them back.  False: not all are known.
	 */
	bool (*each_holder)(void *arg, void (*see)(void *to, uint64_t id), void *to);
	/* What was noted of the task with this id, which ended with a lock.  False: nothing. */
	bool (*find_ended)(void *arg, uint64_t id, struct tdt_registry_holder *ended);
	size_t n;     /* the number of members */
	uint64_t now; /* as of when times are shown: CLOCK_MONOTONIC of the process */

	/* Private: the last lock that was read.  Many tasks wait for one lock. */
	struct {
		bool read;
		bool is_lock;
		uint64_t address;
		struct tdt_lock lock;
	} last;
	uint64_t holds; /* private: the last owner of which nothing was noted; 0: none */
};

/* How long ago the time `handed` of a struct tdt_lock was; 0: it was not handed to anybody. */
static inline uint64_t tdt__handed_ns(uint64_t handed, uint64_t now)
{
	if (handed == 0)
		return 0;
	return now > handed ? now - handed : 1;
}

/*
 * The beginning of the lock that `wait` is for, which may be as it was when it was read for the
 * wait before; NULL: it does not begin with a struct tdt_lock.
 */
const struct tdt_lock *tdt__lock_read(struct tdt__lock_places *places,
				      const struct tdt_wait *wait);

/*
 * Have `wait`, which task `waiter` reported some time ago, say who has the lock now, if the lock
 * begins with a struct tdt_lock.  A lock that was handed to `waiter` itself may have been handed to
 * the future that made the report.  Then the task no longer waits for it, and nothing is changed.
 */
void tdt__lock_renew(struct tdt__lock_places *places, struct tdt_wait *wait, uint64_t waiter);

/*
 * For each wait that says that its lock was handed to a task: look whether the task has taken it by
 * now, and set `futurelock`.  Whether it is one is known if `settled` of that task's member is set.
 * Without memory no futurelock is found.
 */
void tdt__futurelocks_find(struct tdt__lock_places *places);
