/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tdt_trace;

/* `each_holder` of struct tdt__lock_places for this process. */
bool tdt__each_holder(void *arg, void (*see)(void *to, uint64_t id), void *to);

/*
 * Give a new trace with stacks the names of the tasks that its waits name as owners, as far as
 * these tasks live or have ended with a lock; and find out which of the locks are orphaned.  If
 * there is such a wait, this looks at every record, which takes 10 to 20 ns
 * for each.  Any thread.
 */
void tdt__name_owners(struct tdt_trace *trace);
