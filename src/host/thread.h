/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What a thread knows about itself: the polls that it is in, the time that its runtime reported,
 * whether it is a worker, and where its stack lies.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct tdt_handle;
struct tdt__coroutine;
struct tdt__label;
struct tdt__poll;
struct tdt_stack;

/*
 * Zero-initialized, and small: it lies in the static TLS block (initial-exec), so that accessing it
 * takes one instruction and never allocates.  Only its own thread accesses it directly; other
 * threads may read it through the kernel.
 */
struct tdt__thread {
	struct tdt__poll *poll; /* the innermost traced poll; each poll has a pointer to the next
				   outer one (chain.h) */
	/* Up to `reserved`, the fields are those of struct tdt_registry_thread in
	 * <tdt/layout/registry.h>. */
	uint32_t id;            /* gettid(2); 0: not found out yet */
	bool worker;
	bool interrupted;       /* the thread is in the handler of interrupt.c, for a requester */
	uint64_t parked;
	uint64_t now;           /* the last time that tdt_worker_now() passed; 0: none */
	struct tdt_stack *entered; /* the innermost stack that was entered (tdt/integrate/stack.h);
				      NULL: none */
	uint64_t ring;          /* the address of the ring of the recorder that this thread writes
				   to, a struct tdt_recording_ring; 0: none (recorder/rings.h) */
	uint64_t reserved;

	const struct tdt_handle *waking; /* the task that this thread is waking for a request; NULL:
					  none */
	uintptr_t stack_low;    /* the thread's own stack: see readable.h.  Both 0: not found yet */
	uintptr_t stack_high;
	uint64_t entries;          /* how many times a stack was entered so far */
	struct tdt__coroutine *coroutine; /* the innermost coroutine that runs here; NULL: none */

	/* What the recorder keeps for the thread (recorder/record.h); times are in its ticks. */
	void *slots;            /* the slots of `ring` */
	void *recording;    /* the block that `ring` belongs to */
	uint64_t generation;    /* of the recording that `ring` belongs to; 0: there is no ring */
	uint64_t writing;    /* 1: the thread accesses the recording (recorder/rings.h) */
	uint64_t ended;         /* when the last poll ended; 0: the thread has parked since */
	uint64_t ended_now;     /* `now` at that time */
	uint64_t idle_since;    /* when the thread parked; 0: it has not, or was not recorded */
	uint64_t outgrown;    /* the `head` of `ring` at which it is too small */
	uint32_t no_ring;     /* there was none to take then (recorder/rings.c) */
	uint32_t uncaptured;    /* polls since the last one that was captured for the recorder */

	/* The poll that the runtime reports, and what is said of it elsewhere (task/hooked.c). */
	uint64_t hooked;        /* the id of its task; 0: no such poll is in progress */
	bool hooked_recorded;   /* a traced task with this id has recorded the poll */
	uint8_t hooked_result;  /* the tdt_poll_t of it so far */
	uint64_t traced_end;    /* the id of the last traced task that ended here since the runtime
				   reported the end of a poll; 0: none */

	uint32_t slot;          /* plus 1; 0: not found yet (host/slot.h) */

	/* What profilers find of the thread (task/label.h). */
	struct tdt__label *label; /* of the innermost poll that has one; NULL: none has */
	struct tdt__label *volatile *labelled; /* the thread's `otel_thread_ctx_v1`; NULL: it was
						  not found yet */

	/* Lost wake-ups (task/lost.h). */
	bool all_wakes;         /* the worker's runtime promises to report them */
	bool awaited;           /* in the poll of `suspect` an await became ready, */
	bool wakes;             /* or another task was woken, */
	uint32_t era;           /* and then this era began */
	uint32_t waking_era;    /* a counted clone of this era passes a wake-up on; 0: none does */
	const struct tdt_handle *suspect; /* the task that is polled only for a request; NULL */
};

/*
 * The addresses of the threads' records, by thread id; NULL: unknown.  If two threads need the same
 * slot, the thread that comes last gets it.  That is rare, since ids are given one after the other
 * and two such ids are a multiple of 4096 apart.  When a thread has ended, the memory of its record
 * may be unmapped, so only the kernel reads it.
 */
#define TDT__THREAD_SLOTS 4096

extern struct tdt__thread *_Atomic tdt__threads[TDT__THREAD_SLOTS];

/*
 * Whether the thread with this id, which the record of a task names, belongs to this process.  In a
 * child of fork() most threads do not.  An `id` of 0 (no thread has polled the task yet) gives
 * true.  If the last thread that polled a task is gone, the task must not be woken: its runtime has
 * no thread that would poll it, and the fork may have left the runtime in the middle of anything,
 * with its locks held for ever.  May set errno.
 */
bool tdt__thread_is_here(uint32_t id);

/* A child of fork() calls this, since its thread has another id than in the parent. */
void tdt__thread_forked(void);

#define TDT__STATIC_TLS __thread __attribute__((tls_model("initial-exec")))

extern TDT__STATIC_TLS struct tdt__thread tdt__thread;

/*
 * The record of the thread that runs now, also behind foreign code.
 *
 * A compiler takes for granted that a function stays on its thread.  It may find the address of
 * `tdt__thread` once, and use it behind a call too (GCC and Clang do so on aarch64, GCC on x86-64
 * with -mno-tls-direct-seg-refs).  But the stack may be that of a fiber, and then foreign code (a
 * poll, a function of a waker, a switch of stacks) may return on another thread than it was called
 * on.  The first thread may be gone by then, with its record.  So behind foreign code a function
 * does not use `tdt__thread`: it calls this function, or one that is never inlined.
 */
#if defined(__x86_64__)
static inline struct tdt__thread *tdt__thread_here(void)
{
	struct tdt__thread *here;

	/* Volatile: otherwise two of them would become one.  The linker knows this pair. */
	asm volatile("movq %%fs:0, %0\n\t"
		     "addq tdt__thread@gottpoff(%%rip), %0"
		     : "=r"(here));
	return here;
}
#else
static inline struct tdt__thread *tdt__thread_here(void)
{
	struct tdt__thread *here;
	uintptr_t offset;

	asm volatile("adrp %1, :gottprel:tdt__thread\n\t"
		     "ldr %1, [%1, :gottprel_lo12:tdt__thread]\n\t"
		     "mrs %0, tpidr_el0\n\t"
		     "add %0, %0, %1"
		     : "=&r"(here), "=&r"(offset));
	return here;
}
#endif

/* Find out the id of this thread, with some system calls.  Called once in each thread. */
uint32_t tdt__thread_id_find(void);

static inline uint32_t tdt__thread_id(void)
{
	uint32_t id = tdt__thread_here()->id;

	return __builtin_expect(id != 0, 1) ? id : tdt__thread_id_find();
}

/*
 * The time stamp of a poll: the time that the runtime reported for this turn (tdt_worker_now), or
 * else that of the coarse clock, which has a resolution of 4 ms and takes some 7 ns to read.
 */
static inline uint64_t tdt__now(void)
{
	return tdt__thread.now != 0 ? tdt__thread.now : tdt__clock_of(CLOCK_MONOTONIC_COARSE);
}

/*
 * Copy the record of the thread with this id.  The thread may change the record meanwhile, so the
 * copy is of use only if the caller knows that the thread did not run.  False: the record can't be
 * read, or is not known.
 */
bool tdt__thread_peek(uint32_t id, struct tdt__thread *copy);
