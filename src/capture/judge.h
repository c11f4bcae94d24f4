/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Whether recorded stacks are true.  They were walked by rules for the modules of a table, and
 * their frames are named by that table (modules.h).  Both are right if no module was unloaded since
 * the table was made, or if all frames lie in modules that are never unloaded.
 */

struct tdt__stacks;
struct tdt__unloads;

/*
 * Find out whether the stacks can be trusted, and mark them as astray if not.  If a module was
 * unloaded since the recording was prepared, another module may have taken its address; then the
 * walk was safe, but its frames may be wrong.  One `count` may serve several stacks, if all of them
 * were complete before the first was judged.
 *
 * Returns 0, -EAGAIN (a module was unloaded), or -ETIMEDOUT (that could not be found out in time).
 */
int tdt__judge(struct tdt__stacks *stacks, struct tdt__unloads *count);
