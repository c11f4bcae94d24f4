// SPDX-License-Identifier: Apache-2.0 OR MIT
/* tdt metrics: numbers about the tasks of a process, for Prometheus and its like. */

#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "cli/metrics_page.h"
#include "cli/serve.h"
#include "cli/tdt.h"
#include "reader/dump.h"
#include "reader/history.h"
#include "reader/recorded.h"
#include "recording/read.h"

static char metrics_name[] = "tdt";

static const struct program metrics_program = {
	.name = metrics_name,
	.help = "Usage: tdt metrics [OPTION]... TARGET\n"
		"Print numbers about the async tasks of a process, for Prometheus and what else "
		"reads OpenMetrics.\n"
		"TARGET is the number or the name of a process.\n"
		"\n"
		"  -p, --pid=TARGET   the same\n"
		"  --format=FORM      openmetrics (the default), or prometheus: its older text "
		"format\n"
		"  --listen=ADDRESS   go on, and serve them at http://ADDRESS/metrics: 9777 or "
		"127.0.0.1:9777 is a port of\n"
		"                     this machine alone; other addresses, as 0.0.0.0:9777, are "
		"open to others\n"
		"  --timeout=TIME     give up after that (default: 60s; with --listen 10s)\n"
		"  --verbose          say how long each step took\n"
		"  --help, --version\n"
		"\n"
		"Exit status: 0; 2 if something went wrong.\n",
};

struct metrics_command {
	struct outside_options outside;
	enum metrics_form form;
	const char *listen; /* NULL: print one page */
};

/* --- Options ------------------------------------------------------------------------ */

enum { OPTION_LISTEN = OPTIONS_OWN };

static int set_form(struct metrics_command *command, const char *value)
{
	if (strcmp(value, "openmetrics") == 0)
		command->form = METRICS_OPENMETRICS;
	else if (strcmp(value, "prometheus") == 0)
		command->form = METRICS_PROMETHEUS;
	else
		return program_bad_usage(&metrics_program,
					 "the form is openmetrics or prometheus, not ", value);
	return PROGRAM_GOES_ON;
}

static int metrics_option(void *arg, int option, const char *value)
{
	struct metrics_command *command = arg;

	switch (option) {
	case 'f':
		return set_form(command, value);
	case OPTION_LISTEN:
		command->listen = value;
		return PROGRAM_GOES_ON;
	default:
		return outside_option(&command->outside, option, value);
	}
}

static int metrics_options(struct metrics_command *command, int argc, char **argv)
{
	static const struct option options[] = {
		OPTION_FORMAT,
		OPTION_OF_TIMEOUT,
		{ "listen", required_argument, NULL, OPTION_LISTEN },
		{ "pid", required_argument, NULL, 'p' },
		{ "verbose", no_argument, NULL, OPTION_VERBOSE },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	static const struct command_line line = { .program = &metrics_program,
						  .letters = "p:",
						  .options = options,
						  .option = metrics_option };

	return read_command_line(&line, command, &command->outside, &argc, &argv);
}

/* --- Scrapes ------------------------------------------------------------------------ */

/*
 * The server's memory of the process from scrape to scrape: with it counters never shrink, and each
 * recorded poll is counted once.
 */
struct totals {
	uint64_t start; /* which process: when its library began its work, CLOCK_MONOTONIC */
	struct tdt_counts counts;
	bool recorded;  /* there are durations */
	uint64_t until; /* they are those until then */
	struct tdt__durations polls, latencies;
};

/* One reading of the process, in a child of its own. */
struct scrape {
	const struct metrics_command *command;
	enum metrics_form form;
	bool quiet;           /* troubles are not reported */
	struct totals totals; /* as the last scrape has left them */
	struct totals *after; /* where to leave them, in shared memory; NULL: there is one scrape */
	uint64_t until;       /* what is recorded later is left to the next scrape */
};

/* --- Counts ------------------------------------------------------------------------- */

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
}

static void count_rings(struct metrics_page *page, struct tdt__tasks *tasks)
{
	struct tdt__cycles cycles = { 0 };

	if (tdt__outside_rings(&cycles, tasks) != 0)
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
			  const struct outside_options *options)
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

/* --- Durations ---------------------------------------------------------------------- */

/* From when on all events are in the recording. */
static uint64_t recorded_from(const struct tdt__recording *recording)
{
	uint64_t start = tdt__recording_header(recording)->start,
		 whole = tdt__recording_sure_from(recording);

	return whole > start ? whole : start;
}

/* A page of a single scrape says of which time its durations are. */
static int count_durations(struct metrics_page *page, struct scrape *scrape,
			   const struct tdt__recording *recording)
{
	struct totals *totals = &scrape->totals;
	struct tdt__recorded_span span = { .from = totals->until, .until = scrape->until };
	uint64_t end = tdt__recording_until(recording);

	if (span.from == 0)
		span.from = recorded_from(recording);
	if (scrape->after == NULL && end > span.from)
		keep_larger(&page->recorded_ns, tdt__recording_time(recording, span.from, end));
	if (tdt__durations_count(recording, &span, &totals->polls, &totals->latencies) != 0)
		return report_no_memory();
	totals->recorded = scrape->after != NULL || page->recorded_ns != 0;
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
		return report_trouble(trouble.text);
	status = count_durations(page, scrape, recording);
	tdt__recording_close(recording);
	free(copy);
	report_time(&scrape->command->outside, "reading the recording", start);
	return status;
}

/* --- The process -------------------------------------------------------------------- */

static void add_counts(struct tdt_counts *sum, const struct tdt_counts *counts)
{
	sum->waiting += counts->waiting;
	sum->runnable += counts->runnable;
	sum->running += counts->running;
	keep_larger(&sum->longest_wait_ns, counts->longest_wait_ns);
	keep_larger(&sum->longest_poll_ns, counts->longest_poll_ns);
	sum->spawned += counts->spawned;
	sum->panicked += counts->panicked;
	sum->polls += counts->polls;
	sum->captures += counts->captures;
	sum->dumps += counts->dumps;
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

		status = count_registry(&one, outside, i, &scrape->command->outside);
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

static int scrape_process(struct metrics_page *page, struct scrape *scrape)
{
	struct outside outside;
	int status = outside_open(&outside, &scrape->command->outside);

	if (status != PROGRAM_GOES_ON)
		return status;
	scrape->until = UINT64_MAX;
	if (scrape->after != NULL)
		scrape->until = tdt__clock() + (uint64_t)outside.target.clock_offset - LAG;
	begin_totals(&scrape->totals, &outside);
	status = read_registries(page, scrape, &outside);
	if (scrape->totals.recorded)
		scrape->totals.until = scrape->until;
	outside_close(&outside);
	return status;
}

static int print_metrics(FILE *out, void *arg)
{
	struct scrape *scrape = arg;
	struct metrics_page page = { .form = scrape->form, .up = true };
	int status;

	if (scrape->quiet && freopen("/dev/null", "w", stderr) == NULL)
		return -errno;
	status = scrape_process(&page, scrape);
	if (status != PROGRAM_GOES_ON)
		return status;
	use_totals(&page, &scrape->totals);
	metrics_page_print(out, &page);
	if (scrape->after != NULL)
		*scrape->after = scrape->totals;
	return EXIT_SUCCESS;
}

/* --- Serving ------------------------------------------------------------------------ */

#define TIMEOUT_OF_SCRAPE 10 /* seconds; Prometheus waits for so long */

/*
 * Write the page of the process, or of a process that cannot be read.  Such a process may come
 * back, so only the first of several failures is reported.
 */
static void put_page(FILE *out, struct scrape *scrape)
{
	const struct metrics_page down = { .form = scrape->form };
	const char *why = "";
	int status = do_apart_into(out, print_metrics, scrape, scrape->command->outside.timeout,
				   &why);

	if (status == -ECANCELED && !scrape->quiet)
		report_reading(why);
	scrape->quiet = status != EXIT_SUCCESS;
	if (status == EXIT_SUCCESS)
		scrape->totals = *scrape->after;
	else
		metrics_page_print(out, &down);
}

static int make_page(void *arg, enum serve_form form, char **text, size_t *length)
{
	struct scrape *scrape = arg;
	FILE *out = open_memstream(text, length);

	if (out == NULL)
		return -ENOMEM;
	scrape->form = form == SERVE_OPENMETRICS ? METRICS_OPENMETRICS : METRICS_PROMETHEUS;
	put_page(out, scrape);
	return fclose(out) == 0 ? 0 : -ENOMEM;
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
	char text[256];

	if (error == -EINVAL)
		return program_bad_usage(&metrics_program,
					 "not a port, or an address and a port, as "
					 "127.0.0.1:9777 or [::1]:9777: ", where);
	snprintf(text, sizeof text, "%s: %s", where, strerror(-error));
	return report_trouble(text);
}

/* Goes on until a signal ends it. */
static int serve_metrics(struct metrics_command *command)
{
	static const struct serve_limits limits = { .request_ns = 5 * TDT__SECOND,
						    .answer_ns = 10 * TDT__SECOND };
	struct scrape scrape = { .command = command };
	int listener = serve_listen(command->listen);

	if (listener < 0)
		return report_cannot_listen(command->listen, listener);
	scrape.after = mmap(NULL, sizeof *scrape.after, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (scrape.after == MAP_FAILED)
		return report_no_memory();
	if (command->outside.timeout == 0)
		command->outside.timeout = TIMEOUT_OF_SCRAPE;
	if (report_listening(listener) == PROGRAM_GOES_ON)
		report_cannot_listen(command->listen, serve(listener, &limits, make_page, &scrape));
	return TDT_TROUBLE;
}

/* --- The command -------------------------------------------------------------------- */

int command_metrics(int argc, char **argv)
{
	struct metrics_command command = { .outside.print.size = sizeof command.outside.print };
	struct scrape scrape = { .command = &command };
	int status = metrics_options(&command, argc, argv);

	if (status != PROGRAM_GOES_ON)
		return status;
	if (command.listen != NULL)
		return serve_metrics(&command);
	scrape.form = command.form;
	status = outside_apart(print_metrics, &scrape, &command.outside);
	return status >= 0 ? status : TDT_TROUBLE;
}
