// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Bounded channels: a ring of values, with a gate on each side.  `room` has a permit for each
 * element of the ring that is free and promised to no sender, and `filled` one for each value that
 * is promised to no receiver.  So a leaf that was admitted finds its room, or its value.
 *
 * Both ends of a channel for one value are references of a bounded channel for one value, which a
 * send, and the end of either of them, closes.
 */

#include <errno.h>
#include <stdlib.h>

#include <tdt/integrate/hooks.h>
#include <tdt/rt/channel.h>
#include <tdt/rt/sync.h>

#include "base/refs.h"
#include "base/result.h"
#include "runtime/gate.h"
#include "runtime/name.h"

struct tdt_channel {
	atomic_uint refs;
	char *name;			 /* set before a task waits; NULL: none */
	void (*value_free)(void *value); /* may be NULL.  Constant, as is `capacity` */
	size_t capacity;

	pthread_mutex_t lock; /* protects what follows */
	bool closed;
	struct tdt__gate room, filled;
	size_t first, n; /* the oldest value, and how many there are */
	void *value[];
};

struct tdt_channel *tdt_channel_new(size_t capacity, void (*value_free)(void *value))
{
	struct tdt_channel *channel;
	size_t size;

	if (capacity == 0)
		return tdt__nothing(-EINVAL);
	if (__builtin_mul_overflow(capacity, sizeof channel->value[0], &size) ||
	    __builtin_add_overflow(size, sizeof *channel, &size))
		return tdt__nothing(-ENOMEM);
	channel = calloc(1, size);
	if (channel == NULL)
		return NULL;
	atomic_init(&channel->refs, 1);
	channel->value_free = value_free;
	channel->capacity = capacity;
	pthread_mutex_init(&channel->lock, NULL);
	tdt__gate_init(&channel->room, capacity);
	tdt__gate_init(&channel->filled, 0);
	return channel;
}

int tdt_channel_set_name(struct tdt_channel *channel, const char *name)
{
	return tdt__name_set(channel != NULL ? &channel->name : NULL, name);
}

struct tdt_channel *tdt_channel_ref(struct tdt_channel *channel)
{
	if (channel != NULL)
		atomic_fetch_add_explicit(&channel->refs, 1, memory_order_relaxed);
	return channel;
}

static void waste_value(struct tdt_channel *channel, void *value)
{
	if (channel->value_free != NULL)
		channel->value_free(value);
}

static void put_value(struct tdt_channel *channel, void *value)
{
	size_t behind = channel->capacity - channel->first;

	channel->value[channel->n < behind ? channel->first + channel->n : channel->n - behind] =
	    value;
	channel->n++;
}

static void *take_value(struct tdt_channel *channel)
{
	void *value = channel->value[channel->first];

	channel->first = channel->first + 1 < channel->capacity ? channel->first + 1 : 0;
	channel->n--;
	return value;
}

void tdt_channel_unref(struct tdt_channel *channel)
{
	if (channel == NULL || !tdt__refs_drop(&channel->refs))
		return;
	while (channel->n != 0)
		waste_value(channel, take_value(channel));
	pthread_mutex_destroy(&channel->lock);
	free(channel->name);
	free(channel);
}

/* Pass, or if `place` is NULL, pass if no wait is needed. */
static bool pass_gate(struct tdt__gate *gate, struct tdt__gate_place *place)
{
	struct tdt__gate_place passing = { .at = TDT__PLACE_OUTSIDE };

	if (place == NULL && gate->permits == 0)
		return false;
	return tdt__gate_pass(gate, place != NULL ? place : &passing);
}

/*
 * The last value is taken, or promised to other receivers, and no more will come.  A place that the
 * close has released is outside then.
 */
static bool is_drained(const struct tdt_channel *channel, struct tdt__gate_place *place)
{
	if (place != NULL && place->at == TDT__PLACE_RELEASED)
		place->at = TDT__PLACE_OUTSIDE;
	return channel->closed && channel->filled.permits == 0 &&
	       (place == NULL || place->at != TDT__PLACE_ADMITTED);
}

/*
 * Send a value, or receive one, without waiting.  0: done.  -EAGAIN: `place` (may be NULL) is in
 * the line.  -EPIPE: the channel is closed, and has no value for this receiver; `place` is outside.
 */
static int pass_channel(struct tdt_channel *channel, bool sends, struct tdt__gate_place *place,
			void **value)
{
	const struct tdt_waker *waker = NULL;
	int error = -EAGAIN;

	pthread_mutex_lock(&channel->lock);
	if (sends ? channel->closed : is_drained(channel, place)) {
		/* The close may not have come to this place yet. */
		if (place != NULL)
			tdt__gate_take_out(place);
		error = -EPIPE;
	} else if (pass_gate(sends ? &channel->room : &channel->filled, place)) {
		if (sends)
			put_value(channel, *value);
		else
			*value = take_value(channel);
		waker = tdt__gate_admit(sends ? &channel->filled : &channel->room);
		error = 0;
	}
	pthread_mutex_unlock(&channel->lock);
	tdt_waker_wake(waker);
	return error;
}

int tdt_channel_try_send(struct tdt_channel *channel, void *value)
{
	return tdt__result(channel != NULL ? pass_channel(channel, true, NULL, &value) : -EINVAL);
}

int tdt_channel_try_receive(struct tdt_channel *channel, void **value)
{
	return tdt__result(channel != NULL && value != NULL
			       ? pass_channel(channel, false, NULL, value)
			       : -EINVAL);
}

int tdt_channel_close(struct tdt_channel *channel)
{
	if (channel == NULL)
		return tdt__result(-EINVAL);
	tdt_channel_ref(channel); /* whoever is woken may give up the last one */
	pthread_mutex_lock(&channel->lock);
	channel->closed = true;
	pthread_mutex_unlock(&channel->lock);
	tdt__gate_release(&channel->room, &channel->lock);
	tdt__gate_release(&channel->filled, &channel->lock);
	tdt_channel_unref(channel);
	return 0;
}

/* --- The futures ------------------------------------------------------------------ */

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
	int error = pass_channel(passing->channel, sends, &passing->leaf.place, &passing->value);

	if (error == -EAGAIN)
		return false;
	if (!sends)
		*passing->out = passing->value;
	else if (error != 0)
		waste_value(passing->channel, passing->value);
	if (passing->error != NULL)
		*passing->error = error;
	return true;
}

static void report_channel(void *state)
{
	const struct tdt_channel *channel = ((struct passing *)state)->channel;

	tdt_leaf_waits_on_named(TDT_WAIT_CHANNEL, channel, 0, channel->name);
}

TDT__LEAF(tdt_channel_send, tdt__gate_leaf_poll, pass_value, report_channel)
TDT__LEAF(tdt_channel_receive, tdt__gate_leaf_poll, pass_value, report_channel)
TDT__LEAF(tdt_oneshot_receive, tdt__gate_leaf_poll, pass_value, report_channel)

static void drop_passing(void *state)
{
	struct passing *passing = state;
	struct tdt_channel *channel = passing->channel;
	bool sends = passing->out == NULL;

	tdt__gate_leave(&passing->leaf, sends ? &channel->room : &channel->filled, &channel->lock);
	if (sends && !passing->leaf.ended)
		waste_value(channel, passing->value);
	tdt_channel_unref(channel);
	free(passing);
}

struct tdt_future tdt_channel_send(struct tdt_channel *channel, void *value, int *error)
{
	const struct passing passing = { .channel = channel, .value = value, .error = error };

	return tdt__gate_leaf_new(channel != NULL ? &channel->refs : NULL, &passing, sizeof passing,
				  tdt_channel_send_poll, drop_passing);
}

static struct tdt_future receiving_new(struct tdt_channel *channel, void **value, int *error,
				       tdt_poll_t (*poll)(void *state, struct tdt_context *cx))
{
	const struct passing passing = { .channel = channel, .out = value, .error = error };

	return tdt__gate_leaf_new(channel != NULL && value != NULL ? &channel->refs : NULL,
				  &passing, sizeof passing, poll, drop_passing);
}

struct tdt_future tdt_channel_receive(struct tdt_channel *channel, void **value, int *error)
{
	return receiving_new(channel, value, error, tdt_channel_receive_poll);
}

/* --- Channels for one value ------------------------------------------------------- */

int tdt_oneshot(struct tdt_oneshot_sender **sender, struct tdt_oneshot_receiver **receiver,
		void (*value_free)(void *value))
{
	struct tdt_channel *channel;

	if (sender == NULL || receiver == NULL)
		return tdt__result(-EINVAL);
	channel = tdt_channel_new(1, value_free);
	if (channel == NULL)
		return -ENOMEM;
	*sender = (struct tdt_oneshot_sender *)tdt_channel_ref(channel);
	*receiver = (struct tdt_oneshot_receiver *)channel;
	return 0;
}

int tdt_oneshot_set_name(struct tdt_oneshot_receiver *receiver, const char *name)
{
	return tdt_channel_set_name((struct tdt_channel *)receiver, name);
}

static void end_oneshot(struct tdt_channel *channel)
{
	if (channel == NULL)
		return;
	tdt_channel_close(channel);
	tdt_channel_unref(channel);
}

int tdt_oneshot_send(struct tdt_oneshot_sender *sender, void *value)
{
	struct tdt_channel *channel = (struct tdt_channel *)sender;
	int error = tdt_channel_try_send(channel, value);

	end_oneshot(channel);
	return error;
}

void tdt_oneshot_sender_free(struct tdt_oneshot_sender *sender)
{
	end_oneshot((struct tdt_channel *)sender);
}

void tdt_oneshot_receiver_free(struct tdt_oneshot_receiver *receiver)
{
	end_oneshot((struct tdt_channel *)receiver);
}

struct tdt_future tdt_oneshot_receive(struct tdt_oneshot_receiver *receiver, void **value,
				      int *error)
{
	return receiving_new((struct tdt_channel *)receiver, value, error,
			     tdt_oneshot_receive_poll);
}
