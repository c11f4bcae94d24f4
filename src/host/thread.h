/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_HOST_THREAD_H
#define TDT_SRC_HOST_THREAD_H

/* What a thread knows of itself: the polls it is in, the time its runtime told, whether it is a worker, its stack. */

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct tdt_handle;
struct tdt__coroutine;
struct tdt__poll;
struct tdt_stack;

/*
 * Zero-initialized, and small: it lives in the static TLS block (initial-exec), so that reaching it is one instruction
 * and never an allocation.  Only its own thread touches it; others may have the kernel read it.
 */
struct tdt__thread {
	struct tdt__poll *poll; /* the innermost traced poll; each knows the one outside it (chain.h) */
	uint64_t now;           /* tdt_worker_now(); 0: never told */
	uint32_t id;            /* gettid(2); 0: not asked for yet */
	bool worker;
	bool interrupted;       /* it is in the handler of interrupt.c, for an asker */
	const struct tdt_handle *asks; /* the task that is being woken here for the sake of a request; else NULL */
	uintptr_t stack_low;    /* of its own stack: see readable.h.  Both 0: not found yet */
	uintptr_t stack_high;
	struct tdt_stack *entered; /* the innermost stack that was entered (tdt/coroutine.h); NULL: none */
	uint64_t entries;          /* how many times one was, so far */
	struct tdt__coroutine *coroutine; /* the innermost that runs here; NULL: none */
};

/*
 * Whether the thread that a record names is one of this process; in a child of fork(), most are not.  (0, nobody yet,
 * counts as one.)  A task that was last polled by a thread that is gone must not be woken: its runtime has no thread that
 * would poll it, and may have been in the middle of anything, with its locks held for ever.  May set errno.
 */
bool tdt__thread_is_here(uint32_t id);

/* In a child of fork(): this thread has another id there. */
void tdt__thread_forked(void);

#define TDT__STATIC_TLS __thread __attribute__((tls_model("initial-exec")))

extern TDT__STATIC_TLS struct tdt__thread tdt__thread;

/* The id of this thread.  Some system calls once a thread. */
uint32_t tdt__thread_id_find(void);

static inline uint32_t tdt__thread_id(void)
{
	return __builtin_expect(tdt__thread.id != 0, 1) ? tdt__thread.id : tdt__thread_id_find();
}

/* The stamp a poll takes: what the runtime told this turn (tdt_worker_now), else the coarse clock (4 ms, some 7 ns). */
static inline uint64_t tdt__now(void)
{
	struct timespec now;

	if (tdt__thread.now != 0)
		return tdt__thread.now;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * What the record of the thread with that id is while this goes on: of use if the thread is known to have stayed as it
 * was.  False: it can't be read, or isn't known.
 */
bool tdt__thread_peek(uint32_t id, struct tdt__thread *copy);

#endif
