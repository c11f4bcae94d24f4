// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The wrapper: what is done before and after each poll of a traced future.  The handshake with
 * requesters is described in handshake.h.
 *
 * The poll of a task without a request is the library's hottest path: no lock, no allocation, no
 * fence, no system call.
 */

#include <errno.h>

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/chain.h"
#include "capture/counted.h"
#include "capture/seal.h"
#include "host/barrier.h"
#include "host/thread.h"
#include "probes/probes.h"
#include "recorder/record.h"
#include "recorder/stacks.h"
#include "registry/holders.h"
#include "registry/registry.h"
#include "task/handshake.h"
#include "task/join.h"
#include "task/label.h"
#include "task/lost.h"
#include "task/misuse.h"
#include "task/panic_hooks.h"
#include "task/panics.h"
#include "task/request.h"
#include "task/saved_waker.h"
#include "task/substitute.h"
#include "task/wrapper.h"
#include "unwind/registers.h"
#include "watch/watch.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static inline tdt_poll_t tdt__child_poll(struct tdt_handle *task, struct tdt_context *cx)
{
	tdt_poll_t (*poll)(void *, struct tdt_context *) = (void *)(uintptr_t)task->record.poll;
	tdt_poll_t result = poll((void *)(uintptr_t)task->record.child_state, cx);

	TDT_KEEP_FRAME();
	return result;
}

/* --- After a poll ------------------------------------------------------- */

/* Save a clone of this poll's waker, with which requesters can wake the task. */
static __attribute__((noinline)) void save_waker(struct tdt_handle *task,
						 const struct tdt_waker *given)
{
	const struct tdt_waker *waker = tdt__waker_beneath(given), *clone = NULL;

	if (waker != given && tdt__is_saved(task, waker))
		return; /* the saved waker came inside a substitute */
	if (waker != NULL)
		clone = waker->vtable->clone(waker);
	TDT__POKE(task->record.own_bits, (uint8_t)((task->record.own_bits & ~TDT__OWN_CLONE) |
						   (clone == waker ? TDT__OWN_CLONE : 0)));
	/*
	 * Release what the clone points to; acquire what a requester did before it put NULL there.
	 * Pairs with itself and with wake_idle() in request.c.
	 */
	tdt_waker_drop(tdt__saved_exchange(task, clone));
}

/* A request came during the poll: have the task polled once more. */
static __attribute__((noinline)) void wake_for_requests(struct tdt_handle *task,
							const struct tdt_waker *given)
{
	const struct tdt_waker *waker = tdt__waker_beneath(given);

	if (waker != NULL && tdt__requests_claim(task))
		tdt__request_wake(task, waker, waker->vtable->wake_by_ref);
}

static const uint8_t results[] = { [TDT__OUTCOME_READY] = TDT_READY,
				   [TDT__OUTCOME_PANICKED] = TDT_PANICKED,
				   [TDT__OUTCOME_DROPPED] = TDT_PENDING };

/* Never inlined: it uses the thread's record behind foreign code (host/thread.h). */
static __attribute__((noinline)) void note_end(struct tdt_handle *task, enum tdt__outcome outcome,
					       const struct tdt__capture *capture)
{
	TDT__PROBE_UNHOOKED(task__terminate, task);
	if (tdt__recording())
		tdt__record_ended(task, results[outcome]);
	tdt__thread.traced_end = task->record.id;
	if (outcome == TDT__OUTCOME_PANICKED) {
		TDT__COUNT(panicked);
		tdt__panic_note(task, capture);
	}
}

__attribute__((noinline)) void tdt__task_end(struct tdt_handle *task, enum tdt__outcome outcome,
					     const struct tdt__capture *capture)
{
	/*
	 * Acquire what the poll that saved the waker wrote, perhaps on another thread.  Pairs with
	 * save_waker().  Requesters only take wakers away, so if there is none, none will come.
	 */
	if (TDT__PEEK(task->record.waker) != 0)
		tdt_waker_drop(tdt__saved_exchange(task, NULL));
	/*
	 * This is done once, although all of this runs again (called by left()) if a waker that is
	 * called here unwinds.
	 */
	if (TDT__PEEK(task->record.state) != TDT_TASK_RECORD_ENDED)
		note_end(task, outcome, capture);
	/*
	 * Release to requesters that find the task ended.  Pairs with the acquire in
	 * tdt__request_see().
	 */
	TDT__POKE(task->record.outcome, results[outcome]);
	__atomic_store_n(&task->record.state, TDT_TASK_RECORD_ENDED, __ATOMIC_RELEASE);
	tdt__barrier_light();
	if (TDT__PEEK(task->record.own_request) != 0)
		tdt__requests_answer(task, tdt__requests_take(task, NULL), NULL, -ESRCH);
	/*
	 * Release what the task did to its joiners (pairs with the acquire in join.c).  Nothing is
	 * acquired, because the list of joiners has a lock.  The list is looked at again if
	 * tdt__task_end() runs a second time because a waker that was called here unwound.
	 */
	if (UNLIKELY(atomic_exchange_explicit(&task->outcome, outcome, memory_order_release) !=
		     TDT__OUTCOME_NOBODY))
		tdt__joiners_wake(task);
	if (outcome == TDT__OUTCOME_PANICKED)
		tdt__panic_report(task);
}

static inline tdt_poll_t finish_poll(struct tdt_handle *task, const struct tdt_waker *given,
				     tdt_poll_t result, const struct tdt__capture *capture)
{
	if (UNLIKELY(result != TDT_PENDING)) {
		tdt__task_end(task,
			      result == TDT_READY ? TDT__OUTCOME_READY : TDT__OUTCOME_PANICKED,
			      capture);
		return result == TDT_READY ? TDT_READY : TDT_PANICKED;
	}
	if (UNLIKELY(!tdt__is_saved(task, given)))
		save_waker(task, given);
	/*
	 * Release the saved waker to requesters that find the task idle.  Pairs with the acquire in
	 * tdt__request_see().
	 */
	__atomic_store_n(&task->record.state, TDT_TASK_RECORD_IDLE, __ATOMIC_RELEASE);
	tdt__barrier_light();
	if (UNLIKELY(TDT__PEEK(task->record.own_request) != 0))
		wake_for_requests(task, given);
	return TDT_PENDING;
}

/* --- The chain of polls of a thread -------------------------------------- */

/* The chain is whole after each store: a signal handler may walk it (tdt_current_task_id()). */
static inline void enter_poll(struct tdt__poll *poll, struct tdt_handle *task)
{
	poll->task = task;
	atomic_signal_fence(memory_order_release);
	tdt__thread.poll = poll;
}

/*
 * Take a poll out of the middle of the chain, when polls inside it have not ended.  Then a
 * coroutine library has switched stacks in the middle of one of them, which it must not do
 * (tdt/integrate/stack.h).  A poll that began on another thread is not in this thread's chain: the
 * other thread's chain can't be changed from here, and this thread's chain is left as it is.
 */
static __attribute__((noinline, cold)) void leave_middle(const struct tdt__poll *poll)
{
	struct tdt__poll **link = &tdt__thread_here()->poll;

	while (*link != NULL && *link != poll)
		link = &(*link)->outer;
	if (*link == NULL) {
		tdt__misuse(TDT_MISUSE_THREAD, poll->task);
		return;
	}
	tdt__misuse(TDT_MISUSE_ORDER, tdt__thread_here()->poll->task);
	*link = poll->outer;
}

/* Polls of one thread end in the reverse order of their beginnings. */
static inline void leave_poll(struct tdt__poll *poll)
{
	struct tdt__thread *here = tdt__thread_here(); /* the child may have changed the thread */

	if (LIKELY(here->poll == poll))
		here->poll = poll->outer;
	else
		leave_middle(poll);
}

/*
 * Note how much room the capture took, for frames and for counted clones, before anything is
 * removed from it.
 */
static void note_frames(struct tdt_handle *task, const struct tdt__capture *capture)
{
	uint32_t n =
	    capture->stacks.n > capture->stacks.leaves ? capture->stacks.n : capture->stacks.leaves;
	uint32_t units = n / TDT__HINT_UNIT + (n % TDT__HINT_UNIT != 0);

	if (units > TDT__HINT_FRAMES)
		units = TDT__HINT_FRAMES;
	TDT__POKE(task->record.own_hint,
		  (uint8_t)((task->record.own_hint & ~TDT__HINT_FRAMES) | units));
}

/* Never inlined, as note_end(). */
static __attribute__((noinline)) void
answer_requests(struct tdt_handle *task, struct tdt__poll *poll, enum tdt_task_state state)
{
	struct tdt__capture *capture = poll->capture;

	/*
	 * Outside its poll a substitute has no real waker.  (It may have been in use for a tracer
	 * alone.)
	 */
	atomic_store_explicit(&task->substitute.real, NULL, memory_order_relaxed);
	if (capture == NULL)
		return;
	TDT__COUNT(captures);
	capture->stacks.elsewhere = atomic_load_explicit(&task->elsewhere, memory_order_relaxed);
	capture->seal = NULL;
	tdt__capture_complete(capture);
	capture->facts.state = state;
	if (state != TDT_TASK_WAITING)
		capture->facts.state_ns = 0;
	if (capture->watched)
		tdt__watch_end(task, capture);
	if (poll->requests != NULL)
		tdt__requests_answer(task, poll->requests, capture, 0);
	else
		tdt__spare_give(capture);
}

/*
 * Runs at the end of every poll, and has work only if the poll ended by unwinding (a C++ exception,
 * a cancelled thread).  Neither a child nor a waker may unwind.  If one does, the task has
 * panicked, and no requester is left waiting.
 */
static inline void left(struct tdt__poll *poll)
{
	struct tdt_handle *task = poll->task;

	if (LIKELY(task == NULL))
		return;
	leave_poll(poll);
	tdt__task_end(task, TDT__OUTCOME_PANICKED, poll->capture);
	answer_requests(task, poll, TDT_TASK_PANICKED);
	TDT__PROBE_UNHOOKED(task__poll__end, task);
}

/* --- Polls that are recorded ------------------------------------------------ */

/*
 * A poll of either of the two kinds that may be recorded.  A plain poll has no more than the first
 * field, so it does not pay for the others.
 */
struct recorded {
	struct tdt__poll poll;
	struct tdt__record_poll record;
	struct tdt__label label;
};

/* `record` is filled in when the poll begins: zeros would cost more than the rest. */
static inline struct tdt__poll *init_recorded(struct recorded *recorded)
{
	recorded->poll = (struct tdt__poll){ .outer = tdt__thread.poll };
	recorded->record.is_recorded = false;
	tdt__label_init(&recorded->label);
	return &recorded->poll;
}

/*
 * Before finish_poll(): from then on, another thread may poll the task.  Never inlined, as
 * note_end().
 */
static __attribute__((noinline)) void end_record(struct recorded *recorded,
						 const struct tdt_handle *task, tdt_poll_t result)
{
	if (recorded->record.is_recorded)
		tdt__record_end(&recorded->record, task->record.id, result);
}

/* Never inlined, as note_end(). */
static __attribute__((noinline)) void record_stacks(const struct tdt_handle *task,
						    const struct tdt__capture *capture)
{
	tdt__record_stacks(task->record.id, &capture->stacks);
}

/* The same as left(). */
static inline void left_recorded(struct recorded *recorded)
{
	if (UNLIKELY(recorded->poll.task != NULL))
		end_record(recorded, recorded->poll.task, TDT_PANICKED);
	tdt__label_end(&recorded->label);
	left(&recorded->poll);
}

/* --- The three kinds of poll ---------------------------------------------- */

/* What the only leaf that made a report waits for, and in which poll. */
struct only_wait {
	uint64_t object;
	uint32_t polls;
	uint8_t kind, count;
};

static struct only_wait only_wait_of(const struct tdt_task_record *record)
{
	return (struct only_wait){ .object = record->wait_object,
				   .polls = record->wait_polls,
				   .kind = record->wait_kind,
				   .count = record->wait_count };
}

enum motion { STAYS, MOVED, UNKNOWN_MOTION };

/*
 * Whether the task has gone on in the poll that has ended.  Of several leaves, a poll may poll
 * some, in any order.
 */
static enum motion motion_of(const struct tdt_task_record *record, const struct only_wait *before)
{
	struct only_wait now = only_wait_of(record);

	if (before->count != 1 || before->polls + 1 != now.polls || now.count != 1 ||
	    now.polls != (uint32_t)record->polls)
		return UNKNOWN_MOTION;
	return now.kind != before->kind || now.object != before->object ? MOVED : STAYS;
}

/*
 * A poll that may have a request, that is watched, or whose start or clones a tracer wants to see.
 * Never inlined: the stacks of its leaves end at this function's frame.
 */
static __attribute__((noinline)) tdt_poll_t
tdt__observed_poll(struct tdt_handle *task, struct tdt_context *cx, uint64_t since)
{
	const struct tdt_waker *given = cx->waker;
	struct tdt_context substituted = { &task->substitute.waker };
	struct recorded recorded __attribute__((cleanup(left_recorded)));
	struct tdt__poll *poll = init_recorded(&recorded);
	uint64_t now = task->record.since, woken = TDT__PEEK(task->record.woken);
	const struct only_wait wait = only_wait_of(&task->record);
	struct tdt__seal seal;
	struct tdt__suspect suspect = { .on = false };
	bool only_requested, follows;
	enum motion motion;
	unsigned word = 0;
	tdt_poll_t result;

	poll->stack = tdt__thread.entered;
	poll->top = TDT__OWN_TOP();
	if (TDT__PEEK(task->record.own_request) != 0)
		poll->requests = tdt__requests_take(task, &word);
	only_requested = (word & TDT__CLAIMED) != 0 &&
			 !tdt__was_woken(task, task->record.polls - 1);
	follows = (word & TDT__FOLLOWED) != 0 && tdt__follow_begin(task);
	poll->capture = tdt__request_capture(poll->requests);
	tdt__watch_begin(task, &poll->capture);
	if (tdt__recording() && poll->capture == NULL)
		poll->capture = tdt__record_capture();
	if (poll->capture != NULL) {
		tdt__seal_init(&seal);
		poll->capture->seal = &seal;
		poll->capture->given = given;
		tdt__counted_begin(poll->capture, poll->requests != NULL);
		poll->capture->began = now;
		poll->capture->facts.polls = task->record.polls;
		poll->capture->facts.state_ns = now > since ? now - since : 0;
		poll->capture->facts.woken_ns = woken != 0 && now > woken ? now - woken : 0;
		poll->capture->facts.woken_by = TDT__PEEK(task->record.woken_by);
		atomic_store_explicit(&task->elsewhere, 0, memory_order_relaxed);
	}
	if (poll->capture != NULL || follows || TDT__PROBED(task__waker__clone)) {
		atomic_store_explicit(&task->substitute.real, tdt__waker_beneath(given),
				      memory_order_relaxed);
		cx = &substituted;
	}
	TDT__POKE(task->record.stack_top, poll->top);
	TDT__PROBE_UNHOOKED(task__poll__start, task);
	if (tdt__recording())
		tdt__record_begin(&recorded.record, task);
	if (only_requested && recorded.record.is_recorded && recorded.record.ring != NULL)
		recorded.record.detail |= TDT_EVENT_POLL_REQUESTED;
	if (tdt__labels_on())
		tdt__label_begin(&recorded.label, &recorded.poll, task);
	/* Of a traced future inside another one the runtime reports nothing. */
	if (only_requested && (word & TDT__TOLD) != 0 && poll->outer == NULL && !follows)
		tdt__suspect_begin(&suspect, task, poll->requests);
	enter_poll(poll, task);
	result = tdt__child_poll(task, cx);
	leave_poll(poll);
	motion = motion_of(&task->record, &wait);
	if (UNLIKELY(follows))
		tdt__follow_end(task, motion == STAYS);
	if (UNLIKELY(suspect.on) && tdt__suspect_end(&suspect, task, result, motion == MOVED,
						      now > since ? now - since : 0))
		motion = MOVED;
	/*
	 * Before finish_poll() wakes the task: a leaf that is polled again gives up its counted
	 * clone.
	 */
	if (poll->capture != NULL) {
		note_frames(task, poll->capture);
		if (result == TDT_PENDING)
			tdt__counted_settle(poll->capture);
		if (recorded.record.is_recorded)
			record_stacks(task, poll->capture);
	}
	end_record(&recorded, task, result);
	/*
	 * The task was polled only for a request and still waits, so it has waited all the time;
	 * unless it went on, or a wake-up came after the poll began, of something that the poll may
	 * have seen.
	 */
	only_requested = only_requested && result == TDT_PENDING &&
			 !tdt__was_woken(task, task->record.polls - 1);
	if (poll->capture != NULL)
		poll->capture->facts.moved = only_requested && motion == MOVED;
	if (only_requested && motion != MOVED) {
		TDT__POKE(task->record.since, since);
		TDT__POKE(task->record.own_bits,
			  (uint8_t)(task->record.own_bits + TDT__REQUESTED_POLL));
	}
	result = finish_poll(task, given, result, poll->capture);
	poll->task = NULL;
	answer_requests(task, poll,
			result == TDT_PENDING ? TDT_TASK_WAITING
			: result == TDT_READY ? TDT_TASK_READY
					      : TDT_TASK_PANICKED);
	TDT__PROBE_UNHOOKED(task__poll__end, task);
	return result;
}

static void dropped_already(void *state)
{
	(void)state;
}

/*
 * In place of a poll of a task that was aborted: drop its future.  To the runtime the task has
 * panicked, and to its joiners it was dropped.  Never inlined, as note_end().
 */
static __attribute__((noinline, cold)) tdt_poll_t tdt__abort_poll(struct tdt_handle *task)
{
	struct recorded recorded __attribute__((cleanup(left_recorded)));
	struct tdt__poll *poll = init_recorded(&recorded);
	void (*drop)(void *) = task->child_drop;

	/* Takes the lock, which orders what the aborting thread did before the drop. */
	tdt__requests_answer(task, tdt__requests_take(task, NULL), NULL, -ESRCH);
	TDT__PROBE_UNHOOKED(task__poll__start, task);
	if (tdt__recording())
		tdt__record_begin(&recorded.record, task);
	enter_poll(poll, task);
	TDT__POKE(task->child_drop, dropped_already); /* also if the drop unwinds */
	drop((void *)(uintptr_t)task->record.child_state);
	leave_poll(poll);
	end_record(&recorded, task, TDT_PENDING);
	tdt__task_end(task, TDT__OUTCOME_DROPPED, NULL);
	poll->task = NULL;
	TDT__PROBE_UNHOOKED(task__poll__end, task);
	errno = ECANCELED;
	return TDT_PANICKED;
}

/* Whether the poll that has begun has to be made by tdt__observed_poll(). */
static inline bool is_observed(const struct tdt_handle *task)
{
	return UNLIKELY(TDT__PEEK(task->record.own_request) != 0) ||
	       UNLIKELY(tdt__epoch_word() != task->record.own_epoch) ||
	       TDT__PROBED(task__waker__clone) || TDT__PROBED(task__poll__start);
}

/* Whether the recorder runs or labels are on, and nothing else observes the poll. */
static inline bool is_only_recorded(const struct tdt_handle *task)
{
	return TDT__PEEK(task->record.own_request) == 0 &&
	       tdt__epoch_now() == task->record.own_epoch && !TDT__PROBED(task__waker__clone) &&
	       !TDT__PROBED(task__poll__start) &&
	       !(tdt__recording() && tdt__record_capture_due());
}

/*
 * A poll that is recorded, labelled or both, and no more.  Never inlined, so that it takes nothing
 * from plain_poll().
 */
static __attribute__((noinline)) tdt_poll_t tdt__recorded_poll(struct tdt_handle *task,
								 struct tdt_context *cx)
{
	const struct tdt_waker *given = cx->waker;
	struct recorded recorded __attribute__((cleanup(left_recorded)));
	tdt_poll_t result;

	init_recorded(&recorded);
	TDT__POKE(task->record.stack_top, TDT__OWN_TOP());
	if (tdt__recording())
		tdt__record_begin(&recorded.record, task);
	if (tdt__labels_on())
		tdt__label_begin(&recorded.label, &recorded.poll, task);
	enter_poll(&recorded.poll, task);
	result = tdt__child_poll(task, cx);
	leave_poll(&recorded.poll);
	end_record(&recorded, task, result);
	result = finish_poll(task, given, result, NULL);
	recorded.poll.task = NULL;
	TDT__PROBE_UNHOOKED(task__poll__end, task);
	return result;
}

/*
 * All other polls.  The cleanup is in force here alone, and a poll whose start is traced is made by
 * tdt__observed_poll(): these two choices together take a twentieth off the time of a traced poll.
 */
static inline tdt_poll_t plain_poll(struct tdt_handle *task, struct tdt_context *cx)
{
	const struct tdt_waker *given = cx->waker;
	struct tdt__poll poll __attribute__((cleanup(left))) = { .outer = tdt__thread.poll };
	tdt_poll_t result;

	enter_poll(&poll, task);
	result = tdt__child_poll(task, cx);
	leave_poll(&poll);
	result = finish_poll(task, given, result, NULL);
	poll.task = NULL;
	TDT__PROBE_UNHOOKED(task__poll__end, task);
	return result;
}

/* Whether a task that is not idle may be polled; not if it has ended. */
static __attribute__((noinline, cold)) bool may_be_polled(const struct tdt_handle *task)
{
	if (TDT__PEEK(task->record.state) == TDT_TASK_RECORD_ENDED)
		return false;
	tdt__misuse(TDT_MISUSE_NESTED, task);
	return true;
}

tdt_poll_t tdt__traced_poll(void *state, struct tdt_context *cx)
{
	struct tdt_handle *task = state;
	uint64_t since = task->record.since;
	tdt_poll_t result;

	/* Relaxed: the thread that wrote ENDED was the poller before, and the ABI orders polls. */
	if (UNLIKELY(TDT__PEEK(task->record.state) != TDT_TASK_RECORD_IDLE) && !may_be_polled(task))
		return TDT_PANICKED;
	TDT__POKE(task->record.since, tdt__now());
	TDT__POKE(task->record.thread, tdt__thread_id());
	TDT__POKE(task->record.stack_top, TDT__OWN_TOP());
	TDT__POKE(task->record.polls, task->record.polls + 1);
	/*
	 * The barrier orders this store before the load of `request`: pairs with the requester's
	 * barrier in tdt__request_send().  Release what was noted of this poll to readers that find
	 * the task polling: pairs with the acquire in running.c.
	 */
	__atomic_store_n(&task->record.state, TDT_TASK_RECORD_POLLING, __ATOMIC_RELEASE);
	tdt__barrier_light();
	if (LIKELY(!is_observed(task)))
		return plain_poll(task, cx);
	result = tdt__record_aborted(&task->record) ? tdt__abort_poll(task)
		 : is_only_recorded(task)	    ? tdt__recorded_poll(task, cx)
						    : tdt__observed_poll(task, cx, since);
	TDT_KEEP_FRAME();
	return result;
}

void tdt__traced_drop(void *state)
{
	struct tdt_handle *task = state;

	if (TDT__PEEK(task->record.state) != TDT_TASK_RECORD_ENDED)
		tdt__task_end(task, TDT__OUTCOME_DROPPED, NULL);
	if (task->child_drop != NULL)
		task->child_drop((void *)(uintptr_t)task->record.child_state);
	tdt__holder_over(task);
	tdt_handle_unref(task);
}

void tdt__polls_forked(void)
{
	for (const struct tdt__poll *poll = tdt__thread.poll; poll != NULL; poll = poll->outer)
		TDT__POKE(poll->task->record.thread, tdt__thread_id());
}
