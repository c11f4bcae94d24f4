/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_HOST_UNLOADS_H
#define TDT_SRC_HOST_UNLOADS_H

/*
 * How many modules the process has unloaded so far.
 *
 * Only dl_iterate_phdr() reports that number.  It waits for the lock of the loader's list, which a
 * callback of the host's may hold for ever.  So a thread of the library's, the reporter, makes the
 * call, and requesters wait for the reporter for a limited time, with no lock of the library held.
 * Requesters need the number for captures that lie in modules that may be unloaded (modules.h).
 */

#include <stdbool.h>
#include <stdint.h>

/* The number, which is found out when it is first needed.  Before, only `deadline` is not zero. */
struct tdt__unloads {
	uint64_t deadline; /* tdt__clock() */
	uint64_t n;
	bool known;     /* `n` is known */
	bool requested; /* `n` was requested, so `known` will not change any more */
};

/*
 * Find out the number, once, for a requester that needs it: `count->n` is from some moment during
 * the first call with this `count`.  False: the number was not known by the deadline.  The call
 * waits for at least 10 ms and at most 100 ms.  It waits for up to 400 ms more while the machine is
 * so busy that the reporter does not run.  After a call that failed, no requester waits until the
 * reporter has answered, that is, until the loader's list is free.
 */
bool tdt__unloads_count(struct tdt__unloads *count);

/* The number that the loader reported last: <tdt/layout/registry.h>.  Written under the lock. */
extern uint64_t tdt__unloads_last;

/*
 * How long a requester waits for the number if it can go on without, in nanoseconds.  Mostly the
 * answer takes some microseconds.
 */
#define TDT__UNLOADS_SOON UINT64_C(10000000)

/*
 * Find out the number of unloads at some moment during this call.  False: the number was not known
 * by `deadline` (tdt__clock()).  Any thread.
 */
bool tdt__unloads_now(uint64_t *unloads, uint64_t deadline);

/*
 * Start the reporter before anybody needs it: see service.h.  In a child of fork() the first call
 * of the functions above starts it.
 */
void tdt__unloads_begin(void);

/*
 * Taken before fork() (fork.c).  While the lock is held, the reporter does not begin to read the
 * loader's list.  Waits for the reporter for at most a millisecond.
 */
void tdt__unloads_lock(void);
void tdt__unloads_unlock(void);

/* In a child of fork(): reset the state, since the reporter is gone. */

void tdt__unloads_forked(void);

#endif
