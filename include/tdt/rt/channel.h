/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_CHANNEL_H
#define TDT_CHANNEL_H /* may change: docs/compatibility.md */

/*
 * Bounded channels: a queue of values between tasks, or between tasks and other threads.  They are
 * in libtdt-rt, but need none of its threads (tdt/rt/sync.h, which has the channel for one value).
 *
 *	struct tdt_channel *jobs = tdt_channel_new(64, job_free);
 *	...
 *	TDT_AWAIT(tdt_channel_send(jobs, job, &it->error));             // waits while 64 are there
 *
 *	for (;;) {                                                      // any number of receivers
 *		TDT_AWAIT(tdt_channel_receive(jobs, &it->job, &it->error));
 *		if (it->error != 0)
 *			return TDT_READY;                               // closed, and empty
 *		...
 *	}
 *
 * To drain it, close it: what was sent is still received, then receivers get -EPIPE.
 *
 * Any number of tasks may send and receive.  Values are received in the order in which they were
 * sent; tasks that wait, to send or to receive, go on in the order of their first polls.  Each
 * task holds a reference of the channel, or knows of one that outlives it.  Futures hold one of
 * their own.
 */

#include <tdt/decls.h>
#include <tdt/future.h>

TDT_DECLS_BEGIN

struct tdt_channel;

/*
 * Make a channel that holds at most `capacity` values.  A value that will never be received is
 * passed to `value_free` (may be NULL), by the thread that finds it out.  The caller has a
 * reference.  Returns NULL and sets errno: EINVAL (`capacity` is 0), ENOMEM.  Any thread.
 */
TDT_MUST_USE
struct tdt_channel *tdt_channel_new(size_t capacity, void (*value_free)(void *value));

/* Give the channel a name, as tdt_mutex_set_name() does (tdt/rt/sync.h). */
int tdt_channel_set_name(struct tdt_channel *channel, const char *name);

/*
 * Take a reference, or give one up; the last one frees the channel, and the values in it.  Giving
 * up a reference closes nothing.  NULL does nothing.  Any thread.
 */
struct tdt_channel *tdt_channel_ref(struct tdt_channel *channel);
void tdt_channel_unref(struct tdt_channel *channel);

/*
 * Make a future that sends `value`, and waits while the channel is full.  The future takes `value`
 * over.  When it is ready, `*error` is 0; or -EPIPE, because the channel was closed, and then
 * `value` was freed, as it is if the future is dropped before it is ready.  `error` may be NULL.
 * Otherwise it must outlive the future; only the future's poll writes to it.
 *
 * Returns TDT_FUTURE_NONE and sets errno: EINVAL (`channel` is NULL), ENOMEM.  Then `value` still
 * belongs to the caller.
 */
TDT_MUST_USE
struct tdt_future tdt_channel_send(struct tdt_channel *channel, void *value, int *error);

/*
 * Make a future that waits for a value.  When it is ready, either `*value` is the value, which now
 * belongs to the caller, and `*error` is 0; or `*value` is NULL and `*error` is -EPIPE: the channel
 * is closed, and there are no more values.  `error` may be NULL; both are as in tdt_channel_send().
 * If the future is dropped before it is ready, no value is lost: the next receiver gets it.
 *
 * Returns TDT_FUTURE_NONE and sets errno: EINVAL (`channel` or `value` is NULL), ENOMEM.
 */
TDT_MUST_USE
struct tdt_future tdt_channel_receive(struct tdt_channel *channel, void **value, int *error);

/*
 * Send, or receive, without waiting.  Returns 0, or a negative errno and sets errno: -EAGAIN (the
 * channel is full, or empty, or what is there belongs to tasks that have waited for it), -EPIPE (as
 * above), -EINVAL (a pointer is NULL).  On an error `value` is still the caller's, and `*value` is
 * unchanged.  Any thread; never blocks.
 */
int tdt_channel_try_send(struct tdt_channel *channel, void *value);
int tdt_channel_try_receive(struct tdt_channel *channel, void **value);

/*
 * Close the channel: nothing can be sent any more, and what was sent can be received.  The tasks
 * that wait are woken.  Closing it twice is closing it once.  Returns 0, or -EINVAL and sets errno
 * (`channel` is NULL).  Any thread; never blocks.
 */
int tdt_channel_close(struct tdt_channel *channel);

TDT_DECLS_END

#endif
