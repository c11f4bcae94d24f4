// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Metrics as text.  The two forms name a counter differently: OpenMetrics by its family, and the
 * older form by its sample, which ends with _total.  The older form has no units, and no histogram
 * that may shrink.
 */

#include "cli/metrics_page.h"

#include <inttypes.h>

/* Seconds have a point, whatever the locale is. */
#define SECONDS_FORMAT "%" PRIu64 ".%09" PRIu64
#define AS_SECONDS(ns) (ns) / 1000000000, (ns) % 1000000000

enum metric_type { GAUGE, SECONDS, COUNTER };

struct metric {
	const char *name, *help;
	enum metric_type type;
	size_t at; /* of its value in struct metrics_page */
};

#define METRIC(name, help, type, field) { name, help, type, offsetof(struct metrics_page, field) }

static const struct metric metrics[] = {
	METRIC("tdt_spawned", "Tasks that were spawned.", COUNTER, counts.spawned),
	METRIC("tdt_task_panics", "Tasks that panicked.", COUNTER, counts.panicked),
	METRIC("tdt_polls", "Polls that began.", COUNTER, counts.polls),
	METRIC("tdt_captures", "Polls in which stacks were captured.", COUNTER, counts.captures),
	METRIC("tdt_dumps", "Dumps that the process has made.", COUNTER, counts.dumps),
	METRIC("tdt_lost_wakeups",
	       "Tasks that went on when polled for a request, and nobody had woken them.", COUNTER,
	       counts.lost_wakeups),
	METRIC("tdt_tasks_held", "Tasks that have ended, and whose handles are held.", GAUGE,
	       counts.held),
	METRIC("tdt_longest_poll_seconds", "Time since the oldest poll began that goes on.",
	       SECONDS, counts.longest_poll_ns),
	METRIC("tdt_longest_wait_seconds", "Longest time since the last poll of a waiting task.",
	       SECONDS, counts.longest_wait_ns),
	METRIC("tdt_deadlocks", "Rings of tasks that wait for each other for ever.", GAUGE,
	       deadlocks),
	METRIC("tdt_rings_unproven", "Rings that are deadlocks unless a task has a silent leaf.",
	       GAUGE, unproven),
	METRIC("tdt_orphaned_locks", "Locks that tasks wait for, and whose owners have ended.",
	       GAUGE, orphans),
};

static const struct metric recorded = METRIC(
	"tdt_recorded_seconds", "Time until now that the histograms are of.", SECONDS, recorded_ns);

/* `suffix` is that of the name. */
static void put_head(FILE *out, const struct metric *metric, const char *suffix, const char *type)
{
	fprintf(out, "# TYPE %s%s %s\n", metric->name, suffix, type);
	fprintf(out, "# HELP %s%s %s\n", metric->name, suffix, metric->help);
}

static void put_head_of_seconds(FILE *out, const struct metrics_page *page,
				const struct metric *metric, const char *type)
{
	put_head(out, metric, "", type);
	if (page->form == METRICS_OPENMETRICS)
		fprintf(out, "# UNIT %s seconds\n", metric->name);
}

static void put_counter(FILE *out, const struct metrics_page *page, const struct metric *metric,
			uint64_t value)
{
	bool open = page->form == METRICS_OPENMETRICS;

	put_head(out, metric, open ? "" : "_total", "counter");
	fprintf(out, "%s_total %" PRIu64 "\n", metric->name, value);
	if (open && page->since != 0)
		fprintf(out, "%s_created " SECONDS_FORMAT "\n", metric->name,
			AS_SECONDS(page->since));
}

static void put_metric(FILE *out, const struct metrics_page *page, const struct metric *metric)
{
	uint64_t value = *(const uint64_t *)((const char *)page + metric->at);

	switch (metric->type) {
	case GAUGE:
		put_head(out, metric, "", "gauge");
		fprintf(out, "%s %" PRIu64 "\n", metric->name, value);
		break;
	case SECONDS:
		put_head_of_seconds(out, page, metric, "gauge");
		fprintf(out, "%s " SECONDS_FORMAT "\n", metric->name, AS_SECONDS(value));
		break;
	case COUNTER:
		put_counter(out, page, metric, value);
		break;
	}
}

static void put_states(FILE *out, const struct tdt_counts *counts)
{
	static const struct metric tasks = {
		.name = "tdt_tasks", .help = "Tasks that have not ended, by state."
	};

	put_head(out, &tasks, "", "gauge");
	fprintf(out, "tdt_tasks{state=\"waiting\"} %" PRIu64 "\n", counts->waiting);
	fprintf(out, "tdt_tasks{state=\"runnable\"} %" PRIu64 "\n", counts->runnable);
	fprintf(out, "tdt_tasks{state=\"polling\"} %" PRIu64 "\n", counts->running);
}

/* The bounds of durations.h in seconds, in the form that OpenMetrics prefers, and the last one. */
static const char *const bound_names[TDT__DURATION_BOUNDS + 1] = {
	"1e-06", "5e-06", "1e-05", "5e-05", "0.0001", "0.0005", "0.001", "0.005",
	"0.01",	 "0.05",  "0.1",   "0.5",   "1.0",    "5.0",	"10.0",	 "+Inf",
};

static void put_histogram(FILE *out, const struct metrics_page *page, const struct metric *metric,
			  const struct tdt__durations *durations)
{
	const char *gauge = page->recorded_ns != 0 ? "g" : "";
	uint64_t n = 0;

	put_head_of_seconds(out, page, metric, gauge[0] != '\0' ? "gaugehistogram" : "histogram");
	for (size_t i = 0; i <= TDT__DURATION_BOUNDS; i++) {
		n += durations->n[i];
		fprintf(out, "%s_bucket{le=\"%s\"} %" PRIu64 "\n", metric->name, bound_names[i],
			n);
	}
	fprintf(out, "%s_%scount %" PRIu64 "\n", metric->name, gauge, n);
	fprintf(out, "%s_%ssum " SECONDS_FORMAT "\n", metric->name, gauge,
		AS_SECONDS(durations->sum));
}

static void put_recorded(FILE *out, const struct metrics_page *page)
{
	static const struct metric polls = {
		.name = "tdt_poll_seconds", .help = "Duration of recorded polls."
	};
	static const struct metric latencies = {
		.name = "tdt_wake_to_poll_seconds",
		.help = "Time from recorded wake-ups to the next poll.",
	};

	if (page->recorded_ns != 0)
		put_metric(out, page, &recorded);
	put_histogram(out, page, &polls, &page->polls);
	put_histogram(out, page, &latencies, &page->latencies);
}

void metrics_page_print(FILE *out, const struct metrics_page *page)
{
	static const struct metric up = { .name = "tdt_up",
					  .help = "1 if the process was read, 0 otherwise." };
	bool shown = page->form == METRICS_OPENMETRICS || page->recorded_ns == 0;

	put_head(out, &up, "", "gauge");
	fprintf(out, "tdt_up %d\n", page->up);
	if (page->up) {
		put_states(out, &page->counts);
		for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++)
			put_metric(out, page, &metrics[i]);
	}
	if (page->up && page->recorded && shown)
		put_recorded(out, page);
	if (page->form == METRICS_OPENMETRICS)
		fputs("# EOF\n", out);
}
