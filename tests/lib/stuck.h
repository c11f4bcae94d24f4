/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TESTS_STUCK_H
#define TDT_TESTS_STUCK_H

/*
 * Polls that get stuck, until they are let go: stuck_poll() calls step_one(), which calls
 * step_two(), which calls the function `name`, which is stuck; or others that are themselves.
 * Compiled in several ways: STUCK_TABLE names the table.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include <tdt/future.h>

struct stuck {
	/* What it is stuck in. */
	void (*in)(struct stuck *stuck);
	int pipe[2];
	int epoll;
	int64_t sleep_ms;
	pthread_mutex_t mutex;

	atomic_int entered; /* how often it came to that */
	atomic_bool over;   /* it may spin no more */
	int result;         /* of the call that it was stuck in, and its errno */
	int error;
	int64_t took_ns;
};

struct stuck_poll {
	const char *name;
	/* From the poll on to where it calls what it is stuck in; ~ before what is marked. */
	const char *path;
	const char *syscall; /* NULL: it runs */
	tdt_poll_t (*poll)(void *state, struct tdt_context *cx);
	void (*in)(struct stuck *stuck);
};

/* Each ends with a NULL name. */
extern const struct stuck_poll stuck_o0[], stuck_o1[], stuck_protected[], stuck_with_fp[],
    stuck_without_fp[];

#endif
