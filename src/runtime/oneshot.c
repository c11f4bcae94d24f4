// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The channel for one value: all calls of its two ends except receiving (oneshot_receive.c).  There
 * is no lock: oneshot.h says what each end owns.
 */

#include <config.h>

#include "runtime/oneshot.h"

#include <errno.h>
#include <stdlib.h>

#include <tdt/rt/sync.h>

#include "base/result.h"
#include "runtime/name.h"

/* Both ends are pointers to the channel; only their types differ. */
static struct tdt__channel *channel_of(struct tdt_oneshot_sender *sender)
{
	return (struct tdt__channel *)sender;
}

int tdt_oneshot(struct tdt_oneshot_sender **sender, struct tdt_oneshot_receiver **receiver,
		void (*value_free)(void *value))
{
	struct tdt__channel *channel;

	if (sender == NULL || receiver == NULL)
		return tdt__result(-EINVAL);
	channel = calloc(1, sizeof(*channel));
	if (channel == NULL)
		return -ENOMEM;
	atomic_init(&channel->holders, 2);
	channel->value_free = value_free;
	*sender = (struct tdt_oneshot_sender *)channel;
	*receiver = (struct tdt_oneshot_receiver *)channel;
	return 0;
}

/*
 * Give the channel its final state if it is still open; returns whether it was.  This releases the
 * value to the receiver: pairs with the acquire in oneshot_receive.c.
 */
static bool settle_channel(struct tdt__channel *channel, int state)
{
	int open = TDT__OPEN;

	return atomic_compare_exchange_strong(&channel->state, &open, state);
}

void tdt__channel_unref(struct tdt__channel *channel)
{
	/*
	 * Release: what this holder did.  Acquire: the last holder sees what the others did.  This
	 * decrement pairs with itself.
	 */
	if (atomic_fetch_sub_explicit(&channel->holders, 1, memory_order_acq_rel) != 1)
		return;
	if (atomic_load_explicit(&channel->state, memory_order_relaxed) == TDT__SENT &&
	    !channel->taken && channel->value_free != NULL)
		channel->value_free(channel->value);
	free(channel->name);
	free(channel);
}

int tdt_oneshot_set_name(struct tdt_oneshot_receiver *receiver, const char *name)
{
	if (receiver != NULL)
		return tdt__name_set(&((struct tdt__channel *)receiver)->name, name);
	return tdt__result(-EINVAL);
}

int tdt_oneshot_send(struct tdt_oneshot_sender *sender, void *value)
{
	struct tdt__channel *channel = channel_of(sender);
	bool sent;

	if (channel == NULL)
		return tdt__result(-EINVAL);
	channel->value = value;
	sent = settle_channel(channel, TDT__SENT);
	if (sent)
		tdt__slot_wake(&channel->slot);
	tdt__channel_unref(channel);
	if (sent)
		return 0;
	return tdt__result(-EPIPE);
}

void tdt_oneshot_sender_free(struct tdt_oneshot_sender *sender)
{
	struct tdt__channel *channel = channel_of(sender);

	if (channel == NULL)
		return;
	if (settle_channel(channel, TDT__CLOSED))
		tdt__slot_wake(&channel->slot);
	tdt__channel_unref(channel);
}

void tdt_oneshot_receiver_free(struct tdt_oneshot_receiver *receiver)
{
	struct tdt__channel *channel = (struct tdt__channel *)receiver;

	if (channel == NULL)
		return;
	if (settle_channel(channel, TDT__GONE))
		tdt__slot_wake(&channel->slot);
	tdt__channel_unref(channel);
}
