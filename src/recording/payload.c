// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The payload of events: the slots that follow them, and the arguments of the program's events. */

#include "recording/recording.h"

#include <stddef.h>
#include <string.h>

size_t tdt__slot_payload(const struct tdt__recorded_ring *ring, uint32_t slot,
			 char payload[TDT__PAYLOAD_MAX + 1])
{
	uint32_t left = slot < ring->n ? ring->n - slot - 1 : 0;
	size_t n = 0;

	if (left > TDT_EVENT_SLOTS_MAX - 1)
		left = TDT_EVENT_SLOTS_MAX - 1;
	for (uint32_t i = 1; i <= left; i++) {
		struct tdt_event_more more;

		memcpy(&more, tdt__slot(ring, slot + i), sizeof(more));
		if (more.kind != TDT_EVENT_MORE)
			break;
		if (more.n > TDT_EVENT_TEXT)
			more.n = TDT_EVENT_TEXT;
		memcpy(payload + n, more.text, more.n);
		n += more.n;
	}
	payload[n] = '\0';
	return n;
}

size_t tdt__recording_payload(const struct tdt__recording *recording,
			      const struct tdt__recorded_item *item,
			      char payload[TDT__PAYLOAD_MAX + 1])
{
	return tdt__slot_payload(&recording->ring[item->parts.ring], item->slot, payload);
}

bool tdt__recorded_listed(const struct tdt__recording *recording,
			  const struct tdt__recorded_item *item, struct tdt__listed_state *listed)
{
	char payload[TDT__PAYLOAD_MAX + 1] = { 0 };

	if (tdt__recording_payload(recording, item, payload) <
	    offsetof(struct tdt__listed_state, orphaned))
		return false;
	memcpy(listed, payload, sizeof(*listed));
	return true;
}

bool tdt__recorded_user(struct tdt__recorded_user *user, const struct tdt_event *event,
			const char *payload, size_t n)
{
	const char *end = payload + n;
	const char *provider_end = memchr(payload, '\0', n), *name_end;

	if (provider_end == NULL)
		return false;
	name_end = memchr(provider_end + 1, '\0', (size_t)(end - provider_end - 1));
	if (name_end == NULL)
		return false;
	*user = (struct tdt__recorded_user){ .provider = payload,
					     .name = provider_end + 1,
					     .at = name_end + 1,
					     .end = end,
					     .left = event->detail };
	return true;
}

bool tdt__recorded_user_next(struct tdt__recorded_user *user,
			     struct tdt__recorded_argument *argument)
{
	size_t left = (size_t)(user->end - user->at), n = 8;
	const char *value = user->at + 1;

	if (user->left == 0 || left < 2)
		return false;
	argument->type = (enum tdt_user_type)(unsigned char)*user->at;
	switch (argument->type) {
	case TDT_USER_TEXT:
		argument->text = value;
		n = strnlen(value, left - 1); /* a text that was cut ends at the payload's NUL */
		n += n < left - 1;
		break;
	case TDT_USER_INT:
	case TDT_USER_UINT:
	case TDT_USER_DOUBLE:
		if (left < 9)
			return false;
		memcpy(&argument->u, value, n); /* the members of the union overlap */
		break;
	default:
		return false;
	}
	user->at = value + n;
	user->left--;
	return true;
}
