/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Work that is done in a child process, with limits.  A target may be made to do harm: it may let a
 * reading last for ever, or name files that make libdw crash, loop or eat all memory.
 */

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* Writes something to `out`, which is stdout.  Returns a small number, or a negative errno. */
typedef int apart_fn(FILE *out, void *arg);

/*
 * Call `work(stdout, arg)` in a child, for at most `seconds`, and no longer than is left (bound.h).
 * Returns what `work` returns.  If that is not negative, what it has written goes to `out`;
 * otherwise nothing does.
 * Returns -ECANCELED if the child has crashed, or has reached a limit; then `*why` says what
 * happened.
 */
int do_apart(FILE *out, apart_fn *work, void *arg, unsigned seconds, const char **why);

/* In a child: report nothing.  Returns 0 or a negative errno. */
int apart_silence(void);

/* The same in two steps, for a caller that has something else to do meanwhile. */
struct apart {
	pid_t child;
	int pipe; /* poll(2) says POLLHUP of it when the child has ended */
	int file; /* what the child has written; the caller closes it after apart_end() */
};

/*
 * Start the child, which gets `seconds` of CPU time.  Returns 0, or a negative errno; then there is
 * no child.
 */
int apart_start(struct apart *apart, apart_fn *work, void *arg, unsigned seconds);

/* Wait for the child's end.  `too_long`: kill it.  Returns as do_apart() does. */
int apart_end(struct apart *apart, bool too_long, const char **why);
