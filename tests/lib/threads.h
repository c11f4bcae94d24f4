/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_THREADS_H
#define TESTS_THREADS_H

/*
 * What the kernel says of this process' threads whose name begins with `prefix`: those of a
 * sanitizer have another.
 */

/* How many there are.  One that was joined may count for a moment more. */
int threads_named(const char *prefix);

/*
 * How often they have gone to sleep so far (voluntary context switches): threads that sleep all the
 * time have the same count later.
 */
long threads_slept(const char *prefix);

#endif
