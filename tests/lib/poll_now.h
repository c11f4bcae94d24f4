/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TESTS_POLL_NOW_H
#define TDT_TESTS_POLL_NOW_H

/*
 * The runtime of tests that look at stacks: a wake-up polls the task at once, on the same thread.
 * So a backtrace is requested, captured and answered within one call.
 */

#include <stdbool.h>

#include <tdt/trace.h>

#include "lib/scoped.h"

struct poll_now {
	struct tdt_waker waker; /* clones are the waker itself */
	struct tdt_traced traced;
	tdt_poll_t result; /* of the last poll */
	bool polling;
	bool held; /* wake-ups are only noted: poll_now() polls */
};

/* Trace `future` and poll it for the first time. */
void poll_now_start(struct poll_now *task, struct tdt_future future);

void poll_now(struct poll_now *task);

/* Ask where it waits: a trace, or the test fails.  `max_frames` 0: the default. */
struct tdt_trace *poll_now_ask(struct poll_now *task, uint32_t max_frames);

/* Drop the future, and give the handle back. */
void poll_now_end(struct poll_now *task);

/* Declare a task that starts with the future here, and ends with the block. */
#define POLL_NOW(name, ...)                                                                        \
	SCOPED(poll_now_end) struct poll_now name;                                                 \
	const bool name##_begun __attribute__((unused)) = (poll_now_start(&name, __VA_ARGS__), true)

/* A future that is a plain function. */
struct tdt_future future_of(tdt_poll_t (*poll)(void *state, struct tdt_context *cx), void *state);

/*
 * The tree of `trace` as text, for the caller to free: a line `function:line` for each frame,
 * indented by its depth; ` xN` if N leaves wait there; ~ before a function means that its caller
 * was guessed, `cut N` that N is why callers are missing, a bare address that nothing is known.
 * Frames of libtdt are left out (their leaves are their caller's).
 */
char *tree_text(const struct tdt_trace *trace);

#endif
