/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_REQUEST_H
#define TDT_SRC_REQUEST_H

/*
 * A request for a trace, from its asker to the poll that answers it and back.
 *
 *   NEW ──ask──▶ LISTED ──take──▶ TAKEN ──answer──▶ ANSWERED ──result──▶ freed by its asker
 *                  │                │                  ▲
 *                  │ withdraw       │ withdraw         │ the task ended, and no poll will take it
 *                  ▼                ▼                  │
 *                freed           WITHDRAWN (freed by the poll)
 *
 * All transitions are made under tdt__request_lock(task).
 */

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include <tdt/future.h>

struct tdt_handle;
struct tdt__capture;

enum tdt__request_state {
	TDT__REQUEST_NEW, /* zero: as it is made */
	TDT__REQUEST_LISTED,
	TDT__REQUEST_TAKEN,
	TDT__REQUEST_ANSWERED,
	TDT__REQUEST_WITHDRAWN
};

struct tdt__request {
	struct tdt__request *next;
	enum tdt__request_state state;
	struct tdt__capture *capture; /* prepared by the asker; the answer, which may be another's, takes its place */
	int error;                    /* once answered: 0, or a negative errno and no capture */
	const struct tdt_waker *waker; /* an asker that is async: to be woken when answered; owned */
	sem_t answered;               /* an asker that blocks */
};

/* --- The asker's side --- */

/* A request that will walk at most `max_frames` a leaf.  NULL: no memory. */
struct tdt__request *tdt__request_new(struct tdt_handle *task, uint32_t max_frames);

/* List the request and see to it that the task is polled.  Its answer may be there before the call returns. */
void tdt__request_ask(struct tdt_handle *task, struct tdt__request *request);

/* Whether it was answered. */
int tdt__request_answered(struct tdt_handle *task, struct tdt__request *request);

/* Put `waker` (owned) in the place of the request's, which is returned for the caller to drop. */
const struct tdt_waker *tdt__request_set_waker(struct tdt_handle *task, struct tdt__request *request,
					       const struct tdt_waker *waker);

/* Give up an answered request: returns its capture (a reference for the caller), or NULL and `*error`. */
struct tdt__capture *tdt__request_result(struct tdt__request *request, int *error);

/* Give up a request, in whatever state it is. */
void tdt__request_withdraw(struct tdt_handle *task, struct tdt__request *request);

/* --- The poller's side --- */

/* Take all that have asked; NULL: nobody.  `*claimed` says whether the task was woken for their sake. */
struct tdt__request *tdt__requests_take(struct tdt_handle *task, int *claimed);

/* Answer all of `requests` with `capture` (NULL: with `error`). */
void tdt__requests_answer(struct tdt_handle *task, struct tdt__request *requests, struct tdt__capture *capture,
			  int error);

/* Whether it falls to the caller to wake the task for the sake of its requests.  If so, it must. */
bool tdt__requests_claim(struct tdt_handle *task);

#endif
