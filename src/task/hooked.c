// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * What runtimes report of tasks that need not be traced: tdt_hook_spawn() and what follows it in
 * <tdt/integrate/hooks.h>.
 *
 * Such a task has a record as a task of tdt_task_new() has (fibers.c), which is found by the
 * runtime's id (reported.h): reports have nothing else that is the task's own.  For the probes and
 * the events a report makes a handle on the stack, which has only what these say.
 *
 * A traced task may be the task that the runtime reports: both have the same id then, and both see
 * its polls, one inside the other.  The runtime's reports fire the probes of such a poll, and the
 * wrapper records it, because the wrapper knows more about it.  The thread has what one of the two
 * needs to know of the other (struct tdt__thread).  There is one record then: that of the traced
 * task, until it ends.
 */

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <tdt/integrate/hooks.h>

#include "base/options.h"
#include "capture/chain.h"
#include "capture/fiber.h"
#include "host/start.h"
#include "host/thread.h"
#include "probes/probes.h"
#include "recorder/record.h"
#include "recorder/recorder.h"
#include "registry/contexts.h"
#include "registry/handle.h"
#include "task/attr.h"
#include "task/fibers.h"
#include "task/leaf.h"
#include "task/reported.h"
#include "task/run.h"
#include "task/task.h"
#include "unwind/registers.h"
#include "unwind/walk.h"

/* The recording of the reported poll that is in progress on this thread. */
static TDT__STATIC_TLS struct tdt__record_poll hooked_poll;

/*
 * The ids of tasks that were not known when they ended, by their remainders; inverted once somebody
 * has ended the fiber.  A runtime that shuts down may report an end before it reports the spawn, or
 * meanwhile on another thread:
 *
 *   spawn                       end
 *     add the fiber               no fiber: early = id
 *     early == id?                fence
 *       claim it, end the fiber     a fiber now?  claim it, end the fiber
 */
#define EARLY_ENDS 256
static _Atomic uint64_t early_ends[EARLY_ENDS];

static inline bool ended_early(uint64_t id)
{
	uint64_t early = atomic_load_explicit(&early_ends[id % EARLY_ENDS], memory_order_seq_cst);

	return __builtin_expect(early == id || early == ~id, 0);
}

/* Acquire and release what both did. */
static bool claim_early_end(uint64_t id)
{
	uint64_t early = id;

	return atomic_compare_exchange_strong_explicit(&early_ends[id % EARLY_ENDS], &early, ~id,
						       memory_order_acq_rel, memory_order_relaxed);
}

/* The fiber, which may be NULL, was added. */
static inline void end_if_early(struct tdt_fiber *fiber, uint64_t id)
{
	if (fiber != NULL && ended_early(id) && claim_early_end(id)) {
		tdt__reported_remove(fiber);
		tdt__reported_end(fiber, TDT_PENDING);
	}
}

static inline uint64_t reported_id(const struct tdt_task_attr *attr)
{
	return attr != NULL && attr->size >= offsetof(struct tdt_task_attr, name) ? attr->id : 0;
}

/* Make a handle that has what the probes and the events say.  A file without memory is unknown. */
static void describe_reported(struct tdt_handle *task, const struct tdt_task_attr *attr)
{
	struct tdt_task_attr ours;
	const char *name;
	size_t length;
	int saved = errno;

	memset(task, 0, sizeof *task);
	if (tdt__options_read(&ours, sizeof ours, attr) == 0 && tdt__attr_keep_file(&ours) == 0)
		task->record.file = (uintptr_t)ours.file;
	task->record.id = ours.id;
	task->record.line = ours.line;
	task->record.column = ours.column;
	task->record.parent = tdt__attr_parent(&ours);
	if ((ours.flags & TDT_ATTR_BLOCKING) != 0)
		task->record.own_hint = TDT__HINT_BLOCKING;
	length = tdt__attr_name(&ours, &name);
	if (length != 0)
		memcpy(task->record.name, name, length);
	errno = saved;
}

/* tdt__start() sees to probes that would crash in a child of fork(). */
static __attribute__((noinline, cold)) void fire(void (*probe)(const struct tdt_handle *task),
			    const struct tdt_task_attr *attr)
{
	struct tdt_handle task;

	tdt__start();
	describe_reported(&task, attr);
	probe(&task);
}

/* The task inherits the trace context of the one that spawns it. */
static __attribute__((noinline, cold)) void record_spawn(const struct tdt_task_attr *attr)
{
	struct tdt_handle task;

	describe_reported(&task, attr);
	if (tdt__thread.poll != NULL)
		tdt__context_inherit(&task, tdt__thread.poll->task);
	tdt__record_spawn(&task);
	tdt__context_set(&task, NULL);
}

static __attribute__((noinline, cold)) void record_end(const struct tdt_task_attr *attr,
							uint8_t outcome)
{
	struct tdt_handle task;

	describe_reported(&task, attr);
	tdt__record_ended(&task, outcome);
}

/* Without memory the task has no record, until its next poll. */
static inline struct tdt_fiber *add_reported(const struct tdt_task_attr *attr)
{
	int saved = errno;
	struct tdt_fiber *fiber = tdt__reported_new(attr);

	errno = saved;
	return fiber;
}

/* A reported poll of this thread begins, or is over. */
static inline void begin_hooked(uint64_t id)
{
	tdt__thread.hooked = id;
	tdt__thread.hooked_recorded = false;
	tdt__thread.hooked_result = TDT_PENDING;
}

static inline void end_hooked(void)
{
	tdt__thread.hooked = 0;
	tdt__thread.traced_end = 0;
}

void tdt_hook_spawn(const struct tdt_task_attr *attr)
{
	if (reported_id(attr) == 0)
		return;
	if (TDT__PROBED(task__spawn))
		fire(tdt_probe_task__spawn, attr);
	if (ended_early(attr->id))
		return;
	if (tdt__reported_find(attr->id) == NULL)
		end_if_early(add_reported(attr), attr->id);
	if (tdt__recording())
		record_spawn(attr);
}

/*
 * The fiber of a task that is polled, which was not found, or belongs to a traced task.  NULL: the
 * traced task goes on, or there is no memory.
 */
static __attribute__((noinline, cold)) struct tdt_fiber *
renew_reported(struct tdt_fiber *fiber, const struct tdt_task_attr *attr)
{
	if (fiber != NULL && TDT__PEEK(fiber->task->record.state) != TDT_TASK_RECORD_ENDED)
		return NULL;
	if (fiber != NULL) { /* the runtime's task goes on without the traced one */
		tdt__reported_remove(fiber);
		tdt__reported_end(fiber, TDT_PENDING);
	}
	return add_reported(attr);
}

/* A poll that is not a usual one, or that somebody wants to hear of. */
static __attribute__((noinline)) void start_otherwise(const struct tdt_task_attr *attr,
						      uintptr_t top)
{
	uint64_t id = reported_id(attr);
	struct tdt_fiber *fiber;

	if (id == 0)
		return;
	begin_hooked(id);
	fiber = tdt__reported_find(id);
	if (fiber == NULL || !fiber->own)
		fiber = renew_reported(fiber, attr);
	if (TDT__PROBED(task__poll__start))
		fire(tdt_probe_task__poll__start, attr);
	if (tdt__recording())
		tdt__record_begin_hooked(&hooked_poll, id);
	if (fiber != NULL)
		tdt__reported_enter(fiber, top);
}

/* Whether the fiber is that of the task, and the thread is in no other poll. */
static inline bool is_alone(const struct tdt_fiber *fiber, uint64_t id)
{
	/* Acquire: as in link_fiber() of fibers.c. */
	return fiber != NULL &&
	       atomic_load_explicit(&fiber->reported, memory_order_relaxed) == id && fiber->own &&
	       atomic_load_explicit(&fiber->link, memory_order_acquire) == TDT__LINK_NONE &&
	       tdt__thread.poll == NULL && tdt__thread.id != 0;
}

/* The usual poll calls nothing but the clock. */
static inline __attribute__((always_inline)) void poll_start(const struct tdt_task_attr *attr,
							     uintptr_t top)
{
	uint64_t id = reported_id(attr);
	struct tdt_fiber *fiber = tdt__reported_first(id);

	if (RARELY(id == 0 || !is_alone(fiber, id)) || TDT__PROBED(task__poll__start) ||
	    tdt__recording()) {
		start_otherwise(attr, top);
		return;
	}
	begin_hooked(id);
	TDT__POKE(fiber->task->record.stack_top, top);
	tdt__note_run(&fiber->task->record, tdt__now(), tdt__thread.id);
	tdt__put_link(fiber, &fiber->poll, NULL);
}

void tdt_hook_poll_start(const struct tdt_task_attr *attr)
{
	poll_start(attr, TDT__OWN_TOP());
}

/*
 * A walk ends at a CFA, and a base lies anywhere in a frame.  On its thread a runtime polls in the
 * same frame again and again, at one place or two, so the CFA is looked for once.
 */
static TDT__STATIC_TLS struct top {
	uintptr_t base, cfa;
} tops[2];

/* The outermost CFA that is not above `base`: that of a function which the polling one called. */
static __attribute__((noinline, cold)) uintptr_t find_top(uintptr_t base)
{
	struct tdt__registers at = TDT__CALLER_REGISTERS();
	int saved = errno;
	struct tdt__frame frame;
	struct tdt__walk walk;

	tops[1] = tops[0];
	tops[0] = (struct top){ base, 0 };
	if (tdt__walk_init(&walk)) {
		tdt__walk_start(&walk, at, base);
		while (tdt__walk_next(&walk, &at, &frame) == TDT__WALK_FRAME && !frame.guessed)
			if (tdt__mark_of(&frame) != 0)
				tops[0].cfa = tdt__mark_of(&frame);
		tdt__walk_fini(&walk);
	}
	errno = saved;
	return tops[0].cfa;
}

__attribute__((noinline)) void tdt_hook_poll_start_at(const struct tdt_task_attr *attr,
						      uintptr_t base)
{
	uintptr_t cfa = tops[0].base == base   ? tops[0].cfa
			: tops[1].base == base ? tops[1].cfa
					       : find_top(base);

	poll_start(attr, cfa);
}

/* As start_otherwise(); or the poll has ended the task. */
static __attribute__((noinline)) void end_otherwise(const struct tdt_task_attr *attr)
{
	uint64_t id = reported_id(attr);

	if (id == 0)
		return;
	if (tdt__thread.hooked_result == TDT_PENDING || id != tdt__thread.hooked)
		tdt__reported_leave(id);
	if (hooked_poll.is_recorded && id == tdt__thread.hooked)
		tdt__record_end_hooked(&hooked_poll, id, tdt__thread.hooked_result);
	end_hooked();
	if (TDT__PROBED(task__poll__end))
		fire(tdt_probe_task__poll__end, attr);
}

/* Whether the innermost poll of this thread is that of the task, and the task was not ended. */
static inline bool goes_on(const struct tdt__poll *poll, uint64_t id)
{
	return poll != NULL && tdt__thread.hooked_result == TDT_PENDING &&
	       poll->task->record.id == id && tdt__is_reported_task(poll->task) &&
	       TDT__PEEK(poll->task->record.thread) == tdt__thread.id;
}

/* The usual poll calls nothing.  If a request came during it, the poll ends otherwise, too. */
void tdt_hook_poll_end(const struct tdt_task_attr *attr)
{
	struct tdt__poll *poll = tdt__thread.poll;
	uint64_t id = reported_id(attr);
	bool usual = goes_on(poll, id) && !hooked_poll.is_recorded && !tdt__barrier_is_heavy() &&
		     !TDT__PROBED(task__poll__end);

	if (usual)
		tdt__store_idle(poll->task);
	atomic_signal_fence(memory_order_seq_cst); /* all of tdt__barrier_light() here */
	if (RARELY(!usual) || RARELY(TDT__PEEK(poll->task->record.own_request) != 0)) {
		end_otherwise(attr);
		return;
	}
	tdt__thread.poll = poll->outer;
	end_hooked();
	tdt__leave_link(tdt__fiber_with(poll), id);
}

/* What the task ended with: of a task that ends in its poll. */
static tdt_poll_t reported_result(const struct tdt_task_attr *attr)
{
	bool panicked = attr->size > offsetof(struct tdt_task_attr, flags) &&
			(attr->flags & TDT_ATTR_PANICKED) != 0;

	return panicked ? TDT_PANICKED : TDT_READY;
}

/*
 * If the traced task with this id ended just now, it has recorded that.  It has fired the probe,
 * too, unless it ended in the reported poll.  So does the end of the record of an untraced one.
 */
void tdt_hook_terminate(const struct tdt_task_attr *attr)
{
	uint64_t id = reported_id(attr);
	bool polled = id == tdt__thread.hooked, traced = id == tdt__thread.traced_end;
	tdt_poll_t result;
	struct tdt_fiber *fiber;

	if (id == 0)
		return;
	result = polled ? reported_result(attr) : TDT_PENDING;
	fiber = tdt__reported_find(id);
	if (polled)
		tdt__thread.hooked_result = result;
	if (fiber != NULL && fiber->own)
		traced = true;
	if (TDT__PROBED(task__terminate) && (polled || !traced))
		fire(tdt_probe_task__terminate, attr);
	if (tdt__recording() && !traced)
		record_end(attr, result);
	if (fiber == NULL) {
		atomic_store_explicit(&early_ends[id % EARLY_ENDS], id, memory_order_seq_cst);
		atomic_thread_fence(memory_order_seq_cst);
		fiber = tdt__reported_find(id);
		if (fiber == NULL || !claim_early_end(id))
			return;
	}
	tdt__reported_remove(fiber);
	tdt__reported_end(fiber, result);
}

/* Give the reported task to the traced one. */
static void adopt_reported(uint64_t id, struct tdt_handle *handle)
{
	struct tdt_fiber *fiber = tdt__reported_find(id);
	int saved = errno;

	if (fiber != NULL)
		tdt__reported_remove(fiber);
	fiber = tdt__reported_adopt(fiber, handle);
	if (fiber != NULL)
		tdt__reported_add(fiber, id);
	end_if_early(fiber, id);
	errno = saved;
}

void tdt_hook_adopt(struct tdt_handle *handle, uint64_t id)
{
	if (handle == NULL)
		return;
	if (id == 0) {
		tdt__task_announce(handle);
		return;
	}
	if (!ended_early(id))
		adopt_reported(id, handle);
	/* Release the end of the other record: see tdt__registry_read(). */
	__atomic_store_n(&handle->record.id, id, __ATOMIC_RELEASE);
}
