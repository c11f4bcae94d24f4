/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Fresh trees for a reader outside: each task is requested once, and its answer is sent as soon as
 * it has come.  So the memory that this needs does not grow with the trees, and a reader that
 * receives slowly holds up nobody but itself: no task waits for its answer to be sent.
 */

#include <tdt/layout/outside.h>

#include "door/socket.h"

/*
 * Send the trees that `wanted` requests, as far as they can be had in its time.  `done` gets the
 * rest of the answer.  Returns 0 or -ENOMEM, which is for `done`, too; or why nothing more can be
 * sent: -ETIMEDOUT, -EPIPE, -EBADF.
 */
int tdt__trees_send(const struct tdt__door_socket *socket, const struct tdt_outside_trees *wanted,
		    struct tdt_outside_done *done);
