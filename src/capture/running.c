// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reading the stack of a poll in progress: the choice of the way, and the checks of the result. */

#include "capture/running.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/syscall_name.h"
#include "capture/capture.h"
#include "capture/chain.h"
#include "capture/fiber.h"
#include "capture/interrupt.h"
#include "capture/judge.h"
#include "capture/leaf_list.h"
#include "capture/stack_pieces.h"
#include "facts/record.h"
#include "host/proc_thread.h"
#include "host/thread.h"
#include "host/unloads.h"
#include "registry/handle.h"
#include "registry/registry.h"

#define READ_TRIES 3

uint64_t tdt__running_poll(const struct tdt_handle *task)
{
	/* Acquire what the poll wrote to the record.  Pairs with tdt__traced_poll()'s release. */
	if (__atomic_load_n(&task->record.state, __ATOMIC_ACQUIRE) != TDT_TASK_RECORD_POLLING)
		return 0;
	return TDT__PEEK(task->record.polls);
}

/*
 * Whether the poll has been in progress since its record was read, on that thread, with that
 * beginning of its stack.
 */
static bool still_runs(const struct tdt_handle *task, uint64_t polls, uint32_t thread,
		       uintptr_t top)
{
	/*
	 * Orders all earlier reads of the poll before those below.  A poll stores that it has ended
	 * before its thread does anything else.
	 */
	atomic_thread_fence(memory_order_acquire);
	return tdt__running_poll(task) == polls && TDT__PEEK(task->record.thread) == thread &&
	       TDT__PEEK(task->record.stack_top) == top;
}

/* Whether the thread is still blocked where it was. */
static bool still_blocked(uint32_t thread, const struct tdt__blocked *before)
{
	struct tdt__blocked now;

	return tdt__proc_blocked(thread, &now) == 0 && strcmp(now.text, before->text) == 0;
}

/*
 * Read the stack of a blocked thread, whose record may be NULL.  -EAGAIN: the thread is no longer
 * blocked there, or was running in between.
 */
static int read_blocked(const struct tdt_handle *task, uint64_t polls, uint32_t thread,
			const struct tdt__blocked *blocked, const struct tdt__thread *record,
			struct tdt__pieces *copy)
{
	const struct tdt__registers at = {
		.pc = blocked->pc, .sp = blocked->sp, .fp = TDT__NO_FP
	};
	uintptr_t top = TDT__PEEK(task->record.stack_top);
	struct tdt_stack fiber;
	int error;

	error = tdt__pieces_plan(copy, at, top, record,
				 tdt__fiber_stack(task, &fiber) ? &fiber : NULL);
	if (error == 0) {
		if (copy->end == TDT_CUT_NOT && !tdt__is_callback_task(task))
			copy->piece[copy->n - 1].poll = (uintptr_t)task->record.poll;
		error = tdt__pieces_copy(copy);
	}
	if (still_blocked(thread, blocked) && still_runs(task, polls, thread, top))
		return error;
	if (error == 0)
		free(copy->bytes);
	return -EAGAIN;
}

/*
 * Read the stack in either way.  `*call` is the number of the system call that the thread is
 * blocked in; -1: none.
 */
static int read_stack(const struct tdt_handle *task, uint64_t polls, uint64_t deadline,
		      struct tdt__pieces *copy, int32_t *call)
{
	uint32_t thread = TDT__PEEK(task->record.thread);
	int error = -EAGAIN;

	for (int i = 0; i < READ_TRIES && error == -EAGAIN; i++) {
		const struct tdt__thread *known;
		struct tdt__blocked blocked;
		struct tdt__thread record;

		error = tdt__proc_blocked(thread, &blocked);
		if (error != 0)
			return error == -ESRCH ? error : -EPERM;
		if (tdt__running_poll(task) != polls)
			return -EAGAIN;
		known = !blocked.runs && tdt__thread_peek(thread, &record) ? &record : NULL;
		/*
		 * A thread that is blocked while it serves another requester is not blocked in its
		 * poll: the poll runs.
		 */
		if (known != NULL && known->interrupted)
			blocked.runs = true;
		*call = blocked.runs ? -1 : blocked.call;
		error = blocked.runs ? tdt__interrupt(task, polls, thread, deadline, copy)
				     : read_blocked(task, polls, thread, &blocked, known, copy);
	}
	return error;
}

/* Fill in what the record says about the poll. */
static void fill_in(struct tdt__capture *capture, const struct tdt_task_record *record,
		    uint64_t polls, int32_t call)
{
	uint64_t now = tdt__clock();

	capture->facts.state = TDT_TASK_RUNNING;
	capture->facts.state_ns = tdt__time_since(now, TDT__PEEK(record->since));
	capture->facts.polls = polls;
	capture->facts.woken_ns = tdt__time_since(now, TDT__PEEK(record->woken));
	capture->facts.woken_by = TDT__PEEK(record->woken_by);
	capture->facts.thread = TDT__PEEK(record->thread);
	capture->facts.syscall = call >= 0 ? tdt__syscall_name(call) : NULL;
}

static struct tdt__capture *capture_once(struct tdt_handle *task, uint64_t polls,
					 uint32_t max_frames, uint64_t deadline, int *error)
{
	struct tdt__capture *capture;
	struct tdt__pieces copy;
	uint32_t changes;
	int32_t call;

	if (tdt__polled_here(task) || TDT__PEEK(task->record.thread) == tdt__thread_id()) {
		*error = -EDEADLK;
		return NULL;
	}
	/* A task that runs and was not entered: it is not known where its stack begins. */
	if (tdt__is_callback_task(task) && TDT__PEEK(task->record.stack_top) == 0) {
		*error = -ENOTSUP;
		return NULL;
	}
	capture = tdt__capture_new(TDT__FIRST_FRAMES, max_frames);
	if (capture == NULL) {
		*error = -ENOMEM;
		return NULL;
	}
	changes = tdt__leaf_list_changes(task);
	*error = read_stack(task, polls, deadline, &copy, &call);
	if (*error == 0) {
		*error = tdt__pieces_capture(&copy, capture);
		free(copy.bytes);
		tdt__leaf_list_append(capture, task, polls - 1, changes);
		fill_in(capture, &task->record, polls, call);
	}
	/*
	 * If the poll has ended meanwhile, that may be the cause of an error.  If there was none,
	 * facts of the next poll would be reported as facts of this one.
	 */
	if (tdt__running_poll(task) != polls)
		*error = -EAGAIN;
	if (*error == 0)
		return capture;
	tdt__capture_unref(capture);
	return NULL;
}

/* Capture again if a module was unloaded while the stack was read and walked. */
static struct tdt__capture *capture_running(struct tdt_handle *task, uint64_t polls,
					    uint32_t max_frames, uint64_t deadline, int *error)
{
	for (int tries = 1;; tries++) {
		struct tdt__capture *capture =
			capture_once(task, polls, max_frames, deadline, error);
		struct tdt__unloads count = { .deadline = deadline };

		if (capture == NULL || tdt__judge(&capture->stacks, &count) != -EAGAIN ||
		    tries == READ_TRIES)
			return capture;
		tdt__capture_unref(capture);
	}
}

/* A cancellation of the calling thread is delayed: it would leave slots and descriptors behind. */
struct tdt__capture *tdt__running(struct tdt_handle *task, uint64_t polls, uint32_t max_frames,
				  uint64_t deadline, int *error)
{
	struct tdt__capture *capture;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	capture = capture_running(task, polls, max_frames, deadline, error);
	pthread_setcancelstate(state, NULL);
	return capture;
}
