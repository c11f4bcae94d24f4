/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_TASK_SAVED_WAKER_H
#define TDT_SRC_TASK_SAVED_WAKER_H

/*
 * What src/task/saved_waker.h must not be: the waker is taken for the one that is kept because the
 * poll before was given the same pointer.  tests/unit/task/check_kept.c built with this in its
 * place shows what comes of it.
 */

#include "registry/handle.h"

#define TESTS_NAIVE_KEPT 1

static const struct tdt_waker *given_before; /* one task is enough */

static inline bool tdt__is_saved(const struct tdt_handle *task, const struct tdt_waker *waker)
{
	bool same = waker == given_before;

	(void)task;
	given_before = waker;
	return same;
}

#endif
