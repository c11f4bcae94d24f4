// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The commands of tdt share this: the options of the target, opening it, and messages. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/proc_text.h"
#include "base/text.h"
#include "cli/processes.h"
#include "cli/tdt.h"
#include "reader/core.h"
#include "symbolize/debugfile.h"
#include "tree-printer/stuck_locks.h"
#include "tree-printer/strings.h"

/* --- Messages ----------------------------------------------------------------------- */

int report_trouble(const char *format, ...)
{
	struct tdt__string string = { 0 };
	char *text = NULL;
	va_list values;

	va_start(values, format);
	if (vasprintf(&text, format, values) < 0)
		text = NULL;
	va_end(values);
	tdt__string_escape(&string, text != NULL ? text : "trouble", false, '\0');
	tdt__string_add(&string, "", 1);
	free(text);
	fprintf(stderr, "%s: %s\n", program_name, string.failed ? "trouble" : string.bytes);
	tdt__string_free(&string);
	return TDT_TROUBLE;
}

int report_no_memory(void)
{
	return report_trouble("there is not enough memory");
}

void report_time(const struct options *options, const char *what, uint64_t start)
{
	if (options->verbose)
		fprintf(stderr, "%s: %s took %.3f ms\n", program_name, what,
			(double)(tdt__clock() - start) / 1e6);
}

/* --- Checks ------------------------------------------------------------------------- */

static bool is_longer(struct check *check, uint64_t ns, uint64_t limit, bool at_least)
{
	if (limit == 0 || ns > limit)
		return limit != 0;
	check->at_least |= at_least;
	return false;
}

/* Whether the task has been in its state for too long, or waits for a lock in a futurelock. */
static bool is_bad(struct check *check, const struct tdt_task_info *info, bool at_least)
{
	if (tdt__waits_in_vain(info))
		return true;
	switch (info->state) {
	case TDT_TASK_RUNNING:
		return is_longer(check, info->state_ns, check->polling_longer, at_least);
	case TDT_TASK_WAITING:
		return is_longer(check, info->state_ns, check->waiting_longer, at_least);
	default:
		return false;
	}
}

/* Whether one of the rings is a deadlock, or there is another fault. */
static bool has_fault(struct check *check, const struct tdt_snapshot *found)
{
	bool fault = found->n_lost_wakeups != 0;

	for (size_t i = 0; i < found->n_cycles; i++) {
		fault |= found->cycles[i]->deadlock;
		check->unproven |= found->cycles[i]->unproven;
	}
	return fault;
}

static int report_unexcluded(const struct check *check)
{
	if (check->unproven)
		report_trouble("a ring of waits is unproven: it is a deadlock unless one of its "
			       "tasks has another leaf, of which its record does not know.  Only "
			       "an answer of these tasks to tdt bt --check, or the watch "
			       "(TDT_WATCH=10ms), can tell");
	if (check->at_least)
		report_trouble("a core file has no clock, so it is unknown whether a poll or a "
			       "wait has lasted for longer than that");
	return check->unproven || check->at_least ? TDT_CHECK_UNPROVEN : EXIT_SUCCESS;
}

int check_snapshot(struct check check, const struct tdt_snapshot *snapshot)
{
	bool found = has_fault(&check, snapshot);

	for (size_t i = 0; i < snapshot->n_groups && !found; i++)
		for (size_t k = 0; k < snapshot->groups[i]->n && !found; k++)
			found =
			    is_bad(&check, snapshot->groups[i]->tasks[k], snapshot->at_least != 0);
	return found ? TDT_CHECK_FOUND : report_unexcluded(&check);
}

int worse_status(int a, int b)
{
	static const int seriousness[] = {
		[TDT_CHECK_UNPROVEN] = 1, [TDT_CHECK_FOUND] = 2, [TDT_TROUBLE] = 3
	};

	return seriousness[a] > seriousness[b] ? a : b;
}

/* --- Tasks -------------------------------------------------------------------------- */

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

int compare_tasks(enum task_key key, const struct tdt_task_info *a,
		  const struct tdt_task_info *b)
{
	int order = 0;

	if (key == BY_NAME)
		order = strcmp(a->name != NULL ? a->name : "", b->name != NULL ? b->name : "");
	else if (key == BY_FOR)
		order = compare_numbers(b->state_ns, a->state_ns);
	else if (key == BY_AGE)
		order = compare_numbers(b->spawned_ns, a->spawned_ns);
	else if (key == BY_POLLS)
		order = compare_numbers(b->polls, a->polls);
	return order != 0 ? order : compare_numbers(a->id, b->id);
}

/* --- Options ------------------------------------------------------------------------ */

/* Where debug files are searched for.  The list must last as long as the program. */
static void choose_debug_files(const struct options *options)
{
	static char list[4096];
	const char *servers = getenv("DEBUGINFOD_URLS");

	tdt__debugfile_by_environment();
	if (options->debuginfod && (servers == NULL || servers[0] == '\0'))
		bad_usage("--debuginfod needs the servers' URLs in DEBUGINFOD_URLS", "");
	tdt__debugfile_asks_servers |= options->debuginfod;
	if (options->debug_dir == NULL)
		return;
	if (snprintf(list, sizeof list, ":.debug:%s", options->debug_dir) >= (int)sizeof list)
		bad_usage("too long a path: ", options->debug_dir);
	tdt__debugfile_path = list;
}

void take_target(struct options *options, int *argc, char ***argv, enum targets targets)
{
	bool several = targets == TARGETS_ANY || targets == TARGETS_AND_MORE;
	bool more = targets == TARGET_AND_MORE || targets == TARGETS_AND_MORE;
	int given = (options->core != NULL) + (options->dir != NULL) + (options->target != NULL);

	if (given > 1)
		bad_usage("either a process, a core file, or a directory", "");
	if (options->dir != NULL && (options->exe != NULL || options->sysroot != NULL))
		bad_usage("--exe and --sysroot are not for recordings", "");
	if (options->dir != NULL && options->check.on)
		bad_usage("a recording proves no deadlock, so --check and its limits need "
			  "a process or a core file",
			  "");
	if (given == 0 && *argc == 0 && targets != TARGETS_ANY && targets != TARGET_OR_NONE)
		bad_usage("the target is missing", "");
	for (; *argc > 0 && (targets == TARGETS_ANY || given == 0); given++, (*argc)--)
		options_add_target(options, *(*argv)++);
	if (targets == TARGETS_ANY && (options->core != NULL || options->dir != NULL) &&
	    options->n_targets != 0)
		bad_usage("either a process, a core file, or a directory", "");
	if (options->n_targets > 1 && !several)
		bad_usage("more than one target: ", options->targets[1]);
	if (*argc > 0 && !more)
		bad_usage("more than one target: ", (*argv)[0]);
	choose_debug_files(options);
}

void read_command_line(enum command_number command, struct options *options, int *argc,
		       char ***argv, enum targets targets)
{
	options_read(command, options, argc, argv);
	take_target(options, argc, argv, targets);
}

/* --- Processes by name -------------------------------------------------------------- */

#define COMM_MAX 15 /* the bytes of a name in /proc/PID/comm; the kernel cuts longer ones */

static ssize_t read_of_process(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
	return tdt__proc_text(AT_FDCWD, path, text, size);
}

/* Whether the file that the process runs has this name, even if it was deleted. */
static bool runs_file(pid_t pid, const char *name)
{
	char link[64], path[4096] = "", *deleted;

	snprintf(link, sizeof link, "/proc/%d/exe", pid);
	if (readlink(link, path, sizeof path - 1) <= 0)
		return false;
	deleted = strstr(path, " (deleted)");
	if (deleted != NULL)
		*deleted = '\0';
	return strcmp(tdt__file_name(path), name) == 0;
}

/*
 * Whether the process `pid` has this name: it was called by that name, it runs a file of that name,
 * or the kernel calls it so, as it does with a script.  The kernel cuts a name that is longer than
 * COMM_MAX, and the first argument of a script's interpreter is the script.
 */
static bool runs_under(pid_t pid, const char *name)
{
	char arguments[4096], comm[COMM_MAX + 2];
	ssize_t n = read_of_process(pid, "cmdline", arguments, sizeof arguments);
	const char *second = arguments + strlen(arguments) + 1;

	if (n <= 0) /* it has just ended */
		return false;
	if (strcmp(tdt__file_name(arguments), name) == 0 || runs_file(pid, name))
		return true;
	read_of_process(pid, "comm", comm, sizeof comm);
	comm[strcspn(comm, "\n")] = '\0';
	if (strlen(name) <= COMM_MAX)
		return strcmp(comm, name) == 0;
	return strncmp(comm, name, COMM_MAX) == 0 && second < arguments + n &&
	       strcmp(tdt__file_name(second), name) == 0;
}

#define NAMESAKES 8 /* so many are listed */

static size_t find_by_name(const char *name, pid_t found[NAMESAKES])
{
	const struct options any = { .n_targets = 0 };
	size_t all, n = 0;
	pid_t *pids = processes_all(&any, &all);

	for (size_t i = 0; pids != NULL && i < all; i++) {
		if (!runs_under(pids[i], name))
			continue;
		if (n < NAMESAKES)
			found[n] = pids[i];
		n++;
	}
	free(pids);
	return n;
}

/* Whether /proc does not show the processes of other users.  Process 1 is always there. */
static bool hides_processes(void)
{
	return access("/proc/1/stat", F_OK) != 0 && kill(1, 0) != 0 && errno == EPERM;
}

static int report_namesakes(const char *name, const pid_t *found, size_t n)
{
	char text[256];
	int at;

	if (n == 0)
		return report_trouble("there is no process of the name %s%s", name,
				      hides_processes() ? ".  Those of other users are hidden here "
							  "(hidepid): run tdt as root (sudo tdt)"
							: "");
	at = snprintf(text, sizeof text, "%zu processes have that name; choose one of:", n);
	for (size_t i = 0; i < n && i < NAMESAKES; i++)
		at += snprintf(text + at, sizeof text - (size_t)at, " %d", found[i]);
	if (n > NAMESAKES)
		snprintf(text + at, sizeof text - (size_t)at, " and others");
	return report_trouble("%s", text);
}

int choose_process(const char *name, pid_t *pid)
{
	pid_t found[NAMESAKES];
	uint64_t number;
	size_t n;

	if (program_number(name, &number) && number <= INT_MAX) {
		*pid = (pid_t)number;
		return PROGRAM_GOES_ON;
	}
	n = find_by_name(name, found);
	*pid = n == 1 ? found[0] : 0;
	return n == 1 ? PROGRAM_GOES_ON : report_namesakes(name, found, n);
}

/* --- Opening ------------------------------------------------------------------------ */

int report_reading(const char *why)
{
	return report_trouble("reading the target %s", why);
}

unsigned timeout_seconds(const struct options *options, unsigned usual)
{
	return options->timeout != 0
		       ? (unsigned)((options->timeout + TDT__SECOND - 1) / TDT__SECOND)
		       : usual;
}

void outside_bound(const struct options *options, uint64_t wait_ns)
{
	static bool bound;

	if (!bound)
		bound_time(timeout_seconds(options, BOUND_SECONDS) +
			   (unsigned)(wait_ns / TDT__SECOND));
	bound = true;
}

#define NAMING_SECONDS 20

uint64_t naming_until(void)
{
	unsigned seconds = tdt__debugfile_asks_servers ? bound_names() * 2 / 3 : NAMING_SECONDS;

	return tdt__clock() + seconds * (uint64_t)TDT__SECOND;
}

/* Returns what the work returns, or -ECANCELED after the report of how the child has ended. */
static int try_apart(apart_fn *work, void *arg)
{
	const char *why = "";
	int status = do_apart(stdout, work, arg, UINT_MAX, &why);

	if (status == -ECANCELED)
		report_reading(why);
	else if (status < 0)
		program_output_failed(-status);
	return status;
}

int outside_apart(apart_fn *work, void *arg, struct options *options, bool again)
{
	int status;

	outside_bound(options, 0);
	status = try_apart(work, arg);
	if (status == -ECANCELED && again && !options->no_files && bound_left(1) > 0) {
		options->no_files = options->no_symbols = true;
		status = try_apart(work, arg);
	}
	return status >= 0 ? status : TDT_TROUBLE;
}

static void report_truncated(const struct tdt__core *core)
{
	if (core == NULL || core->missing == 0)
		return;
	report_trouble("the core file is truncated: it lacks %" PRIu64 " KiB of memory, and what "
		       "was there", core->missing / 1024 + 1);
}

static int open_target(struct outside *outside, const struct options *options)
{
	struct tdt__trouble trouble;
	int error;
	pid_t pid;

	if (options->core != NULL) {
		error = tdt__target_open_core(&outside->target, options->core, &trouble);
	} else {
		if (choose_process(options->target, &pid) != PROGRAM_GOES_ON)
			return TDT_TROUBLE;
		error = tdt__target_open_process(&outside->target, pid, &trouble);
	}
	if (error != 0)
		return report_trouble("%s", trouble.text);
	report_truncated(outside->target.core);
	return PROGRAM_GOES_ON;
}

int report_ended(void)
{
	return report_trouble("the process has ended meanwhile");
}

static void report_unknown_layout(const struct tdt__found *found)
{
	report_trouble("the tasks are recorded in layout %" PRIu32 ", and this tdt reads layout "
		       "%d: use the tdt that belongs to libtdt %s",
		       found->registry.version, TDT_REGISTRY_VERSION,
		       found->registry.version == TDT_REGISTRY_VERSION ? found->registry.library
								       : "in the process");
}

/* Registries with a known layout come first.  The others are reported. */
static int keep_known(struct outside *outside)
{
	size_t known = 0;

	while (known < outside->n_found && outside->found[known].known)
		known++;
	if (outside->n_found == 0 && !tdt__target_is_there(&outside->target))
		return report_ended();
	if (outside->n_found == 0)
		return report_trouble("no libtdt was found in %s",
				      outside->target.core != NULL &&
						      outside->target.core->missing != 0
					      ? "what is left of the core file"
					      : "the target: the program does not use it, or has "
						"not started yet");
	for (size_t i = known; i < outside->n_found; i++)
		report_unknown_layout(&outside->found[i]);
	outside->n_found = known;
	return known != 0 ? PROGRAM_GOES_ON : TDT_TROUBLE;
}

/* A reader may need a descriptor for each module. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int outside_open(struct outside *outside, const struct options *options)
{
	const struct tdt__places places = { options->exe, options->sysroot, options->no_files };
	uint64_t start = tdt__clock();
	int status;

	if (options->dir != NULL)
		return report_trouble("recordings have events, and no memory of the process: see "
				      "tdt ps, tdt bt and tdt record");
	raise_descriptors();
	status = open_target(outside, options);
	if (status != PROGRAM_GOES_ON)
		return status;
	report_time(options, "opening the target", start);
	start = tdt__clock();
	if (tdt__images_init(&outside->images, &outside->target, &places) != 0) {
		tdt__target_close(&outside->target);
		return report_no_memory();
	}
	report_time(options, "reading the modules", start);
	start = tdt__clock();
	outside->n_found = tdt__find(&outside->target, outside->found);
	report_time(options, "finding the registry", start);
	status = keep_known(outside);
	if (status != PROGRAM_GOES_ON)
		outside_close(outside);
	return status;
}

void outside_close(struct outside *outside)
{
	tdt__images_fini(&outside->images);
	tdt__target_close(&outside->target);
}

const struct tdt__found *outside_recorder(const struct outside *outside, size_t *n)
{
	const struct tdt__found *chosen = &outside->found[0];
	size_t recorders = 0;

	for (size_t i = outside->n_found; i-- > 0;)
		if (outside->found[i].registry.rings != 0) {
			chosen = &outside->found[i];
			recorders++;
		}
	if (n != NULL)
		*n = recorders;
	return chosen;
}

int outside_tasks(struct outside *outside, struct tdt__tasks *tasks, size_t registry,
		  const struct options *options)
{
	uint64_t start = tdt__clock();

	if (tdt__tasks_read(tasks, &outside->target, &outside->images,
			    &outside->found[registry]) != 0)
		return report_no_memory();
	report_time(options, "reading the tasks", start);
	if (!tdt__target_is_there(&outside->target)) {
		tdt__tasks_fini(tasks);
		return report_ended();
	}
	if (tasks->records.damaged)
		report_trouble("not all tasks could be read: the memory that has them is "
			       "damaged, or missing in the core file");
	return PROGRAM_GOES_ON;
}
