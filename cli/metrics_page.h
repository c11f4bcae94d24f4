/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The text of metrics, in the form of OpenMetrics or in Prometheus's older one. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <tdt/counters.h>

#include "cli/options.h"
#include "cli/processes.h"
#include "recording/durations.h"

struct metrics_page {
	const char *program; /* with `pid`, the labels of each sample; NULL: there are none */
	uint32_t pid;
	bool up;                 /* the process was read; otherwise nothing else is printed */
	struct tdt_counts counts;
	uint64_t since;          /* when the counting began, ns of CLOCK_REALTIME; 0: unknown */
	uint64_t deadlocks, unproven; /* rings of tasks */
	uint64_t orphans;             /* locks that tasks wait for, and whose owners have ended */
	uint8_t recorded;	      /* there are durations */
	/*
	 * The time of which the durations are, in nanoseconds, if they are of a span that ends now.
	 * 0: they only grow.
	 */
	uint64_t recorded_ns;
	struct tdt__durations polls, latencies;
};

/* The metrics of one process, or of all that use the library. */
struct metrics_pages {
	enum metrics_form form;
	const struct metrics_page *page;
	size_t n;
	const struct unreadable *unreadable; /* of all processes; NULL: it is the page of one */
};

/* Write the pages in one of the two forms.  The caller looks for errors of writing. */
void metrics_page_print(FILE *out, const struct metrics_pages *pages);
