/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_THREAD_H
#define TDT_SRC_THREAD_H

/* What a thread knows of itself: the polls it is in, the time its runtime told, whether it is a worker, its stack. */

#include <stdbool.h>
#include <stdint.h>

struct tdt_handle;
struct tdt__coroutine;
struct tdt__poll;
struct tdt_stack;

/*
 * Zero-initialized, and small: it lives in the static TLS block (initial-exec), so that reaching it is one instruction
 * and never an allocation.  Only its own thread touches it; others may have the kernel read it.
 */
struct tdt__thread {
	struct tdt__poll *poll; /* the innermost traced poll; each knows the one outside it (poll.h) */
	uint64_t now;           /* tdt_worker_now(); 0: never told */
	uint32_t id;            /* gettid(2); 0: not asked for yet */
	bool worker;
	bool interrupted;       /* it is in the handler of interrupt.c, for an asker */
	const struct tdt_handle *asks; /* the task that is being woken here for the sake of a request; else NULL */
	uintptr_t stack_low;    /* of its own stack: see stack.h.  Both 0: not found yet */
	uintptr_t stack_high;
	struct tdt_stack *entered; /* the innermost stack that was entered (tdt/coroutine.h); NULL: none */
	uint64_t entries;          /* how many times one was, so far */
	struct tdt__coroutine *coroutine; /* the innermost that runs here; NULL: none */
};

#define TDT__STATIC_TLS __thread __attribute__((tls_model("initial-exec")))

extern TDT__STATIC_TLS struct tdt__thread tdt__thread;

/* The id of this thread.  Some system calls once a thread. */
uint32_t tdt__thread_id_find(void);

static inline uint32_t tdt__thread_id(void)
{
	return __builtin_expect(tdt__thread.id != 0, 1) ? tdt__thread.id : tdt__thread_id_find();
}

/*
 * What the record of the thread with that id is while this goes on: of use if the thread is known to have stayed as it
 * was.  False: it can't be read, or isn't known.
 */
bool tdt__thread_peek(uint32_t id, struct tdt__thread *copy);

#endif
