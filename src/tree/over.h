/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Which leaves of recorded stacks wait no more, as far as names show it.
 *
 * A leaf may clone the waker and then find that it is ready.  The task goes on in the same poll,
 * and the stacks contain this leaf too: a *ghost leaf*.  Where functions are known to do one thing
 * after the other, the later of two leaves proves that the earlier one is over.
 */

#include <stdint.h>

struct tdt__stacks;
struct tdt__name;

/* What was found out about all leaves. */
struct tdt__over {
	uint32_t left;   /* leaves that are not known to be over */
	/* How many of these wait at places where some may be over; 0: no leaf is in doubt. */
	uint32_t unsure;
};

/*
 * Set `left[i]`, for each frame i of the stacks, to how many of its leaves are not known to be
 * over.  `names` are the frames' names.  The time grows linearly with the number of frames,
 * including their inlined functions, plus the number of leaves.  Returns 0 or -ENOMEM.
 */
int tdt__over_find(const struct tdt__stacks *stacks, const struct tdt__name *names,
		   uint32_t *left, struct tdt__over *over);
