/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_STEPS_H
#define TESTS_STEPS_H

/*
 * The truth about a stack at every single instruction: a function runs in a child of this process,
 * which is traced and stepped, and each call and return is noted.  At each step the child's stack
 * is copied and walked as that of a poll that runs (all registers are known), and as that of a
 * thread that is blocked there (only PC and sp are), as by a page fault.  Both walks must show the
 * functions that have called each other, or say where they don't know.  x86-64 alone.
 */

#include <stdbool.h>
#include <stdint.h>

/* What the walks of one kind were. */
struct steps_seen {
	long steps;
	long right;  /* all frames, none marked */
	long marked; /* all frames, and at least one is marked */
	long cut;    /* frames are missing, which a cut says */
	long astray; /* frames are missing or wrong outside of one that is marked */
	long wrong;  /* frames are missing or wrong, and nothing says so */
};

struct steps_of {
	struct steps_seen running, blocked;
};

/* NULL: steps can be made here; else why not. */
const char *steps_unknown(void);

/*
 * Step through `function`, as many instructions as `most`.  With `name` each walk that is wrong is
 * printed, as are those that are cut or astray if `all`.
 */
struct steps_of steps_follow(void (*function)(void), long most, const char *name, bool all);

void steps_show(const char *name, const struct steps_of *seen);

#endif
