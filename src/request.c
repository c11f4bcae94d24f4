// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Requests: listing, taking, answering.  See task.h for the handshake, request.h for a request's life. */

#include <config.h>

#include "request.h"

#include <errno.h>
#include <stdlib.h>

#include "barrier.h"
#include "capture.h"
#include "fork.h"
#include "registry.h"
#include "task.h"
#include "thread.h"

#define FIRST_FRAMES 64

struct tdt__request *tdt__request_new(struct tdt_handle *task, uint32_t max_frames)
{
	struct tdt__request *request = calloc(1, sizeof *request);
	uint32_t frames = TDT__PEEK(task->record.own_hint);

	if (request == NULL)
		return NULL;
	request->capture = tdt__capture_new(frames > FIRST_FRAMES ? frames : FIRST_FRAMES, max_frames);
	if (request->capture == NULL) {
		free(request);
		return NULL;
	}
	sem_init(&request->answered, 0, 0);
	return request;
}

static void request_free(struct tdt__request *request)
{
	tdt__capture_unref(request->capture);
	tdt_waker_drop(request->waker);
	sem_destroy(&request->answered);
	free(request);
}

/* The word is written under the lock; relaxed, since all but the poller read it there, and he has his barrier. */
static bool unclaimed(const struct tdt_handle *task)
{
	return atomic_load_explicit(&task->request, memory_order_relaxed) == TDT__ASKED;
}

static void claim(struct tdt_handle *task)
{
	atomic_store_explicit(&task->request, TDT__ASKED | TDT__CLAIMED, memory_order_relaxed);
}

bool tdt__requests_claim(struct tdt_handle *task)
{
	pthread_mutex_t *lock = tdt__request_lock(task);
	bool mine;

	pthread_mutex_lock(lock);
	mine = unclaimed(task);
	if (mine)
		claim(task);
	pthread_mutex_unlock(lock);
	return mine;
}

/*
 * Wake a task that was seen idle, through the waker it left behind.  By now it may be polled again, and the request be
 * taken: the lock keeps that from happening in between.
 *
 * Only who has got a waker claims: a poll that ends meanwhile, and finds the claim, relies on it.  Where there is no
 * waker (the task was not polled yet; it could not be cloned; another asker has it, and is about to wake) the next poll
 * will do, or the end of the one that runs.
 */
static void wake(struct tdt_handle *task)
{
	pthread_mutex_t *lock = tdt__request_lock(task);
	const struct tdt_handle *outer = tdt__thread.asks;
	const struct tdt_waker *waker = NULL;

	pthread_mutex_lock(lock);
	/* Acquire: what the poll that kept it has written.  Pairs with the exchange in poll.c's keep(). */
	if (unclaimed(task))
		waker = atomic_exchange_explicit(&task->kept, NULL, memory_order_acq_rel);
	if (waker != NULL)
		claim(task);
	pthread_mutex_unlock(lock);
	tdt__thread.asks = task;
	tdt_waker_wake(waker);
	tdt__thread.asks = outer;
}

void tdt__request_ask(struct tdt_handle *task, struct tdt__request *request)
{
	pthread_mutex_t *lock = tdt__request_lock(task);

	pthread_mutex_lock(lock);
	request->state = TDT__REQUEST_LISTED;
	request->next = task->requests;
	task->requests = request;
	/* The asker's store of the handshake: the barrier puts it before the load of `state`. */
	atomic_fetch_or_explicit(&task->request, TDT__ASKED, memory_order_relaxed);
	pthread_mutex_unlock(lock);

	tdt__barrier_heavy();

	/* Acquire: an IDLE or ENDED comes with all that the poll had done.  Pairs with the releases in poll.c. */
	switch (__atomic_load_n(&task->record.state, __ATOMIC_ACQUIRE)) {
	case TDT_RECORD_IDLE:
		wake(task);
		break;
	case TDT_RECORD_POLLING: /* its end will see the request */
		break;
	case TDT_RECORD_ENDED:
		tdt__requests_answer(task, tdt__requests_take(task, NULL), NULL, -ESRCH);
	}
}

int tdt__request_answered(struct tdt_handle *task, struct tdt__request *request)
{
	pthread_mutex_t *lock = tdt__request_lock(task);
	int answered;

	pthread_mutex_lock(lock);
	answered = request->state == TDT__REQUEST_ANSWERED;
	pthread_mutex_unlock(lock);
	return answered;
}

const struct tdt_waker *tdt__request_set_waker(struct tdt_handle *task, struct tdt__request *request,
					       const struct tdt_waker *waker)
{
	pthread_mutex_t *lock = tdt__request_lock(task);
	const struct tdt_waker *old;

	pthread_mutex_lock(lock);
	old = request->waker;
	request->waker = waker;
	pthread_mutex_unlock(lock);
	return old;
}

struct tdt__capture *tdt__request_result(struct tdt__request *request, int *error)
{
	struct tdt__capture *capture = request->capture;

	*error = request->error;
	request->capture = NULL;
	request_free(request);
	return capture;
}

static void unlist(struct tdt_handle *task, struct tdt__request *request)
{
	struct tdt__request **link = &task->requests;

	while (*link != request)
		link = &(*link)->next;
	*link = request->next;
	/* A claim stays: the poll that is on its way for it was made only for a request, and is to know. */
	if (task->requests == NULL)
		atomic_fetch_and_explicit(&task->request, (uint8_t)~TDT__ASKED, memory_order_relaxed);
}

void tdt__request_withdraw(struct tdt_handle *task, struct tdt__request *request)
{
	pthread_mutex_t *lock = tdt__request_lock(task);
	const struct tdt_waker *waker;
	enum tdt__request_state state;

	pthread_mutex_lock(lock);
	state = request->state;
	if (state == TDT__REQUEST_LISTED)
		unlist(task, request);
	else if (state == TDT__REQUEST_TAKEN)
		request->state = TDT__REQUEST_WITHDRAWN;
	/* The asker's runtime may be gone by the time the poll is over. */
	waker = request->waker;
	request->waker = NULL;
	pthread_mutex_unlock(lock);
	tdt_waker_drop(waker);
	if (state != TDT__REQUEST_TAKEN)
		request_free(request);
}

struct tdt__request *tdt__requests_take(struct tdt_handle *task, int *claimed)
{
	pthread_mutex_t *lock = tdt__request_lock(task);
	struct tdt__request *requests;
	uint8_t word;

	pthread_mutex_lock(lock);
	requests = task->requests;
	task->requests = NULL;
	for (struct tdt__request *request = requests; request != NULL; request = request->next)
		request->state = TDT__REQUEST_TAKEN;
	word = atomic_exchange_explicit(&task->request, 0, memory_order_relaxed);
	pthread_mutex_unlock(lock);
	if (claimed != NULL)
		*claimed = (word & TDT__CLAIMED) != 0;
	return requests;
}

/* Make it answered; then it is its asker's again, who may be gone with it at once. */
static void answer(pthread_mutex_t *lock, struct tdt__request *request, struct tdt__capture *capture, int error)
{
	const struct tdt_waker *waker = NULL;
	struct tdt__capture *prepared = request->capture;
	int withdrawn;

	if (capture != NULL)
		tdt__capture_ref(capture);
	pthread_mutex_lock(lock);
	request->capture = capture;
	request->error = error;
	withdrawn = request->state == TDT__REQUEST_WITHDRAWN;
	if (!withdrawn) {
		request->state = TDT__REQUEST_ANSWERED;
		waker = request->waker;
		request->waker = NULL;
		/* Under the lock, which a blocking asker takes before it frees what is posted to. */
		sem_post(&request->answered);
	}
	pthread_mutex_unlock(lock);
	if (withdrawn)
		request_free(request);
	tdt__capture_unref(prepared);
	tdt_waker_wake(waker);
}

void tdt__requests_answer(struct tdt_handle *task, struct tdt__request *requests, struct tdt__capture *capture,
			  int error)
{
	pthread_mutex_t *lock = tdt__request_lock(task);

	while (requests != NULL) {
		struct tdt__request *next = requests->next;

		answer(lock, requests, capture, error);
		requests = next;
	}
}
