/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The tasks of a snapshot and their names, found by the ids of the tasks. */

#include <stdint.h>

#include <tdt/dump.h>

struct tdt__names;

/*
 * The names of all tasks in the groups of `snapshot`.  The names are borrowed, so `snapshot` must
 * outlive the result.  The caller frees it with tdt__names_free().  NULL: no memory.
 */
struct tdt__names *tdt__names_new(const struct tdt_snapshot *snapshot);
void tdt__names_free(struct tdt__names *names); /* NULL does nothing */

/*
 * The name of the task on which `wait` depends.  NULL: it has none, or is not there, and the wait
 * does not know it.
 */
const char *tdt__names_owner(const struct tdt__names *names, const struct tdt_wait *wait);

/*
 * The task with that id; NULL: it is not there, or `names` is NULL.  If several tasks have the same
 * id, the first one is found.
 */
const struct tdt_task_info *tdt__names_task(const struct tdt__names *names, uint64_t id);

/* The number of the group of task `id`.  UINT32_MAX: it is in none. */
uint32_t tdt__names_group(const struct tdt__names *names, uint64_t id);
