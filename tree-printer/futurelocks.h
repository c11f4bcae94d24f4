/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TREE_PRINTER_FUTURELOCKS_H
#define TDT_TREE_PRINTER_FUTURELOCKS_H

/* The futurelocks of a snapshot, which its tasks' waits tell. */

#include <stddef.h>

#include <tdt/dump.h>

struct tdt__futurelock {
	struct tdt_wait wait; /* of the first task that waits for the lock */
	size_t waits;         /* how many leaves wait for it */
};

/* They are sorted by the owner's id, then by the lock's address. */
struct tdt__futurelocks {
	struct tdt__futurelock *lock; /* the caller frees it */
	size_t n;
};

/* Returns 0 or -ENOMEM. */
int tdt__futurelocks_collect(struct tdt__futurelocks *locks, const struct tdt_snapshot *snapshot);

#endif
