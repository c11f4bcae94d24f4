/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TREE_PRINTER_FUTURELOCKS_H
#define TDT_TREE_PRINTER_FUTURELOCKS_H

/* The futurelocks of a snapshot, which its tasks' waits tell. */

#include <stdbool.h>
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

/* Whether a lock that the task waits for is in a futurelock. */
bool tdt__waits_in_vain(const struct tdt_task_info *info);

struct tdt__string;
struct tdt__names;

/* Write the line that describes it. */
void tdt__futurelock_line(struct tdt__string *string, const struct tdt__futurelock *lock,
			  const struct tdt__names *names, const struct tdt_print_options *options);

/* Returns 0 or -ENOMEM. */
int tdt__futurelocks_collect(struct tdt__futurelocks *locks, const struct tdt_snapshot *snapshot);

#endif
