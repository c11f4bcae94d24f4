/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_COUNTERS_H
#define TDT_COUNTERS_H /* stable from 1.0: docs/compatibility.md */

/*
 * Numbers for a metrics endpoint: how many tasks there are in each state, how many polls and panics
 * there were, and how long the longest poll and the longest wait have lasted by now.
 */

#include <stddef.h>
#include <stdint.h>

#include <tdt/decls.h>

TDT_DECLS_BEGIN

/*
 * What tdt_counters() fills in.  Later versions may add fields at the end.
 *
 * The counts since the start never decrease.  They include tasks that have ended, and, in a child
 * of fork(), what happened in the parent before.
 */
struct tdt_counts {
	size_t size;              /* sizeof(struct tdt_counts): the caller sets it */

	/* Now. */
	uint64_t waiting;         /* tasks between two polls that are not runnable */
	uint64_t runnable;        /* tasks that were woken and have not been polled since, as far
				     as the runtime reports wake-ups */
	uint64_t running;         /* tasks in a poll */
	uint64_t longest_wait_ns; /* of the waiting tasks, the longest time since the last poll
				     began, in nanoseconds; 0: none waits */
	uint64_t longest_poll_ns; /* of the running tasks, the longest time since the poll began, in
				     nanoseconds; 0: none runs */

	/* Since the start. */
	uint64_t spawned;         /* tasks that were made */
	uint64_t ended;           /* tasks that were ready, panicked or were dropped */
	uint64_t panicked;        /* tasks that panicked */
	uint64_t polls;           /* polls that began */
	uint64_t captures;        /* polls in which stacks were captured */
	uint64_t dumps;           /* snapshots of all tasks that were taken (tdt/dump.h) */

	/* Now. */
	uint64_t held;            /* tasks that have ended, and whose handles are still held: their
				     memory is in use */

	/* Since the start. */
	uint64_t lost_wakeups;    /* tasks that went on when they were polled for a request, and
				     nobody had woken them (tdt/dump.h) */
};

/*
 * Fill in `*counts` up to its size:
 *
 *	struct tdt_counts counts = { .size = sizeof counts };
 *
 *	if (tdt_counters(&counts) == 0)
 *		printf("tdt_polls_total %" PRIu64 "\n", counts.polls);
 *
 * The call looks at every task, and costs the tasks nothing: with 100,000 tasks it takes some
 * milliseconds.  The numbers are not all of one moment.  What happens during the call may be
 * missing, and is counted the next time.
 *
 * Returns 0.  Returns -EINVAL and sets errno if `counts` is NULL or its size is too small for
 * `size` itself; if the size is larger than that of the library, the rest is filled with zeros.
 * Any thread, also in a poll; takes no lock and allocates nothing.
 */
int tdt_counters(struct tdt_counts *counts);

TDT_DECLS_END

#endif
