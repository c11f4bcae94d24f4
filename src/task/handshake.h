/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_TASK_HANDSHAKE_H
#define TDT_SRC_TASK_HANDSHAKE_H

/*
 * The handshake between the poll of a task and those who request its trace, by `state` of its record and `request` of
 * its handle (handle.h).  wrapper.c has the poller's side, request.c the other.
 *
 * Who touches what:
 *   the poller   whoever polls or drops the future: one at a time, by the ABI
 *   askers       any thread with a handle
 *
 * The handshake (why it loses no wake-up is in barrier.h).  The poller announces what it does in `state`, then looks at
 * `request`; an asker sets `request`, then looks at `state`:
 *
 *   poller                                    asker
 *     state = POLLING                           list the request, request = ASKED
 *     light barrier                             heavy barrier
 *     request?  yes: take the list, capture     state?
 *     poll the child                              IDLE: take the kept waker and wake it
 *     keep the waker                              POLLING: that poll's end will see the request
 *     state = IDLE                                ENDED: no poll will come; fail the request
 *     light barrier
 *     request?  yes: wake the task
 *
 * Who wakes sets CLAIMED first, so that one wake-up serves all.  Only who has a waker to wake may claim: others rely on
 * it, and do nothing.
 */

#define TDT__ASKED 1u   /* there are requests in the list */
#define TDT__CLAIMED 2u /* somebody wakes, or has woken, the task for their sake: a poll will come */

#endif
