// SPDX-License-Identifier: Apache-2.0 OR MIT
/* tdt metrics: numbers about the tasks of a process, for Prometheus and its like. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/array.h"
#include "base/clock.h"
#include "cli/metrics_page.h"
#include "cli/processes.h"
#include "cli/serve.h"
#include "cli/tdt.h"
#include "reader/dump.h"
#include "reader/history.h"
#include "reader/recorded.h"
#include "recording/read.h"
#include "tree-printer/forms.h"

/*
 * The server's memory of a process from scrape to scrape, until that has ended: with it counters
 * never shrink, and each recorded poll is counted once, also if a scrape between fails.
 */
struct totals {
	uint64_t start; /* which process: when its library began its work, CLOCK_MONOTONIC */
	struct tdt_counts counts;
	uint8_t recorded; /* there are durations */
	uint64_t until; /* they are those until then */
	struct tdt__durations polls, latencies;
};

struct metered_process {
	pid_t pid; /* 0: the target of the options */
	bool seen; /* in this scrape: it lives, and may use the library */
	char program[PROGRAM_NAME_MAX];
	struct totals totals;
};

/* One reading of a process, in a child of its own. */
struct scrape {
	struct options *options;
	pid_t pid;	/* 0: the target of the options */
	bool once;	/* there is no other scrape */
	bool quiet;	/* troubles are not reported */
	uint64_t until; /* what is recorded later is left to the next scrape */
	/* In memory that the child shares: before and after, and what the child has found. */
	struct exchange {
		struct totals totals;
		struct metrics_page page;
		char program[PROGRAM_NAME_MAX];
	} *shared;
};

/* A server, or what is printed once. */
struct meter {
	struct scrape scrape;
	enum metrics_form form;
	uint64_t deadline; /* of the page that is made, if it is of all processes */
	bool all; /* all processes that use the library; otherwise there is one, the target */
	struct metered_process *process;
	size_t n, room;
};

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

static void count_rings(struct metrics_page *page, struct tdt__tasks *tasks)
{
	struct tdt__cycles cycles = { 0 };

	if (tdt__outside_cycles(&cycles, tasks) != 0)
		report_no_memory();
	for (size_t i = 0; i < cycles.n; i++) {
		page->deadlocks += cycles.cycle[i].deadlock;
		page->unproven += cycles.cycle[i].unproven;
	}
	tdt__cycles_fini(&cycles);
	page->orphans += tasks->orphans.n;
}

#define LOOKS 3

/*
 * Count the tasks and polls of one registry.  The polls of a task that ends during a look may be
 * missing in it.  If a task has ended, the next look finds its polls among the counters, so the
 * most of a few looks lacks little.
 */
static int count_registry(struct metrics_page *page, struct outside *outside, size_t registry,
			  const struct options *options)
{
	struct tdt_counts before = { 0 };
	struct tdt_registry_counters after;
	struct tdt__tasks tasks;
	bool moved = true;

	for (int i = 0; i < LOOKS && moved; i++) {
		int status = outside_tasks(outside, &tasks, registry, options);

		if (status != PROGRAM_GOES_ON)
			return status;
		tdt__history_counts(&tasks, &page->counts);
		keep_most(&page->counts, &before);
		before = page->counts;
		if (i == 0)
			count_rings(page, &tasks);
		tdt__history_counters(&outside->target, &tasks.registry, &after);
		moved = after.polls != tasks.counters.polls;
		tdt__tasks_fini(&tasks);
	}
	return PROGRAM_GOES_ON;
}

/* A page of a single scrape says of which time its durations are. */
static int count_durations(struct metrics_page *page, struct scrape *scrape,
			   const struct tdt__recording *recording)
{
	struct totals *totals = &scrape->shared->totals;
	struct tdt__recorded_span span = { .from = totals->until, .until = scrape->until };
	uint64_t end = recording->until;

	if (span.from == 0) { /* from when on all events are in the recording */
		span.from = recording->header.start;
		keep_larger(&span.from, recording->sure_from);
	}
	if (scrape->once && end > span.from)
		keep_larger(&page->recorded_ns, tdt__recording_time(recording, span.from, end));
	if (tdt__durations_count(recording, &span, &totals->polls, &totals->latencies) != 0)
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
	if (start != 0 && (page->since == 0 || start < page->since))
		page->since = start;
}

/* Begin with nothing unless the process is the one of the last scrape. */
static void begin_totals(struct totals *totals, const struct outside *outside)
{
	uint64_t start = UINT64_MAX;

	for (size_t i = 0; i < outside->n_found; i++)
		if (outside->found[i].registry.start < start)
			start = outside->found[i].registry.start;
	if (totals->start != start)
		*totals = (struct totals){ .start = start };
}

static int read_registries(struct metrics_page *page, struct scrape *scrape,
			   struct outside *outside)
{
	int status = PROGRAM_GOES_ON;

	for (size_t i = 0; i < outside->n_found && status == PROGRAM_GOES_ON; i++) {
		struct metrics_page one = { 0 };

		status = count_registry(&one, outside, i, scrape->options);
		add_page(page, &one, outside->found[i].registry.start_real);
		if (status == PROGRAM_GOES_ON)
			status = read_durations(page, scrape, outside, i);
	}
	return status;
}

/* The page so far is of this scrape alone. */
static void use_totals(struct metrics_page *page, struct totals *totals)
{
	keep_most(&page->counts, &totals->counts);
	totals->counts = page->counts;
	page->recorded = totals->recorded;
	page->polls = totals->polls;
	page->latencies = totals->latencies;
}

/*
 * A thread writes the event of a poll a little later than the poll has ended.  The next scrape
 * counts such polls.
 */
#define LAG (TDT__SECOND / 10)

static int scrape_opened(struct scrape *scrape, struct outside *outside)
{
	struct totals *totals = &scrape->shared->totals;
	struct metrics_page *page = &scrape->shared->page;
	int status;

	scrape->until = UINT64_MAX;
	if (!scrape->once)
		scrape->until = tdt__clock() + (uint64_t)outside->target.clock_offset - LAG;
	*page = (struct metrics_page){ .up = true };
	begin_totals(totals, outside);
	status = read_registries(page, scrape, outside);
	if (totals->recorded)
		totals->until = scrape->until;
	use_totals(page, totals);
	return status == PROGRAM_GOES_ON ? EXIT_SUCCESS : status;
}

/* An apart_fn: read a process.  Only of one of all processes something is written. */
static int scrape_process(FILE *out, void *arg)
{
	struct scrape *scrape = arg;
	struct outside outside;
	int status;

	if ((scrape->quiet || scrape->pid != 0) && freopen("/dev/null", "w", stderr) == NULL)
		return -errno;
	status = scrape->pid != 0 ? processes_open(&outside, scrape->pid, out)
				  : outside_open(&outside, scrape->options);
	if (status != PROGRAM_GOES_ON)
		return status;
	processes_program(&outside.target, scrape->shared->program);
	status = scrape_opened(scrape, &outside);
	outside_close(&outside);
	return status;
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

static int print_json_page(FILE *file, const struct metrics_page *page)
{
	const struct tdt_counts *counts = &page->counts;
	struct tdt__out out = { .file = file };
	struct tdt__json json = tdt__json_document(&out);

	tdt__json_begin(&json, "metrics", '{');
	tdt__json_known_u64(&json, "pid", page->pid);
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
	tdt__json_known_u64(&json, "recorded_ns", page->recorded_ns);
	if (page->recorded) {
		json_durations(&json, "poll", &page->polls);
		json_durations(&json, "wake_to_poll", &page->latencies);
	}
	tdt__json_end(&json, '}');
	tdt__json_finish(&json);
	return tdt__out_end(&out);
}

#define TIMEOUT_OF_SCRAPE 10 /* seconds; Prometheus waits for so long */
#define TIMEOUT_OF_ALL 8     /* processes: the last one may take a second more */
#define TIMEOUT_OF_EACH 2    /* of these */

/* How many seconds the reading of a process may last.  0: the time for all is over. */
static unsigned seconds_left(const struct meter *meter)
{
	uint64_t now = tdt__clock(), left = 0;

	if (!meter->all)
		return timeout_seconds(meter->scrape.options, TIMEOUT_OF_SCRAPE);
	if (now < meter->deadline)
		left = (meter->deadline - now) / TDT__SECOND + 1;
	return left < TIMEOUT_OF_EACH ? (unsigned)left : TIMEOUT_OF_EACH;
}

/* The page of one scrape is as late as the command may be. */
static void set_page_deadline(struct meter *meter)
{
	unsigned usual = meter->scrape.once ? BOUND_SECONDS : TIMEOUT_OF_ALL;

	meter->deadline = tdt__clock() +
			  timeout_seconds(meter->scrape.options, usual) * (uint64_t)TDT__SECOND;
}

/* Read the process into `page`.  Returns what the child has returned; `out` has the reason. */
static int read_apart(struct meter *meter, struct metered_process *process,
		      struct metrics_page *page, FILE *out, const char **why)
{
	struct scrape *scrape = &meter->scrape;
	int status;

	scrape->pid = process->pid;
	scrape->shared->totals = process->totals;
	status = do_apart(out, scrape_process, scrape, seconds_left(meter), why);
	if (status != EXIT_SUCCESS)
		return status;
	process->totals = scrape->shared->totals;
	memcpy(process->program, scrape->shared->program, sizeof process->program);
	*page = scrape->shared->page;
	page->up = true;
	page->program = meter->all ? process->program : NULL;
	page->pid = (uint32_t)process->pid;
	return status;
}

/* The memory of a process, found or made.  NULL: no memory. */
static struct metered_process *metered(struct meter *meter, pid_t pid)
{
	size_t i = 0;

	while (i < meter->n && meter->process[i].pid != pid)
		i++;
	if (i == meter->n) {
		if (!tdt__array_grow(&meter->process, meter->n, &meter->room,
				     sizeof *meter->process))
			return NULL;
		meter->process[meter->n++] = (struct metered_process){ .pid = pid };
	}
	return &meter->process[i];
}

/* Forget the processes that have ended or use no library.  Those that only failed are kept. */
static void forget_others(struct meter *meter)
{
	size_t n = 0;

	for (size_t i = 0; i < meter->n; i++)
		if (meter->process[i].seen) {
			meter->process[n] = meter->process[i];
			meter->process[n++].seen = false;
		}
	meter->n = n;
}

/* Read one of all processes.  Returns whether `*page` was filled in. */
static bool meter_process(struct meter *meter, pid_t pid, struct metrics_page *page,
			  struct unreadable *unreadable)
{
	struct metered_process *process = metered(meter, pid);
	const char *why = "";
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	int status = -ENOMEM;

	if (process != NULL && out != NULL)
		status = read_apart(meter, process, page, out, &why);
	if (out != NULL)
		fclose(out);
	unreadable_note_child(unreadable, pid, status, text, why);
	free(text);
	if (process != NULL)
		process->seen = status != PROCESS_WITHOUT_LIBRARY;
	return status == EXIT_SUCCESS;
}

/* There is no time for the process; what is known of it is kept. */
static void pass_by(struct meter *meter, pid_t pid, struct unreadable *unreadable)
{
	struct metered_process *process = metered(meter, pid);

	if (process != NULL)
		process->seen = true;
	unreadable_note_late(unreadable, pid);
}

static int print_pages(FILE *out, const struct metrics_pages *pages)
{
	int error = 0;

	if (pages->form != METRICS_JSON)
		metrics_page_print(out, pages);
	for (size_t i = 0; i < pages->n && pages->form == METRICS_JSON && error == 0; i++)
		error = print_json_page(out, &pages->page[i]);
	return error;
}

/* The pages of all processes that use the library. */
static int print_all_processes(FILE *out, struct meter *meter)
{
	struct unreadable unreadable = { 0 };
	struct metrics_pages pages = { .form = meter->form, .unreadable = &unreadable };
	size_t n;
	pid_t *pids = processes_all(&n);
	struct metrics_page *page = calloc(n + 1, sizeof *page);
	int error = pids != NULL && page != NULL ? 0 : -ENOMEM;

	set_page_deadline(meter);
	for (size_t i = 0; i < n && error == 0; i++) {
		if (seconds_left(meter) > 0)
			pages.n += meter_process(meter, pids[i], &page[pages.n], &unreadable);
		else
			pass_by(meter, pids[i], &unreadable);
	}
	if (error == 0)
		forget_others(meter);
	/* The memory of processes may have moved. */
	for (size_t i = 0; i < pages.n; i++)
		page[i].program = metered(meter, (pid_t)page[i].pid)->program;
	pages.page = page;
	if (error == 0)
		error = print_pages(out, &pages);
	free(unreadable.reason);
	free(page);
	free(pids);
	return error;
}

/*
 * Write the page of the process, or of a process that cannot be read.  Such a process may come
 * back, so only the first of several failures is reported.
 */
static int print_target(FILE *out, struct meter *meter)
{
	struct metrics_page page = { .up = false };
	const struct metrics_pages pages = { .form = meter->form, .page = &page, .n = 1 };
	const char *why = "";
	int status = read_apart(meter, &meter->process[0], &page, out, &why);

	if (status == -ECANCELED && !meter->scrape.quiet)
		report_reading(why);
	meter->scrape.quiet = status != EXIT_SUCCESS;
	if (status != EXIT_SUCCESS)
		page = (struct metrics_page){ .up = false };
	return print_pages(out, &pages);
}

static int make_page(void *arg, bool open_metrics, char **text, size_t *length)
{
	struct meter *meter = arg;
	FILE *out = open_memstream(text, length);
	int error;

	if (out == NULL)
		return -ENOMEM;
	meter->form = open_metrics ? METRICS_OPENMETRICS : METRICS_PROMETHEUS;
	error = meter->all ? print_all_processes(out, meter) : print_target(out, meter);
	return fclose(out) == 0 ? error : -ENOMEM;
}

static int report_listening(int listener)
{
	char url[SERVE_URL_MAX];

	if (serve_url(listener, url) != 0)
		return report_trouble("the address is unknown");
	printf("serving %s\n", url);
	return fflush(stdout) == 0 ? PROGRAM_GOES_ON : TDT_TROUBLE;
}

static int report_cannot_listen(const char *where, int error)
{
	if (error == -EINVAL)
		bad_usage("not a port, or an address and a port, as 127.0.0.1:9777 or "
			  "[::1]:9777: ",
			  where);
	return report_trouble("%s: %s", where, strerror(-error));
}

/* Goes on until a signal ends it. */
static int serve_metrics(struct meter *meter, const char *where)
{
	static const struct serve_limits limits = { .request_ns = 5 * TDT__SECOND,
						    .answer_ns = 10 * TDT__SECOND };
	struct serve_names names;
	int listener = serve_listen(where);

	if (listener < 0)
		return report_cannot_listen(where, listener);
	serve_find_names(&names);
	if (report_listening(listener) == PROGRAM_GOES_ON)
		report_cannot_listen(where, serve(listener, &names, &limits, make_page, meter));
	return TDT_TROUBLE;
}

static int print_once(struct meter *meter)
{
	struct scrape *scrape = &meter->scrape;
	struct metrics_pages pages = { .form = meter->form, .page = &scrape->shared->page, .n = 1 };
	int status;

	scrape->once = true;
	if (meter->all) {
		outside_bound(scrape->options, 0);
		status = report_output(NULL, print_all_processes(stdout, meter));
	} else {
		status = outside_apart(scrape_process, scrape, scrape->options, false);
		if (status == EXIT_SUCCESS)
			status = report_output(NULL, print_pages(stdout, &pages));
	}
	return status == EXIT_SUCCESS && fflush(stdout) != 0 ? report_output(NULL, -errno) : status;
}

int command_metrics(int argc, char **argv)
{
	struct options options = { .max_requests = 0 };
	struct meter meter = { .scrape.options = &options };
	int status;

	read_command_line(COMMAND_METRICS, &options, &argc, &argv, TARGET_OR_NONE);
	if (options.all_processes == (options.target != NULL))
		bad_usage(options.target != NULL ? "either --all or a target"
						 : "the target is missing, or --all",
			  "");
	meter.form = options.page;
	meter.all = options.all_processes;
	meter.scrape.shared = mmap(NULL, sizeof *meter.scrape.shared, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (meter.scrape.shared == MAP_FAILED || (!meter.all && metered(&meter, 0) == NULL))
		return report_no_memory();
	status =
	    options.listen != NULL ? serve_metrics(&meter, options.listen) : print_once(&meter);
	free(meter.process);
	return status;
}
