/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A connection to the library in a process, through its door (<tdt/layout/outside.h>).  What the
 * connection requests ends with it.
 *
 * The target may be stopped, busy, damaged or hostile.  So no call waits for longer than it says,
 * and each message is checked before it is used.
 */

#include <tdt/layout/outside.h>

#include "reader/find.h"

struct tdt__door {
	int connection;  /* -1: not open */
	uint64_t number; /* of the last request */
	uint64_t deadline; /* tdt__clock(): until then the target may answer that request */
	char *message;   /* room for one message */
};

/* How long the target may take to answer, besides the time that a request takes: nanoseconds. */
#define TDT__DOOR_PATIENCE UINT64_C(2000000000)

/*
 * Open a connection to the library whose registry is `found`.  Returns 0.  On failure it returns a
 * negative errno, `trouble` says why and what helps, and there is nothing to close.  Takes at most
 * TDT__DOOR_PATIENCE.
 */
int tdt__door_open(struct tdt__door *door, const struct tdt__target *target,
		   const struct tdt__found *found, struct tdt__trouble *trouble);
void tdt__door_close(struct tdt__door *door);

/*
 * Send a request of that kind, whose `header` is filled in here.  The answer may take `ns` besides
 * TDT__DOOR_PATIENCE.  Returns 0 or a negative errno, as tdt__door_open() does; then the connection
 * is of no more use.
 */
int tdt__door_send(struct tdt__door *door, struct tdt_outside_header *header, uint16_t kind,
		   size_t size, uint64_t ns, struct tdt__trouble *trouble);

/*
 * Receive the next message that answers the last request.  It lies at `message` until the next
 * call, and has the size that it says, which is at least that of a header.  Returns its kind, or a
 * negative errno, as tdt__door_send() does.  If the library has refused the request, that is the
 * errno of the refusal.
 */
int tdt__door_receive(struct tdt__door *door, struct tdt__trouble *trouble);

/*
 * Send a request that has one answer of the same kind and size, and replace the request by it.
 * Returns 0 or a negative errno, as tdt__door_receive() does.
 */
int tdt__door_request(struct tdt__door *door, struct tdt_outside_header *header, uint16_t kind,
		      size_t size, struct tdt__trouble *trouble);
