// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * tdt report: one page with all that is known of an incident.  The documents that tdt bt --json and
 * tdt record --json print are gathered in child processes, as there, together with facts of the
 * process; report_page.c makes the page of them.
 */

#include <config.h>

#include "cli/report.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include <tdt/layout/recording.h>

#include "base/clock.h"
#include "base/new_file.h"
#include "base/text.h"
#include "cli/bt.h"
#include "cli/processes.h"
#include "reader/core.h"
#include "symbolize/modules.h"
#include "tree-printer/forms.h"

static void module_members(struct tdt__json *json, const struct tdt__module *module)
{
	tdt__json_string(json, "path", module->path);
	tdt__json_known_string(json, "build_id", module->build_id);
}

static void put_ending(struct tdt__json *json, const struct tdt__target *target)
{
	char text[96];
	int signal;

	if (target->core == NULL) {
		tdt__json_string(json, "ended",
				 strchr("Tt", tdt__target_state(target)) != NULL
					 ? "no: it is stopped"
					 : "no: it runs");
		return;
	}
	/* The kernel writes the thread first that got the signal. */
	signal = target->core->n_threads != 0 ? target->core->thread[0].pr_cursig : 0;
	if (signal == 0)
		return;
	snprintf(text, sizeof text, "signal %d (%s), or the core file was saved then", signal,
		 strsignal(signal));
	tdt__json_string(json, "ended", text);
}

static struct tdt__json begin_facts(struct tdt__out *out, const char *of)
{
	struct tdt__json json = tdt__json_document(out);

	tdt__json_begin(&json, "report", '{');
	tdt__json_string(&json, "of", of);
	tdt__json_string(&json, "version", PACKAGE_VERSION);
	tdt__json_u64(&json, "made_real_ns", tdt__clock_of(CLOCK_REALTIME));
	return json;
}

static int end_facts(struct tdt__json *json, const struct tdt__modules *modules)
{
	TDT__JSON_LIST(json, "modules", modules->module, modules->n, module_members, json);
	tdt__json_end(json, '}');
	tdt__json_finish(json);
	return report_output(NULL, tdt__out_end(json->out));
}

static int put_target(const struct outside *outside)
{
	const struct tdt_registry *registry = &outside->found[0].registry;
	const struct tdt__modules *modules = outside->images.table;
	bool core = outside->target.core != NULL;
	struct tdt__out out = { .file = stdout };
	struct tdt__json json = begin_facts(&out, core ? "core file" : "process");
	char program[PROGRAM_NAME_MAX], limits[4096];
	struct utsname kernel;

	processes_program(&outside->target, program);
	/* Programs lie below libraries. */
	tdt__json_known_string(&json, "program",
			       !core || modules->n == 0 ? program
							: tdt__file_name(modules->module[0].path));
	tdt__json_u64(&json, "pid", core ? registry->pid : (uint64_t)outside->target.pid);
	tdt__json_string(&json, "library", registry->library);
	tdt__json_known_u64(&json, "start_real_ns", registry->start_real);
	if (!core && uname(&kernel) == 0) {
		tdt__json_string(&json, "kernel", kernel.release);
		tdt__json_string(&json, "machine", kernel.machine);
	}
	put_ending(&json, &outside->target);
	if (!core && tdt__target_proc_text(&outside->target, "limits", limits, sizeof limits) > 0)
		tdt__json_string(&json, "limits", limits);
	return end_facts(&json, modules);
}

static int put_recording(const struct last *last)
{
	const struct tdt_recording *header = &last->read.recording->header;
	struct tdt__out out = { .file = stdout };
	struct tdt__json json = begin_facts(&out, "recording");

	tdt__json_known_string(&json, "program", header->program);
	tdt__json_u64(&json, "pid", header->pid);
	tdt__json_known_string(&json, "library", header->library);
	tdt__json_known_u64(&json, "start_real_ns", header->start_real);
	tdt__json_string(&json, "ended",
			 header->end == TDT_RECORDING_END_EXIT
				 ? "it called exit()"
				 : "by a signal, _exit() or exec; or it runs");
	return end_facts(&json, last->read.modules);
}

/* --- Gathering ----------------------------------------------------------------------- */

/* The first field is a struct bt_command: the functions of tdt bt get the report. */
struct report {
	struct bt_command bt;
	FILE *documents; /* what was gathered */
};

static int page_registry(void *arg, struct outside *outside, size_t registry)
{
	int status = registry == 0 ? put_target(outside) : EXIT_SUCCESS;

	return status == EXIT_SUCCESS ? bt_registry(arg, outside, registry) : status;
}

static int page_recording(void *arg, struct last *last)
{
	int status = put_recording(last);

	return status == EXIT_SUCCESS ? bt_recording(arg, last) : status;
}

/* These two are apart_fns. */

static int gather_trees(FILE *out, void *arg)
{
	struct report *report = arg;
	struct work work = { .options = &report->bt.options,
			     .command = report,
			     .registry = page_registry,
			     .recording = page_recording,
			     .again = true };

	(void)out;
	return work_apart(&work);
}

static int gather_recording(FILE *out, void *arg)
{
	struct report *report = arg;
	struct options options = report->bt.options;

	(void)out;
	options.output = NULL;
	options.summary = true;
	options.for_page = true;
	return record_take(&options);
}

/* Returns an exit status. */
static int gather(struct report *report, apart_fn *work)
{
	const char *why = "";
	int status = do_apart(report->documents, work, report, UINT_MAX, &why);

	fputc('\n', report->documents); /* behind a document that the child has not finished */
	if (status == -ECANCELED)
		return report_reading(why);
	return status >= 0 ? status : report_output(NULL, status);
}

/*
 * The recording comes first: it ends when the trees are read, and their requests are not in it.
 * Without one there is still a page.  Ctrl-C ends the wait of the child that records.
 */
static int gather_all(struct report *report)
{
	void (*before)(int) = signal(SIGINT, SIG_IGN);
	int recorded;

	if (report->bt.options.duration == 0)
		signal(SIGINT, before);
	recorded = gather(report, gather_recording);
	signal(SIGINT, before);
	return worse_status(recorded, gather(report, gather_trees));
}

static int write_page(const struct tdt__new_file *file, const char *documents, size_t n,
		      bool redact)
{
	FILE *out = tdt__new_file_stream(file);
	int error;

	if (out == NULL)
		return -errno;
	error = report_page(out, documents, n, redact);
	if (fclose(out) != 0 && error == 0)
		error = -errno;
	return error;
}

/* Gather the documents, and write the page to `file`.  Returns an exit status. */
static int gather_page(struct report *report, struct tdt__new_file *file)
{
	const struct options *options = &report->bt.options;
	char *documents = NULL;
	size_t n = 0;
	int status, error;

	report->documents = open_memstream(&documents, &n);
	if (report->documents == NULL)
		return report_output(options->output, tdt__new_file_close(file, -errno));
	status = gather_all(report);
	error = fclose(report->documents) == 0
			? write_page(file, documents, n, options->redact)
			: -ENOMEM;
	free(documents);
	error = tdt__new_file_close(file, error);
	if (error == -ENODATA) /* why is already reported */
		return TDT_TROUBLE;
	return worse_status(status, report_output(options->output, error));
}

int command_report(int argc, char **argv)
{
	struct report report = { .bt.options.max_requests = 1000 };
	struct options *options = &report.bt.options;
	struct tdt__new_file file;
	int status;

	read_command_line(COMMAND_REPORT, options, &argc, &argv, TARGET_ONE);
	if (options->output == NULL)
		bad_usage("-o OUT is missing", "");
	if (options->duration != 0 && options->target == NULL)
		bad_usage("only a process can be waited for", "");
	options->print.format = TDT_PRINT_JSON;
	outside_bound(options, options->duration);
	file.name[0] = '\0';
	bound_unfinished(file.name); /* which mkostemp() writes before there is a file */
	status = report_output(options->output, tdt__new_file_open(&file, options->output));
	if (status == EXIT_SUCCESS)
		status = gather_page(&report, &file);
	bound_unfinished(NULL);
	return status;
}
