/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_TASK_REQUEST_H
#define TDT_SRC_TASK_REQUEST_H

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

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
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
	struct tdt__inbox *inbox;     /* an asker of many: gets it when it is answered; NULL: none */
	void *slot;                   /* that asker's own */
	sem_t answered;               /* an asker that blocks */
};

/*
 * Where one who asks many tasks at once gets the answers, of any thread, and waits for so many of them.  It must outlive
 * what pollers do with it under their task's lock: see tdt__inbox_fini().
 */
struct tdt__inbox {
	/*
	 * Those answered, linked by `next`, the last first.  Pushed with release, and acquired by who takes them out
	 * (request_all.c): what the poll wrote.
	 */
	struct tdt__request *_Atomic list;
	/*
	 * How many were pushed; and which of them posts `enough`.  Who pushes counts and then looks what is wanted, who
	 * waits says what he wants and then looks how many there are: sequentially consistent, so one of them sees it.
	 */
	atomic_uint n;
	atomic_uint wanted;
	sem_t enough;
};

/*
 * The lock of the lists of requests and of joiners of a task, chosen by the task's address.  It is held for some
 * instructions.
 */
pthread_mutex_t *tdt__request_lock(const void *task);

/* For fork.c: hold all of these locks across fork(). */
void tdt__request_locks_hold(void);
void tdt__request_locks_release(void);

/* --- The asker's side --- */

/* A request that will walk at most `max_frames` a leaf.  NULL: no memory. */
struct tdt__request *tdt__request_new(struct tdt_handle *task, uint32_t max_frames);

/* The same with a capture that is there already, and which it takes over.  NULL: no memory, and it is the caller's. */
struct tdt__request *tdt__request_with(struct tdt__capture *capture);

/* Free a request that is not asked. */
void tdt__request_free(struct tdt__request *request);

/* List the request and see to it that the task is polled.  Its answer may be there before the call returns. */
void tdt__request_ask(struct tdt_handle *task, struct tdt__request *request);

/*
 * The same in two halves, with one tdt__barrier_heavy() between them that serves any number of requests: list them all,
 * then see to it that each task is polled.
 */
void tdt__request_list(struct tdt_handle *task, struct tdt__request *request);
void tdt__request_see(struct tdt_handle *task);

/* Whether it was answered. */
int tdt__request_answered(struct tdt_handle *task, struct tdt__request *request);

/* Put `waker` (owned) in the place of the request's, which is returned for the caller to drop. */
const struct tdt_waker *tdt__request_set_waker(struct tdt_handle *task, struct tdt__request *request,
					       const struct tdt_waker *waker);

/* Give up an answered request: returns its capture (a reference for the caller), or NULL and `*error`. */
struct tdt__capture *tdt__request_result(struct tdt__request *request, int *error);

/* The same without freeing the request, which may then be asked again with another capture in it. */
struct tdt__capture *tdt__request_empty(struct tdt__request *request, int *error);

/*
 * Give up a request, in whatever state it is.  False: it was answered, lies in its inbox, and is the asker's still.
 * (One without an inbox never is.)
 */
bool tdt__request_withdraw(struct tdt_handle *task, struct tdt__request *request);

void tdt__inbox_init(struct tdt__inbox *inbox);

/* Take all out that were answered, the last first. */
struct tdt__request *tdt__inbox_take(struct tdt__inbox *inbox);

/* Wait until `n` have come in since the beginning, or until `deadline` (tdt__clock()). */
void tdt__inbox_wait(struct tdt__inbox *inbox, unsigned n, uint64_t deadline);

/* Nothing may be asked that would come in here.  Waits for pollers that are about to leave it. */
void tdt__inbox_fini(struct tdt__inbox *inbox);

/* Call `wake`, which is one of the two of `waker`, for the sake of the task's requests: it was not what it waits for. */
void tdt__request_wake(const struct tdt_handle *task, const struct tdt_waker *waker,
		       void (*wake)(const struct tdt_waker *waker));

/* --- The poller's side --- */

/* Take all that have asked; NULL: nobody.  `*claimed` says whether the task was woken for their sake. */
struct tdt__request *tdt__requests_take(struct tdt_handle *task, int *claimed);

/*
 * Answer all of `requests` with `capture`, which was prepared for one of them and is theirs alone from then on (NULL: with
 * `error`).
 */
void tdt__requests_answer(struct tdt_handle *task, struct tdt__request *requests, struct tdt__capture *capture,
			  int error);

/* Whether it falls to the caller to wake the task for the sake of its requests.  If so, it must. */
bool tdt__requests_claim(struct tdt_handle *task);

#endif
