/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* One reading of the metrics of a process, in a child with limits (apart.h). */

#include <stdio.h>

#include "cli/metrics_page.h"
#include "cli/tdt.h"

/*
 * The server's memory of a process from scrape to scrape, until that has ended: with it counters
 * never shrink, and each recorded poll is counted once, also if a scrape between fails.
 */
struct scrape_totals {
	uint64_t start; /* which process: when its library began its work, CLOCK_MONOTONIC */
	struct tdt_counts counts;
	uint8_t recorded; /* there are durations */
	uint64_t until; /* they are those until then */
	struct tdt__durations polls, latencies;
	struct metrics_groups waits; /* of the same time; none unless names are wanted */
};

struct scrape {
	const struct options *options;
	pid_t pid;	/* 0: the target of the options */
	bool once;	/* there is no other scrape */
	uint64_t until; /* what is recorded later is left to the next scrape */
	struct scrape_totals totals; /* before, and then after it */
	struct metrics_page page;    /* what it has found */
};

/*
 * Read the process.  Returns an exit status, or a negative errno; if `pid` may not be read, the
 * reason is written to `out` (processes_open()).
 */
int scrape_process(struct scrape *scrape, FILE *out);
