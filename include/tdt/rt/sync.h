/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SYNC_H
#define TDT_SYNC_H /* may change: docs/compatibility.md */

/*
 * Objects that tasks share: a mutex that is awaited, a semaphore, a notification, and a channel for
 * one value (tdt/rt/channel.h has the one for many).  They are in libtdt-rt, but need none of its
 * threads: the tasks of any runtime can use them.  In a child of
 * fork(), an object that other threads may have been using at the fork is no longer accessed.
 */

#include <stdbool.h>

#include <tdt/decls.h>
#include <tdt/future.h>

TDT_DECLS_BEGIN

/*
 * --- A mutex -----------------------------------------------------------------
 *
 * A task may hold the mutex across awaits, whichever threads poll the task.  Waiting tasks get the
 * mutex in the order of their first polls, because unlocking hands the mutex over.  A waiting task
 * reports which task holds the mutex: the one in whose poll it was locked.
 *
 *	TDT_AWAIT(tdt_mutex_guard(mutex, transfer(from, to)));  // transfer() awaits, too
 *
 * A guard unlocks the mutex however its future ends, also if it is dropped: by a timeout, with its
 * task, or after a panic.  Without one, the task unlocks:
 *
 *	TDT_AWAIT(tdt_mutex_lock(mutex));
 *	...                                     // awaits too
 *	tdt_mutex_unlock(mutex);
 *
 * Whatever may be dropped while it holds the mutex then unlocks it in its `fini`.  If a task ends
 * and does not, all that wait for the mutex hang: dumps say that it is *orphaned*, and where it was
 * taken (tdt/integrate/hooks.h).
 */
struct tdt_mutex;

/*
 * Make a mutex, which the caller frees.  Returns NULL and sets errno to ENOMEM if there is no
 * memory.  Any thread.
 */
TDT_MUST_USE
struct tdt_mutex *tdt_mutex_new(void);

/*
 * Give the mutex a name, which traces and dumps show where tasks wait for it:
 *
 *	tdt_mutex_set_name(room->mutex, "room 1");
 *
 *	waits for a mutex "room 1" (0x7f10) held by task 6
 *
 * The name is copied; its first TDT_WAIT_NAME_MAX bytes (tdt/tree.h) are shown.  NULL removes it.
 * Make this call before other tasks use the mutex.  Returns 0, or a negative errno and sets errno:
 * -EINVAL (`mutex` is NULL), -ENOMEM.
 */
int tdt_mutex_set_name(struct tdt_mutex *mutex, const char *name);

/* Free a mutex.  No task may hold it or wait for it.  NULL does nothing. */
void tdt_mutex_free(struct tdt_mutex *mutex);

/*
 * Make a future that is ready when the mutex is locked for the caller, who then unlocks it.  If the
 * future is dropped before it is ready, it gives up its place in the queue.  If the mutex had just
 * been handed over to it, the next waiter gets the mutex.
 *
 * Returns TDT_FUTURE_NONE and sets errno: EINVAL (`mutex` is NULL), ENOMEM.
 */
TDT_MUST_USE
struct tdt_future tdt_mutex_lock(struct tdt_mutex *mutex);

/*
 * Make a future that locks the mutex, polls `future`, and when that has ended, drops it and unlocks
 * the mutex.  It ends as `future` does.  If it is dropped before, it drops `future` and then gives
 * the mutex back, if it holds it.  It takes `future` over.
 *
 * Returns TDT_FUTURE_NONE and sets errno: EINVAL (`mutex` is NULL, or `future` has no functions),
 * ENOMEM.  Then `future` is still the caller's.
 */
TDT_MUST_USE
struct tdt_future tdt_mutex_guard(struct tdt_mutex *mutex, struct tdt_future future);

/*
 * Lock the mutex if it is free.  Returns true if it was.  Returns false if it was not, and also if
 * `mutex` is NULL, with errno EINVAL.  Any thread; never blocks.
 */
TDT_MUST_USE
bool tdt_mutex_try_lock(struct tdt_mutex *mutex);

/*
 * Unlock the mutex.  The holder of the mutex may do this from any thread.  Returns 0.  On an error
 * it changes nothing, returns a negative errno and sets errno: -EPERM (the mutex is not locked),
 * -EINVAL (`mutex` is NULL).
 */
int tdt_mutex_unlock(struct tdt_mutex *mutex);

/*
 * --- A semaphore ---------------------------------------------------------------
 *
 * A number of permits, such as how many requests may be served at a time.  Waiting tasks get
 * permits in the order of their first polls.
 *
 *	TDT_AWAIT(tdt_semaphore_acquire(server->slots));
 *	request->has_slot = true;                       // its fini then releases the permit
 */
struct tdt_semaphore;

/*
 * Make a semaphore with so many permits; give it a name, as tdt_mutex_set_name() does; free it,
 * when no task waits for it.
 */
TDT_MUST_USE
struct tdt_semaphore *tdt_semaphore_new(size_t permits);
int tdt_semaphore_set_name(struct tdt_semaphore *semaphore, const char *name);
void tdt_semaphore_free(struct tdt_semaphore *semaphore);

/*
 * Make a future that is ready when the caller has a permit.  If it is dropped before it is ready,
 * the next waiter gets the permit.  Returns TDT_FUTURE_NONE and sets errno: EINVAL (`semaphore` is
 * NULL), ENOMEM.
 */
TDT_MUST_USE
struct tdt_future tdt_semaphore_acquire(struct tdt_semaphore *semaphore);

/*
 * Take a permit if there is one.  Returns false if there is none, and also if `semaphore` is NULL,
 * with errno EINVAL.  Any thread; never blocks.
 */
TDT_MUST_USE
bool tdt_semaphore_try_acquire(struct tdt_semaphore *semaphore);

/*
 * Add a permit: give one back, or raise their number.  Returns 0, or -EINVAL and sets errno
 * (`semaphore` is NULL).  Any thread; never blocks.
 */
int tdt_semaphore_release(struct tdt_semaphore *semaphore);

/*
 * --- A notification ------------------------------------------------------------
 *
 * Tells a task, or all that wait, that something has changed, which they then look at.
 *
 *	while (!server->reload)
 *		TDT_AWAIT(tdt_notify_wait(server->changed));
 */
struct tdt_notify;

/* As with a semaphore. */
TDT_MUST_USE
struct tdt_notify *tdt_notify_new(void);
int tdt_notify_set_name(struct tdt_notify *notify, const char *name);
void tdt_notify_free(struct tdt_notify *notify);

/*
 * Make a future that is ready when it was notified, or at once if tdt_notify_one() was called while
 * no task waited.  If it is dropped after tdt_notify_one() chose it, and before it is ready, the
 * next waiter is notified.  Returns TDT_FUTURE_NONE and sets errno: EINVAL (`notify` is NULL),
 * ENOMEM.
 */
TDT_MUST_USE
struct tdt_future tdt_notify_wait(struct tdt_notify *notify);

/*
 * Notify the first of the tasks that wait; if none does, the next one that would (once, however
 * often the call is made until then).  Or notify all that wait now, and nobody else.  Returns 0, or
 * -EINVAL and sets errno (`notify` is NULL).  Any thread; never blocks.
 */
int tdt_notify_one(struct tdt_notify *notify);
int tdt_notify_all(struct tdt_notify *notify);

/*
 * --- A channel for one value ---------------------------------------------------
 *
 *	struct tdt_oneshot_sender *sender;
 *	struct tdt_oneshot_receiver *receiver;
 *
 *	tdt_oneshot(&sender, &receiver, free);
 *	worker = tdt_rt_spawn(rt, work(sender), ...);   // it calls tdt_oneshot_send(sender, result)
 *	TDT_AWAIT(tdt_oneshot_receive(receiver, &result, &error));
 *	tdt_oneshot_receiver_free(receiver);
 *
 * The receiver outlives the futures that await the value.  tdt_select_keep() in tdt/combine.h has a
 * task that works until it is stopped by such a value.
 */
struct tdt_oneshot_sender;
struct tdt_oneshot_receiver;

/*
 * Make a channel.  The caller owns both of its ends.  A value that was sent but never received is
 * passed to `value_free` (may be NULL), by the thread that frees the last end, or drops the last
 * future.  Returns 0, or a negative errno and sets errno: -EINVAL (`sender` or `receiver` is NULL),
 * -ENOMEM.
 */
int tdt_oneshot(struct tdt_oneshot_sender **sender, struct tdt_oneshot_receiver **receiver,
		void (*value_free)(void *value));

/*
 * Give the channel a name, as tdt_mutex_set_name() does.  Make this call before
 * tdt_oneshot_receive().
 */
int tdt_oneshot_set_name(struct tdt_oneshot_receiver *receiver, const char *name);

/*
 * Send `value`, and free the sender, even if the call fails.  Returns 0; then the value belongs to
 * the channel.  On an error the value still belongs to the caller, and the call returns a negative
 * errno and sets errno: -EPIPE (the receiver was freed), -EINVAL (`sender` is NULL).  Any thread;
 * never blocks.
 */
int tdt_oneshot_send(struct tdt_oneshot_sender *sender, void *value);

/*
 * Free the sender without sending.  The receiver then gets -EPIPE.  NULL does nothing.  Any thread.
 */
void tdt_oneshot_sender_free(struct tdt_oneshot_sender *sender);

/*
 * Make a future that is ready when a value was sent, or when no value can be sent any more.  When
 * it is ready, either `*value` is the value, which now belongs to the caller, and `*error` is 0; or
 * `*value` is NULL and `*error` is -EPIPE, because the sender was freed, or the receiver, or an
 * earlier future has received the value.  `value` and `error` must outlive the future; only the
 * future's poll writes to them.  `error` may be NULL.
 *
 * `receiver` still belongs to the caller, who frees it.  If the future is dropped before it is
 * ready, another future of the same receiver gets the value.
 *
 * Returns TDT_FUTURE_NONE and sets errno: EINVAL (`receiver` or `value` is NULL), ENOMEM.
 */
TDT_MUST_USE
struct tdt_future tdt_oneshot_receive(struct tdt_oneshot_receiver *receiver, void **value,
				      int *error);

/*
 * Free the receiver.  A future of it that still waits is woken, and gets -EPIPE.  NULL does
 * nothing.  Any thread.
 */
void tdt_oneshot_receiver_free(struct tdt_oneshot_receiver *receiver);

TDT_DECLS_END

#endif
