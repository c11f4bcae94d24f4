/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The stack of a suspended fiber, read from any thread.
 *
 * Such a stack stands still until the fiber is resumed.  So it is copied between two looks at the
 * record: if the fiber was suspended at both, and was not resumed in between, the copy is right.
 */

#include <stdbool.h>
#include <stdint.h>

struct tdt_handle;
struct tdt__capture;
struct tdt__standing;

/* Whether a suspended stack of the task is known, or the task is a fiber that has not run yet. */
bool tdt__is_suspended(const struct tdt_handle *task);

/*
 * Capture the suspended stack of the task, with at most `max_frames` frames, and again if a module
 * was unloaded meanwhile.  The caller holds a reference to the task, and unrefs the capture.  NULL:
 * `*error` is one of those below.
 */
struct tdt__capture *tdt__suspended_capture(struct tdt_handle *task, uint32_t max_frames,
					    uint64_t deadline, int *error);

/*
 * Record the suspended stack of the task as the only leaf of `capture`, which is empty.  (The stack
 * of a fiber that has not run yet is empty, and so is its capture.)  Returns 0 or a negative errno:
 *
 *	-EAGAIN   the task is not suspended, or was resumed meanwhile
 *	-ENOTSUP  it was suspended by a function on another stack
 *	-EFAULT   its stack cannot be read
 *	-ENOMEM
 *
 * The caller holds a reference to `task`.  Any thread, and any number of threads at once.  Takes
 * about a microsecond, unless PCs are new.  Not async-signal-safe.
 */
int tdt__suspended(struct tdt_handle *task, struct tdt__capture *capture);

/*
 * The two halves of that, for a fiber that answers requests itself: its stack may be small, so it
 * only copies its stack.  Each requester makes a capture of the copy.
 *
 * tdt__standing_new() returns the copy, of which the caller holds one reference; NULL: `*error` is
 * one of those above.  tdt__standing_capture() returns 0 or -ENOTSUP.
 */
struct tdt__standing *tdt__standing_new(struct tdt_handle *task, int *error);
struct tdt__standing *tdt__standing_ref(struct tdt__standing *standing);
void tdt__standing_unref(struct tdt__standing *standing); /* NULL does nothing */
int tdt__standing_capture(const struct tdt__standing *standing, struct tdt__capture *capture);
