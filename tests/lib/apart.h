/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TESTS_APART_H
#define TDT_TESTS_APART_H

/*
 * Things that may hang, or crash, done in a child process: whatever lock is held there for ever,
 * the test ends soon and says what was going on.
 */

/* Status 0 is a body that returned; a body may also call _exit(APART_OVER). */
#define APART_OVER 3

/* What goes wrong after so many seconds is a hang: far more than any of it takes. */
#define APART_SECONDS 20
#define APART_TEST_SECONDS 60 /* for Check: a test may do several such things */

/*
 * Run `body` in a child, for APART_SECONDS at most.  Returns its exit status, or -1 if
 * it has none; `wrong` says how it ended and what it was doing.  Call it when the process has one
 * thread.
 */
int apart(void (*body)(void *arg), void *arg, char wrong[256]);

/* The same, and the test fails if it ended in another way than by returning. */
void apart_must(void (*body)(void *arg), void *arg);

/*
 * Called in the child, from any thread: say what comes next.  Of fork()'s children as well.  The
 * text was there before apart() was called, as a literal is: the parent reads it.
 */
void apart_doing(const char *what);

#endif
