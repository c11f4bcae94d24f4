/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_DUMP_REQUEST_ALL_H
#define TDT_SRC_DUMP_REQUEST_ALL_H

/*
 * Asking any number of tasks at once, with one deadline for all: some are asked at a time, and more when some have
 * answered, so that neither memory nor the burst of polls grows with their number.  One membarrier serves a batch.
 *
 * Tasks that don't answer must not keep the others from being asked.  As long as answers come in nobody is given up;
 * when none has for a share of the time that is left, those that were asked before it are, and others get their place.
 */

#include <stddef.h>
#include <stdint.h>

#include <tdt/dump.h>

struct tdt_handle;
struct tdt__capture;

/*
 * What is called once for each task, on the asking thread: with TDT_ANSWER_FRESH or TDT_ANSWER_RUNNING and its capture,
 * which is only lent; with TDT_ANSWER_NONE and no capture if there is no answer; with TDT_ANSWER_FRESH and none if the
 * task ended before it was asked.
 */
typedef void tdt__answer_fn(void *arg, size_t index, enum tdt_answer answer, struct tdt__capture *capture);

struct tdt__asked {
	size_t n;
	struct tdt_handle *(*task)(void *arg, size_t index); /* to be asked in this order; alive until the end */
	tdt__answer_fn *answer;
	void *arg;
	uint64_t deadline; /* tdt__clock() */
	uint32_t max_frames;
};

/* Returns when all are answered, given up or over, by the deadline; wakers of the runtime may take longer. */
void tdt__ask_all(const struct tdt__asked *asked);

#endif
