/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Which tasks hold locks (struct tdt_lock), as far as the locks report it, and the last tasks that
 * ended with one: struct tdt_registry_holder.
 *
 * How many locks a task holds is counted by a hash of its id, so that it needs no room in each
 * record.  Another task with the same hash, or a lock that was freed while it was held, may have a
 * task noted that held none.  That does no harm: the lock says who owns it.
 */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/layout/registry.h>

struct tdt_handle;

/* The lock passes from task `from` to task `to`; 0: none. */
void tdt__holder_pass(uint64_t from, uint64_t to);

/* The task has ended and its future was dropped: note it if it seems to hold a lock. */
void tdt__holder_over(struct tdt_handle *task);

/* Copy what was noted of the task with this id.  False: nothing was, or not lately. */
bool tdt__holder_find(uint64_t id, struct tdt_registry_holder *holder);
