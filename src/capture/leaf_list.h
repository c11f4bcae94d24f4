/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Reading the lists that say where a task waits (tdt/integrate/leaf.h).
 *
 *   owner                                   reader, on any thread
 *     task and polls of the list              state is idle?
 *     leaf = the list (release)               leaf (acquire), then copy the list
 *     ...                                     the list has this task's id and `polls`?
 *     the task goes on: polls + 1             barrier
 *     light barrier                           seq, state, polls and leaf as before?
 *     the list changes, or is freed
 *
 * `polls` increases whenever the task goes on, so a list with the same `polls` has not changed.
 */

#include <stdbool.h>

#include "registry/handle.h"

struct tdt__capture;

/*
 * Whether the task is idle, and a list is in force that answers requests; the task may go on at any
 * time.
 */
bool tdt__waits_at_list(const struct tdt_handle *task);

/*
 * Record the list at `address` as a leaf, if it was set for the task with this id at this number of
 * polls.  A list without frames that can be read is recorded as a frame "(unknown)".  False: it was
 * not set so.  May set errno.
 */
bool tdt__leaf_list_record(struct tdt__capture *capture, uintptr_t address, uint64_t id,
			   uint64_t polls);

/*
 * Put the frames of the list outside those of a running task, if it came from there: if the list
 * was set for the task at this number of polls, and has not changed since before its stack was read
 * (`changes`).  The capture is complete, and has one leaf.
 */
uint32_t tdt__leaf_list_changes(const struct tdt_handle *task);
void tdt__leaf_list_append(struct tdt__capture *capture, const struct tdt_handle *task,
			   uint64_t polls, uint32_t changes);

/*
 * Fill in an empty capture from the list that is in force and from the task's record.  False: no
 * list is in force, or not any more; the capture is empty again.  May set errno.
 */
bool tdt__leaf_list_capture(struct tdt__capture *capture, const struct tdt_handle *task);
