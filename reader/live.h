/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The stacks that tasks have now: of a poll that goes on, and of a suspended fiber or coroutine. */

#include "reader/tasks.h"
#include "reader/walk.h"

struct tdt__stacks;

/* The caller sets all fields but those of the walker, which has only its images at first. */
struct tdt__live_stacks {
	struct tdt__tasks *tasks; /* where the tasks are from */
	struct tdt__walker walker;
	struct tdt__sampling *sampling; /* how stacks of running threads are read */
};

/*
 * The stack of the task's poll, which the caller frees.  `member.info.syscall` says afterwards in
 * which system call the poll is blocked.  NULL: the stack cannot be had.
 */
struct tdt__stacks *tdt__live_poll(struct tdt__live_stacks *live, struct tdt__seen_task *task);

/*
 * The stack of a coroutine that the task has switched away from, which the caller frees.  NULL:
 * there is none.
 */
struct tdt__stacks *tdt__live_suspended(struct tdt__live_stacks *live,
					const struct tdt__seen_task *task);
