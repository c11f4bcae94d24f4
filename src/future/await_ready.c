// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The mark that programs have compiled into each await of <tdt/async.h>: it tells that a task goes
 * on, for task/lost.h.  An await that never waited is no news: the function may be a new one.
 */

#include <config.h>

#include <tdt/async.h>

#include "task/lost.h"

static void note_await(const struct tdt_async *async)
{
	if (async->line != 0)
		tdt__suspect_awaited();
}

tdt__await_fn *volatile tdt__await_ready = note_await;
