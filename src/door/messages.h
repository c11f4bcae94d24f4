/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What <tdt/layout/outside.h> says of messages: each is checked like any input, then done or
 * refused, and answered.
 */

#include <stddef.h>

#include <tdt/layout/outside.h>

#include "door/connection.h"

/*
 * The largest request, and how much of one has to be received: what a later reader appends must be
 * zero.
 */
#define TDT__REQUEST_MAX sizeof(struct tdt_outside_trees)
#define TDT__PACKET_MAX (TDT__REQUEST_MAX + 1024)

/*
 * Do what the request wants, and answer it.  `packet` has the first TDT__PACKET_MAX of its `size`
 * bytes, or all of them if it has less.  Returns 0, or why the connection has to end.
 */
int tdt__message_answer(struct tdt__connection *connection, const void *packet, size_t size);

/*
 * The same for the first message of a reader, which came through the door, and brought `socket`.
 * `error` is 0, or a positive errno with which the reader is refused.
 */
int tdt__message_hello(const struct tdt__door_socket *socket, const void *packet, size_t size,
		       int error);
