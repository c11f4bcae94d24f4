/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TESTS_GATE_H
#define TDT_TESTS_GATE_H

/* A gate at which a poll is stuck, blocked in read() or spinning, while it is requested. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <tdt/tdt.h>

struct gate {
	bool spinning; /* or blocked */
	int pipe[2];
	atomic_bool is_open;
	atomic_int entered; /* those that have got there */
	atomic_uint tid;    /* of the thread that came last */
};

extern struct gate gate;

/* Before a poll that gets there is begun; wait until it is there; and let it go on. */
void gate_close(bool spin);
void gate_await(void);
void gate_open(void);

/*
 * The same of a thread that runs `run` with `arg`: until it is blocked or spins there, as far as
 * that can be known here, and to its end.
 */
void gate_hold(pthread_t *thread, bool spin, void *(*run)(void *), void *arg);
void gate_release(pthread_t thread);

/* Stay until the gate is open. */
void gate_stay(void);

/*
 * Ask a poll that gets to gate_stay(), and then let it go on to its end.  `attr`, of its thread,
 * may be NULL.  Returns the trace.
 */
struct tdt_trace *gate_ask(tdt_poll_t (*poll)(void *state, struct tdt_context *cx), void *state,
			   bool spin, pthread_attr_t *attr);

/* Ask the same way, of what can't be read.  Returns the error: see src/capture/running.h. */
int gate_ask_in_vain(tdt_poll_t (*poll)(void *state, struct tdt_context *cx), void *state,
		     bool spin);

/* Why a poll number 1 that stays as it is can't be read; 0: it can. */
int gate_error(struct tdt_handle *handle);

/*
 * What to look for in the path of a poll that was blocked: with a sanitizer the way out of its own
 * read() may not be found once something is missing further out.  Of one that spins, under
 * ThreadSanitizer: nothing ("").
 */
const char *gate_seen(bool spin, const char *functions);

/* Why the one stack of `trace` is cut. */
enum tdt_cut gate_cut(const struct tdt_trace *trace);

#endif
