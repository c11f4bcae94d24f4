// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Bounded channels: all calls but those that wait (gate_futures.c). */

#include <config.h>

#include "runtime/channel.h"

#include <errno.h>
#include <stdlib.h>

#include <tdt/rt/channel.h>

#include "base/refs.h"
#include "base/result.h"
#include "runtime/name.h"

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
	if (channel != NULL)
		return tdt__name_set(&channel->name, name);
	return tdt__result(-EINVAL);
}

struct tdt_channel *tdt_channel_ref(struct tdt_channel *channel)
{
	if (channel != NULL)
		atomic_fetch_add_explicit(&channel->refs, 1, memory_order_relaxed);
	return channel;
}

void tdt__channel_waste(struct tdt_channel *channel, void *value)
{
	if (channel->value_free != NULL)
		channel->value_free(value);
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
		tdt__channel_waste(channel, take_value(channel));
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

/* The channel is closed.  The close may not have come to this place yet, which leaves the line. */
static int refuse(struct tdt__gate_place *place)
{
	if (place != NULL)
		tdt__gate_take_out(place);
	return -EPIPE;
}

int tdt__channel_put(struct tdt_channel *channel, struct tdt__gate_place *place, void *value)
{
	const struct tdt_waker *waker = NULL;
	int error = -EAGAIN;

	pthread_mutex_lock(&channel->lock);
	if (channel->closed) {
		error = refuse(place);
	} else if (pass_gate(&channel->room, place)) {
		size_t behind = channel->capacity - channel->first;

		channel->value[channel->n < behind ? channel->first + channel->n
						   : channel->n - behind] = value;
		channel->n++;
		waker = tdt__gate_admit(&channel->filled);
		error = 0;
	}
	pthread_mutex_unlock(&channel->lock);
	tdt_waker_wake(waker);
	return error;
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

int tdt__channel_get(struct tdt_channel *channel, struct tdt__gate_place *place, void **value)
{
	const struct tdt_waker *waker = NULL;
	int error = -EAGAIN;

	pthread_mutex_lock(&channel->lock);
	if (is_drained(channel, place)) {
		error = refuse(place);
	} else if (pass_gate(&channel->filled, place)) {
		*value = take_value(channel);
		waker = tdt__gate_admit(&channel->room);
		error = 0;
	}
	pthread_mutex_unlock(&channel->lock);
	tdt_waker_wake(waker);
	return error;
}

int tdt_channel_try_send(struct tdt_channel *channel, void *value)
{
	return tdt__result(channel != NULL ? tdt__channel_put(channel, NULL, value) : -EINVAL);
}

int tdt_channel_try_receive(struct tdt_channel *channel, void **value)
{
	return tdt__result(channel != NULL && value != NULL ? tdt__channel_get(channel, NULL, value)
							    : -EINVAL);
}

int tdt_channel_close(struct tdt_channel *channel)
{
	const struct tdt_waker *waker;
	bool more;

	if (channel == NULL)
		return tdt__result(-EINVAL);
	tdt_channel_ref(channel); /* whoever is woken may give up the last one */
	do {
		pthread_mutex_lock(&channel->lock);
		channel->closed = true;
		more = tdt__gate_release(&channel->room, &waker) ||
		       tdt__gate_release(&channel->filled, &waker);
		pthread_mutex_unlock(&channel->lock);
		if (more)
			tdt_waker_wake(waker);
	} while (more);
	tdt_channel_unref(channel);
	return 0;
}
