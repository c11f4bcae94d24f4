// SPDX-License-Identifier: Apache-2.0 OR MIT
/* tdt metrics: numbers about the tasks of a process, for Prometheus and its like. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/metered.h"
#include "cli/metrics_profile.h"
#include "cli/processes.h"
#include "cli/scrape.h"
#include "cli/serve.h"
#include "cli/tdt.h"

/* A server, or what is printed once. */
struct meter {
	struct options *options;
	enum metrics_form form;
	bool all; /* all processes that use the library; otherwise there is one, the target */
	bool once;
	bool quiet; /* troubles are not reported */
	const pid_t *pids; /* of all processes, in a page of them */
	struct metered metered;
};

static struct scrape scrape_of(const struct meter *meter, pid_t pid)
{
	const struct metered_process *known = metered_find(&meter->metered, pid);
	struct scrape scrape = { .options = meter->options, .pid = pid, .once = meter->once };

	if (known != NULL)
		scrape.totals = known->totals;
	return scrape;
}

/* A piece_fn: write the scrape for the parent; or why there is none. */
static int scrape_one(FILE *out, void *arg, size_t i)
{
	const struct meter *meter = arg;
	struct scrape scrape = scrape_of(meter, meter->pids[i]);
	int status = meter->quiet ? apart_silence() : 0;

	if (status == 0)
		status = scrape_process(&scrape, out);
	if (status != EXIT_SUCCESS)
		return status;
	return fwrite(&scrape, sizeof scrape, 1, out) == 1 ? status : -errno;
}

/* The process, after the page was taken over that a child has written.  NULL: there is none. */
static struct metered_process *take_page(struct meter *meter, const struct work_piece *piece,
					 struct metrics_page *page)
{
	struct metered_process *process;
	struct scrape scrape;

	if (piece->length != sizeof scrape)
		return NULL;
	memcpy(&scrape, piece->text, sizeof scrape);
	process = metered_add(&meter->metered, scrape.pid);
	if (process != NULL) {
		process->totals = scrape.totals;
		*page = scrape.page;
	}
	return process;
}

/* Take over what the pieces have found. */
static void take_pages(struct meter *meter, const struct work_piece *piece, size_t n,
		       struct metrics_page *page, struct metrics_pages *pages,
		       struct unreadable *unreadable)
{
	for (size_t i = 0; i < n; i++) {
		struct metered_process *process = metered_find(&meter->metered, meter->pids[i]);

		if (piece[i].status == EXIT_SUCCESS) {
			process = take_page(meter, &piece[i], &page[pages->n]);
			pages->n += process != NULL;
		}
		if (process != NULL)
			process->seen = piece[i].status != PROCESS_WITHOUT_LIBRARY;
		unreadable_note(unreadable, meter->pids[i], &piece[i]);
	}
	metered_forget_others(&meter->metered);
}

#define TIMEOUT_OF_SCRAPE 10 /* seconds; Prometheus waits for so long */
#define TIMEOUT_OF_ALL 8     /* processes: the last one may take a second more */

/* Print the pages of `n` processes. */
static int print_pages(FILE *out, struct meter *meter, const struct work_piece *piece, size_t n)
{
	struct unreadable unreadable = { 0 };
	struct metrics_pages pages = { .form = meter->form };
	struct metrics_page *page;
	size_t most = 1; /* a target that cannot be read has a page, too */
	int error = -ENOMEM;

	for (size_t i = 0; piece != NULL && i < n; i++)
		most += piece[i].status == EXIT_SUCCESS;
	pages.page = page = calloc(most, sizeof *page);
	if (page != NULL && piece != NULL) {
		take_pages(meter, piece, n, page, &pages, &unreadable);
		if (meter->all)
			pages.unreadable = &unreadable;
		else
			pages.n = 1;
		error = metrics_page_print(out, &pages);
	}
	free(unreadable.reason);
	free(page);
	return error;
}

/*
 * Print the page of the target, or the pages of all processes that use the library.  A target that
 * cannot be read may come back: only the first of several failures is reported.
 */
static int print_read(FILE *out, struct meter *meter)
{
	static const pid_t target[1];
	const uint64_t time = timeout_seconds(meter->options, TIMEOUT_OF_SCRAPE) *
			      (uint64_t)TDT__SECOND;
	const struct piece_limits limits = { time, time };
	size_t n = 1;
	pid_t *all = meter->all ? processes_all(meter->options, &n) : NULL;
	struct work_piece *piece = NULL;
	int error;

	meter->pids = meter->all ? all : target;
	meter->quiet |= meter->all;
	if (!meter->all)
		piece = pieces_do(1, scrape_one, meter, &limits);
	else if (all != NULL)
		piece = processes_do(n, scrape_one, meter, meter->options,
				     meter->once ? BOUND_SECONDS : TIMEOUT_OF_ALL);
	if (piece != NULL && piece->status == -ECANCELED && !meter->quiet)
		report_reading(piece->why);
	meter->quiet = piece == NULL || piece->status != EXIT_SUCCESS;
	error = print_pages(out, meter, piece, n);
	pieces_free(piece, n);
	free(all);
	return error;
}

static int make_page(void *arg, bool open_metrics, char **text, size_t *length)
{
	struct meter *meter = arg;
	FILE *out = open_memstream(text, length);
	int error;

	if (out == NULL)
		return -ENOMEM;
	meter->form = open_metrics ? METRICS_OPENMETRICS : METRICS_PROMETHEUS;
	error = print_read(out, meter);
	return fclose(out) == 0 ? error : -ENOMEM;
}

/* A serve_start_fn. */
static int start_profile(void *arg, const char *query, struct apart *apart)
{
	const struct meter *meter = arg;

	return metrics_profile_start(meter->options, query, apart);
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
	const struct serve_pages pages = { make_page, start_profile, meter };
	struct serve_names names;
	int listener = serve_listen(where);

	if (listener < 0)
		return report_cannot_listen(where, listener);
	serve_find_names(&names);
	if (report_listening(listener) == PROGRAM_GOES_ON)
		report_cannot_listen(where, serve(listener, &names, &limits, &pages));
	return TDT_TROUBLE;
}

/* An apart_fn: print the page of the target. */
static int scrape_and_print(FILE *out, void *arg)
{
	const struct meter *meter = arg;
	struct scrape scrape = scrape_of(meter, 0);
	const struct metrics_pages pages = { .form = meter->form, .page = &scrape.page, .n = 1 };
	int status = scrape_process(&scrape, out);

	return status == EXIT_SUCCESS ? report_output(NULL, metrics_page_print(out, &pages))
				      : status;
}

static int print_once(struct meter *meter)
{
	int status;

	meter->once = true;
	if (meter->all) {
		outside_bound(meter->options, 0);
		status = report_output(NULL, print_read(stdout, meter));
	} else {
		status = outside_apart(scrape_and_print, meter, meter->options, false);
	}
	return status == EXIT_SUCCESS && fflush(stdout) != 0 ? report_output(NULL, -errno) : status;
}

int command_metrics(int argc, char **argv)
{
	struct options options = { .max_requests = 0 };
	struct meter meter = { .options = &options };
	int status;

	options_read(COMMAND_METRICS, &options, &argc, &argv);
	if (options.all_processes && options.target != NULL)
		bad_usage("either --all or a target", "");
	take_target(&options, &argc, &argv,
		    options.all_processes ? TARGETS_ANY : TARGET_OR_NONE);
	if (!options.all_processes && options.target == NULL)
		bad_usage("the target is missing, or --all", "");
	meter.form = options.page;
	meter.all = options.all_processes;
	status =
	    options.listen != NULL ? serve_metrics(&meter, options.listen) : print_once(&meter);
	metered_fini(&meter.metered);
	return status;
}
