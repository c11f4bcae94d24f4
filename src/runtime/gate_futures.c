// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The futures that wait at a gate: for a permit, for a notification, and on both sides of a
 * channel.  The polls have public names: mutex_lock.c says why.
 */

#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include <tdt/integrate/hooks.h>

#include "base/leaf_poll.h"
#include "base/result.h"
#include "runtime/channel.h"
#include "runtime/semaphore.h"

/* Declared here: <tdt/rt/channel.h> has calls of the same names as polls below. */
struct tdt_channel *tdt_channel_ref(struct tdt_channel *channel);
void tdt_channel_unref(struct tdt_channel *channel);

/* --- A permit ------------------------------------------------------------------- */

struct acquiring {
	struct tdt__gate_leaf leaf;
	struct tdt_semaphore *semaphore; /* not used once the future has ended */
};

static bool pass_semaphore(void *state)
{
	struct acquiring *acquiring = state;
	bool passed;

	pthread_mutex_lock(&acquiring->semaphore->lock);
	passed = tdt__gate_pass(&acquiring->semaphore->gate, &acquiring->leaf.place);
	pthread_mutex_unlock(&acquiring->semaphore->lock);
	return passed;
}

static void report_semaphore(void *state)
{
	const struct tdt_semaphore *semaphore = ((struct acquiring *)state)->semaphore;

	tdt_leaf_waits_on_named(TDT_WAIT_OTHER, semaphore, 0, semaphore->name);
}

TDT__LEAF_POLL_BY(tdt_semaphore_acquire,
		  tdt__gate_leaf_poll(state, cx, pass_semaphore, report_semaphore))

TDT__LEAF_POLL_BY(tdt_notify_wait,
		  tdt__gate_leaf_poll(state, cx, pass_semaphore, report_semaphore))

static void drop_acquiring(void *state)
{
	struct acquiring *acquiring = state;

	if (!acquiring->leaf.ended)
		tdt__gate_leave(&acquiring->semaphore->gate, &acquiring->leaf.place,
				&acquiring->semaphore->lock);
	tdt__slot_clear(&acquiring->leaf.place.slot);
	free(acquiring);
}

static struct tdt_future acquiring_new(struct tdt_semaphore *semaphore,
				       tdt_poll_t (*poll)(void *state, struct tdt_context *cx))
{
	struct acquiring *acquiring;

	if (semaphore == NULL)
		return tdt__no_future(-EINVAL);
	acquiring = calloc(1, sizeof *acquiring);
	if (acquiring == NULL)
		return TDT_FUTURE_NONE;
	acquiring->semaphore = semaphore;
	return (struct tdt_future){ acquiring, poll, drop_acquiring };
}

struct tdt_future tdt__semaphore_acquire_new(struct tdt_semaphore *semaphore)
    TDT__LEAF_CALL(tdt_semaphore_acquire);
struct tdt_future tdt__notify_wait_new(struct tdt_semaphore *notify)
    TDT__LEAF_CALL(tdt_notify_wait);

struct tdt_future tdt__semaphore_acquire_new(struct tdt_semaphore *semaphore)
{
	return acquiring_new(semaphore, tdt_semaphore_acquire);
}

struct tdt_future tdt__notify_wait_new(struct tdt_semaphore *notify)
{
	return acquiring_new(notify, tdt_notify_wait);
}

/* --- A value -------------------------------------------------------------------- */

struct passing {
	struct tdt__gate_leaf leaf;
	struct tdt_channel *channel; /* a reference */
	void *value;		     /* to send; owned until the future has ended */
	void **out;		     /* where a received value goes; NULL: this is a sender */
	int *error;		     /* may be NULL */
};

static bool pass_value(void *state)
{
	struct passing *passing = state;
	bool sends = passing->out == NULL;
	int error = sends
			? tdt__channel_put(passing->channel, &passing->leaf.place, passing->value)
			: tdt__channel_get(passing->channel, &passing->leaf.place, &passing->value);

	if (error == -EAGAIN)
		return false;
	if (!sends)
		*passing->out = passing->value;
	else if (error != 0)
		tdt__channel_waste(passing->channel, passing->value);
	if (passing->error != NULL)
		*passing->error = error;
	return true;
}

static void report_channel(void *state)
{
	const struct tdt_channel *channel = ((struct passing *)state)->channel;

	tdt_leaf_waits_on_named(TDT_WAIT_CHANNEL, channel, 0, channel->name);
}

TDT__LEAF_POLL_BY(tdt_channel_send, tdt__gate_leaf_poll(state, cx, pass_value, report_channel))
TDT__LEAF_POLL_BY(tdt_channel_receive, tdt__gate_leaf_poll(state, cx, pass_value, report_channel))
TDT__LEAF_POLL_BY(tdt_oneshot_receive, tdt__gate_leaf_poll(state, cx, pass_value, report_channel))

static void drop_passing(void *state)
{
	struct passing *passing = state;
	struct tdt_channel *channel = passing->channel;
	bool sends = passing->out == NULL;

	if (!passing->leaf.ended) {
		tdt__gate_leave(sends ? &channel->room : &channel->filled, &passing->leaf.place,
				&channel->lock);
		if (sends)
			tdt__channel_waste(channel, passing->value);
	}
	tdt__slot_clear(&passing->leaf.place.slot);
	tdt_channel_unref(channel);
	free(passing);
}

static struct tdt_future passing_new(struct passing fields,
				     tdt_poll_t (*poll)(void *state, struct tdt_context *cx))
{
	struct passing *passing;

	if (fields.channel == NULL)
		return tdt__no_future(-EINVAL);
	passing = malloc(sizeof *passing);
	if (passing == NULL)
		return TDT_FUTURE_NONE;
	tdt_channel_ref(fields.channel);
	*passing = fields;
	return (struct tdt_future){ passing, poll, drop_passing };
}

struct tdt_future tdt__channel_send_new(struct tdt_channel *channel, void *value, int *error)
    TDT__LEAF_CALL(tdt_channel_send);
struct tdt_future tdt__channel_receive_new(struct tdt_channel *channel, void **value, int *error)
    TDT__LEAF_CALL(tdt_channel_receive);
struct tdt_future tdt__oneshot_receive_new(struct tdt_channel *receiver, void **value, int *error)
    TDT__LEAF_CALL(tdt_oneshot_receive);

struct tdt_future tdt__channel_send_new(struct tdt_channel *channel, void *value, int *error)
{
	return passing_new((struct passing){ .channel = channel, .value = value, .error = error },
			   tdt_channel_send);
}

struct tdt_future tdt__channel_receive_new(struct tdt_channel *channel, void **value, int *error)
{
	if (value == NULL)
		return tdt__no_future(-EINVAL);
	return passing_new((struct passing){ .channel = channel, .out = value, .error = error },
			   tdt_channel_receive);
}

struct tdt_future tdt__oneshot_receive_new(struct tdt_channel *receiver, void **value, int *error)
{
	if (value == NULL)
		return tdt__no_future(-EINVAL);
	return passing_new((struct passing){ .channel = receiver, .out = value, .error = error },
			   tdt_oneshot_receive);
}
