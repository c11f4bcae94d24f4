/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* A dump of what a recording says of its tasks at its end: where they waited, and what ran. */

#include "reader/last_states.h"
#include "tree/findings.h"

struct tdt__modules;

/*
 * Make the findings of the tasks, which must outlive them; the caller frees them.  A tree consists
 * of the stacks that were recorded in the last poll that has any, or of the stack that the recorder
 * found in a poll that was going on.  `modules` are those by which the addresses are named.  NULL:
 * no memory.
 */
struct tdt__findings *tdt__last_dump(struct tdt__last_states *states,
				     const struct tdt__task_choice *choice,
				     struct tdt__modules *modules);
