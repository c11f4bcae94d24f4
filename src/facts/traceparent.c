// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Trace contexts as text: see traceparent.h. */

#include "facts/traceparent.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

static void take_hex(uint8_t *to, const char *digits, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sscanf(digits + 2 * i, "%2hhx", &to[i]);
}

void tdt__traceparent(char text[TDT__TRACEPARENT_SIZE], const struct tdt_trace_context *context)
{
	char *at = stpcpy(text, "00-");

	at = stpcpy(tdt__put_hex(at, context->trace_id, sizeof context->trace_id), "-");
	at = stpcpy(tdt__put_hex(at, context->span_id, sizeof context->span_id), "-");
	tdt__put_hex(at, &context->flags, 1);
}

/* If what was read gives another text, this one has another form. */
bool tdt__traceparent_read(struct tdt_trace_context *context, const char *text)
{
	char again[TDT__TRACEPARENT_SIZE];

	*context = (struct tdt_trace_context){ .valid = 1 };
	if (strlen(text) != sizeof again - 1)
		return false;
	take_hex(context->trace_id, text + TDT__TRACE_AT, sizeof context->trace_id);
	take_hex(context->span_id, text + TDT__SPAN_AT, sizeof context->span_id);
	take_hex(&context->flags, text + sizeof again - 3, 1);
	tdt__traceparent(again, context);
	return strcmp(again, text) == 0;
}

static const char *without_zeros(const char *digits)
{
	return digits + strspn(digits, "0");
}

bool tdt__is_of_trace(const struct tdt_trace_context *context, const char *id)
{
	char text[TDT__TRACEPARENT_SIZE];

	tdt__traceparent(text, context);
	text[TDT__SPAN_AT - 1] = '\0';
	return context->valid == 1 &&
	       strcasecmp(without_zeros(text + TDT__TRACE_AT), without_zeros(id)) == 0;
}
