/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_RT_H
#define TESTS_RT_H

/* Runtimes and their tasks, which are there or the test fails. */

#include <stddef.h>

#include <tdt/rt/runtime.h>
#include <tdt/tdt.h>

#include "lib/must.h"
#include "lib/scoped.h"

/* A runtime with so many workers. */
static inline struct tdt_rt *rt_of(unsigned workers)
{
	struct tdt_rt *rt = tdt_rt_new(
	    &(struct tdt_rt_config){ .size = sizeof(struct tdt_rt_config), .workers = workers });

	MUST(rt != NULL);
	return rt;
}

static inline void scoped_rt_end(struct tdt_rt **rt)
{
	tdt_rt_free(*rt);
}

/* Declare a runtime that is freed at the end of the block. */
#define RT(name, ...) SCOPED_POINTER(struct tdt_rt *, scoped_rt_end, name, __VA_ARGS__)

static inline struct tdt_handle *spawn_on(struct tdt_rt *rt, struct tdt_future future,
					  const char *name)
{
	struct tdt_handle *handle = tdt_rt_spawn(rt, future, TDT_TASK_ATTR(.name = name));

	MUST(handle != NULL);
	return handle;
}

#endif
