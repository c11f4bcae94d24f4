/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Awaiting the end of a task.  The task's record lists its joiners: the futures that await it. */

#include <tdt/future.h>

struct tdt_handle;

/* Wake all joiners of `task`, whose `outcome` is set already. */
void tdt__joiners_wake(struct tdt_handle *task);

