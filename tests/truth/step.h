/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_TRUTH_STEP_H
#define TESTS_TRUTH_STEP_H

/* What a generated program and the one that steps it (step.c) say to each other. */

#include <stdint.h>

#define STEP_REQUESTS 3 /* the descriptor the program reads: a byte for each request of a trace */
#define STEP_ANSWERS 4	/* and the one it writes answers to */

enum { STEP_PCS_MAX = 300 };

struct step_answer {
	int32_t error; /* a negative errno: there is no trace */
	int32_t state; /* enum tdt_task_state */
	int32_t cut;
	int32_t guessed; /* how many of the frames are marked as guesses */
	uint32_t n;
	uint64_t pcs[STEP_PCS_MAX]; /* as tdt_trace_stack() has them */
};

#endif
