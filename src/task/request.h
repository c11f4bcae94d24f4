/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A request for a trace, from its requester to the poll that answers it and back.
 *
 *   NEW ──send─▶ LISTED ──take──▶ TAKEN ──answer──▶ ANSWERED ──result──▶ freed by its requester
 *                  │                │                  ▲
 *                  │ withdraw       │ withdraw         │ the task has ended: no poll will take it
 *                  ▼                ▼                  │
 *                freed           WITHDRAWN (freed by the poll)
 *
 * All transitions are made under tdt__request_lock(task).
 */

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tdt/future.h>
#include <tdt/tree.h>

struct tdt_handle;
struct tdt__capture;

/* So many requests are made at most while the captures of a task go astray (judge.h). */
#define TDT__REQUEST_TRIES 3

enum tdt__request_state {
	TDT__REQUEST_NEW, /* zero: a new request */
	TDT__REQUEST_LISTED,
	TDT__REQUEST_TAKEN,
	TDT__REQUEST_ANSWERED,
	TDT__REQUEST_WITHDRAWN
};

struct tdt__request {
	struct tdt__request *next;
	enum tdt__request_state state;
	/* What the task waited for when it was asked, at that number of polls; 0: unknown. */
	uint64_t wait_polls;
	char wait_name[TDT_WAIT_NAME_MAX + 1];
	/* Prepared by the requester; then the answer, which may be another requester's. */
	struct tdt__capture *capture;
	/* Once answered by a fiber: of what the requester makes the capture.  NULL: no fiber. */
	struct tdt__standing *standing;
	int error;                     /* once answered: 0, or a negative errno and no capture */
	const struct tdt_waker *waker; /* of an async requester: woken by the answer; owned */
	/* Of a requester of many tasks: gets the answered request.  NULL: none. */
	struct tdt__inbox *inbox;
	void *slot;     /* belongs to that requester */
	sem_t answered; /* of a requester that blocks */
};

/*
 * Where the requester of many tasks gets their answers, from any thread, and waits until a number
 * of them have come.  The inbox must outlive what pollers do with it under their task's lock: see
 * tdt__inbox_fini().
 */
struct tdt__inbox {
	/*
	 * The answered requests, linked by `next`, the last one first.  The poller that pushes a
	 * request releases what its poll wrote, and tdt__inbox_take() acquires it.
	 */
	struct tdt__request *_Atomic list;
	/*
	 * How many requests were pushed, and at which number the poller that pushes posts `enough`.
	 * The poller counts its request and then reads `wanted`; the requester stores `wanted` and
	 * then reads the count.  Both are sequentially consistent, so one of the two sees the
	 * other's store.
	 */
	atomic_uint n;
	atomic_uint wanted;
	sem_t enough;
};

/*
 * The lock of a task's lists of requests and of joiners, chosen by the task's address.  It is held
 * for a few instructions.
 */
pthread_mutex_t *tdt__request_lock(const void *task);

/* For fork.c: hold all these locks across fork(). */
void tdt__request_locks_hold(void);
void tdt__request_locks_release(void);

/* --- The requester's side ---  */

/* Make a request whose capture walks at most `max_frames` frames per leaf.  NULL: no memory. */
struct tdt__request *tdt__request_new(struct tdt_handle *task, uint32_t max_frames);

/*
 * The same with an existing capture, which the request takes over.  NULL: no memory, and the
 * capture remains the caller's.
 */
struct tdt__request *tdt__request_with(struct tdt__capture *capture);

/* Free a request that is in no list. */
void tdt__request_free(struct tdt__request *request);

/* List the request and have the task polled.  The answer may be there before the call returns. */
void tdt__request_send(struct tdt_handle *task, struct tdt__request *request);

/*
 * The same in two halves: list any number of requests, then have each task polled.  The caller
 * calls tdt__barrier_heavy() once between the two halves.
 */
void tdt__request_list(struct tdt_handle *task, struct tdt__request *request);
void tdt__request_see(struct tdt_handle *task);

/* Whether the request was answered. */
int tdt__request_answered(struct tdt_handle *task, struct tdt__request *request);

/*
 * Give the request another waker, `waker` (owned).  Returns the old one, which the caller has to
 * drop.
 */
const struct tdt_waker *tdt__request_set_waker(struct tdt_handle *task,
					       struct tdt__request *request,
					       const struct tdt_waker *waker);

/*
 * Free an answered request.  Returns its capture (a reference for the caller), or NULL and
 * `*error`.
 */
struct tdt__capture *tdt__request_result(struct tdt__request *request, int *error);

/* The same without freeing the request, which may then be listed again with another capture. */
struct tdt__capture *tdt__request_empty(struct tdt__request *request, int *error);

/*
 * Withdraw a request, in whatever state it is.  False: it was answered, lies in its inbox, and
 * still belongs to the requester.  (This never happens to a request without an inbox.)
 */
bool tdt__request_withdraw(struct tdt_handle *task, struct tdt__request *request);

void tdt__inbox_init(struct tdt__inbox *inbox);

/* Take out all answered requests, the last one first. */
struct tdt__request *tdt__inbox_take(struct tdt__inbox *inbox);

/*
 * Wait until `n` requests in all have come in since tdt__inbox_init(), or until `deadline`
 * (tdt__clock()).
 */
void tdt__inbox_wait(struct tdt__inbox *inbox, unsigned n, uint64_t deadline);

/*
 * No request with this inbox may be listed or taken any more.  Waits for pollers that are about to
 * leave the inbox.
 */
void tdt__inbox_fini(struct tdt__inbox *inbox);

/*
 * Call `wake`, one of the two wake functions of `waker`, for the task's requests.  This wake-up is
 * not the one that the task waits for.
 */
void tdt__request_wake(const struct tdt_handle *task, const struct tdt_waker *waker,
		       void (*wake)(const struct tdt_waker *waker));

/* The runtime reports that wake-up, before the poll that it leads to. */
void tdt__request_told(struct tdt_handle *task);

/* --- The poller's side --- */

/*
 * Take all listed requests; NULL: there are none.  `*word` gets the bits of the handshake (NULL:
 * they are of no interest); only TDT__FOLLOWED stays set.
 */
struct tdt__request *tdt__requests_take(struct tdt_handle *task, unsigned *word);

/* Set or clear TDT__FOLLOWED: the next polls are made by tdt__observed_poll(), or no more. */
void tdt__request_follow(struct tdt_handle *task, bool follow);

/*
 * The capture that will answer all of `requests`: that of the request with the highest limit of
 * frames.  It remains that request's, and nobody frees it before the request is answered.  NULL:
 * there are no requests.
 */
struct tdt__capture *tdt__request_capture(const struct tdt__request *requests);

/*
 * Answer all of `requests` with `capture`, or with `error` if it is NULL.  The capture was prepared
 * for one of the requests, and belongs to the requesters alone from then on.
 */
void tdt__requests_answer(struct tdt_handle *task, struct tdt__request *requests,
			  struct tdt__capture *capture, int error);

/* List requests again that were taken, and free those that were withdrawn meanwhile. */
void tdt__requests_return(struct tdt_handle *task, struct tdt__request *requests);

/*
 * Whether it is up to the caller to wake the task for its requests.  If so, the caller must do it.
 */
bool tdt__requests_claim(struct tdt_handle *task);
