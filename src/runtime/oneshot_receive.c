// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The future that awaits a channel's value.  Its poll has a public name: mutex_lock.c says why. */

#include <config.h>

#include <errno.h>

#include <tdt/integrate/hooks.h>

#include "base/leaf_poll.h"
#include "base/result.h"
#include "runtime/oneshot.h"

/* Acquire: what the sender wrote.  Pairs with settle_channel() in oneshot.c. */
static int state_of_channel(struct tdt__channel *channel)
{
	return atomic_load(&channel->state);
}

TDT__LEAF_POLL(tdt_oneshot_receive);

tdt_poll_t tdt_oneshot_receive(void *state, struct tdt_context *cx)
{
	struct tdt__channel *channel = state;
	bool sent;

	if (channel->ended)
		return TDT_PANICKED;
	if (state_of_channel(channel) == TDT__OPEN) {
		tdt__slot_register(&channel->slot, cx->waker);
		if (state_of_channel(channel) == TDT__OPEN) {
			tdt_leaf_waits_on_named(TDT_WAIT_CHANNEL, channel, 0, channel->name);
			return TDT_PENDING;
		}
	}
	channel->ended = true;
	sent = state_of_channel(channel) == TDT__SENT && !channel->taken;
	channel->taken |= sent;
	*channel->out = sent ? channel->value : NULL;
	if (channel->error != NULL)
		*channel->error = sent ? 0 : -EPIPE;
	return TDT_READY;
}

static void drop_receive(void *state)
{
	struct tdt__channel *channel = state;

	channel->out = NULL;
	tdt__slot_clear(&channel->slot);
	tdt__channel_unref(channel);
}

struct tdt_future tdt__oneshot_receive_new(struct tdt_oneshot_receiver *receiver, void **value,
					   int *error)
{
	struct tdt__channel *channel = (struct tdt__channel *)receiver;

	if (receiver == NULL || value == NULL)
		return tdt__no_future(-EINVAL);
	if (channel->out != NULL)
		return tdt__no_future(-EBUSY);
	atomic_fetch_add_explicit(&channel->holders, 1, memory_order_relaxed);
	channel->out = value;
	channel->error = error;
	channel->ended = false;
	return (struct tdt_future){ channel, tdt_oneshot_receive, drop_receive };
}
