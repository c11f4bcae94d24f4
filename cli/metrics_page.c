// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Metrics as text.  The two forms name a counter differently: OpenMetrics by its family, and the
 * older form by its sample, which ends with _total.  The older form has no units, and no histogram
 * that may shrink.
 */

#include "cli/metrics_page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "tree-printer/forms.h"
#include "tree-printer/strings.h"

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
	METRIC("tdt_futurelocks", "Locks that tasks wait for, and whose owners do not take them.",
	       GAUGE, futurelocks),
	METRIC("tdt_orphaned_locks", "Locks that tasks wait for, and whose owners have ended.",
	       GAUGE, orphans),
};

static const struct metric recorded =
	METRIC("tdt_recorded_seconds", "Time until now that recorded metrics are of.", SECONDS,
	       recorded_ns);

static bool is_in_seconds(const struct metric *metric)
{
	return tdt__ends_with(metric->name, "_seconds");
}

static void put_head(FILE *out, const struct metrics_pages *pages, const struct metric *metric,
		     const char *type)
{
	bool open = pages->form == METRICS_OPENMETRICS;
	const char *suffix = !open && strcmp(type, "counter") == 0 ? "_total" : "";

	fprintf(out, "# TYPE %s%s %s\n", metric->name, suffix, type);
	fprintf(out, "# HELP %s%s %s\n", metric->name, suffix, metric->help);
	if (open && is_in_seconds(metric))
		fprintf(out, "# UNIT %s seconds\n", metric->name);
}

void metrics_clean(char *to, size_t room, const char *text)
{
	uint32_t code;

	while (*text != '\0') {
		size_t n = tdt__utf8_decode(text, &code);
		bool good = n != 0 && !tdt__is_harmful(code);
		size_t length = good ? n : 1;

		if (length >= room)
			break;
		memcpy(to, good ? text : "?", length);
		to += length;
		room -= length;
		text += n != 0 ? n : 1;
	}
	*to = '\0';
}

static void put_label(FILE *out, const char *name, const char *value)
{
	char clean[512];

	metrics_clean(clean, sizeof clean, value);
	fprintf(out, "%s=\"", name);
	for (const char *c = clean; *c != '\0'; c++)
		fprintf(out, "%s%c", *c == '"' || *c == '\\' ? "\\" : "", *c);
	putc('"', out);
}

/* Begin a sample: its name, its labels, and `more` labels of its own ("": none), and a space. */
static void put_sample(FILE *out, const struct metrics_page *page, const struct metric *metric,
		       const char *suffix, const char *more)
{
	fprintf(out, "%s%s", metric->name, suffix);
	if (page->pid != 0) {
		putc('{', out);
		put_label(out, "program", page->program);
		fprintf(out, ",pid=\"%" PRIu32 "\"%s%s}", page->pid, more[0] != '\0' ? "," : "",
			more);
	} else if (more[0] != '\0') {
		fprintf(out, "{%s}", more);
	}
	putc(' ', out);
}

static void put_count(FILE *out, const struct metrics_page *page, const struct metric *metric,
		      const char *suffix, const char *more, uint64_t value)
{
	put_sample(out, page, metric, suffix, more);
	fprintf(out, "%" PRIu64 "\n", value);
}

/* Seconds have a point, whatever the locale is. */
static void put_seconds(FILE *out, const struct metrics_page *page, const struct metric *metric,
			const char *suffix, const char *more, uint64_t ns)
{
	put_sample(out, page, metric, suffix, more);
	fprintf(out, "%" PRIu64 ".%09" PRIu64 "\n", ns / TDT__SECOND, ns % TDT__SECOND);
}

/* The samples of a metric of all processes lie one after the other. */
static void put_metric(FILE *out, const struct metrics_pages *pages, const struct metric *metric)
{
	bool open = pages->form == METRICS_OPENMETRICS;

	put_head(out, pages, metric, metric->type == COUNTER ? "counter" : "gauge");
	for (size_t i = 0; i < pages->n; i++) {
		const struct metrics_page *page = &pages->page[i];
		uint64_t value = *(const uint64_t *)(const void *)((const char *)page + metric->at);

		if (!page->up)
			continue;
		if (metric->type == SECONDS)
			put_seconds(out, page, metric, "", "", value);
		else
			put_count(out, page, metric, metric->type == COUNTER ? "_total" : "", "",
				  value);
		if (metric->type == COUNTER && open && page->since != 0)
			put_seconds(out, page, metric, "_created", "", page->since);
	}
}

static void put_states(FILE *out, const struct metrics_pages *pages)
{
	static const struct metric tasks = {
		.name = "tdt_tasks", .help = "Tasks that have not ended, by state."
	};

	put_head(out, pages, &tasks, "gauge");
	for (size_t i = 0; i < pages->n; i++) {
		const struct metrics_page *page = &pages->page[i];

		if (!page->up)
			continue;
		put_count(out, page, &tasks, "", "state=\"waiting\"", page->counts.waiting);
		put_count(out, page, &tasks, "", "state=\"runnable\"", page->counts.runnable);
		put_count(out, page, &tasks, "", "state=\"polling\"", page->counts.running);
	}
}

/* The older form has no histogram that may shrink. */
static bool shows_durations(const struct metrics_pages *pages, const struct metrics_page *page)
{
	return page->up && page->recorded &&
	       (pages->form == METRICS_OPENMETRICS || page->recorded_ns == 0);
}

static void put_group(FILE *out, const struct metrics_page *page, const struct metric *metric,
		      const char *suffix, const struct metrics_group *group)
{
	char *labels = NULL;
	size_t n;
	FILE *more = open_memstream(&labels, &n);

	if (more == NULL)
		return;
	put_label(more, "name", group->name);
	if (group->wait[0] != '\0') {
		putc(',', more);
		put_label(more, "wait", group->wait);
	}
	if (fclose(more) == 0) {
		if (is_in_seconds(metric))
			put_seconds(out, page, metric, suffix, labels, group->ns);
		else
			put_count(out, page, metric, suffix, labels, group->n);
	}
	free(labels);
}

/* Waits are counted as durations are.  NULL: the page has no such groups. */
static const struct metrics_groups *groups_of(const struct metrics_pages *pages,
					      const struct metrics_page *page,
					      const struct metric *metric)
{
	if (!page->up || !page->grouped)
		return NULL;
	if (metric->type == COUNTER)
		return shows_durations(pages, page) ? &page->waits : NULL;
	return &page->groups;
}

/* All other groups have no label of what is waited for, as no real group has. */
static void put_groups(FILE *out, const struct metrics_pages *pages, const struct metric *metric)
{
	const char *suffix = NULL;

	for (size_t i = 0; i < pages->n; i++) {
		const struct metrics_page *page = &pages->page[i];
		const struct metrics_groups *groups = groups_of(pages, page, metric);
		bool grows = metric->type == COUNTER && page->recorded_ns == 0;
		struct metrics_group other;

		if (groups == NULL)
			continue;
		if (suffix == NULL)
			put_head(out, pages, metric, grows ? "counter" : "gauge");
		suffix = grows ? "_total" : "";
		for (size_t k = 0; k < groups->n; k++)
			put_group(out, page, metric, suffix, &groups->group[k]);
		other = groups->other;
		strcpy(other.name, "other");
		put_group(out, page, metric, suffix, &other);
	}
}

/* The bounds of durations.h in seconds, in the form that OpenMetrics prefers, and the last one. */
static const char *const bucket_names[TDT__DURATION_BOUNDS + 1] = {
	"1e-06", "5e-06", "1e-05", "5e-05", "0.0001", "0.0005", "0.001", "0.005",
	"0.01",	 "0.05",  "0.1",   "0.5",   "1.0",    "5.0",	"10.0",	 "+Inf",
};

static void put_buckets(FILE *out, const struct metrics_page *page, const struct metric *metric,
			const struct tdt__durations *durations)
{
	bool gauge = page->recorded_ns != 0;
	char bound[32];
	uint64_t n = 0;

	for (size_t i = 0; i <= TDT__DURATION_BOUNDS; i++) {
		n += durations->n[i];
		snprintf(bound, sizeof bound, "le=\"%s\"", bucket_names[i]);
		put_count(out, page, metric, "_bucket", bound, n);
	}
	put_count(out, page, metric, gauge ? "_gcount" : "_count", "", n);
	put_seconds(out, page, metric, gauge ? "_gsum" : "_sum", "", durations->sum);
}

static void put_histogram(FILE *out, const struct metrics_pages *pages, const struct metric *metric)
{
	const char *type = NULL;

	for (size_t i = 0; i < pages->n; i++) {
		const struct metrics_page *page = &pages->page[i];

		if (!shows_durations(pages, page))
			continue;
		if (type == NULL) {
			type = page->recorded_ns != 0 ? "gaugehistogram" : "histogram";
			put_head(out, pages, metric, type);
		}
		put_buckets(out, page, metric, (const void *)((const char *)page + metric->at));
	}
}

static void put_recorded(FILE *out, const struct metrics_pages *pages)
{
	static const struct metric histograms[] = {
		METRIC("tdt_poll_seconds", "Duration of recorded polls.", SECONDS, polls),
		METRIC("tdt_wake_to_poll_seconds", "Time from recorded wake-ups to the next poll.",
		       SECONDS, latencies),
	};
	static const struct metric waits[] = {
		METRIC("tdt_task_waits", "Recorded waits of tasks, by name and kind of wait.",
		       COUNTER, waits),
		METRIC("tdt_task_wait_seconds",
		       "Duration of recorded waits, by name and kind of wait.", COUNTER, waits),
	};
	bool spans = false;

	for (size_t i = 0; i < pages->n; i++)
		spans |= shows_durations(pages, &pages->page[i]) && pages->page[i].recorded_ns != 0;
	if (spans)
		put_metric(out, pages, &recorded);
	put_histogram(out, pages, &histograms[0]);
	put_histogram(out, pages, &histograms[1]);
	put_groups(out, pages, &waits[0]);
	put_groups(out, pages, &waits[1]);
}

static void put_unreadable(FILE *out, const struct metrics_pages *pages)
{
	const struct unreadable *unreadable = pages->unreadable;
	static const struct metric metric = { .name = "tdt_processes_unreadable",
					      .help = "Processes that could not be read." };
	char reason[512];

	put_head(out, pages, &metric, "gauge");
	for (size_t i = 0; i < unreadable->n; i++) {
		tdt__text_without_numbers(reason, sizeof reason, unreadable->reason[i].text, '#');
		fprintf(out, "%s{", metric.name);
		put_label(out, "reason", reason);
		fprintf(out, "} %zu\n", unreadable->reason[i].n);
	}
}

static void print_samples(FILE *out, const struct metrics_pages *pages)
{
	static const struct metric up = { .name = "tdt_up",
					  .help = "1 if the process was read, 0 otherwise." };
	static const struct metric groups = METRIC(
		"tdt_task_group",
		"Tasks that have not ended, by name and kind of wait: the largest groups.", GAUGE,
		groups);
	bool any = false;

	put_head(out, pages, &up, "gauge");
	for (size_t i = 0; i < pages->n; i++) {
		put_count(out, &pages->page[i], &up, "", "", pages->page[i].up);
		any |= pages->page[i].up;
	}
	if (any) {
		put_states(out, pages);
		put_groups(out, pages, &groups);
		for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++)
			put_metric(out, pages, &metrics[i]);
		put_recorded(out, pages);
	}
	if (pages->unreadable != NULL)
		put_unreadable(out, pages);
	if (pages->form == METRICS_OPENMETRICS)
		fputs("# EOF\n", out);
}

static void json_durations(struct tdt__json *json, const char *key,
			   const struct tdt__durations *durations)
{
	tdt__json_begin(json, key, '{');
	tdt__json_begin(json, "bounds_ns", '[');
	for (size_t i = 0; i < TDT__DURATION_BOUNDS; i++)
		tdt__json_u64(json, NULL, tdt__duration_bound[i]);
	tdt__json_end(json, ']');
	tdt__json_begin(json, "counts", '[');
	for (size_t i = 0; i <= TDT__DURATION_BOUNDS; i++)
		tdt__json_u64(json, NULL, durations->n[i]);
	tdt__json_end(json, ']');
	tdt__json_u64(json, "sum_ns", durations->sum);
	tdt__json_end(json, '}');
}

static void metrics_group_members(struct tdt__json *json, const struct metrics_group *group)
{
	tdt__json_string(json, "name", group->name);
	tdt__json_string(json, "wait", group->wait);
	tdt__json_u64(json, "tasks", group->n);
}

static void metrics_wait_members(struct tdt__json *json, const struct metrics_group *group)
{
	tdt__json_string(json, "name", group->name);
	tdt__json_string(json, "wait", group->wait);
	tdt__json_u64(json, "n", group->n);
	tdt__json_u64(json, "sum_ns", group->ns);
}

static int print_json_page(FILE *file, const struct metrics_page *page)
{
	const struct tdt_counts *counts = &page->counts;
	struct tdt__out out = { .file = file };
	struct tdt__json json = tdt__json_document(&out);

	tdt__json_begin(&json, "metrics", '{');
	tdt__json_known_u64(&json, "pid", page->pid);
	if (page->pid != 0)
		tdt__json_string(&json, "program", page->program);
	tdt__json_u64(&json, "waiting", counts->waiting);
	tdt__json_u64(&json, "runnable", counts->runnable);
	tdt__json_u64(&json, "polling", counts->running);
	tdt__json_u64(&json, "spawned", counts->spawned);
	tdt__json_u64(&json, "panicked", counts->panicked);
	tdt__json_u64(&json, "polls", counts->polls);
	tdt__json_u64(&json, "captures", counts->captures);
	tdt__json_u64(&json, "dumps", counts->dumps);
	tdt__json_known_u64(&json, "held", counts->held);
	tdt__json_u64(&json, "lost_wakeups", counts->lost_wakeups);
	tdt__json_known_u64(&json, "since_real_ns", page->since);
	tdt__json_u64(&json, "longest_poll_ns", counts->longest_poll_ns);
	tdt__json_u64(&json, "longest_wait_ns", counts->longest_wait_ns);
	tdt__json_u64(&json, "deadlocks", page->deadlocks);
	tdt__json_u64(&json, "unproven", page->unproven);
	tdt__json_u64(&json, "futurelocks", page->futurelocks);
	tdt__json_u64(&json, "orphaned_locks", page->orphans);
	if (page->grouped) {
		TDT__JSON_LIST(&json, "groups", page->groups.group, page->groups.n,
			       metrics_group_members, &json);
		tdt__json_u64(&json, "other_tasks", page->groups.other.n);
	}
	tdt__json_known_u64(&json, "recorded_ns", page->recorded_ns);
	if (page->recorded) {
		json_durations(&json, "poll", &page->polls);
		json_durations(&json, "wake_to_poll", &page->latencies);
	}
	if (page->recorded && page->grouped) {
		TDT__JSON_LIST(&json, "waits", page->waits.group, page->waits.n,
			       metrics_wait_members, &json);
		tdt__json_u64(&json, "other_waits", page->waits.other.n);
		tdt__json_u64(&json, "other_waits_ns", page->waits.other.ns);
	}
	tdt__json_end(&json, '}');
	tdt__json_finish(&json);
	return tdt__out_end(&out);
}

int metrics_page_print(FILE *out, const struct metrics_pages *pages)
{
	int error = 0;

	if (pages->form != METRICS_JSON)
		print_samples(out, pages);
	for (size_t i = 0; i < pages->n && pages->form == METRICS_JSON && error == 0; i++)
		error = print_json_page(out, &pages->page[i]);
	return error;
}
