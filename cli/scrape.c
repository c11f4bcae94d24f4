// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reading the metrics of a process: its counters, its findings, and what it has recorded. */

#include "cli/scrape.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/processes.h"
#include "cli/task_groups.h"
#include "reader/dump.h"
#include "reader/history.h"
#include "reader/recorded.h"
#include "recording/module_table.h"
#include "recording/read.h"
#include "tree-printer/stuck_locks.h"

static void keep_larger(uint64_t *largest, uint64_t value)
{
	if (value > *largest)
		*largest = value;
}

/* Each look may miss some of these counts.  The largest number seen is the truest. */
static void keep_most(struct tdt_counts *counts, const struct tdt_counts *before)
{
	keep_larger(&counts->spawned, before->spawned);
	keep_larger(&counts->panicked, before->panicked);
	keep_larger(&counts->polls, before->polls);
	keep_larger(&counts->captures, before->captures);
	keep_larger(&counts->dumps, before->dumps);
	keep_larger(&counts->lost_wakeups, before->lost_wakeups);
}

/* Count what tdt ps says is wrong. */
static int count_findings(struct metrics_page *page, struct tdt__tasks *tasks)
{
	struct tdt__stuck_locks locks = { .n = 0 };
	struct tdt__outside_found found;
	int error = tdt__outside_found(&found, tasks);

	if (error == 0)
		error = tdt__stuck_locks_collect(&locks, &found.snapshot);
	for (size_t i = 0; error == 0 && i < found.snapshot.n_cycles; i++) {
		page->deadlocks += found.snapshot.cycles[i]->deadlock;
		page->unproven += found.snapshot.cycles[i]->unproven;
	}
	page->orphans += tdt__stuck_orphans(&locks);
	page->futurelocks += locks.n - tdt__stuck_orphans(&locks);
	free(locks.lock);
	tdt__outside_found_fini(&found);
	return error;
}

#define LOOKS 3
#define NAMES_TIME TDT__SECOND /* for names of functions: a scrape has little more */

/*
 * Count the tasks and polls of one registry.  The polls of a task that ends during a look may be
 * missing in it.  If a task has ended, the next look finds its polls among the counters, so the
 * most of a few looks lacks little.  All but the counters are of the first look.
 */
static int count_registry(struct metrics_page *page, struct task_groups *groups,
			  struct outside *outside, size_t registry, const struct options *options)
{
	struct tdt_registry_counters after;
	struct tdt__tasks tasks;
	bool moved = true;

	for (int i = 0; i < LOOKS && moved; i++) {
		struct tdt_counts counts;
		int error = 0, status = outside_tasks(outside, &tasks, registry, options);

		if (status != PROGRAM_GOES_ON)
			return status;
		tdt__history_counts(&tasks, &counts);
		if (i == 0) {
			page->counts = counts;
			if (options->groups) {
				tdt__tasks_name(&tasks, tdt__clock() + NAMES_TIME);
				task_groups_count(groups, &tasks);
			}
			error = count_findings(page, &tasks);
		}
		keep_most(&page->counts, &counts);
		tdt__history_counters(&outside->target, &tasks.registry, &after);
		moved = after.polls != tasks.counters.polls;
		tdt__tasks_fini(&tasks);
		if (error != 0)
			return report_no_memory();
	}
	return PROGRAM_GOES_ON;
}

/* As tdt__tasks_name() does, so that tasks and waits have the same labels. */
static void name_recorded_tasks(struct tdt__recording *recording, struct tdt__images *images)
{
	for (uint32_t i = 0; i < recording->n_tasks; i++)
		if (recording->task[i].has_entry)
			tdt__images_open(images, recording->task[i].poll_function);
	tdt__recorded_tasks_name(recording, images->table, tdt__clock() + NAMES_TIME);
}

/* With the waits by name and kind, if names are wanted.  Returns 0 or -ENOMEM. */
static int add_durations(struct scrape *scrape, const struct tdt__recording *recording,
			 const struct tdt__recorded_span *span)
{
	struct scrape_totals *totals = &scrape->totals;
	struct task_groups waits = { .n = 0 };
	const struct tdt__recorded_durations to = {
		&totals->polls, &totals->latencies,
		scrape->options->groups ? task_groups_waited : NULL, &waits
	};
	int error = tdt__durations_count(recording, span, &to);

	task_groups_add_to(&totals->waits, &waits);
	task_groups_fini(&waits);
	return error;
}

/* A page of a single scrape says of which time its durations are. */
static int count_durations(struct metrics_page *page, struct scrape *scrape,
			   const struct tdt__recording *recording)
{
	struct scrape_totals *totals = &scrape->totals;
	struct tdt__recorded_span span = { .from = totals->until, .until = scrape->until };
	uint64_t end = recording->until;

	if (span.from == 0) { /* from when on all events are in the recording */
		span.from = recording->header.start;
		keep_larger(&span.from, recording->sure_from);
	}
	if (scrape->once && end > span.from)
		keep_larger(&page->recorded_ns, tdt__recording_time(recording, span.from, end));
	if (add_durations(scrape, recording, &span) != 0)
		return report_no_memory();
	totals->recorded = !scrape->once || page->recorded_ns != 0;
	return PROGRAM_GOES_ON;
}

/* A recorder that does not run has nothing to say of the present. */
static int read_durations(struct metrics_page *page, struct scrape *scrape,
			  struct outside *outside, size_t registry)
{
	uint64_t start = tdt__clock();
	struct tdt__recording *recording;
	struct tdt__trouble trouble;
	void *copy;
	int status;

	if (!tdt__recorded_runs(&outside->target, &outside->found[registry]))
		return PROGRAM_GOES_ON;
	if (tdt__recorded_open(&outside->target, &outside->images, &outside->found[registry], &copy,
			       &recording, &trouble) != 0)
		return report_trouble("%s", trouble.text);
	if (scrape->options->groups)
		name_recorded_tasks(recording, &outside->images);
	status = count_durations(page, scrape, recording);
	tdt__recording_close(recording);
	free(copy);
	report_time(scrape->options, "reading the recording", start);
	return status;
}

static void add_counts(struct tdt_counts *sum, const struct tdt_counts *counts)
{
	sum->waiting += counts->waiting;
	sum->runnable += counts->runnable;
	sum->running += counts->running;
	sum->held += counts->held;
	keep_larger(&sum->longest_wait_ns, counts->longest_wait_ns);
	keep_larger(&sum->longest_poll_ns, counts->longest_poll_ns);
	sum->spawned += counts->spawned;
	sum->panicked += counts->panicked;
	sum->polls += counts->polls;
	sum->captures += counts->captures;
	sum->dumps += counts->dumps;
	sum->lost_wakeups += counts->lost_wakeups;
}

/* A process may contain several copies of the library.  The counting began with the first one. */
static void add_page(struct metrics_page *page, const struct metrics_page *one, uint64_t start)
{
	add_counts(&page->counts, &one->counts);
	page->deadlocks += one->deadlocks;
	page->orphans += one->orphans;
	page->unproven += one->unproven;
	page->futurelocks += one->futurelocks;
	if (start != 0 && (page->since == 0 || start < page->since))
		page->since = start;
}

/* Begin with nothing unless the process is the one of the last scrape. */
static void begin_totals(struct scrape_totals *totals, const struct outside *outside)
{
	uint64_t start = UINT64_MAX;

	for (size_t i = 0; i < outside->n_found; i++)
		if (outside->found[i].registry.start < start)
			start = outside->found[i].registry.start;
	if (totals->start != start)
		*totals = (struct scrape_totals){ .start = start };
}

static int read_registries(struct metrics_page *page, struct task_groups *groups,
			   struct scrape *scrape, struct outside *outside)
{
	int status = PROGRAM_GOES_ON;

	for (size_t i = 0; i < outside->n_found && status == PROGRAM_GOES_ON; i++) {
		struct metrics_page one = { 0 };

		status = count_registry(&one, groups, outside, i, scrape->options);
		add_page(page, &one, outside->found[i].registry.start_real);
		if (status == PROGRAM_GOES_ON)
			status = read_durations(page, scrape, outside, i);
	}
	return status;
}

/* The page so far is of this scrape alone. */
static void use_totals(struct metrics_page *page, struct scrape_totals *totals)
{
	keep_most(&page->counts, &totals->counts);
	totals->counts = page->counts;
	page->recorded = totals->recorded;
	page->polls = totals->polls;
	page->latencies = totals->latencies;
	page->waits = totals->waits;
}

/*
 * A thread writes the event of a poll a little later than the poll has ended.  The next scrape
 * counts such polls.
 */
#define LAG (TDT__SECOND / 10)

static int scrape_opened(struct scrape *scrape, struct outside *outside)
{
	struct scrape_totals *totals = &scrape->totals;
	struct metrics_page *page = &scrape->page;
	struct task_groups groups = { .n = 0 };
	int status;

	scrape->until = UINT64_MAX;
	if (!scrape->once)
		scrape->until = tdt__clock() + (uint64_t)outside->target.clock_offset - LAG;
	*page = (struct metrics_page){ .up = true, .pid = (uint32_t)scrape->pid };
	processes_program(&outside->target, page->program);
	begin_totals(totals, outside);
	status = read_registries(page, &groups, scrape, outside);
	if (totals->recorded)
		totals->until = scrape->until;
	use_totals(page, totals);
	page->grouped = scrape->options->groups;
	task_groups_add_to(&page->groups, &groups);
	task_groups_fini(&groups);
	return status == PROGRAM_GOES_ON ? EXIT_SUCCESS : status;
}

int scrape_process(struct scrape *scrape, FILE *out)
{
	struct outside outside;
	int status = scrape->pid != 0 ? processes_open(&outside, scrape->pid, out)
				      : outside_open(&outside, scrape->options);

	if (status != PROGRAM_GOES_ON)
		return status;
	status = scrape_opened(scrape, &outside);
	outside_close(&outside);
	return status;
}
