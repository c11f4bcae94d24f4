/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Trace contexts as text, in the form of the header `traceparent` of W3C Trace Context. */

#include <stdbool.h>

#include <tdt/context.h>

/* "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" and a NUL. */
#define TDT__TRACEPARENT_SIZE 56
#define TDT__TRACE_AT 3 /* where the id of the trace begins */
#define TDT__SPAN_AT 36 /* and that of the span */

void tdt__traceparent(char text[TDT__TRACEPARENT_SIZE], const struct tdt_trace_context *context);

/* False: the text has another form. */
bool tdt__traceparent_read(struct tdt_trace_context *context, const char *text);

/*
 * Whether the context is of the trace with this id in hexadecimal, which may lack its leading
 * zeros, as in some views of traces.
 */
bool tdt__is_of_trace(const struct tdt_trace_context *context, const char *id);
