// SPDX-License-Identifier: Apache-2.0 OR MIT
/* tdt ps: list the tasks of a process, from their records alone. */

#include "cli/ps.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/last.h"
#include "cli/processes.h"
#include "facts/record.h"
#include "facts/traceparent.h"
#include "reader/dump.h"
#include "reader/history.h"
#include "reader/recorded.h"
#include "tree-printer/names.h"
#include "tree-printer/stuck_locks.h"
#include "tree-printer/terminal.h"
#include "tree-printer/words.h"

static void count_state(struct tdt__string *string, size_t n, const char *what)
{
	if (n == 0)
		return;
	tdt__string_printf(string, ", %s%s", TDT__NUMBER(n), what);
}

/* The index of the task's state in `task_states`. */
static unsigned state_index(const struct tdt__seen_task *task)
{
	static const unsigned char indexes[] = {
		[TDT_TASK_RUNNABLE] = 1, [TDT_TASK_RUNNING] = 2, [TDT_TASK_UNKNOWN] = 4
	};

	return task->outcome != NULL ? 3 : indexes[task->member.info.state];
}

static void count_states(struct tdt__string *string, const struct listing *listing)
{
	size_t n[5] = { 0 };

	for (size_t i = 0; i < listing->tasks->n; i++)
		n[state_index(&listing->tasks->task[i])]++;
	tdt__string_puts(string, TDT__COUNTED(listing->tasks->n, "task"));
	for (int i = 0; task_states[i] != NULL; i++)
		if (n[i] != 0)
			tdt__string_printf(string, ", %s %s", TDT__NUMBER(n[i]), task_states[i]);
}

static void counts_line(struct tdt__string *string, const struct listing *listing)
{
	struct tdt_counts counts;

	tdt__history_counts(listing->tasks, &counts);
	if (counts.spawned == 0)
		return;
	tdt__string_printf(string, "since the start: %s spawned",
			   TDT__COUNTED(counts.spawned, "task"));
	count_state(string, counts.ended, " ended");
	count_state(string, counts.panicked, " panicked");
	count_state(string, counts.polls, counts.polls == 1 ? " poll" : " polls");
	tdt__string_puts(string, "\n");
}

static void untraced_line(struct tdt__string *string, const struct listing *listing)
{
	size_t n = 0;

	for (size_t i = 0; i < listing->tasks->n; i++)
		n += listing->tasks->task[i].member.info.untraced != 0;
	if (n == 0)
		return;
	tdt__string_printf(string, "%s " TDT__UNTRACED "\n", TDT__COUNTED(n, "task"));
}

/* False: no memory. */
static bool seen_futurelock_lines(struct tdt__string *string, const struct listing *listing)
{
	struct tdt__stuck_locks locks;
	bool enough = tdt__stuck_locks_collect(&locks, &listing->found) == 0;
	struct tdt__names *names = locks.n != 0 ? tdt__names_new(&listing->found) : NULL;

	for (size_t i = 0; i < locks.n; i++)
		tdt__stuck_lock_line(string, &locks.lock[i], names);
	tdt__names_free(names);
	free(locks.lock);
	return enough;
}

uint32_t ps_pid(const struct listing *listing)
{
	const struct tdt__target *target = listing->tasks->target;

	return target != NULL && target->core == NULL ? (uint32_t)target->pid
						      : listing->tasks->registry.pid;
}

/* The task that has been longest in its state; NULL: there is none. */
static const struct tdt__seen_task *oldest_task(const struct tdt__tasks *tasks)
{
	const struct tdt__seen_task *oldest = NULL;

	for (size_t i = 0; i < tasks->n; i++) {
		const struct tdt__seen_task *task = &tasks->task[i];

		if (task->outcome == NULL &&
		    (oldest == NULL || task->member.info.state_ns > oldest->member.info.state_ns))
			oldest = task;
	}
	return oldest;
}

/* Add the first of the verdicts. */
static void add_verdict(struct tdt__string *string, const struct listing *listing)
{
	const struct tdt_snapshot *found = &listing->found;
	struct tdt__stuck_locks locks;
	size_t i = 0;

	while (i < found->n_cycles && !found->cycles[i]->deadlock)
		i++;
	string->failed |= tdt__stuck_locks_collect(&locks, found) != 0;
	if (i < found->n_cycles)
		tdt__ring_line(string, found->cycles[i], 200);
	else if (locks.n != 0)
		tdt__stuck_lock_line(string, &locks.lock[0], NULL);
	else if (found->n_lost_wakeups != 0)
		tdt__lost_line(string, found->lost_wakeups[0]->tasks[0], 0, NULL);
	if (string->n != 0 && string->bytes[string->n - 1] == '\n')
		string->n--;
	free(locks.lock);
}

/* "task 5 "a" waiting 4.003 s for a mutex "db"" */
static void add_oldest(struct tdt__string *string, const struct listing *listing)
{
	const struct tdt__seen_task *task = oldest_task(listing->tasks);

	if (task == NULL)
		return;
	tdt__string_puts(string, "task ");
	tdt__task_name(string, task->member.info.id, task->member.info.name);
	tdt__string_puts(string, " ");
	ps_state(string, task);
	tdt__string_printf(string, " %s", TDT__DURATION_CELL(task->member.info.state_ns));
	if (task->member.info.n_waits != 0) {
		tdt__string_puts(string, " ");
		tdt__wait_for(string, &task->wait, task->member.info.id, NULL);
	}
}

static void process_json(struct tdt__out *out, const struct listing *listing, const char *program)
{
	struct tdt__json json = { .out = out };
	struct tdt__string verdict = { .options = listing->print };
	struct tdt__string oldest = { .options = listing->print };
	struct tdt_counts counts;

	tdt__history_counts(listing->tasks, &counts);
	add_verdict(&verdict, listing);
	add_oldest(&oldest, listing);
	tdt__string_add(&verdict, "", 1);
	tdt__string_add(&oldest, "", 1);
	tdt__json_begin(&json, NULL, '{');
	tdt__json_u64(&json, "pid", ps_pid(listing));
	tdt__json_string(&json, "program", program);
	tdt__json_string(&json, "library", listing->tasks->registry.library);
	tdt__json_u64(&json, "tasks", listing->tasks->n);
	tdt__json_u64(&json, "waiting", counts.waiting);
	tdt__json_u64(&json, "runnable", counts.runnable);
	tdt__json_u64(&json, "polling", counts.running);
	tdt__json_u64(&json, "longest_wait_ns", counts.longest_wait_ns);
	tdt__json_u64(&json, "longest_poll_ns", counts.longest_poll_ns);
	if (!verdict.failed && !oldest.failed) {
		tdt__json_known_string(&json, "verdict", verdict.bytes);
		tdt__json_known_string(&json, "oldest", oldest.bytes);
	}
	tdt__json_end(&json, '}');
	tdt__out_add(out, "\n", 1);
	tdt__string_free(&verdict);
	tdt__string_free(&oldest);
}

void ps_process(struct tdt__out *out, const struct listing *listing)
{
	struct tdt__string string = { .options = listing->print };
	char program[PROGRAM_NAME_MAX];
	size_t before;

	processes_program(listing->tasks->target, program);
	if (listing->print->format == TDT_PRINT_JSON) {
		process_json(out, listing, program);
		return;
	}
	tdt__string_printf(&string, "%" PRIu32 "\t", ps_pid(listing));
	tdt__string_text(&string, program);
	tdt__string_printf(&string, "\t%zu\t", listing->tasks->n);
	before = string.n;
	add_verdict(&string, listing);
	if (string.n <= before) {
		string.n = before;
		add_oldest(&string, listing);
	}
	tdt__string_puts(&string, "\n");
	tdt__out_take(out, &string);
}

void ps_summary(struct tdt__out *out, const struct listing *listing)
{
	const struct tdt_registry *registry = &listing->tasks->registry;
	struct tdt__string string = { .options = listing->print };
	struct tdt__seen_misuse seen;

	if (listing->last != NULL)
		last_title(&string, listing->last);
	else
		tdt__string_printf(&string, "process %" PRIu32, ps_pid(listing));
	tdt__string_puts(&string, ", libtdt ");
	tdt__string_escape(&string, registry->library, false, '\0');
	if (listing->several)
		tdt__string_printf(&string, " (the copy at 0x%" PRIx64 ")", registry->self);
	tdt__string_puts(&string, ": ");
	count_states(&string, listing);
	tdt__string_puts(&string, "\n");
	if (listing->last != NULL) {
		last_missing(&string, listing->last);
	} else {
		counts_line(&string, listing);
		if (tdt__history_misuse(listing->tasks, &seen))
			tdt__misuse_line(&string, &seen.misuse);
	}
	untraced_line(&string, listing);
	if (tdt__tasks_at_least(listing->tasks))
		tdt__string_puts(&string, TDT__AT_LEAST);
	out->no_memory |= !seen_futurelock_lines(&string, listing);
	for (size_t i = 0; i < listing->tasks->n; i++)
		if (listing->tasks->task[i].member.info.busy_polls != 0)
			tdt__busy_line(&string, &listing->tasks->task[i].member.info);
	for (size_t i = 0; i < listing->found.n_lost_wakeups; i++)
		tdt__lost_line(&string, listing->found.lost_wakeups[i]->tasks[0], 0, NULL);
	for (size_t i = 0; i < listing->found.n_cycles; i++)
		tdt__ring_line(&string, listing->found.cycles[i], SIZE_MAX);
	tdt__string_puts(&string, "\n");
	tdt__out_take(out, &string);
}

void ps_state(struct tdt__string *string, const struct tdt__seen_task *task)
{
	tdt__string_puts(string, task_states[state_index(task)]);
	if (task->member.info.aborted != 0) {
		tdt__string_puts(string, " (");
		tdt__aborted(string, task->member.info.woken_by);
		tdt__string_puts(string, ")");
	} else if (task->outcome != NULL) {
		tdt__string_printf(string, " (%s)", task->outcome);
	}
	if (task->last != NULL)
		tdt__string_printf(string, " (was %s)", task->last);
}

static bool lets_through(const struct options *options, const struct tdt__seen_task *task)
{
	const struct tdt_task_info *info = &task->member.info;

	return (options->states == 0 || (options->states & 1u << state_index(task)) != 0) &&
	       info->state_ns >= options->longer &&
	       (options->trace == NULL || tdt__is_of_trace(&info->context, options->trace)) &&
	       (options->name == NULL ||
		(info->name != NULL && fnmatch(options->name, info->name, 0) == 0));
}

static int by_options(const void *a, const void *b, void *arg)
{
	const struct options *options = arg;
	const struct tdt__seen_task *x = *(const struct tdt__seen_task *const *)a;
	const struct tdt__seen_task *y = *(const struct tdt__seen_task *const *)b;
	int order = options->key == BY_STATE ? (int)state_index(y) - (int)state_index(x) : 0;

	if (order == 0)
		order = compare_tasks(options->key, &x->member.info, &y->member.info);
	return options->reverse ? -order : order;
}

static int choose_shown(struct options *options, struct listing *listing)
{
	const struct tdt__tasks *tasks = listing->tasks;

	listing->shown = malloc((tasks->n + 1) * sizeof(const struct tdt__seen_task *));
	if (listing->shown == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < tasks->n; i++)
		if (lets_through(options, &tasks->task[i]))
			listing->shown[listing->n++] = &tasks->task[i];
	qsort_r(listing->shown, listing->n, sizeof(const struct tdt__seen_task *), by_options,
		options);
	return 0;
}

static void (*form_of(const struct options *options))(struct tdt__out *, const struct listing *)
{
	return options->each_process			 ? ps_process
	       : options->print.format == TDT_PRINT_JSON ? ps_json
	       : options->threads			 ? ps_threads
	       : options->dot				 ? ps_dot
	       : options->tree				 ? ps_tree
							 : ps_table;
}

static int print_listing(const struct options *options, const struct listing *listing)
{
	struct tdt__out out = { .file = stdout };
	int status;

	form_of(options)(&out, listing);
	status = report_output(NULL, tdt__out_end(&out));
	return status == EXIT_SUCCESS && options->check.on
		   ? check_snapshot(options->check, &listing->found)
		   : status;
}

static int list_these(struct options *options, struct listing *listing,
		      struct tdt__tasks *tasks)
{
	struct tdt__outside_found found;
	int status;

	tdt__tasks_busy(tasks);
	listing->tasks = tasks;
	listing->print = &options->print;
	listing->threads = options->threads;
	listing->width = options->width;
	if (tdt__outside_found(&found, tasks) != 0 || choose_shown(options, listing) != 0) {
		status = report_no_memory();
	} else {
		listing->found = found.snapshot;
		status = print_listing(options, listing);
	}
	tdt__outside_found_fini(&found);
	free(listing->shown);
	return status;
}

/* The value of the variable in /proc/PID/environ, where each ends with NUL; NULL: it is not set. */
static const char *find_variable(const char *environment, size_t n, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = environment; at < environment + n; at += strlen(at) + 1)
		if (strncmp(at, name, length) == 0 && at[length] == '=' && at[length + 1] != '\0')
			return at + length + 1;
	return NULL;
}

/* Say what of the recording that the environment of the process asks for is not there. */
static void report_recording(const struct outside *outside, size_t registry)
{
	static char environment[1 << 17];
	const struct tdt__found *found = &outside->found[registry];
	ssize_t n = outside->target.core != NULL
			? -1
			: tdt__target_proc_text(&outside->target, "environ", environment,
						sizeof environment);
	const char *size = n > 0 ? find_variable(environment, (size_t)n, "TDT_RECORD") : NULL;
	const char *dir = n > 0 ? find_variable(environment, (size_t)n, "TDT_RECORD_DIR") : NULL;
	const struct tdt__mapping *rings =
	    tdt__target_mapping(&outside->target, found->registry.rings);

	if (size == NULL || strcmp(size, "0") == 0)
		return;
	if (!tdt__recorded_runs(&outside->target, found))
		report_trouble("TDT_RECORD=%.64s: the process does not record", size);
	else if (dir != NULL && (rings == NULL || !rings->is_file))
		report_trouble("TDT_RECORD_DIR=%.256s: the process records in memory only", dir);
}

int ps_registry(void *arg, struct outside *outside, size_t registry)
{
	struct options *options = arg;
	struct listing listing = { .several = outside->n_found > 1 };
	struct tdt__tasks tasks;
	int status = outside_tasks(outside, &tasks, registry, options);

	if (status != PROGRAM_GOES_ON)
		return status;
	tdt__tasks_name(&tasks, naming_until());
	status = list_these(options, &listing, &tasks);
	report_recording(outside, registry);
	tdt__tasks_fini(&tasks);
	return status;
}

static int list_recording(void *arg, struct last *last)
{
	struct listing listing = { .last = last };

	return list_these(arg, &listing, &last->states.tasks);
}

/* The columns of the terminal; 0: standard output is none. */
static unsigned terminal_width(void)
{
	struct winsize size;

	return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col
										      : 0;
}

int command_ps(int argc, char **argv)
{
	struct options options = { .max_requests = 0 };
	struct work work = { .options = &options,
			     .command = &options,
			     .registry = ps_registry,
			     .recording = list_recording };

	read_command_line(COMMAND_PS, &options, &argc, &argv, TARGETS_ANY);
	if (options.dir != NULL && options.threads)
		bad_usage("a recording has no list of threads: see tdt record --summary", "");
	tdt__terminal_choose(&options.print, stdout);
	options.width = terminal_width();
	if (options.target == NULL && options.core == NULL && options.dir == NULL) {
		if (options.check.on)
			bad_usage("a check needs a target", "");
		return processes_list(&options);
	}
	return work_on_each(&work);
}
