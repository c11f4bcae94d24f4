/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_CAPTURE_JUDGE_H
#define TDT_SRC_CAPTURE_JUDGE_H

/*
 * Whether recorded stacks are true.  Their walk went by rules for the modules of a table, and their frames are named by
 * that table (modules.h).  Both are right if no module was unloaded since the table was made, or if none of the frames lies in a
 * module that can be.
 */

struct tdt__stacks;
struct tdt__unloads;

/*
 * Find out whether the stacks are what they seem to be, and mark them as astray if not: if a module was unloaded
 * since recording was made ready, another may have been at its address; then the walk was safe, but may have gone
 * wrong.  `count` is for stacks that were all complete before the first of them is judged.  Returns 0, -EAGAIN (a module
 * was unloaded), or -ETIMEDOUT (that could not be known in time).
 */
int tdt__judge(struct tdt__stacks *stacks, struct tdt__unloads *count);

#endif
