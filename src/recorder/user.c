// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The program's own events: see <tdt/probe.h>, and TDT_EVENT_USER in <tdt/layout/recording.h>. */

#include <string.h>

#include <tdt/probe.h>

#include "recorder/clock.h"
#include "recorder/cpu.h"
#include "recorder/record.h"
#include "recorder/rings.h"

volatile uint32_t tdt__recorder_on;

#define USER_ROOM ((TDT_EVENT_SLOTS_MAX - 1) * TDT_EVENT_TEXT)
#define ARGUMENTS_MAX 11
#define NAME_ROOM 128 /* for the provider and for the name, each with its NUL */
#define NUMBER_ROOM 9 /* for a number with its type */

struct user_payload {
	size_t size;
	char bytes[USER_ROOM];
};

static void append_user_text(struct user_payload *payload, const char *text, size_t room)
{
	size_t n = text != NULL ? strnlen(text, room - 1) : 0;

	if (n > 0)
		memcpy(payload->bytes + payload->size, text, n);
	payload->size += n;
	payload->bytes[payload->size++] = '\0';
}

/* Leave room for `more` numbers behind the argument. */
static void add_argument(struct user_payload *payload, uint8_t type, uint64_t value, unsigned more)
{
	payload->bytes[payload->size++] = (char)type;
	if (type == TDT_USER_TEXT) {
		append_user_text(payload, (const char *)(uintptr_t)value,
			 USER_ROOM - payload->size - (size_t)more * NUMBER_ROOM);
		return;
	}
	memcpy(payload->bytes + payload->size, &value, sizeof value);
	payload->size += sizeof value;
}

void tdt_record_event(const char *provider, const char *name, uint64_t task, unsigned n,
		      const uint8_t *types, const uint64_t *values)
{
	struct tdt_event event = { .kind = TDT_EVENT_USER, .b = tdt__cpu(), .task = task };
	struct user_payload payload;

	if (!tdt__recording())
		return;
	if (types == NULL || values == NULL)
		n = 0;
	if (n > ARGUMENTS_MAX)
		n = ARGUMENTS_MAX;
	payload.size = 0;
	append_user_text(&payload, provider, NAME_ROOM);
	append_user_text(&payload, name, NAME_ROOM);
	for (unsigned i = 0; i < n; i++)
		add_argument(&payload, types[i], values[i], n - 1 - i);
	event.detail = (uint8_t)n;
	event.time = tdt__ticks();
	tdt__record_long(&event, payload.bytes, payload.size);
}
