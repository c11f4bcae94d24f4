/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_TASK_LEAF_H
#define TDT_SRC_TASK_LEAF_H

/*
 * Tasks that wait at a list: <tdt/integrate/leaf.h>.  Requests to them take part in the handshake
 * of handshake.h.  The owner sets the list and the state, passes the light barrier, and looks for
 * requests; a requester that finds the list in force answers by it.
 */

#include <stdbool.h>

struct tdt_handle;

/*
 * Answer the requests of an idle task by the list that is in force.  False: no list is, or the task
 * went on all the time; the requests are listed again.  Any thread.
 */
bool tdt__leaf_answer(struct tdt_handle *task);

#endif
