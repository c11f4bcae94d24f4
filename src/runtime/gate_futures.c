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
	struct tdt__semaphore *semaphore; /* NULL: the future has ended */
	struct tdt__gate_place place;
};

static bool pass_semaphore(struct acquiring *acquiring)
{
	struct tdt__semaphore *semaphore = acquiring->semaphore;
	bool passed;

	pthread_mutex_lock(&semaphore->lock);
	passed = tdt__gate_pass(&semaphore->gate, &acquiring->place);
	pthread_mutex_unlock(&semaphore->lock);
	if (passed)
		acquiring->semaphore = NULL;
	return passed;
}

/* Always inlined, so that the leaf's own poll clones the waker (slot.h). */
static inline __attribute__((always_inline)) tdt_poll_t poll_semaphore(struct acquiring *acquiring,
								       struct tdt_context *cx)
{
	if (acquiring->semaphore == NULL)
		return TDT_PANICKED;
	if (pass_semaphore(acquiring))
		return TDT_READY;
	tdt__slot_register(&acquiring->place.slot, cx->waker);
	if (pass_semaphore(acquiring)) /* it was admitted before the waker was registered */
		return TDT_READY;
	tdt_leaf_waits_on_named(TDT_WAIT_OTHER, acquiring->semaphore, 0,
				acquiring->semaphore->name);
	return TDT_PENDING;
}

TDT__LEAF_POLL(tdt_semaphore_acquire);

tdt_poll_t tdt_semaphore_acquire(void *state, struct tdt_context *cx)
{
	return poll_semaphore(state, cx);
}

TDT__LEAF_POLL(tdt_notify_wait);

tdt_poll_t tdt_notify_wait(void *state, struct tdt_context *cx)
{
	return poll_semaphore(state, cx);
}

static void drop_acquiring(void *state)
{
	struct acquiring *acquiring = state;
	struct tdt__semaphore *semaphore = acquiring->semaphore;
	const struct tdt_waker *waker = NULL;

	if (semaphore != NULL) {
		pthread_mutex_lock(&semaphore->lock);
		waker = tdt__gate_leave(&semaphore->gate, &acquiring->place);
		pthread_mutex_unlock(&semaphore->lock);
	}
	tdt_waker_wake(waker);
	tdt__slot_clear(&acquiring->place.slot);
	free(acquiring);
}

static struct tdt_future acquiring_new(struct tdt__semaphore *semaphore,
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

struct tdt_future tdt__semaphore_acquire_new(struct tdt__semaphore *semaphore)
{
	return acquiring_new(semaphore, tdt_semaphore_acquire);
}

struct tdt_future tdt__notify_wait_new(struct tdt__semaphore *semaphore)
{
	return acquiring_new(semaphore, tdt_notify_wait);
}

/* --- A value -------------------------------------------------------------------- */

struct passing {
	struct tdt_channel *channel; /* a reference */
	struct tdt__gate_place place;
	void *value; /* to send; owned until the future has ended */
	void **out;  /* where a received value goes */
	int *error;  /* may be NULL */
	bool ended;
};

static struct passing *passing_new(struct tdt_channel *channel, int *error)
{
	struct passing *passing = calloc(1, sizeof *passing);

	if (passing == NULL)
		return NULL;
	passing->channel = tdt_channel_ref(channel);
	passing->error = error;
	return passing;
}

static void passing_free(struct passing *passing, struct tdt__gate *gate)
{
	if (!passing->ended)
		tdt__channel_leave(passing->channel, gate, &passing->place);
	tdt__slot_clear(&passing->place.slot);
	tdt_channel_unref(passing->channel);
	free(passing);
}

static bool try_send(struct passing *sending)
{
	int error = tdt__channel_put(sending->channel, &sending->place, sending->value);

	if (error == -EAGAIN)
		return false;
	sending->ended = true;
	if (sending->error != NULL)
		*sending->error = error;
	if (error != 0)
		tdt__channel_waste(sending->channel, sending->value);
	return true;
}

TDT__LEAF_POLL(tdt_channel_send);

tdt_poll_t tdt_channel_send(void *state, struct tdt_context *cx)
{
	struct passing *sending = state;

	if (sending->ended)
		return TDT_PANICKED;
	if (try_send(sending))
		return TDT_READY;
	tdt__slot_register(&sending->place.slot, cx->waker);
	if (try_send(sending))
		return TDT_READY;
	tdt_leaf_waits_on_named(TDT_WAIT_CHANNEL, sending->channel, 0, sending->channel->name);
	return TDT_PENDING;
}

static void drop_sending(void *state)
{
	struct passing *sending = state;

	if (!sending->ended)
		tdt__channel_waste(sending->channel, sending->value);
	passing_free(sending, &sending->channel->room);
}

struct tdt_future tdt__channel_send_new(struct tdt_channel *channel, void *value, int *error)
{
	struct passing *sending;

	if (channel == NULL)
		return tdt__no_future(-EINVAL);
	sending = passing_new(channel, error);
	if (sending == NULL)
		return TDT_FUTURE_NONE;
	sending->value = value;
	return (struct tdt_future){ sending, tdt_channel_send, drop_sending };
}

static bool try_receive(struct passing *receiving)
{
	void *value = NULL;
	int error = tdt__channel_get(receiving->channel, &receiving->place, &value);

	if (error == -EAGAIN)
		return false;
	receiving->ended = true;
	*receiving->out = value;
	if (receiving->error != NULL)
		*receiving->error = error;
	return true;
}

TDT__LEAF_POLL(tdt_channel_receive);

tdt_poll_t tdt_channel_receive(void *state, struct tdt_context *cx)
{
	struct passing *receiving = state;

	if (receiving->ended)
		return TDT_PANICKED;
	if (try_receive(receiving))
		return TDT_READY;
	tdt__slot_register(&receiving->place.slot, cx->waker);
	if (try_receive(receiving))
		return TDT_READY;
	tdt_leaf_waits_on_named(TDT_WAIT_CHANNEL, receiving->channel, 0, receiving->channel->name);
	return TDT_PENDING;
}

static void drop_receiving(void *state)
{
	struct passing *receiving = state;

	passing_free(receiving, &receiving->channel->filled);
}

struct tdt_future tdt__channel_receive_new(struct tdt_channel *channel, void **value, int *error)
{
	struct passing *receiving;

	if (channel == NULL || value == NULL)
		return tdt__no_future(-EINVAL);
	receiving = passing_new(channel, error);
	if (receiving == NULL)
		return TDT_FUTURE_NONE;
	receiving->out = value;
	return (struct tdt_future){ receiving, tdt_channel_receive, drop_receiving };
}
