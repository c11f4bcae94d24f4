// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The window of tasks that have an outstanding request. */

#include <config.h>

#include "dump/request_all.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/chain.h"
#include "capture/counted.h"
#include "capture/judge.h"
#include "capture/running.h"
#include "host/barrier.h"
#include "host/unloads.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "task/request.h"

#define WINDOW 512u /* requests at a time: 1 MB or so, which may stay in a cache */
#define BATCH 256u  /* requests listed before one barrier */

/* How long a poll may last before its stack is read; and how often such polls are looked for. */
#define GRACE UINT64_C(10000000)

#define TRIES 3

#define LEAST_FRAMES 32u  /* room for frames: the least prepared, also if the task took fewer */
#define FEW_LEAVES 4u     /* counted clones in a prepared capture: most tasks have no more leaves */
#define MANY_LEAVES 16u   /* counted clones per task that are in stock for a batch */
#define MOST_FRAMES 1024u /* room for frames: the most prepared, because a capture can grow */

/* A task with an outstanding request, or a free slot. */
struct slot {
	struct tdt__request *request; /* kept after the answer, for the next task; NULL: none */
	struct tdt_handle *task;      /* NULL: the slot is free */
	size_t index;
	uint64_t asked_at;
	int tries;
	/*
	 * The number of the poll in which the task was last seen (0: in none), and when it was
	 * first seen in it.
	 */
	uint64_t polling;
	uint64_t polling_since;
};

struct asking {
	const struct tdt__asked *asked;
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

static void keep_spare(struct asking *asking, struct tdt__capture *capture)
{
	if (asking->n_spare == asking->slots) {
		tdt__capture_unref(capture);
		return;
	}
	asking->spare[asking->n_spare++] = capture;
}

/* Take a spare capture and reset it; NULL: there is none. */
static struct tdt__capture *take_spare(struct asking *asking, uint32_t frames)
{
	struct tdt__capture *capture;

	if (asking->n_spare == 0)
		return NULL;
	capture = asking->spare[--asking->n_spare];
	if (tdt__capture_reuse(capture, &asking->walk, frames))
		return capture;
	tdt__capture_unref(capture);
	return NULL;
}

static struct tdt__capture *new_capture(struct asking *asking, struct tdt_handle *task)
{
	uint32_t frames = tdt__frames_hint(task);
	struct tdt__capture *capture;

	if (frames < LEAST_FRAMES)
		frames = LEAST_FRAMES;
	if (frames > MOST_FRAMES)
		frames = MOST_FRAMES;
	capture = take_spare(asking, frames);
	if (capture == NULL)
		capture = tdt__capture_new_by(&asking->walk, frames, asking->asked->max_frames);
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
static bool get_ready(struct asking *asking)
{
	if (asking->ready)
		tdt__walk_fini(&asking->walk);
	asking->ready = tdt__walk_init(&asking->walk);
	return asking->ready;
}

/* --- Slots ---------------------------------------------------------------------- */

static void vacate(struct asking *asking, struct slot *slot)
{
	slot->task = NULL;
	asking->free[asking->n_free++] = (uint32_t)(slot - asking->slot);
}

static uint32_t outstanding(const struct asking *asking)
{
	return asking->slots - asking->n_free;
}

static void tell(const struct asking *asking, size_t index, enum tdt_answer answer,
		 struct tdt__capture *capture)
{
	asking->asked->answer(asking->asked->arg, index, answer, capture);
}

/*
 * Whether the task can answer.  It can't if it is in the middle of a poll on this thread, nor in a
 * child of fork() that does not have the thread that polls it.
 */
static bool may_answer(const struct tdt_handle *task)
{
	return !tdt__polled_here(task) && tdt__thread_is_here(TDT__PEEK(task->record.thread));
}

/* List a request for `task`, which gets the slot.  False: no memory. */
static bool list(struct asking *asking, struct slot *slot, struct tdt_handle *task)
{
	struct tdt__capture *capture = new_capture(asking, task);

	if (capture != NULL && slot->request == NULL)
		slot->request = tdt__request_with(capture);
	else if (capture != NULL)
		slot->request->capture = capture;
	if (capture == NULL || slot->request == NULL) {
		tdt__capture_unref(capture);
		return false;
	}
	slot->request->inbox = &asking->inbox;
	slot->request->slot = slot;
	slot->task = task;
	slot->asked_at = asking->now;
	slot->tries++;
	slot->polling = 0;
	tdt__request_list(task, slot->request);
	return true;
}

/* List a request for the next task.  NULL: no request was listed. */
static struct slot *list_next(struct asking *asking)
{
	struct tdt_handle *task = asking->asked->task(asking->asked->arg, asking->next);
	struct slot *slot = &asking->slot[asking->free[asking->n_free - 1]];
	size_t index = asking->next++;

	slot->tries = 0;
	if (!may_answer(task) || !list(asking, slot, task)) {
		tell(asking, index, TDT_ANSWER_NONE, NULL);
		return NULL;
	}
	asking->n_free--;
	slot->index = index;
	return slot;
}

static bool is_late(const struct asking *asking)
{
	struct timespec now;

	/*
	 * This clock is some milliseconds late, which is better than the cost of the precise clock
	 * for each task.
	 */
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec >=
	       asking->asked->deadline;
}

/* Make the requests for the next tasks. */
static void ask_batch(struct asking *asking)
{
	struct slot *batch[BATCH];
	uint32_t n = 0;

	if (!get_ready(asking)) {
		tell(asking, asking->next++, TDT_ANSWER_NONE, NULL);
		return;
	}
	tdt__counted_stock(asking->slots < BATCH ? asking->slots * MANY_LEAVES
						 : BATCH * MANY_LEAVES);
	while (n < BATCH && asking->n_free > 0 && asking->next < asking->asked->n) {
		struct slot *slot = list_next(asking);

		if (slot != NULL)
			batch[n++] = slot;
	}
	tdt__barrier_heavy();
	/*
	 * A runtime may poll inside its wake: then all requests are answered here, and that may
	 * take any time.
	 */
	for (uint32_t i = 0; i < n && !is_late(asking); i++)
		tdt__request_see(batch[i]->task);
	asking->now = tdt__clock();
}

/* --- Answers ---------------------------------------------------------------------- */

/* List another request for the task of the slot, which has answered.  False: no memory. */
static bool ask_again(struct asking *asking, struct slot *slot, const struct tdt__unloads *count)
{
	bool ready = (asking->ready && tdt__walk_modules(&asking->walk)->unloads == count->n) ||
		     get_ready(asking);

	if (!ready || !list(asking, slot, slot->task))
		return false;
	tdt__barrier_heavy();
	tdt__request_see(slot->task);
	return true;
}

/* Whether the walk may have gone astray, and there is time for another request. */
static bool is_worth_another(const struct asking *asking, const struct slot *slot,
			     struct tdt__capture *capture, struct tdt__unloads *count)
{
	return tdt__judge(&capture->stacks, count) == -EAGAIN &&
	       capture->facts.state == TDT_TASK_WAITING && slot->tries < TRIES &&
	       asking->now < asking->asked->deadline;
}

static void settle(struct asking *asking, struct slot *slot, struct tdt__unloads *count)
{
	int error;
	struct tdt__capture *capture = tdt__request_empty(slot->request, &error);

	if (capture != NULL && is_worth_another(asking, slot, capture, count) &&
	    ask_again(asking, slot, count)) {
		keep_spare(asking, capture);
		return;
	}
	vacate(asking, slot);
	tell(asking, slot->index, TDT_ANSWER_FRESH, capture);
	if (capture != NULL)
		keep_spare(asking, capture);
}

static void take_answers(struct asking *asking)
{
	struct tdt__request *request = tdt__inbox_take(&asking->inbox);
	/* One count of unloads serves all of them. */
	struct tdt__unloads count = { .deadline = asking->asked->deadline };

	if (request != NULL)
		asking->answered_at = asking->now;
	while (request != NULL) {
		struct tdt__request *next = request->next;

		asking->taken++;
		settle(asking, request->slot, &count);
		request = next;
	}
}

/* Withdraw the slot's request.  False: it has been answered. */
static bool withdraw(struct asking *asking, struct slot *slot)
{
	if (!tdt__request_withdraw(slot->task, slot->request))
		return false;
	slot->request = NULL;
	vacate(asking, slot);
	return true;
}

static void give_up(struct asking *asking, struct slot *slot)
{
	struct tdt_handle *task = slot->task;

	if (withdraw(asking, slot))
		tell(asking, slot->index,
		     TDT__PEEK(task->record.state) == TDT_RECORD_ENDED ? TDT_ANSWER_FRESH
								       : TDT_ANSWER_NONE,
		     NULL);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* --- Long polls ---------------------------------------------------------------------- */

/* Read the task's stack if it is still in the same poll as GRACE ago. */
static void look_at(struct asking *asking, struct slot *slot)
{
	uint64_t polls = tdt__running_poll(slot->task);
	struct tdt__capture *capture;
	int error;

	if (polls != slot->polling) {
		slot->polling = polls;
		slot->polling_since = asking->now;
	}
	if (polls == 0 || asking->now - slot->polling_since < GRACE)
		return;
	/* One thread whose stack can't be read must not take all the time. */
	capture = tdt__running(slot->task, polls, asking->asked->max_frames,
			       earlier(tdt__clock() + GRACE, asking->asked->deadline), &error);
	asking->now = tdt__clock();
	slot->polling_since = asking->now; /* if the stack was not read, it is tried again */
	if (capture != NULL && withdraw(asking, slot))
		tell(asking, slot->index, TDT_ANSWER_RUNNING, capture);
	tdt__capture_unref(capture);
}

static void look_at_all(struct asking *asking)
{
	asking->looked_at = asking->now;
	for (uint32_t i = 0; i < asking->slots && asking->now < asking->asked->deadline; i++)
		if (asking->slot[i].task != NULL)
			look_at(asking, &asking->slot[i]);
}

/* --- All tasks -------------------------------------------------------------------------- */

/* Wait until enough answers have come to go on. */
static void wait_for_answers(struct asking *asking)
{
	uint32_t n = outstanding(asking);

	if (asking->next < asking->asked->n && n > BATCH)
		n = BATCH;
	tdt__inbox_wait(&asking->inbox, asking->taken + n,
			earlier(asking->looked_at + GRACE, asking->asked->deadline));
	asking->now = tdt__clock();
}

/*
 * The window is full, and no task answers.  Each window that is still to come gets an equal share
 * of the time that is left.  A request that has had its share is given up.
 */
static void make_room(struct asking *asking)
{
	uint64_t rounds = (asking->asked->n - asking->next + asking->slots - 1) / asking->slots + 1;
	uint64_t share = (asking->asked->deadline - asking->now) / rounds;

	if (asking->now - asking->answered_at < share)
		return;
	for (uint32_t i = 0; i < asking->slots; i++)
		if (asking->slot[i].task != NULL && asking->now - asking->slot[i].asked_at >= share)
			give_up(asking, &asking->slot[i]);
	asking->answered_at = asking->now;
}

static void ask_and_wait(struct asking *asking)
{
	while ((asking->next < asking->asked->n || outstanding(asking) > 0) &&
	       asking->now < asking->asked->deadline) {
		if (asking->next < asking->asked->n && asking->n_free > 0)
			ask_batch(asking);
		else
			wait_for_answers(asking);
		take_answers(asking);
		if (asking->now - asking->looked_at >= GRACE)
			look_at_all(asking);
		if (asking->next < asking->asked->n && asking->n_free == 0 &&
		    asking->now < asking->asked->deadline)
			make_room(asking);
	}
}

static bool begin(struct asking *asking)
{
	asking->slots = asking->asked->n < WINDOW ? (uint32_t)asking->asked->n : WINDOW;
	asking->slot = calloc(asking->slots, sizeof asking->slot[0]);
	asking->free = malloc(asking->slots * sizeof asking->free[0]);
	asking->spare = malloc(asking->slots * sizeof(struct tdt__capture *));
	if (asking->slot == NULL || asking->free == NULL || asking->spare == NULL)
		return false;
	/* The lowest numbers are taken first, so that few tasks touch little memory. */
	while (asking->n_free < asking->slots) {
		asking->free[asking->n_free] = asking->slots - 1 - asking->n_free;
		asking->n_free++;
	}
	asking->now = asking->looked_at = asking->answered_at = tdt__clock();
	return true;
}

/*
 * Runs also if the thread is cancelled while it waits, or if a waker unwinds: then some requests
 * are still outstanding.
 */
static void end(struct asking *asking)
{
	struct tdt__capture *capture;
	int error;

	for (uint32_t i = 0; asking->slot != NULL && i < asking->slots; i++)
		if (asking->slot[i].task != NULL)
			withdraw(asking, &asking->slot[i]);
	tdt__inbox_fini(&asking->inbox);
	for (uint32_t i = 0; asking->slot != NULL && i < asking->slots; i++) {
		if (asking->slot[i].request == NULL)
			continue;
		capture = tdt__request_empty(asking->slot[i].request, &error);
		tdt__capture_unref(capture);
		tdt__request_free(asking->slot[i].request);
	}
	while (asking->n_spare > 0)
		tdt__capture_unref(asking->spare[--asking->n_spare]);
	if (asking->ready)
		tdt__walk_fini(&asking->walk);
	free(asking->spare);
	free(asking->free);
	free(asking->slot);
}

void tdt__ask_all(const struct tdt__asked *asked)
{
	struct asking asking __attribute__((cleanup(end))) = { .asked = asked };

	tdt__inbox_init(&asking.inbox);
	if (asked->n != 0 && begin(&asking)) {
		ask_and_wait(&asking);
		for (uint32_t i = 0; i < asking.slots; i++)
			if (asking.slot[i].task != NULL)
				give_up(&asking, &asking.slot[i]);
		take_answers(&asking);
	}
	while (asking.next < asked->n)
		tell(&asking, asking.next++, TDT_ANSWER_NONE, NULL);
}
