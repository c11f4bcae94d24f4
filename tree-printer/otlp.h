/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Recordings as spans of OpenTelemetry, in the form that collectors take (OTLP): messages of the
 * type ExportTraceServiceRequest.
 */

#include <stddef.h>
#include <stdint.h>

#include "recording/read.h"

/* A message has at most so many bytes, and those of one more span. */
#define TDT__OTLP_MESSAGE (UINT32_C(4) << 20)

/*
 * Take a message, which has `spans` spans.  Returns 0, or a negative number, which ends the export.
 * Messages that are written one behind the other are one message with the spans of all.
 */
typedef int tdt__otlp_fn(void *arg, const void *message, size_t n, uint64_t spans);

struct tdt__otlp_counts {
	uint64_t spans;	  /* phases that were written */
	uint64_t shorter; /* and phases that were not, since they lasted less than `longer` */
};

/*
 * Write the phases of all tasks that belong to traces, as long as they did: each phase is a child
 * of the span that the program has given the task (tdt_task_context()).  The ids of the spans are
 * the same each time.  Phases that lasted for less than `longer` nanoseconds are left out.
 * Returns 0, -ENOMEM, or what `take` has returned.
 */
int tdt__otlp_write(const struct tdt__recording *recording, uint64_t longer, tdt__otlp_fn *take,
		    void *arg, struct tdt__otlp_counts *counts);
