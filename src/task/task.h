/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <stdint.h>

#include <tdt/future.h>

struct tdt_handle;
struct tdt_task_attr;

/*
 * Make the task of a traced future, or of a fiber: then `child` has no `poll`, and `fiber` is the
 * fiber's index.  The library is started if it was not yet.  The caller gets two references, and
 * fires the probe task-spawn.  `kept` is as in tdt__registry_take(), and is still kept on failure:
 * NULL and errno (ENOMEM, EINVAL, E2BIG, EPERM).
 */
struct tdt_handle *tdt__task_new(const struct tdt_future *child, uint32_t fiber,
				 const struct tdt_task_attr *attr, struct tdt_handle *kept);

/* Fire task-spawn, and record it. */
void tdt__task_announce(const struct tdt_handle *task);
