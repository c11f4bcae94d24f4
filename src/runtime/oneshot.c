// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The channel for one value.  Both ends are references of a bounded channel for one value, which a
 * send, and the end of either of them, closes.  gate_futures.c has the future.
 */

#include <config.h>

#include <errno.h>

#include <tdt/rt/channel.h>
#include <tdt/rt/sync.h>

#include "base/result.h"

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
