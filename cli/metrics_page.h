/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The text of metrics: in the form of OpenMetrics, in Prometheus's older one, or as JSON. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <tdt/counters.h>

#include "cli/options.h"
#include "cli/processes.h"
#include "recording/durations.h"

#define METRICS_GROUPS_MAX 20

/* Tasks of one family (facts/family.h) that wait for objects of one kind; or their waits. */
struct metrics_group {
	char name[128]; /* clean */
	char wait[16];  /* a word */
	uint64_t n;
	uint64_t ns; /* that the waits took; of tasks 0 */
};

/* So many groups at most.  Those that have no room are one more, without a kind of wait. */
struct metrics_groups {
	size_t n;
	struct metrics_group group[METRICS_GROUPS_MAX], other;
};

struct metrics_page {
	uint32_t pid; /* with `program`, the labels of each sample; 0: there are none */
	char program[PROGRAM_NAME_MAX];
	bool up;                 /* the process was read; otherwise nothing else is printed */
	struct tdt_counts counts;
	uint64_t since;          /* when the counting began, ns of CLOCK_REALTIME; 0: unknown */
	uint64_t deadlocks, unproven; /* rings of tasks */
	uint64_t orphans;             /* locks that tasks wait for, and whose owners have ended */
	uint64_t futurelocks; /* and those whose owners do not take them */
	bool grouped;         /* there are groups, and waits: the largest ones first */
	struct metrics_groups groups;
	uint8_t recorded;	      /* there are durations */
	/*
	 * The time of which the durations are, in nanoseconds, if they are of a span that ends now.
	 * 0: they only grow.
	 */
	uint64_t recorded_ns;
	struct tdt__durations polls, latencies;
	struct metrics_groups waits; /* of the same time */
};

/* The metrics of one process, or of all that use the library. */
struct metrics_pages {
	enum metrics_form form;
	const struct metrics_page *page;
	size_t n;
	const struct unreadable *unreadable; /* of all processes; NULL: it is the page of one */
};

/*
 * Write the pages in one of the forms.  The caller looks for errors of writing the first two.
 * Returns 0 or a negative errno.
 */
int metrics_page_print(FILE *out, const struct metrics_pages *pages);

/*
 * Copy a text for a label, as far as there is room: labels have few escapes, so what does harm, as
 * the end of a line, and what is no UTF-8 become question marks.
 */
void metrics_clean(char *to, size_t room, const char *text);
