/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_HOST_UNLOADS_H
#define TDT_SRC_HOST_UNLOADS_H

/*
 * How many modules the process has unloaded so far.
 *
 * Only dl_iterate_phdr() tells that, and it waits for the loader's list, which a callback of the host's may hold for
 * ever.  So a thread of the library's, the teller, makes the call, and requesters wait for it for a limited time, with
 * no lock of the library held.  They need the number for captures that lie in modules that may be unloaded (modules.h).
 */

#include <stdbool.h>
#include <stdint.h>

/* The number, found out when it is first needed.  All zero but `deadline` (tdt__clock()): not yet. */
struct tdt__unloads {
	uint64_t deadline;
	uint64_t n;
	bool told;
	bool asked;
};

/*
 * Find out the number, once, for a requester who can't do without: `count->n` is from some moment between the first such
 * call and the end of it.  False: it could not be had by the deadline; 10 ms are waited at least,
 * and 100 at most.  The call waits for up to 300 ms more while the machine is so busy that the
 * teller does not run.  After a call that failed nobody waits before the loader's list is free.
 */
bool tdt__unloads_count(struct tdt__unloads *count);

/* How long a requester that goes on without the number waits for it, ns; mostly it takes some microseconds. */
#define TDT__UNLOADS_SOON UINT64_C(10000000)

/*
 * The number of unloads at some moment of this call.  False: it could not be had by `deadline` (tdt__clock()).  Any thread.
 */
bool tdt__unloads_now(uint64_t *unloads, uint64_t deadline);

/* Start the teller, for those who come later: see service.h.  In a child of fork() the first call above does. */
void tdt__unloads_begin(void);

/* Taken before fork() (fork.c), for which the teller stays out of the loader's list: at most a millisecond is waited. */
void tdt__unloads_lock(void);
void tdt__unloads_unlock(void);

/* In a child of fork(): the teller is gone. */
void tdt__unloads_forked(void);

#endif
