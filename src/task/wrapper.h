/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_TASK_WRAPPER_H
#define TDT_SRC_TASK_WRAPPER_H

/* The wrapper: the poll and the drop of a traced future (wrapper.c). */

#include <tdt/future.h>

tdt_poll_t tdt__traced_poll(void *state, struct tdt_context *cx);
void tdt__traced_drop(void *state);

#endif
