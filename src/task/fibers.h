/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The fibers of the library's own coroutines: future/coroutine.c. */

#include <stddef.h>
#include <stdint.h>

#include <tdt/future.h>

#include "unwind/registers.h"

struct tdt_fiber;
struct tdt_handle;

/*
 * Make the fiber of a stack that belongs to no task yet; tdt_fiber_end() frees it.  NULL and errno
 * on failure.
 */
struct tdt_fiber *tdt__fiber_new(const void *low, size_t size);

/*
 * The fiber of a future is suspended with the registers `at`.  `pc` is a return address.  The fiber
 * belongs to a task, and was made ready by tdt__fiber_begin_write().
 */
void tdt__fiber_stands(struct tdt_fiber *fiber, struct tdt__registers at);

/*
 * From now on the stack belongs to the future of `task`, or, if that is NULL or a fiber of its own,
 * to no task.  Called by the thread that polls it, before the fiber is resumed.  NULL for the fiber
 * does nothing.
 */
void tdt__fiber_belongs(struct tdt_fiber *fiber, struct tdt_handle *task);

struct tdt_task_attr;

/*
 * Make such a task, and add its fiber to the table (reported.h).  The fiber has both references to
 * the record.  No probe fires, neither here nor in the calls below.  NULL and errno on failure.
 */
struct tdt_fiber *tdt__reported_new(const struct tdt_task_attr *attr);

/*
 * This thread polls the task from now on, or no more.  `base` is as in tdt_task_enter_at().  The
 * second call does nothing unless the thread polls the task with this id, and that is not traced.
 * Most polls make neither call: hooked.c.
 */
void tdt__reported_enter(struct tdt_fiber *fiber, uintptr_t base);
void tdt__reported_leave(uint64_t id);

/*
 * The task with this id has ended on another thread, which left the fiber to this one, or to the
 * thread that claims it first: see tdt__leave_link().
 */
void tdt__reported_free(struct tdt_fiber *fiber, uint64_t id);

/* The task has ended, and the fiber is free. */
void tdt__reported_end(struct tdt_fiber *fiber, tdt_poll_t result);

/*
 * `task`, which has a future, is the reported task: make a fiber that says so.  `fiber` is the one
 * that stands for it now, which is free, with its record; NULL: there is none.  NULL: no memory.
 */
struct tdt_fiber *tdt__reported_adopt(struct tdt_fiber *fiber, struct tdt_handle *task);
