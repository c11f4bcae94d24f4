/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SYNC_H
#define TDT_SYNC_H

/*
 * What tasks share: a mutex that is awaited, and a channel for one value.  They are in libtdt-rt but need none of its
 * threads: any runtime's tasks can use them.  In a child of fork() those that other threads may have been using are not
 * touched any more.
 */

#include <stdbool.h>

#include <tdt/future.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/*
 * --- A mutex -----------------------------------------------------------------
 *
 * It is held across awaits, by a task, whatever thread polls it.  Whoever waits gets it in the order of their first
 * polls: unlocking hands it over.  A task that waits tells which one holds it: the one in whose poll it was taken.
 *
 *	TDT_AWAIT(tdt_mutex_lock(mutex));
 *	...                                     // awaits too
 *	tdt_mutex_unlock(mutex);
 *
 * A task that may be dropped while it holds the mutex unlocks it in its `fini`.
 */
struct tdt_mutex;

/* NULL and errno ENOMEM. */
struct tdt_mutex *tdt_mutex_new(void);

/* Free a mutex that nobody holds or waits for.  NULL does nothing. */
void tdt_mutex_free(struct tdt_mutex *mutex);

/*
 * Ready when the mutex is the caller's, who unlocks it.  Dropping the future before it is ready gives up the place in
 * the line (and, if the mutex was just handed over, hands it on).
 *
 * Returns TDT_FUTURE_NONE and errno: EINVAL (`mutex` is NULL), ENOMEM.
 */
struct tdt_future tdt_mutex_lock(struct tdt_mutex *mutex);

/* Take the mutex if it is free.  False and errno EINVAL if `mutex` is NULL.  Any thread, never blocks. */
bool tdt_mutex_try_lock(struct tdt_mutex *mutex);

/*
 * Unlock: from any thread, by whoever holds the mutex.  Returns 0, or -EPERM if nobody holds it, or -EINVAL if
 * `mutex` is NULL (and sets errno), and changes nothing then.
 */
int tdt_mutex_unlock(struct tdt_mutex *mutex);

/*
 * --- A channel for one value ---------------------------------------------------
 *
 *	struct tdt_oneshot_sender *sender;
 *	struct tdt_oneshot_receiver *receiver;
 *
 *	tdt_oneshot(&sender, &receiver, free);
 *	tdt_rt_spawn(rt, work(sender), ...);            // in the end: tdt_oneshot_send(sender, result)
 *	TDT_AWAIT(tdt_oneshot_receive(receiver, &result, &error));
 */
struct tdt_oneshot_sender;
struct tdt_oneshot_receiver;

/*
 * Make a channel.  `value_free` (may be NULL) is called with a value that was sent and not received, by whoever gives
 * up the last end.  Returns 0, or -EINVAL, -ENOMEM (and sets errno).
 */
int tdt_oneshot(struct tdt_oneshot_sender **sender, struct tdt_oneshot_receiver **receiver,
		void (*value_free)(void *value));

/*
 * Send `value`, and free the sender, also if that fails.  Returns 0, and the value belongs to the channel; or -EPIPE
 * when the receiver is gone, or -EINVAL if `sender` is NULL (and sets errno), and the value stays the caller's.
 * Any thread; never blocks.
 */
int tdt_oneshot_send(struct tdt_oneshot_sender *sender, void *value);

/* Free the sender without sending: the receiver gets -EPIPE.  NULL does nothing.  Any thread. */
void tdt_oneshot_sender_free(struct tdt_oneshot_sender *sender);

/*
 * Ready when a value was sent, or never will be.  `*value` is the value, the caller's now, and `*error` is 0; or NULL
 * and -EPIPE, when the sender was freed.  Both outlive the future, and are written only from its poll; `error` may be
 * NULL.  Takes `receiver` over, which goes when the future is dropped.
 *
 * Returns TDT_FUTURE_NONE and errno EINVAL (`receiver` or `value` is NULL), and the receiver stays the caller's.
 */
struct tdt_future tdt_oneshot_receive(struct tdt_oneshot_receiver *receiver, void **value, int *error);

/* Free a receiver that is not awaited.  NULL does nothing.  Any thread. */
void tdt_oneshot_receiver_free(struct tdt_oneshot_receiver *receiver);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
