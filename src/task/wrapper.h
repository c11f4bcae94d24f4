/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The wrapper: the poll and the drop of a traced future (wrapper.c). */

#include <tdt/future.h>

#include "registry/handle.h"

struct tdt__capture;

tdt_poll_t tdt__traced_poll(void *state, struct tdt_context *cx);
void tdt__traced_drop(void *state);

/*
 * Mark the task as ended: no other poll will come.  `capture` is that of its last poll; NULL: the
 * poll was not captured, or the task was dropped, or it is a fiber.
 */
void tdt__task_end(struct tdt_handle *task, enum tdt__outcome outcome,
		   const struct tdt__capture *capture);
