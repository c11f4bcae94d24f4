// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Requests: how they are listed, taken and answered.  The handshake is described in handshake.h,
 * and the life of a request in request.h.
 */

#include "task/request.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/refs.h"
#include "capture/capture.h"
#include "capture/counted.h"
#include "capture/suspended.h"
#include "host/barrier.h"
#include "host/thread.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "registry/task_info.h"
#include "task/handshake.h"
#include "task/leaf.h"

/*
 * Enough locks that the requesters of a dump rarely meet at one; and few enough that a host under
 * ThreadSanitizer can fork, because fork() holds them all, and ThreadSanitizer allows 64 at once.
 */
#define REQUEST_LOCKS 32

/* Each lock has a cache line of its own. */
static struct {
	_Alignas(64) pthread_mutex_t mutex;
} request_locks[REQUEST_LOCKS] = { [0 ... REQUEST_LOCKS - 1] = { PTHREAD_MUTEX_INITIALIZER } };

pthread_mutex_t *tdt__request_lock(const void *task)
{
	uintptr_t address = (uintptr_t)task;

	return &request_locks[(address >> 6 ^ address >> 12) % REQUEST_LOCKS].mutex;
}

void tdt__request_locks_hold(void)
{
	for (int i = 0; i < REQUEST_LOCKS; i++)
		pthread_mutex_lock(&request_locks[i].mutex);
}

void tdt__request_locks_release(void)
{
	for (int i = REQUEST_LOCKS; i-- > 0;)
		pthread_mutex_unlock(&request_locks[i].mutex);
}

/* Take and release each lock once: what other threads were doing under any of them is then done. */
static void pass_request_locks(void)
{
	for (int i = 0; i < REQUEST_LOCKS; i++) {
		pthread_mutex_lock(&request_locks[i].mutex);
		pthread_mutex_unlock(&request_locks[i].mutex);
	}
}

#define CLONES_WITHOUT_HINT 16 /* of a task whose captures needed no more room than the first */

struct tdt__request *tdt__request_with(struct tdt__capture *capture)
{
	struct tdt__request *request = calloc(1, sizeof *request);

	if (request == NULL)
		return NULL;
	request->capture = capture;
	sem_init(&request->answered, 0, 0);
	return request;
}

struct tdt__request *tdt__request_new(struct tdt_handle *task, uint32_t max_frames)
{
	uint32_t frames = tdt__frames_hint(task);
	uint32_t room = frames > TDT__FIRST_FRAMES ? frames : TDT__FIRST_FRAMES;
	struct tdt__capture *capture = tdt__capture_new(room, max_frames);
	struct tdt__request *request = NULL;

	if (capture != NULL && tdt__capture_expect_clones(capture))
		request = tdt__request_with(capture);
	if (request == NULL) {
		tdt__capture_unref(capture);
		return NULL;
	}
	tdt__counted_stock(2 * capture->clones_room);
	tdt__counted_prepare(capture, frames > TDT__FIRST_FRAMES ? frames : CLONES_WITHOUT_HINT);
	return request;
}

void tdt__request_free(struct tdt__request *request)
{
	tdt__standing_unref(request->standing);
	tdt__capture_unref(request->capture);
	tdt_waker_drop(request->waker);
	sem_destroy(&request->answered);
	free(request);
}

/*
 * `own_request` is written under the lock.  Relaxed: all threads but the poller read it under the
 * lock too, and the poller has its barrier.
 */
static uint8_t request_word(const struct tdt_handle *task)
{
	return TDT__PEEK(task->record.own_request);
}

static bool unclaimed(const struct tdt_handle *task)
{
	return (request_word(task) & (TDT__REQUESTED | TDT__CLAIMED)) == TDT__REQUESTED;
}

/* Under the lock. */
static void set_bits(struct tdt_handle *task, unsigned bits)
{
	TDT__POKE(task->record.own_request, (uint8_t)(request_word(task) | bits));
}

static void clear_bits(struct tdt_handle *task, unsigned bits)
{
	TDT__POKE(task->record.own_request, (uint8_t)(request_word(task) & ~bits));
}

void tdt__request_told(struct tdt_handle *task)
{
	pthread_mutex_t *lock = tdt__request_lock(task);

	pthread_mutex_lock(lock);
	if ((request_word(task) & TDT__CLAIMED) != 0)
		set_bits(task, TDT__TOLD);
	pthread_mutex_unlock(lock);
}

void tdt__request_follow(struct tdt_handle *task, bool follow)
{
	pthread_mutex_t *lock = tdt__request_lock(task);

	pthread_mutex_lock(lock);
	if (follow)
		set_bits(task, TDT__FOLLOWED);
	else
		clear_bits(task, TDT__FOLLOWED);
	pthread_mutex_unlock(lock);
}

bool tdt__requests_claim(struct tdt_handle *task)
{
	pthread_mutex_t *lock = tdt__request_lock(task);
	bool mine;

	pthread_mutex_lock(lock);
	mine = unclaimed(task);
	if (mine)
		set_bits(task, TDT__CLAIMED);
	pthread_mutex_unlock(lock);
	return mine;
}

static void restore_waking(const struct tdt_handle **outer)
{
	tdt__thread_here()->waking = *outer;
}

void tdt__request_wake(const struct tdt_handle *task, const struct tdt_waker *waker,
		       void (*wake)(const struct tdt_waker *waker))
{
	/*
	 * A waker must not unwind.  If one does, the cleanup restores `waking`, so that later
	 * wake-ups of the task are not taken for wake-ups for a request.
	 */
	const struct tdt_handle *outer __attribute__((cleanup(restore_waking), unused)) =
	    tdt__thread.waking;

	tdt__thread.waking = task;
	wake(waker);
}

/*
 * Wake a task that was seen idle, through its saved waker.  By now it may be polled again, and the
 * request may have been taken.  The lock keeps that from happening between the check and the claim.
 *
 * Only a requester that has the waker claims: a poll that ends meanwhile and finds the claim relies
 * on it.  There may be no saved waker: the task was not polled yet, the waker could not be cloned,
 * or another requester has taken it and is about to wake it.  Then the next poll takes the request,
 * or the end of the current poll sees it.
 */
static void wake_idle(struct tdt_handle *task)
{
	pthread_mutex_t *lock = tdt__request_lock(task);
	const struct tdt_waker *waker = NULL;

	pthread_mutex_lock(lock);
	/* Acquire what the poll that saved the waker wrote.  Pairs with save_waker(). */
	if (unclaimed(task))
		waker = tdt__saved_exchange(task, NULL);
	if (waker != NULL)
		set_bits(task, TDT__CLAIMED);
	pthread_mutex_unlock(lock);
	if (waker != NULL)
		tdt__request_wake(task, waker, waker->vtable->wake);
}

/* Under the lock. */
static void link_request(struct tdt_handle *task, struct tdt__request *request)
{
	request->state = TDT__REQUEST_LISTED;
	request->next = task->requests;
	task->requests = request;
	/*
	 * The requester's store of the handshake: the barrier orders it before the load of `state`.
	 */
	set_bits(task, TDT__REQUESTED);
}

/* A poll cannot do so: to read the host's memory takes a system call. */
static void read_wait_name(struct tdt__request *request, const struct tdt_handle *task)
{
	struct tdt_task_record record;

	request->wait_polls = 0;
	if (TDT__PEEK(task->record.wait_name) == 0 || !tdt__registry_read(task, &record) ||
	    !tdt__record_has_wait(&record))
		return;
	tdt__wait_name_read(request->wait_name, task, &record);
	request->wait_polls = record.polls;
}

void tdt__request_list(struct tdt_handle *task, struct tdt__request *request)
{
	pthread_mutex_t *lock = tdt__request_lock(task);

	read_wait_name(request, task);
	pthread_mutex_lock(lock);
	link_request(task, request);
	pthread_mutex_unlock(lock);
}

void tdt__request_see(struct tdt_handle *task)
{
	/*
	 * Acquire: a reader of IDLE or ENDED sees all that the poll did.  Pairs with the releases
	 * in wrapper.c.
	 */
	switch (__atomic_load_n(&task->record.state, __ATOMIC_ACQUIRE)) {
	case TDT_TASK_RECORD_IDLE:
		if (!tdt__record_aborted(&task->record) && tdt__leaf_answer(task))
			break;
		if (tdt__thread_is_here(TDT__PEEK(task->record.thread)))
			wake_idle(task);
		break;
	case TDT_TASK_RECORD_POLLING: /* the end of that poll will see the request */
		break;
	case TDT_TASK_RECORD_ENDED:
		tdt__requests_answer(task, tdt__requests_take(task, NULL), NULL, -ESRCH);
	}
}

void tdt__request_send(struct tdt_handle *task, struct tdt__request *request)
{
	tdt__request_list(task, request);
	tdt__barrier_heavy();
	tdt__request_see(task);
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

const struct tdt_waker *tdt__request_set_waker(struct tdt_handle *task,
					       struct tdt__request *request,
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

struct tdt__capture *tdt__request_empty(struct tdt__request *request, int *error)
{
	struct tdt__capture *capture = request->capture;

	if (request->standing != NULL)
		request->error = tdt__standing_capture(request->standing, capture);
	tdt__standing_unref(request->standing);
	if (request->error != 0) {
		tdt__capture_unref(capture);
		capture = NULL;
	}
	*error = request->error;
	request->standing = NULL;
	request->capture = NULL;
	request->error = 0;
	return capture;
}

struct tdt__capture *tdt__request_result(struct tdt__request *request, int *error)
{
	struct tdt__capture *capture = tdt__request_empty(request, error);

	tdt__request_free(request);
	return capture;
}

static void unlist_request(struct tdt_handle *task, struct tdt__request *request)
{
	struct tdt__request **link = &task->requests;

	while (*link != request)
		link = &(*link)->next;
	*link = request->next;
	/*
	 * A claim stays: the poll that it brings is made only for a request, and has to know that.
	 */
	if (task->requests == NULL && !tdt__record_aborted(&task->record))
		clear_bits(task, TDT__REQUESTED);
}

bool tdt__request_withdraw(struct tdt_handle *task, struct tdt__request *request)
{
	pthread_mutex_t *lock = tdt__request_lock(task);
	const struct tdt_waker *waker;
	enum tdt__request_state state;

	pthread_mutex_lock(lock);
	state = request->state;
	if (state == TDT__REQUEST_LISTED)
		unlist_request(task, request);
	else if (state == TDT__REQUEST_TAKEN)
		request->state = TDT__REQUEST_WITHDRAWN;
	/* The requester's runtime may be gone by the time the poll is over. */
	waker = request->waker;
	request->waker = NULL;
	pthread_mutex_unlock(lock);
	tdt_waker_drop(waker);
	if (state == TDT__REQUEST_ANSWERED && request->inbox != NULL)
		return false;
	if (state != TDT__REQUEST_TAKEN)
		tdt__request_free(request);
	return true;
}

struct tdt__request *tdt__requests_take(struct tdt_handle *task, unsigned *word)
{
	pthread_mutex_t *lock = tdt__request_lock(task);
	struct tdt__request *requests;

	pthread_mutex_lock(lock);
	requests = task->requests;
	task->requests = NULL;
	for (struct tdt__request *request = requests; request != NULL; request = request->next)
		request->state = TDT__REQUEST_TAKEN;
	if (word != NULL)
		*word = request_word(task);
	/* The claim is used up by this poll, also if the task was aborted since the poll began. */
	clear_bits(task, tdt__record_aborted(&task->record) ? TDT__CLAIMED | TDT__TOLD
							    : ~TDT__FOLLOWED);
	pthread_mutex_unlock(lock);
	return requests;
}

struct tdt__capture *tdt__request_capture(const struct tdt__request *requests)
{
	struct tdt__capture *capture = NULL;

	for (; requests != NULL; requests = requests->next)
		if (capture == NULL || requests->capture->max_frames > capture->max_frames)
			capture = requests->capture;
	return capture;
}

static void deliver(struct tdt__inbox *inbox, struct tdt__request *request)
{
	struct tdt__request *first = atomic_load_explicit(&inbox->list, memory_order_relaxed);

	tdt__tsan_release(&inbox->list);
	do
		request->next = first;
	while (!atomic_compare_exchange_weak_explicit(&inbox->list, &first, request,
						      memory_order_release, memory_order_relaxed));
	if (atomic_fetch_add(&inbox->n, 1) + 1 == atomic_load(&inbox->wanted))
		sem_post(&inbox->enough);
}

/* Give the requester `capture` in place of the one that it prepared, unless they are the same. */
static void put_capture(struct tdt__request *request, struct tdt__capture *capture)
{
	struct tdt__capture *prepared = request->capture;

	if (capture == prepared)
		return;
	request->capture = capture != NULL ? tdt__capture_ref(capture) : NULL;
	tdt__capture_unref(prepared);
}

/*
 * Mark the request as answered.  From then on it belongs to its requester, which may free it at
 * once.
 */
static void mark_answered(pthread_mutex_t *lock, struct tdt__request *request)
{
	const struct tdt_waker *waker = NULL;
	bool withdrawn;

	pthread_mutex_lock(lock);
	withdrawn = request->state == TDT__REQUEST_WITHDRAWN;
	if (!withdrawn) {
		request->state = TDT__REQUEST_ANSWERED;
		waker = request->waker;
		request->waker = NULL;
		/*
		 * Under the lock: a blocking requester takes the lock before it frees the semaphore
		 * posted here.
		 */
		if (request->inbox != NULL)
			deliver(request->inbox, request);
		else
			sem_post(&request->answered);
	}
	pthread_mutex_unlock(lock);
	if (withdrawn)
		tdt__request_free(request);
	tdt_waker_wake(waker);
}

void tdt__requests_answer(struct tdt_handle *task, struct tdt__request *requests,
			  struct tdt__capture *capture, int error)
{
	pthread_mutex_t *lock = tdt__request_lock(task);

	/*
	 * Every request gets its reference before the first one is answered: the requester that
	 * prepared the capture may release it at once.
	 */
	for (struct tdt__request *request = requests; request != NULL; request = request->next) {
		if (request->standing == NULL)
			put_capture(request, capture);
		request->error = error;
	}
	while (requests != NULL) {
		struct tdt__request *next = requests->next;

		mark_answered(lock, requests);
		requests = next;
	}
}

/* List a taken request again.  False: it was withdrawn. */
static bool return_request(struct tdt_handle *task, struct tdt__request *request)
{
	pthread_mutex_t *lock = tdt__request_lock(task);
	bool listed;

	pthread_mutex_lock(lock);
	listed = request->state != TDT__REQUEST_WITHDRAWN;
	if (listed)
		link_request(task, request);
	pthread_mutex_unlock(lock);
	return listed;
}

void tdt__requests_return(struct tdt_handle *task, struct tdt__request *requests)
{
	while (requests != NULL) {
		struct tdt__request *next = requests->next;

		if (!return_request(task, requests))
			tdt__request_free(requests);
		requests = next;
	}
}

void tdt__inbox_init(struct tdt__inbox *inbox)
{
	atomic_init(&inbox->list, NULL);
	atomic_init(&inbox->n, 0);
	atomic_init(&inbox->wanted, 0);
	sem_init(&inbox->enough, 0, 0);
}

struct tdt__request *tdt__inbox_take(struct tdt__inbox *inbox)
{
	struct tdt__request *list =
	    atomic_exchange_explicit(&inbox->list, NULL, memory_order_acquire);

	tdt__tsan_acquire(&inbox->list);
	return list;
}

void tdt__inbox_wait(struct tdt__inbox *inbox, unsigned n, uint64_t deadline)
{
	const struct timespec until = tdt__timespec(deadline);

	atomic_store(&inbox->wanted, n);
	/* A post may be left from a wait that ended by its deadline, so the count is read again. */
	while ((int)(atomic_load(&inbox->n) - n) < 0)
		if (sem_clockwait(&inbox->enough, CLOCK_MONOTONIC, &until) != 0 && errno != EINTR)
			return;
}

void tdt__inbox_fini(struct tdt__inbox *inbox)
{
	/* A poller uses an inbox with its task's lock held. */
	pass_request_locks();
	sem_destroy(&inbox->enough);
}
