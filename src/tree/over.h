/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_TREE_OVER_H
#define TDT_SRC_TREE_OVER_H

/*
 * Which leaves of recorded stacks wait no more, as far as names tell.
 *
 * A leaf may clone the waker and find then that it is ready.  The task goes on in the same poll,
 * and the stacks have this leaf, too: a *ghost leaf*.  Where functions are known to do one thing
 * after the other, the later of two leaves proves that the earlier one is over.
 */

#include <stdbool.h>
#include <stdint.h>

struct tdt__stacks;
struct tdt__name;

/* What was found of all leaves. */
struct tdt__over {
	uint32_t left;   /* leaves that are not known to be over */
	uint32_t unsure; /* so many of these wait at places of which some may be over; 0: nothing is
			    in doubt */
};

/*
 * Set `left[i]`, for each frame i of the stacks, to how many of its leaves are not known to be
 * over. `names` are the frames' names.  The time it takes is linear in the number of frames with
 * their inlined functions, plus that of leaves.  Returns 0 or -ENOMEM.
 */
int tdt__over_find(const struct tdt__stacks *stacks, const struct tdt__name *names,
		   uint32_t *left, struct tdt__over *over);

#endif
