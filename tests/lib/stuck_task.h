/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TESTS_STUCK_TASK_H
#define TDT_TESTS_STUCK_TASK_H

/* A task that is polled once, on a thread of its own, where it gets stuck. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tdt/tdt.h>

#include "lib/sanitized.h"
#include "lib/stuck.h"

/*
 * ThreadSanitizer calls a handler later, at a place of its choice, with the registers of the time
 * when the signal came: below the frames that last, the stack is by then another's.
 */
#define SIGNALS_ARE_LATE TSAN

struct stuck_task {
	struct tdt_waker waker; /* counts nothing */
	struct tdt_traced traced;
	pthread_t thread;
	atomic_uint tid;        /* of the thread; 0: not yet */
	void (*before)(void);   /* what the thread does first; may be NULL */
	pthread_attr_t *attr;   /* of the thread; may be NULL */
	tdt_poll_t result;
};

/*
 * Trace the future that is `poll` with `state`, and poll it on a thread.  `task` is all zero but
 * for what is to be set.
 */
void stuck_task_start(struct stuck_task *task,
		      tdt_poll_t (*poll)(void *state, struct tdt_context *cx), void *state);

/* Wait for the thread; drop the future and the handle. */
void stuck_task_end(struct stuck_task *task);

/* Wait until the thread is blocked in a system call, or (with `runs`) until it runs. */
void stuck_task_settle(const struct stuck_task *task, bool runs);

/* Ask, for 30 seconds at most: a trace of TDT_TASK_RUNNING with one stack, or the test fails. */
struct tdt_trace *stuck_task_ask(const struct stuck_task *task);

/* Before a poll gets stuck as `kind` says; let it go on; and after it is over. */
void stuck_init(struct stuck *stuck, const struct stuck_poll *kind);
void stuck_let_go(struct stuck *stuck);
void stuck_fini(struct stuck *stuck);

/*
 * The functions on the one stack of `trace`, outermost first, with blanks between: "a b c".  Before
 * a function that was inlined is a +, before one whose caller was guessed a ~; a cut is "cut:N", a
 * frame of which nothing is known "?".  For the caller to free.
 */
char *stuck_path(const struct tdt_trace *trace);

/*
 * Why a suite cannot run here: under valgrind the kernel's word on a thread is about valgrind's own
 * stack.  NULL: it can.
 */
const char *stuck_impossible(void);

/*
 * The signal that has a handler of whatever kind, from the highest on; 0: none of the real-time
 * signals has.
 */
int stuck_signal(void);

#endif
