// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Tasks that run and stand without a poll: fibers (<tdt/integrate/fiber.h>), and the tasks of
 * tdt_task_new() (<tdt/integrate/leaf.h>), which have a struct tdt_fiber without a stack for their
 * runs.
 *
 * A fiber of its own is a task without a future.  Resume and suspend do for it what the wrapper
 * does before and after a poll (wrapper.c), with the same handshake (handshake.h).  What differs:
 * it has no waker, and a request is answered at the end of a run and not at the beginning of the
 * next one.
 *
 *   fiber                                     requester
 *     suspend: state = IDLE                     is it suspended?  read its stack (suspended.c)
 *     light barrier                             list the request, request = REQUESTED
 *     request?  yes: read the own stack         heavy barrier
 *                                               is it suspended now?  read its stack
 *
 * A fiber that belongs to a traced future only says where its stack was suspended.  The record's
 * states and polls are then those of the future.
 *
 * While a fiber runs, its link is in its thread's chain of polls.  The links of polls that are in
 * progress on its stack lie further in, and go with the fiber when it is suspended.
 *
 * A compiler takes for granted that a function stays on its thread, and the callers of these
 * functions do not.  So none of them is inlined.
 */

#include "task/fibers.h"

#include <errno.h>

#include <tdt/integrate/fiber.h>
#include <tdt/integrate/leaf.h>

#include "base/result.h"
#include "capture/fiber.h"
#include "capture/interrupt.h"
#include "capture/suspended.h"
#include "host/barrier.h"
#include "host/thread.h"
#include "probes/probes.h"
#include "recorder/record.h"
#include "registry/handle.h"
#include "registry/holders.h"
#include "registry/registry.h"
#include "task/label.h"
#include "task/leaf.h"
#include "task/misuse.h"
#include "task/reported.h"
#include "task/request.h"
#include "task/run.h"
#include "task/task.h"
#include "task/wrapper.h"

/* --- Making fibers ------------------------------------------------------------ */

/* Whether the bounds of a stack can be right.  Sets errno. */
static bool check_bounds(const void *low, size_t size)
{
	if ((low == NULL) == (size == 0) && (uintptr_t)low + size >= (uintptr_t)low)
		return true;
	errno = EINVAL;
	return false;
}

static void set_stack(struct tdt_fiber *fiber, const void *low, size_t size)
{
	tdt__fiber_begin_write(fiber);
	TDT__POKE(fiber->stack.low, (uintptr_t)low);
	TDT__POKE(fiber->stack.size, size);
	TDT__POKE(fiber->stack.base, 0);
	TDT__POKE(fiber->stack.moved_to, 0);
	TDT__POKE(fiber->stack.entry, 0);
	tdt__fiber_end_write(fiber);
}

static void reset_fiber(struct tdt_fiber *fiber, const void *low, size_t size)
{
	if (size != 0 || (fiber->stack.size | fiber->stack.base | fiber->stack.moved_to |
			   fiber->stack.entry) != 0)
		set_stack(fiber, low, size);
	fiber->poll = (struct tdt__poll){ .task = NULL };
	fiber->inner = NULL;
	fiber->own = false;
	fiber->record.is_recorded = false;
	fiber->noted = false;
	tdt__label_init(&fiber->label);
	atomic_init(&fiber->link, TDT__LINK_NONE);
}

struct tdt_fiber *tdt__fiber_new(const void *low, size_t size)
{
	struct tdt_fiber *fiber = check_bounds(low, size) ? tdt__fiber_take() : NULL;

	if (fiber == NULL)
		return NULL;
	tdt__interrupt_heed(size);
	reset_fiber(fiber, low, size);
	if (fiber->has_record)
		tdt__registry_give(fiber->task);
	fiber->has_record = false;
	fiber->task = NULL;
	return fiber;
}

typedef tdt_poll_t poll_fn(void *state, struct tdt_context *cx);

/*
 * Make a task of its own, to which the fiber and the caller have a reference each.  Its record is
 * the one that was kept with the fiber, if there is one.
 */
static inline bool own_task(struct tdt_fiber *fiber, poll_fn *poll,
			    const struct tdt_task_attr *attr)
{
	const struct tdt_future child = { .state = &fiber->stack, .poll = poll };
	struct tdt_handle *task;

	TDT__POKE(fiber->stack.entry,
		  attr != NULL && attr->size >= sizeof *attr ? attr->entry : 0);
	task = tdt__task_new(&child, fiber->item.index, attr,
			     fiber->has_record ? fiber->task : NULL);
	if (task == NULL)
		return false;
	fiber->own = true;
	fiber->has_record = false;
	fiber->poll.task = fiber->task = task;
	return true;
}

static struct tdt_fiber *new_task(struct tdt_fiber *fiber, poll_fn *poll,
				  const struct tdt_task_attr *attr)
{
	if (fiber == NULL)
		return NULL;
	if (!own_task(fiber, poll, attr)) {
		tdt__fiber_give(fiber);
		return NULL;
	}
	tdt__task_announce(fiber->task);
	return fiber;
}

struct tdt_fiber *tdt_fiber_new(void *low, size_t size, const struct tdt_task_attr *attr)
{
	struct tdt_fiber *fiber = new_task(tdt__fiber_new(low, size), NULL, attr);

	if (fiber != NULL)
		tdt_handle_unref(fiber->task);
	return fiber;
}

struct tdt_handle *tdt_task_new(const struct tdt_task_attr *attr)
{
	struct tdt_fiber *fiber = new_task(tdt__fiber_new(NULL, 0), tdt__callback_poll, attr);

	if (fiber == NULL)
		return NULL;
	tdt__leaf_go_on(fiber->task);
	return fiber->task;
}

/* Of a task of tdt_task_new(). */
static inline struct tdt_fiber *fiber_of_task(const struct tdt_handle *task)
{
	return (struct tdt_fiber *)(void *)((char *)(uintptr_t)task->record.child_state -
					    offsetof(struct tdt_fiber, stack));
}

struct tdt_fiber *tdt_fiber_of(struct tdt_handle *task, void *low, size_t size)
{
	struct tdt_fiber *fiber;

	if (task == NULL || tdt__is_fiber(task))
		return tdt__nothing(-EINVAL);
	fiber = tdt__fiber_new(low, size);
	if (fiber == NULL)
		return NULL;
	fiber->task = tdt_handle_ref(task);
	return fiber;
}

struct tdt_handle *tdt_fiber_handle(const struct tdt_fiber *fiber)
{
	return fiber != NULL ? fiber->task : NULL;
}

/* --- Where its stack lies ------------------------------------------------------- */

void tdt_fiber_base(struct tdt_fiber *fiber, uintptr_t base)
{
	if (fiber == NULL)
		return;
	TDT__POKE(fiber->stack.base, base);
	if (fiber->own)
		TDT__POKE(fiber->task->record.stack_top, base);
}

void tdt_fiber_moved(struct tdt_fiber *fiber, const void *from, const void *to, size_t size)
{
	if (fiber == NULL || from == NULL)
		return;
	tdt__fiber_begin_write(fiber);
	TDT__POKE(fiber->stack.moved_from, (uintptr_t)from);
	TDT__POKE(fiber->stack.moved_to, (uintptr_t)to);
	TDT__POKE(fiber->stack.moved_size, size);
	tdt__fiber_end_write(fiber);
	/*
	 * The bytes at the old place may be overwritten now.  Pairs with suspended.c's is_same().
	 */
	atomic_thread_fence(memory_order_release);
}

/* --- The chain of polls ----------------------------------------------------------- */

static bool is_in_chain(const struct tdt_fiber *fiber)
{
	const struct tdt__poll *poll = tdt__thread.poll;

	while (poll != NULL && poll != &fiber->poll)
		poll = poll->outer;
	return poll != NULL;
}

/* The fiber that the link belongs to; NULL: it is the link of a poll. */
static struct tdt_fiber *fiber_of_link(struct tdt__poll *poll)
{
	if (poll == NULL || !(tdt__is_fiber(poll->task) || tdt__is_callback_task(poll->task)))
		return NULL;
	return tdt__fiber_with(poll);
}

static void free_fiber(struct tdt_fiber *fiber)
{
	struct tdt_handle *task = fiber->task;

	tdt__fiber_give(fiber);
	tdt_handle_unref(task);
}

/* Whether the fiber does not run on this thread any more, although its link is here. */
static bool is_left_behind(struct tdt_fiber *fiber)
{
	return TDT__PEEK(fiber->task->record.thread) != tdt__thread_id() ||
	       atomic_load_explicit(&fiber->link, memory_order_relaxed) == TDT__LINK_ENDED ||
	       atomic_load_explicit(&fiber->ended, memory_order_relaxed) != 0;
}

/* The thread that reported the end of the last poll may have overwritten the state meanwhile. */
static void free_ended(struct tdt_fiber *fiber)
{
	TDT__POKE(fiber->task->record.state, TDT_TASK_RECORD_ENDED);
	free_fiber(fiber);
}

/*
 * Of the two threads of tdt__leave_link(), one frees the fiber.  Release and acquire what both did.
 */
void tdt__reported_free(struct tdt_fiber *fiber, uint64_t id)
{
	if (atomic_compare_exchange_strong_explicit(&fiber->ended, &id, 0, memory_order_acq_rel,
						    memory_order_relaxed))
		free_ended(fiber);
}

/*
 * Take such links out of the inner end of this thread's chain: fibers that were resumed or ended
 * on another thread without a suspend on this one.
 */
static __attribute__((noinline, cold)) void drop_stale_links(void)
{
	struct tdt_fiber *fiber = fiber_of_link(tdt__thread.poll);

	while (fiber != NULL && is_left_behind(fiber)) {
		tdt__thread.poll = fiber->poll.outer;
		tdt__label_end(&fiber->label);
		/*
		 * Release the link to the thread on which the fiber runs (pairs with link_fiber()),
		 * and acquire what the end of the fiber did (pairs with tdt_fiber_end()).
		 */
		if (tdt__is_reported_task(fiber->poll.task))
			tdt__leave_link(fiber, fiber->poll.task->record.id);
		else if (atomic_exchange_explicit(&fiber->link, TDT__LINK_NONE,
						  memory_order_acq_rel) == TDT__LINK_ENDED)
			free_fiber(fiber);
		fiber = fiber_of_link(tdt__thread.poll);
	}
}

/*
 * Take the fiber's link out of this thread's chain, with those of the polls inside it.  Returns
 * whether it was there.
 */
static inline bool unlink_fiber(struct tdt_fiber *fiber)
{
	if (RARELY(tdt__thread.poll != &fiber->poll)) {
		if (!is_in_chain(fiber))
			return false;
		fiber->inner = tdt__thread.poll;
		tdt__label_suspend(&fiber->poll);
	}
	tdt__thread.poll = fiber->poll.outer;
	atomic_store_explicit(&fiber->link, TDT__LINK_NONE, memory_order_relaxed);
	return true;
}

/*
 * Put the fiber's link into this thread's chain.  If the link is still in the chain of another
 * thread, it stays there: the other thread may read it at any time.
 */
static inline void link_fiber(struct tdt_fiber *fiber)
{
	struct tdt__poll *head = &fiber->poll;

	if (RARELY(tdt__thread.poll != NULL))
		drop_stale_links();
	/* Acquire: the other thread has left the link.  Pairs with drop_stale_links(). */
	if (RARELY(atomic_load_explicit(&fiber->link, memory_order_acquire) != TDT__LINK_NONE)) {
		tdt__misuse(tdt__is_fiber(fiber->task) ? TDT_MISUSE_FIBER_RESUME
						       : TDT_MISUSE_TASK_ENTER,
			    fiber->task);
		if (!unlink_fiber(fiber))
			return;
	}
	if (RARELY(fiber->inner != NULL)) {
		head = fiber->inner;
		fiber->inner = NULL;
	}
	tdt__put_link(fiber, head, tdt__thread.poll);
}

/* --- Recording, and labels --------------------------------------------------------- */

/*
 * The run has begun.  A poll inside it whose label went when the fiber was suspended has none from
 * then on, and the fiber's would be that of another task.
 */
static __attribute__((noinline)) void begin_noted(struct tdt_fiber *fiber)
{
	fiber->noted = true;
	if (tdt__recording() && !fiber->record.is_recorded)
		tdt__record_begin(&fiber->record, fiber->task);
	tdt__label_end(&fiber->label); /* that of a run whose end was not reported */
	if (tdt__labels_on() && tdt__thread.poll == &fiber->poll && tdt__is_fiber(fiber->task))
		tdt__label_begin(&fiber->label, &fiber->poll, fiber->task);
}

static __attribute__((noinline)) void end_noted(struct tdt_fiber *fiber, tdt_poll_t result)
{
	fiber->noted = false;
	if (fiber->record.is_recorded)
		tdt__record_end(&fiber->record, fiber->task->record.id, result);
	tdt__label_end(&fiber->label);
}

/* --- Running and standing ----------------------------------------------------------- */

/* The fiber of a future runs: what is stored of its stack is out of date. */
static __attribute__((noinline)) void resume_in_future(struct tdt_fiber *fiber)
{
	tdt__fiber_begin_write(fiber);
}

static inline __attribute__((always_inline)) void begin_run(struct tdt_fiber *fiber)
{
	tdt__note_run(&fiber->task->record, tdt__now(), tdt__thread_id());
	TDT__PROBE_TASK(task__poll__start, fiber->task);
	link_fiber(fiber);
	if (RARELY((tdt__epoch_word() & TDT__EPOCH_FLAGS) != 0))
		begin_noted(fiber);
}

__attribute__((noinline)) void tdt_fiber_resume(struct tdt_fiber *fiber)
{
	if (fiber == NULL)
		return;
	if (RARELY(!fiber->own))
		resume_in_future(fiber);
	else
		begin_run(fiber);
}

/* Store where the fiber is suspended.  On another stack than its own, nothing can be said of it. */
static inline void store_registers(struct tdt_fiber *fiber, struct tdt__registers at)
{
	struct tdt_task_record *record = &fiber->task->record;

	if (RARELY(fiber->stack.size != 0 && at.sp - fiber->stack.low > fiber->stack.size)) {
		tdt__misuse(TDT_MISUSE_FIBER_SUSPEND, fiber->task);
		at.pc = 0;
	}
	TDT__POKE(record->suspended_pc, at.pc);
	TDT__POKE(record->suspended_sp, at.sp);
	TDT__POKE(record->suspended_fp, at.fp);
}

void tdt__fiber_stands(struct tdt_fiber *fiber, struct tdt__registers at)
{
	store_registers(fiber, at);
	/* Release the registers.  Pairs with suspended.c's look(). */
	__atomic_store_n(&fiber->task->record.own_fiber, fiber->item.index, __ATOMIC_RELEASE);
	tdt__fiber_end_write(fiber);
}

/*
 * Answer the requests for the fiber, whose caller stands still until this returns.  All of them get
 * one copy of the stack.
 */
static __attribute__((noinline, cold)) void answer_standing(struct tdt_handle *task)
{
	struct tdt__request *requests = tdt__requests_take(task, NULL);
	struct tdt__standing *standing;
	int error;

	if (requests == NULL)
		return;
	standing = tdt__standing_new(task, &error);
	for (struct tdt__request *request = requests; request != NULL && standing != NULL;
	     request = request->next)
		request->standing = tdt__standing_ref(standing);
	tdt__requests_answer(task, requests, NULL, error);
	tdt__standing_unref(standing);
}

/*
 * The caller of this function waits in the switch: its frame is where the tree of the fiber begins.
 */
__attribute__((noinline)) void tdt_fiber_suspend(struct tdt_fiber *fiber)
{
	const struct tdt__registers at = TDT__CALLER_REGISTERS();
	struct tdt_handle *task;

	if (fiber == NULL)
		return;
	if (RARELY(!fiber->own)) {
		tdt__fiber_begin_write(fiber);
		tdt__fiber_stands(fiber, at);
		return;
	}
	task = fiber->task;
	if (RARELY(task->record.state != TDT_TASK_RECORD_POLLING)) {
		tdt__misuse(TDT_MISUSE_FIBER_SUSPEND, task);
		tdt_fiber_resume(fiber); /* it must have been resumed */
	}
	if (RARELY(!unlink_fiber(fiber)))
		tdt__misuse(TDT_MISUSE_FIBER_SUSPEND, task);
	if (RARELY(fiber->noted))
		end_noted(fiber, TDT_PENDING);
	store_registers(fiber, at);
	/*
	 * Release the registers, and the stack as it is now.  Pairs with look() in suspended.c, and
	 * with tdt__request_see().
	 */
	__atomic_store_n(&task->record.state, TDT_TASK_RECORD_IDLE, __ATOMIC_RELEASE);
	tdt__barrier_light();
	if (RARELY(TDT__PEEK(task->record.own_request) != 0))
		answer_standing(task);
	TDT__PROBE_TASK(task__poll__end, task);
}

/* --- The end -------------------------------------------------------------------------- */

/*
 * The stack no longer belongs to the future: if its record describes this stack, it does no more.
 */
static void leave_future(struct tdt_fiber *fiber)
{
	struct tdt_task_record *record = &fiber->task->record;

	tdt__fiber_begin_write(fiber);
	if (TDT__PEEK(record->own_fiber) == fiber->item.index) {
		TDT__POKE(record->suspended_pc, 0);
		TDT__POKE(record->own_fiber, 0);
	}
	tdt__fiber_end_write(fiber);
	tdt_handle_unref(fiber->task);
	fiber->task = NULL;
}

void tdt__fiber_belongs(struct tdt_fiber *fiber, struct tdt_handle *task)
{
	if (fiber == NULL || fiber->task == task)
		return;
	if (fiber->task != NULL)
		leave_future(fiber);
	if (task != NULL && !tdt__is_fiber(task))
		fiber->task = tdt_handle_ref(task);
}

static void end_in_future(struct tdt_fiber *fiber)
{
	if (fiber->task != NULL)
		leave_future(fiber);
	tdt__fiber_give(fiber);
}

/*
 * Free the fiber, which is not in this thread's chain.  If its link is in the chain of another
 * thread, that thread frees it: release what was done here.  Pairs with drop_stale_links().
 */
static void free_or_leave(struct tdt_fiber *fiber, struct tdt_handle *task)
{
	if (atomic_load_explicit(&fiber->link, memory_order_relaxed) != TDT__LINK_NONE)
		tdt__misuse(TDT_MISUSE_FIBER_END, task);
	if (atomic_exchange_explicit(&fiber->link, TDT__LINK_ENDED, memory_order_acq_rel) ==
	    TDT__LINK_NONE)
		free_fiber(fiber);
}

/* `outcome`: that of a task that does not run. */
static void end_task(struct tdt_fiber *fiber, enum tdt__outcome outcome)
{
	struct tdt_handle *task = fiber->task;
	bool runs = TDT__PEEK(task->record.state) == TDT_TASK_RECORD_POLLING;

	unlink_fiber(fiber);
	if (runs && fiber->noted)
		end_noted(fiber, TDT_READY);
	tdt__task_end(task, runs ? TDT__OUTCOME_READY : outcome, NULL);
	if (runs)
		TDT__PROBE_TASK(task__poll__end, task);
	tdt__holder_over(task);
	free_or_leave(fiber, task);
}

__attribute__((noinline)) void tdt_fiber_end(struct tdt_fiber *fiber)
{
	if (fiber == NULL)
		return;
	if (fiber->own)
		end_task(fiber, TDT__OUTCOME_DROPPED);
	else
		end_in_future(fiber);
}

/* --- Tasks that have only callbacks ------------------------------------------------------ */

/*
 * The task does not stand still.  If it runs, as tdt_leaf_at() has it, on a thread that has not
 * entered it, it stands from now on.  False: it has ended.
 */
static __attribute__((noinline, cold)) bool stand(struct tdt_handle *task)
{
	if (TDT__PEEK(task->record.state) == TDT_TASK_RECORD_ENDED)
		return false;
	if (atomic_load_explicit(&fiber_of_task(task)->link, memory_order_relaxed) ==
	    TDT__LINK_NONE)
		tdt__leaf_pause(task);
	return true;
}

/* A task of tdt_task_new(): those that a runtime reports are not the program's to enter. */
static inline bool is_entered(const struct tdt_handle *task)
{
	return TDT__PEEK(task->record.poll) == (uintptr_t)tdt__callback_poll;
}

/* A run of which nobody hears, on a thread that reports the time, is a matter of few stores. */
static inline bool runs_plainly(const struct tdt_handle *task, uint64_t now, uint32_t thread)
{
	return task->record.state == TDT_TASK_RECORD_IDLE && now != 0 && thread != 0 &&
	       atomic_load_explicit(&fiber_of_task(task)->link, memory_order_relaxed) ==
		       TDT__LINK_NONE &&
	       tdt__thread.poll == NULL && !TDT__PROBED(task__poll__start) && !tdt__recording();
}

/* A function of its own: so the plain way has neither a call nor a register to save. */
static __attribute__((noinline)) void enter_otherwise(struct tdt_handle *task, uintptr_t base)
{
	if (task->record.state != TDT_TASK_RECORD_IDLE && !stand(task))
		return;
	TDT__POKE(task->record.stack_top, base);
	begin_run(fiber_of_task(task));
	tdt__barrier_copying();
}

/*
 * The list at which the task waited stays, as the place where it came from.  The caller may change
 * it after this, so the stores come first: pairs with tdt__barrier_copied().
 */
__attribute__((noinline)) void tdt_task_enter_at(struct tdt_handle *task, uintptr_t base)
{
	uint64_t now = tdt__thread.now;
	uint32_t thread = tdt__thread.id;

	if (RARELY(task == NULL || !is_entered(task)))
		return;
	if (!runs_plainly(task, now, thread)) {
		enter_otherwise(task, base);
		return;
	}
	TDT__POKE(task->record.stack_top, base);
	tdt__note_run(&task->record, now, thread);
	tdt__put_link(fiber_of_task(task), &fiber_of_task(task)->poll, NULL);
	tdt__barrier_copying();
}

/* Take the link out of the middle of this thread's chain: what was entered later goes on. */
static __attribute__((noinline, cold)) bool take_from_chain(struct tdt_fiber *fiber)
{
	struct tdt__poll **link = &tdt__thread.poll;

	while (*link != NULL && *link != &fiber->poll)
		link = &(*link)->outer;
	if (*link == NULL)
		return false;
	*link = fiber->poll.outer;
	atomic_store_explicit(&fiber->link, TDT__LINK_NONE, memory_order_relaxed);
	return true;
}

/* What follows the last store of a run: a request may have come meanwhile. */
static __attribute__((noinline)) void answer_left(struct tdt_handle *task)
{
	if (TDT__PEEK(task->record.own_request) != 0)
		tdt__leaf_answer(task);
	TDT__PROBE_TASK(task__poll__end, task);
}

/* `again`: it waits where it did, and that has waits. */
static __attribute__((noinline)) void leave_noting(struct tdt_handle *task, bool again)
{
	struct tdt_fiber *fiber = fiber_of_task(task);

	tdt__leaf_waits(task, tdt__leaf_of(task), again, fiber->record.is_recorded);
	if (fiber->noted)
		end_noted(fiber, TDT_PENDING);
	tdt__store_idle(task);
	tdt__barrier_light();
	answer_left(task);
}

/* The link is out of the chain. */
static inline __attribute__((always_inline)) void leave(struct tdt_handle *task,
							struct tdt_fiber *fiber)
{
	bool again;

	atomic_store_explicit(&fiber->link, TDT__LINK_NONE, memory_order_relaxed);
	again = tdt__leaf_stays(task);
	if (again || RARELY(fiber->record.is_recorded) || RARELY(tdt__barrier_is_heavy())) {
		leave_noting(task, again);
		return;
	}
	tdt__store_idle(task);
	atomic_signal_fence(memory_order_seq_cst); /* all of tdt__barrier_light() here */
	if (RARELY(TDT__PEEK(task->record.own_request) != 0) || TDT__PROBED(task__poll__end))
		answer_left(task);
}

static __attribute__((noinline, cold)) void leave_wrongly(struct tdt_handle *task)
{
	struct tdt_fiber *fiber = fiber_of_task(task);

	if (TDT__PEEK(task->record.state) == TDT_TASK_RECORD_ENDED)
		return;
	tdt__misuse(TDT_MISUSE_TASK_LEAVE, task);
	if (take_from_chain(fiber))
		leave(task, fiber);
}

/* As tdt_task_enter_at(): all that it calls comes last. */
__attribute__((noinline)) void tdt_task_leave(struct tdt_handle *task)
{
	struct tdt_fiber *fiber;

	if (RARELY(task == NULL || !is_entered(task)))
		return;
	fiber = fiber_of_task(task);
	if (RARELY(tdt__thread.poll != &fiber->poll)) {
		leave_wrongly(task);
		return;
	}
	tdt__thread.poll = fiber->poll.outer;
	leave(task, fiber);
}

void tdt_task_end(struct tdt_handle *task)
{
	if (task == NULL || !is_entered(task) || !stand(task))
		return;
	if (tdt__thread.poll != &fiber_of_task(task)->poll)
		take_from_chain(fiber_of_task(task));
	end_task(fiber_of_task(task), TDT__OUTCOME_READY);
	tdt_handle_unref(task);
}

/* --- Tasks that a runtime reports ---------------------------------------------------------- */

/* A runtime that shuts down may report the end on another thread as soon as the fiber is added. */
struct tdt_fiber *tdt__reported_new(const struct tdt_task_attr *attr)
{
	poll_fn *nobodys = (poll_fn *)(uintptr_t)TDT_TASK_RECORD_REPORTED; /* nobody calls it */
	struct tdt_fiber *fiber = tdt__fiber_take();

	if (fiber == NULL)
		return NULL;
	if (!fiber->has_record)
		reset_fiber(fiber, NULL, 0);
	if (!own_task(fiber, nobodys, attr)) {
		tdt__fiber_give(fiber);
		return NULL;
	}
	tdt__reported_add(fiber, attr->id);
	return fiber;
}

/*
 * Take polls out of this thread's chain whose ends were not reported: the frame at which such a
 * poll began lies no higher than that of the one that begins.
 */
static void drop_lost_polls(uintptr_t base)
{
	while (tdt__thread.poll != NULL && tdt__is_reported_task(tdt__thread.poll->task) &&
	       tdt__thread.poll->task->record.stack_top <= base)
		tdt__reported_leave(tdt__thread.poll->task->record.id);
}

__attribute__((noinline)) void tdt__reported_enter(struct tdt_fiber *fiber, uintptr_t base)
{
	TDT__POKE(fiber->task->record.stack_top, base);
	drop_lost_polls(base);
	tdt__note_run(&fiber->task->record, tdt__now(), tdt__thread_id());
	/*
	 * A runtime may report the end of the last poll after the next one has begun elsewhere:
	 * then the link is still there.
	 */
	if (atomic_load_explicit(&fiber->link, memory_order_relaxed) == TDT__LINK_NONE)
		link_fiber(fiber);
}

/*
 * A poll that was not linked may be over already, or have moved on: only the thread that polled
 * last says that the task waits, and not of one that has ended.  The fiber may be another task's by
 * now, or have none: records stay records.
 */
__attribute__((noinline)) void tdt__reported_leave(uint64_t id)
{
	struct tdt__poll *poll = tdt__thread.poll;
	uint32_t polling = TDT_TASK_RECORD_POLLING;
	struct tdt_fiber *fiber;
	struct tdt_handle *task;

	while (poll != NULL &&
	       (poll->task->record.id != id || !tdt__is_reported_task(poll->task)))
		poll = poll->outer;
	if (poll != NULL)
		tdt__thread.poll = poll->outer;
	fiber = poll != NULL ? tdt__fiber_with(poll) : tdt__reported_find(id);
	task = fiber != NULL && TDT__PEEK(fiber->own) ? TDT__PEEK(fiber->task) : NULL;
	if (task != NULL && TDT__PEEK(task->record.thread) == tdt__thread_id()) {
		/* Release all that the task did.  Pairs with tdt__request_see(). */
		__atomic_compare_exchange_n(&task->record.state, &polling, TDT_TASK_RECORD_IDLE,
					    false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
		tdt__barrier_light();
		if (TDT__PEEK(task->record.own_request) != 0)
			tdt__leaf_answer(task);
	}
	if (poll != NULL)
		tdt__leave_link(fiber, id);
}

/*
 * Free the fiber of a task that has ended, or leave that to the thread whose chain has the link.
 * See tdt__leave_link().
 */
static void end_link(struct tdt_fiber *fiber)
{
	uint64_t id = fiber->task->record.id;

	/* Acquire what the thread did that left the link. */
	if (atomic_load_explicit(&fiber->link, memory_order_acquire) == TDT__LINK_NONE) {
		free_ended(fiber);
		return;
	}
	atomic_store_explicit(&fiber->ended, id, memory_order_release);
	tdt__barrier_heavy();
	if (atomic_load_explicit(&fiber->link, memory_order_acquire) == TDT__LINK_NONE)
		tdt__reported_free(fiber, id);
}

void tdt__reported_end(struct tdt_fiber *fiber, tdt_poll_t result)
{
	struct tdt_handle *task = fiber->task;
	enum tdt__outcome outcome = result == TDT_READY	     ? TDT__OUTCOME_READY
				    : result == TDT_PANICKED ? TDT__OUTCOME_PANICKED
							     : TDT__OUTCOME_DROPPED;
	bool ends = TDT__PEEK(task->record.state) != TDT_TASK_RECORD_ENDED, seen;
	unsigned both = 2;

	if (!fiber->own) {
		free_fiber(fiber);
		return;
	}
	fiber->own = false;
	unlink_fiber(fiber);
	fiber->inner = NULL;
	/*
	 * Most tasks end when nobody else has a reference.  Acquire: as in end_link(); and release
	 * and acquire as tdt__refs_drop() does, of both references at once.
	 */
	seen = result == TDT_PANICKED ||
	       atomic_load_explicit(&fiber->link, memory_order_acquire) != TDT__LINK_NONE ||
	       !atomic_compare_exchange_strong_explicit(&task->refs, &both, 0, memory_order_acq_rel,
							memory_order_relaxed);
	/* Without a reference there are neither requests nor joiners. */
	if (seen || TDT__PROBED(task__terminate) || tdt__recording())
		tdt__task_end(task, outcome, NULL);
	if (ends)
		tdt__holder_over(task);
	if (seen) {
		tdt_handle_unref(task);
		end_link(fiber);
	} else {
		tdt__handle_over(task);
		fiber->has_record = true;
		tdt__fiber_give(fiber);
	}
}

struct tdt_fiber *tdt__reported_adopt(struct tdt_fiber *fiber, struct tdt_handle *task)
{
	if (fiber != NULL && fiber->own) {
		tdt__registry_uncount();
		/* It goes on as the other one: nothing is to be said of an end. */
		TDT__POKE(fiber->task->record.state, TDT_TASK_RECORD_ENDED);
	}
	if (fiber != NULL)
		tdt__reported_end(fiber, TDT_PENDING);
	fiber = tdt__fiber_new(NULL, 0);
	if (fiber != NULL)
		fiber->task = tdt_handle_ref(task);
	return fiber;
}
