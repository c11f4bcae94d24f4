/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Requesting the traces of any number of tasks, with one deadline for all.  Some requests are
 * outstanding at a time, and more are made when some have been answered, so that neither memory nor
 * the burst of polls grows with the number of tasks.  One membarrier serves a batch.
 *
 * Tasks that do not answer must not keep the others from getting a request.  As long as answers
 * come in, no request is given up.  When none has come for a share of the time that is left, the
 * requests that are older than this share are given up, and other tasks get their places.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/dump.h>

struct tdt_handle;
struct tdt__capture;

/*
 * Called once for each task, on the requesting thread:
 *
 *   TDT_ANSWER_FRESH, a capture      the task's answer
 *   TDT_ANSWER_RUNNING, a capture    the stack of a long poll
 *   TDT_ANSWER_RUNNING, NULL         a long poll, with `leaves_running`
 *   TDT_ANSWER_FRESH, NULL           the task ended before a poll took the request
 *   TDT_ANSWER_NONE, NULL            there is no answer
 *
 * The capture is only lent.  Without an answer, `unknown_stack` says that a look at a long poll
 * found its thread on a stack that is not known as the task's own.
 */
typedef void tdt__answer_fn(void *arg, size_t index, enum tdt_answer answer,
			    struct tdt__capture *capture, bool unknown_stack);

struct tdt__requests {
	size_t n;
	/*
	 * Requested in this order; alive until the end.  NULL: make no request; there is no answer
	 * then.
	 */
	struct tdt_handle *(*task)(void *arg, size_t index);
	tdt__answer_fn *answer;
	void *arg;
	uint64_t deadline; /* tdt__clock() */
	uint32_t max_frames;
	bool leaves_running; /* the stacks of long polls are not read */
};

/*
 * Returns by the deadline, when each task has answered, has ended, or was given up.  Wakers of the
 * runtime may make it take longer.
 */
void tdt__request_all(const struct tdt__requests *requests);
