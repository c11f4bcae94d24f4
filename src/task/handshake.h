/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The handshake between the polls of a task and the requesters of its trace.  It uses `state` of
 * the task's record and `request` of its handle (handle.h).  The poller's side is in wrapper.c, the
 * requesters' side in request.c.
 *
 * The two sides:
 *   the poller    polls or drops the future: one thread at a time, by the ABI
 *   a requester   any thread with a handle
 *
 * The poller stores what it does in `state`, then reads `request`.  A requester stores `request`,
 * then reads `state`.  (barrier.h explains why no wake-up is lost.)
 *
 *   poller                                    requester
 *     state = POLLING                           list the request, request = REQUESTED
 *     light barrier                             heavy barrier
 *     request?  yes: take the list, capture     state?
 *     poll the child                              IDLE: take the saved waker and wake it
 *     save the waker                              POLLING: that poll's end will see the request
 *     state = IDLE                                ENDED: no poll will come; fail the request
 *     light barrier
 *     request?  yes: wake the task
 *
 * The side that wakes the task sets CLAIMED first, so that one wake-up serves all requests.  Only a
 * side that has a waker to wake may claim: the others rely on the claim, and do nothing.
 */

#define TDT__REQUESTED 1u /* there are requests in the list */
#define TDT__CLAIMED 2u /* the task is being woken, or was, for its requests: a poll will come */
#define TDT__TOLD 4u /* ... and the runtime has reported that wake-up (tdt_task_woken()) */
#define TDT__FOLLOWED 8u /* leaves get counted clones in each poll: see task/lost.h */
/*
 * An abort (tdt_task_abort()) is a request, too, but in no list, and the bits of an aborted task
 * stay set: the poll that sees them drops the task's future.  TDT__RECORD_ABORTED is one more bit.
 */
