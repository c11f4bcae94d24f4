// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The window of tasks that have an outstanding request. */

#include "dump/request_all.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/chain.h"
#include "capture/counted.h"
#include "capture/fiber.h"
#include "capture/judge.h"
#include "capture/leaf_list.h"
#include "capture/running.h"
#include "capture/suspended.h"
#include "host/barrier.h"
#include "host/unloads.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "task/request.h"

#define WINDOW 512u /* requests at a time: 1 MB or so, which may stay in a cache */
#define BATCH 256u  /* requests listed before one barrier */

/* How long a poll may last before its stack is read; and how often such polls are looked for. */
#define GRACE UINT64_C(10000000)

#define LEAST_FRAMES 32u  /* room for frames: the least prepared, also if the task took fewer */
#define FEW_LEAVES 4u     /* counted clones in a prepared capture: most tasks have no more leaves */
#define MANY_LEAVES 16u   /* counted clones per task that are in stock for a batch */
#define MOST_FRAMES 1024u /* room for frames: the most prepared, because a capture can grow */

/* A task with an outstanding request, or a free slot. */
struct slot {
	struct tdt__request *request; /* kept after the answer, for the next task; NULL: none */
	struct tdt_handle *task;      /* NULL: the slot is free */
	struct tdt__capture *read;    /* the stack of a suspended fiber; NULL: it was not read */
	size_t index;
	uint64_t requested_at;
	int tries;
	/*
	 * The number of the poll in which the task was last seen (0: in none), and when it was
	 * first seen in it.
	 */
	uint64_t polling;
	uint64_t polling_since;
	bool unknown_stack; /* that poll was found on a stack that is not known as its own */
};

struct window {
	const struct tdt__requests *requests;
	size_t next; /* the index of the next task to request */
	uint64_t now;
	uint64_t looked_at; /* when long polls were last looked for */
	uint64_t answered_at;

	struct slot *slot;
	uint32_t slots;
	uint32_t *free; /* the numbers of the free slots */
	uint32_t n_free;
	unsigned taken; /* how many answers were taken out of the inbox */
	struct tdt__inbox inbox;

	/*
	 * Captures to be used again.  The last one that came in is used first, because it is still
	 * in a cache.
	 */
	struct tdt__capture **spare;
	uint32_t n_spare;

	struct tdt__walk walk; /* from which captures are prepared */
	bool ready;            /* `walk` is initialized */
};

/* --- Captures ----------------------------------------------------------------- */

static void keep_spare(struct window *window, struct tdt__capture *capture)
{
	if (window->n_spare == window->slots) {
		tdt__capture_unref(capture);
		return;
	}
	window->spare[window->n_spare++] = capture;
}

/* Take a spare capture and reset it; NULL: there is none. */
static struct tdt__capture *take_spare(struct window *window, uint32_t frames)
{
	struct tdt__capture *capture;

	if (window->n_spare == 0)
		return NULL;
	capture = window->spare[--window->n_spare];
	if (tdt__capture_reuse(capture, &window->walk, frames))
		return capture;
	tdt__capture_unref(capture);
	return NULL;
}

static struct tdt__capture *new_bare_capture(struct window *window, struct tdt_handle *task)
{
	uint32_t frames = tdt__frames_hint(task);
	struct tdt__capture *capture;

	if (frames < LEAST_FRAMES)
		frames = LEAST_FRAMES;
	if (frames > MOST_FRAMES)
		frames = MOST_FRAMES;
	capture = take_spare(window, frames);
	if (capture == NULL)
		capture = tdt__capture_new_by(&window->walk, frames, window->requests->max_frames);
	return capture;
}

/* A capture that a poll can take, with counted clones. */
static struct tdt__capture *new_capture(struct window *window, struct tdt_handle *task)
{
	struct tdt__capture *capture = new_bare_capture(window, task);

	if (capture == NULL)
		return NULL;
	if (!tdt__capture_expect_clones(capture)) {
		tdt__capture_unref(capture);
		return NULL;
	}
	tdt__counted_prepare(capture, FEW_LEAVES);
	return capture;
}

/* Prepare the walk for the modules that are loaded now.  Returns whether captures can be made. */
static bool get_ready(struct window *window)
{
	if (window->ready)
		tdt__walk_fini(&window->walk);
	window->ready = tdt__walk_init(&window->walk);
	return window->ready;
}

/* --- Slots ---------------------------------------------------------------------- */

static void vacate(struct window *window, struct slot *slot)
{
	slot->task = NULL;
	window->free[window->n_free++] = (uint32_t)(slot - window->slot);
}

static uint32_t outstanding(const struct window *window)
{
	return window->slots - window->n_free;
}

static void report(const struct window *window, size_t index, enum tdt_answer answer,
		   struct tdt__capture *capture)
{
	window->requests->answer(window->requests->arg, index, answer, capture, false);
}

/*
 * Whether the task can answer.  Without a list at which it waits, it can't if it is in the middle
 * of a poll on this thread, nor in a child of fork() that does not have the thread that polls it.
 */
static bool may_answer(const struct tdt_handle *task)
{
	return tdt__waits_at_list(task) ||
	       (!tdt__polled_here(task) && tdt__thread_is_here(TDT__PEEK(task->record.thread)));
}

/* List a request for `task`, which gets the slot.  False: no memory. */
static bool list_request(struct window *window, struct slot *slot, struct tdt_handle *task)
{
	struct tdt__capture *capture = new_capture(window, task);

	if (capture != NULL && slot->request == NULL)
		slot->request = tdt__request_with(capture);
	else if (capture != NULL)
		slot->request->capture = capture;
	if (capture == NULL || slot->request == NULL) {
		tdt__capture_unref(capture);
		return false;
	}
	slot->request->inbox = &window->inbox;
	slot->request->slot = slot;
	slot->task = task;
	slot->requested_at = window->now;
	slot->tries++;
	slot->polling = 0;
	slot->unknown_stack = false;
	tdt__request_list(task, slot->request);
	return true;
}

/* Read the stack of a fiber into `slot->read`.  -EAGAIN: it is not suspended, or not a fiber. */
static int read_fiber_into(struct window *window, struct slot *slot, struct tdt_handle *task)
{
	int error;

	slot->read = NULL;
	if (!tdt__is_fiber(task) || !tdt__is_suspended(task))
		return -EAGAIN;
	slot->read = new_bare_capture(window, task);
	error = slot->read != NULL ? tdt__suspended(task, slot->read) : -ENOMEM;
	slot->task = task;
	if (error == 0)
		return 0;
	slot->task = NULL;
	if (slot->read != NULL)
		keep_spare(window, slot->read);
	slot->read = NULL;
	return error;
}

/*
 * The stack of a task that gives no answer, if it is a future that runs on a fiber.  NULL: there is
 * none.
 */
static struct tdt__capture *read_unanswered(const struct window *window, struct tdt_handle *task)
{
	int error;

	if (tdt__is_fiber(task))
		return NULL; /* it was read, or cannot be */
	return tdt__suspended_capture(task, window->requests->max_frames,
				      window->requests->deadline, &error);
}

static void report_unanswered(const struct window *window, size_t index, struct tdt_handle *task,
			      bool unknown_stack)
{
	struct tdt__capture *capture = read_unanswered(window, task);

	window->requests->answer(window->requests->arg, index,
				 capture != NULL ? TDT_ANSWER_FRESH : TDT_ANSWER_NONE, capture,
				 unknown_stack);
	tdt__capture_unref(capture);
}

/*
 * Read the next task if it is a suspended fiber; else list a request for it.  NULL: neither was
 * possible.
 */
static struct slot *list_next(struct window *window)
{
	struct tdt_handle *task = window->requests->task(window->requests->arg, window->next);
	struct slot *slot = &window->slot[window->free[window->n_free - 1]];
	size_t index = window->next++;
	int error;

	if (task == NULL) {
		report(window, index, TDT_ANSWER_NONE, NULL);
		return NULL;
	}
	error = read_fiber_into(window, slot, task);
	slot->tries = 0;
	if (error != 0 && (error != -EAGAIN || !may_answer(task) ||
			   !list_request(window, slot, task))) {
		report_unanswered(window, index, task, false);
		return NULL;
	}
	window->n_free--;
	slot->index = index;
	return slot;
}

/* Report the fiber that was read.  If the walk may have gone astray, read it again. */
static void settle_read(struct window *window, struct slot *slot, struct tdt__unloads *count)
{
	struct tdt__capture *capture = slot->read, *again = NULL;
	struct tdt_handle *task = slot->task;
	int error;

	slot->read = NULL;
	vacate(window, slot);
	if (tdt__judge(&capture->stacks, count) == -EAGAIN)
		again = tdt__suspended_capture(task, window->requests->max_frames,
					       window->requests->deadline, &error);
	report(window, slot->index, TDT_ANSWER_FRESH, again != NULL ? again : capture);
	tdt__capture_unref(again);
	keep_spare(window, capture);
}

/*
 * Report the fibers of a batch that were read, and take them out of the batch.  Returns how many
 * slots are left in it.
 */
static uint32_t settle_all_read(struct window *window, struct slot **batch, uint32_t n)
{
	struct tdt__unloads count = { .deadline = window->requests->deadline };
	uint32_t left = 0;

	for (uint32_t i = 0; i < n; i++)
		if (batch[i]->read != NULL)
			settle_read(window, batch[i], &count);
		else
			batch[left++] = batch[i];
	if (left != n)
		window->answered_at = window->now;
	return left;
}

/* Withdraw the slot's request.  False: it has been answered. */
static bool withdraw(struct window *window, struct slot *slot)
{
	if (!tdt__request_withdraw(slot->task, slot->request))
		return false;
	slot->request = NULL;
	vacate(window, slot);
	return true;
}

/*
 * Read the task of the slot if it is a fiber that is suspended by now: it may not have seen the
 * request.  Returns whether the slot is free.
 */
static bool look_at_fiber(struct window *window, struct slot *slot)
{
	struct tdt__capture *capture;
	int error;
	bool read;

	if (!tdt__is_fiber(slot->task))
		return false;
	capture = tdt__suspended_capture(slot->task, window->requests->max_frames,
					 window->requests->deadline, &error);
	read = capture != NULL && withdraw(window, slot);
	if (read)
		report(window, slot->index, TDT_ANSWER_FRESH, capture);
	tdt__capture_unref(capture);
	return read;
}

static bool is_past_deadline(const struct window *window)
{
	/*
	 * This clock is some milliseconds late, which is better than the cost of the precise clock
	 * for each task.
	 */
	return tdt__clock_of(CLOCK_MONOTONIC_COARSE) >= window->requests->deadline;
}

static void request_batch(struct window *window)
{
	struct slot *batch[BATCH];
	uint32_t n = 0;

	if (!get_ready(window)) {
		report(window, window->next++, TDT_ANSWER_NONE, NULL);
		return;
	}
	tdt__counted_stock(window->slots < BATCH ? window->slots * MANY_LEAVES
						 : BATCH * MANY_LEAVES);
	while (n < BATCH && window->n_free > 0 && window->next < window->requests->n) {
		struct slot *slot = list_next(window);

		if (slot != NULL)
			batch[n++] = slot;
	}
	n = settle_all_read(window, batch, n);
	if (n > 0)
		tdt__barrier_heavy();
	/*
	 * A runtime may poll inside its wake: then all requests are answered here, and that may
	 * take any time.
	 */
	for (uint32_t i = 0; i < n && !is_past_deadline(window); i++) {
		tdt__request_see(batch[i]->task);
		look_at_fiber(window, batch[i]);
	}
	window->now = tdt__clock();
}

/* --- Answers ---------------------------------------------------------------------- */

/* List another request for the task of the slot, which has answered.  False: no memory. */
static bool request_again(struct window *window, struct slot *slot,
			  const struct tdt__unloads *count)
{
	bool ready = (window->ready && tdt__walk_modules(&window->walk)->unloads == count->n) ||
		     get_ready(window);

	if (!ready || !list_request(window, slot, slot->task))
		return false;
	tdt__barrier_heavy();
	tdt__request_see(slot->task);
	return true;
}

/* Whether the walk may have gone astray, and there is time for another request. */
static bool is_worth_another(const struct window *window, const struct slot *slot,
			     struct tdt__capture *capture, struct tdt__unloads *count)
{
	return tdt__judge(&capture->stacks, count) == -EAGAIN &&
	       capture->facts.state == TDT_TASK_WAITING && slot->tries < TDT__REQUEST_TRIES &&
	       window->now < window->requests->deadline;
}

static void settle(struct window *window, struct slot *slot, struct tdt__unloads *count)
{
	int error;
	struct tdt__capture *capture = tdt__request_empty(slot->request, &error);

	if (capture != NULL && is_worth_another(window, slot, capture, count) &&
	    request_again(window, slot, count)) {
		keep_spare(window, capture);
		return;
	}
	vacate(window, slot);
	report(window, slot->index, TDT_ANSWER_FRESH, capture);
	if (capture != NULL)
		keep_spare(window, capture);
}

static void take_answers(struct window *window)
{
	struct tdt__request *request = tdt__inbox_take(&window->inbox);
	/* One count of unloads serves all of them. */
	struct tdt__unloads count = { .deadline = window->requests->deadline };

	if (request != NULL)
		window->answered_at = window->now;
	while (request != NULL) {
		struct tdt__request *next = request->next;

		window->taken++;
		settle(window, request->slot, &count);
		request = next;
	}
}

static void give_up(struct window *window, struct slot *slot)
{
	struct tdt_handle *task = slot->task;

	if (!withdraw(window, slot))
		return;
	if (TDT__PEEK(task->record.state) == TDT_TASK_RECORD_ENDED)
		report(window, slot->index, TDT_ANSWER_FRESH, NULL);
	else
		report_unanswered(window, slot->index, task, slot->unknown_stack);
}

/* --- Long polls ---------------------------------------------------------------------- */

/* Read the task's stack if it is still in the same poll as GRACE ago, or a suspended fiber. */
static void look_at(struct window *window, struct slot *slot)
{
	uint64_t polls = tdt__running_poll(slot->task);
	struct tdt__capture *capture;
	int error;

	if (look_at_fiber(window, slot))
		return;
	if (polls != slot->polling) {
		slot->polling = polls;
		slot->polling_since = window->now;
		slot->unknown_stack = false;
	}
	if (polls == 0 || window->now - slot->polling_since < GRACE)
		return;
	if (window->requests->leaves_running) {
		if (withdraw(window, slot))
			report(window, slot->index, TDT_ANSWER_RUNNING, NULL);
		return;
	}
	/* One thread whose stack can't be read must not take all the time. */
	capture = tdt__running(slot->task, polls, window->requests->max_frames,
			       tdt__earlier(tdt__clock() + GRACE, window->requests->deadline),
			       &error);
	window->now = tdt__clock();
	if (capture == NULL && error == -ENOTSUP)
		slot->unknown_stack = true;
	slot->polling_since = window->now; /* if the stack was not read, it is tried again */
	if (capture != NULL && withdraw(window, slot))
		report(window, slot->index, TDT_ANSWER_RUNNING, capture);
	tdt__capture_unref(capture);
}

static void look_at_all(struct window *window)
{
	window->looked_at = window->now;
	for (uint32_t i = 0; i < window->slots && window->now < window->requests->deadline; i++)
		if (window->slot[i].task != NULL)
			look_at(window, &window->slot[i]);
}

/* --- All tasks -------------------------------------------------------------------------- */

/* Wait until enough answers have come to go on. */
static void wait_for_answers(struct window *window)
{
	uint32_t n = outstanding(window);

	if (window->next < window->requests->n && n > BATCH)
		n = BATCH;
	tdt__inbox_wait(&window->inbox, window->taken + n,
			tdt__earlier(window->looked_at + GRACE, window->requests->deadline));
	window->now = tdt__clock();
}

/*
 * The window is full, and no task answers.  Each window that is still to come gets an equal share
 * of the time that is left.  A request that has had its share is given up.
 */
static void make_room(struct window *window)
{
	uint64_t rounds =
	    (window->requests->n - window->next + window->slots - 1) / window->slots + 1;
	uint64_t share = (window->requests->deadline - window->now) / rounds;

	if (window->now - window->answered_at < share)
		return;
	for (uint32_t i = 0; i < window->slots; i++)
		if (window->slot[i].task != NULL &&
		    window->now - window->slot[i].requested_at >= share)
			give_up(window, &window->slot[i]);
	window->answered_at = window->now;
}

static void request_and_wait(struct window *window)
{
	while ((window->next < window->requests->n || outstanding(window) > 0) &&
	       window->now < window->requests->deadline) {
		if (window->next < window->requests->n && window->n_free > 0)
			request_batch(window);
		else
			wait_for_answers(window);
		take_answers(window);
		if (window->now - window->looked_at >= GRACE)
			look_at_all(window);
		if (window->next < window->requests->n && window->n_free == 0 &&
		    window->now < window->requests->deadline)
			make_room(window);
	}
}

static bool begin(struct window *window)
{
	window->slots = window->requests->n < WINDOW ? (uint32_t)window->requests->n : WINDOW;
	window->slot = calloc(window->slots, sizeof window->slot[0]);
	window->free = malloc(window->slots * sizeof window->free[0]);
	window->spare = malloc(window->slots * sizeof(struct tdt__capture *));
	if (window->slot == NULL || window->free == NULL || window->spare == NULL)
		return false;
	/* The lowest numbers are taken first, so that few tasks touch little memory. */
	while (window->n_free < window->slots) {
		window->free[window->n_free] = window->slots - 1 - window->n_free;
		window->n_free++;
	}
	window->now = window->looked_at = window->answered_at = tdt__clock();
	return true;
}

/*
 * Runs also if the thread is cancelled while it waits, or if a waker unwinds: then some requests
 * are still outstanding.
 */
static void end(struct window *window)
{
	struct tdt__capture *capture;
	int error;

	for (uint32_t i = 0; window->slot != NULL && i < window->slots; i++)
		if (window->slot[i].read != NULL)
			tdt__capture_unref(window->slot[i].read);
		else if (window->slot[i].task != NULL)
			withdraw(window, &window->slot[i]);
	tdt__inbox_fini(&window->inbox);
	for (uint32_t i = 0; window->slot != NULL && i < window->slots; i++) {
		if (window->slot[i].request == NULL)
			continue;
		capture = tdt__request_empty(window->slot[i].request, &error);
		tdt__capture_unref(capture);
		tdt__request_free(window->slot[i].request);
	}
	while (window->n_spare > 0)
		tdt__capture_unref(window->spare[--window->n_spare]);
	if (window->ready)
		tdt__walk_fini(&window->walk);
	free(window->spare);
	free(window->free);
	free(window->slot);
}

void tdt__request_all(const struct tdt__requests *requests)
{
	struct window window __attribute__((cleanup(end))) = { .requests = requests };

	tdt__inbox_init(&window.inbox);
	if (requests->n != 0 && begin(&window)) {
		request_and_wait(&window);
		for (uint32_t i = 0; i < window.slots; i++)
			if (window.slot[i].task != NULL)
				give_up(&window, &window.slot[i]);
		take_answers(&window);
	}
	while (window.next < requests->n)
		report(&window, window.next++, TDT_ANSWER_NONE, NULL);
}
