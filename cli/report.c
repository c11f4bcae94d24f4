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
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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
	int process;	 /* with -d: a descriptor of the process; -1: the kernel gives none */
	bool has_ended;	 /* the process has, while it was recorded */
	char ended[96];	 /* how, if the kernel says so */
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

#define HAS_ENDED 16 /* a bit of the status: the process has, while it was recorded */

/* If the process has ended and its recording is in a file, the trees are those of the recording. */
static int gather_recording(FILE *out, void *arg)
{
	struct report *report = arg;
	struct options options = report->bt.options;
	int status;

	options.output = NULL;
	options.summary = true;
	options.for_page = true;
	status = record_take(&options);
	if (options.dir != report->bt.options.dir) {
		report->bt.options.dir = options.dir;
		report->bt.options.target = NULL;
		status = worse_status(status, gather_trees(out, report));
	}
	return options.has_ended ? status | HAS_ENDED : status;
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

/* --- A process that ends while it records --- */

/* The kernel's struct pidfd_info of <linux/pidfd.h>, and its request (Linux 6.15). */
struct process_info {
	uint64_t mask, cgroup;
	uint32_t ids[11];
	int32_t exit_code;
};

#define INFO_EXIT 8
#define GET_INFO _IOWR(0xff, 11, struct process_info)

/* Whether it ends within that time, in milliseconds.  If so, note how. */
static bool ends_within(struct report *report, int time)
{
	struct process_info info = { .mask = INFO_EXIT };
	struct pollfd end = { .fd = report->process, .events = POLLIN };
	int code;

	if (report->process < 0 || poll(&end, 1, time) <= 0)
		return false;
	if (ioctl(report->process, GET_INFO, &info) != 0 || (info.mask & INFO_EXIT) == 0)
		return true;
	code = info.exit_code;
	if (WIFSIGNALED(code))
		snprintf(report->ended, sizeof report->ended, "by signal %d (%s)", WTERMSIG(code),
			 strsignal(WTERMSIG(code)));
	else
		snprintf(report->ended, sizeof report->ended, "with status %d", WEXITSTATUS(code));
	return true;
}

/*
 * Gather what can be had before the wait, for a process that ends meanwhile.  It makes no request:
 * one that wakes what hangs would change what is recorded.
 */
static int gather_before(const struct report *report, char **text, size_t *n)
{
	struct report before = *report;
	int status;

	before.bt.options.max_requests = 0;
	before.documents = open_memstream(text, n);
	if (before.documents == NULL)
		return report_no_memory();
	status = gather(&before, gather_trees);
	return fclose(before.documents) == 0 ? status : report_no_memory();
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
	/* A process whose memory is gone takes a moment to end. */
	if ((recorded & HAS_ENDED) != 0) {
		ends_within(report, 10000);
		report->has_ended = true;
		return recorded & ~HAS_ENDED;
	}
	if (ends_within(report, 0))
		return recorded;
	return worse_status(recorded, gather(report, gather_trees));
}

/* `documents`: what was gathered so far, once the stream is flushed. */
static int gather_waiting(struct report *report, char *const *documents)
{
	char *before = NULL;
	size_t n = 0;
	int status = gather_before(report, &before, &n);

	if (status == EXIT_SUCCESS) {
		status = gather_all(report);
		fflush(report->documents);
		if (*documents != NULL && strstr(*documents, "{\"tdt\":1,\"dump\":{") == NULL) {
			if ((report->has_ended || ends_within(report, 1000)) &&
			    report->ended[0] == '\0')
				strcpy(report->ended, "while it was recorded");
			fwrite(before, 1, n, report->documents);
		}
	}
	free(before);
	return status;
}

static int write_page(const struct tdt__new_file *file, const struct report *report,
		      const char *documents, size_t n)
{
	FILE *out = tdt__new_file_stream(file);
	int error;

	if (out == NULL)
		return -errno;
	error = report_page(out, documents, n, report->bt.options.redact,
			    report->ended[0] != '\0' ? report->ended : NULL);
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
	status = options->duration != 0 ? gather_waiting(report, &documents) : gather_all(report);
	error = fclose(report->documents) == 0 ? write_page(file, report, documents, n) : -ENOMEM;
	free(documents);
	error = tdt__new_file_close(file, error);
	if (error == -ENODATA) /* why is already reported */
		return TDT_TROUBLE;
	return worse_status(status, report_output(options->output, error));
}

int command_report(int argc, char **argv)
{
	struct report report = { .bt.options.max_requests = 1000, .process = -1 };
	struct options *options = &report.bt.options;
	struct tdt__new_file file;
	int status;
	pid_t pid;

	read_command_line(COMMAND_REPORT, options, &argc, &argv, TARGET_ONE);
	if (options->output == NULL)
		bad_usage("-o OUT is missing", "");
	if (options->duration != 0 && options->target == NULL)
		bad_usage("only a process can be waited for", "");
	if (options->duration != 0) {
		if (choose_process(options->target, &pid) != PROGRAM_GOES_ON)
			return TDT_TROUBLE;
		report.process = (int)syscall(SYS_pidfd_open, pid, 0);
	}
	options->print.format = TDT_PRINT_JSON;
	/* With -d the process is looked at before it is recorded, too. */
	outside_bound(options, options->duration != 0
				       ? options->duration + BOUND_SECONDS * (uint64_t)TDT__SECOND
				       : 0);
	file.name[0] = '\0';
	bound_unfinished(file.name); /* which mkostemp() writes before there is a file */
	status = report_output(options->output, tdt__new_file_open(&file, options->output));
	if (status == EXIT_SUCCESS)
		status = gather_page(&report, &file);
	bound_unfinished(NULL);
	return status;
}
