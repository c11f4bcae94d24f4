// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * tdt-join-ustack: one tree of where a task waits, as the library tells it (JSON), and of where a tracer saw it.
 *
 * The traces are read whole, the stacks one after the other, each into the tree of its task: so memory is for the
 * traces and for what differs in the stacks.
 */

#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/join.h"
#include "cli/read_json.h"
#include "tree-printer/terminal.h"

enum {
	EXIT_BAD_INPUT = 1, /* or output */
	EXIT_BAD_USAGE = 2
};

static const char usage[] =
    "Usage: tdt-join-ustack [OPTION]... TRACES STACKS...\n"
    "Print where async tasks wait and where a tracer saw them, in one tree for each task.  TRACES is what the tdt\n"
    "library wrote as JSON; STACKS is the output of the bpftrace scripts oncpu-by-task, wait-stacks or long-polls,\n"
    "or of perf script.  One of them may be -: standard input.\n"
    "\n"
    "  --format=FORM    text (the default) or json\n"
    "  --utf8, --ascii  the lines of the tree (default: as the locale is)\n"
    "  --color=WHEN     auto (the default: on a terminal), always or never\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0; 1 if a file is damaged or the output fails; 2 for wrong usage.\n";

struct command {
	bool json, utf8, color;
	const char *traces;
	char **stacks;
};

static int bad_usage(const char *what, const char *value)
{
	fprintf(stderr, "tdt-join-ustack: %s%s\nTry 'tdt-join-ustack --help'.\n", what, value);
	return EXIT_BAD_USAGE;
}

/* 0; an exit status; or -1: done, and all is well. */
static int parse_option(struct command *command, int option, const char *value)
{
	switch (option) {
	case 'f':
		command->json = strcmp(value, "json") == 0;
		return command->json || strcmp(value, "text") == 0 ? 0 : bad_usage("unknown form: ", value);
	case 'c':
		command->color = strcmp(value, "always") == 0 || (strcmp(value, "auto") == 0 && tdt__wants_color(stdout));
		return command->color || strcmp(value, "auto") == 0 || strcmp(value, "never") == 0
			   ? 0
			   : bad_usage("--color is auto, always or never, not ", value);
	case 'u':
	case 'A':
		command->utf8 = option == 'u';
		return 0;
	case 'h':
		fputs(usage, stdout);
		return -1;
	case 'v':
		puts("tdt-join-ustack (" PACKAGE_STRING ")");
		return -1;
	default: /* getopt has told */
		return bad_usage("wrong option", "");
	}
}

static int parse(struct command *command, int argc, char **argv)
{
	static const struct option options[] = {
		{ "format", required_argument, NULL, 'f' },
		{ "utf8", no_argument, NULL, 'u' },
		{ "ascii", no_argument, NULL, 'A' },
		{ "color", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	int option, status;

	command->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	command->color = tdt__wants_color(stdout);
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		status = parse_option(command, option, optarg);
		if (status != 0)
			return status;
	}
	if (argc - optind < 2)
		return bad_usage("a file of traces and one of stacks are wanted", "");
	command->traces = argv[optind];
	command->stacks = argv + optind + 1;
	return 0;
}

/* --- Input ----------------------------------------------------------------- */

struct tasks {
	struct joined *task; /* by id, once all are read */
	size_t n, room;
	size_t replaced; /* traces of tasks that came again */

	uint64_t strangers; /* stacks of tasks that have no trace, */
	uint64_t stranger;  /* and one such task */
};

static FILE *open_file(const char **name)
{
	FILE *file = stdin;

	if (strcmp(*name, "-") != 0)
		file = fopen(*name, "re");
	else
		*name = "standard input";
	if (file == NULL)
		fprintf(stderr, "tdt-join-ustack: %s: %s\n", *name, strerror(errno));
	return file;
}

static void close_file(FILE *file)
{
	if (file != stdin)
		fclose(file);
}

/* The message may quote the file, which may hold anything: nothing of it must reach a terminal as it is. */
static int input_failed(const char *name, unsigned long line, unsigned long column, const char *message)
{
	fprintf(stderr, "tdt-join-ustack: %s:%lu:", name, line);
	if (column != 0)
		fprintf(stderr, "%lu:", column);
	putc(' ', stderr);
	for (; *message != '\0'; message++)
		putc(*message < ' ' || *message > '~' ? '?' : *message, stderr);
	putc('\n', stderr);
	return EXIT_BAD_INPUT;
}

static int no_memory(void)
{
	fprintf(stderr, "tdt-join-ustack: %s\n", strerror(ENOMEM));
	return EXIT_BAD_INPUT;
}

static bool add_task(struct tasks *tasks, struct tdt_trace *trace)
{
	if (tasks->n == tasks->room) {
		size_t room = tasks->room == 0 ? 16 : 2 * tasks->room;
		struct joined *task = reallocarray(tasks->task, room, sizeof(*task));

		if (task == NULL)
			return false;
		tasks->task = task;
		tasks->room = room;
	}
	if (joined_init(&tasks->task[tasks->n], trace) != 0)
		return false;
	tasks->n++;
	return true;
}

static uint64_t id_of(const struct joined *joined)
{
	return tdt_trace_info(joined->trace)->id;
}

static int compare(const void *a, const void *b)
{
	const struct joined *const *first = a, *const *second = b;

	if (id_of(*first) != id_of(*second))
		return id_of(*first) < id_of(*second) ? -1 : 1;
	return *first < *second ? -1 : *first > *second; /* as they were read */
}

/* Sort by id, and keep the last trace of each task. */
static bool sort_tasks(struct tasks *tasks)
{
	const struct joined **order = calloc(tasks->n + 1, sizeof(const struct joined *));
	struct joined *sorted = calloc(tasks->n + 1, sizeof(*sorted));
	size_t n = 0;

	if (order == NULL || sorted == NULL) {
		free(order);
		free(sorted);
		return false;
	}
	for (size_t i = 0; i < tasks->n; i++)
		order[i] = &tasks->task[i];
	qsort(order, tasks->n, sizeof(const struct joined *), compare);
	for (size_t i = 0; i < tasks->n; i++) {
		if (n > 0 && id_of(&sorted[n - 1]) == id_of(order[i])) {
			joined_fini(&sorted[--n]);
			tasks->replaced++;
		}
		sorted[n++] = *order[i];
	}
	free(order);
	free(tasks->task);
	tasks->task = sorted;
	tasks->n = n;
	return true;
}

static int read_traces(struct tasks *tasks, const char *name)
{
	struct reader reader = { .file = open_file(&name) };
	struct tdt_trace *trace;
	int result;

	if (reader.file == NULL)
		return EXIT_BAD_INPUT;
	while ((result = reader_next(&reader, &trace)) > 0) {
		if (!add_task(tasks, trace)) {
			tdt_trace_free(trace);
			close_file(reader.file);
			return no_memory();
		}
	}
	close_file(reader.file);
	if (result < 0)
		return input_failed(name, reader.line, reader.column, reader.message);
	return sort_tasks(tasks) ? 0 : no_memory();
}

static struct joined *find_task(const struct tasks *tasks, uint64_t id)
{
	size_t low = 0, high = tasks->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (id_of(&tasks->task[middle]) < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < tasks->n && id_of(&tasks->task[low]) == id ? &tasks->task[low] : NULL;
}

/* 0 or a negative errno. */
static int add_stack(struct tasks *tasks, const struct ustack *stack)
{
	struct joined *task = find_task(tasks, stack->task);

	if (task != NULL)
		return joined_add(task, stack);
	tasks->strangers += stack->count;
	tasks->stranger = stack->task;
	return 0;
}

static int read_stacks(struct tasks *tasks, const char *name)
{
	static struct ustack stack;
	struct ustack_reader reader = { .file = open_file(&name) };
	int result, err = 0, status = 0;

	if (reader.file == NULL)
		return EXIT_BAD_INPUT;
	while (err == 0 && (result = ustack_next(&reader, &stack)) != 0) {
		if (result < 0) {
			status = input_failed(name, reader.line, 0, reader.message);
			break;
		}
		err = add_stack(tasks, &stack);
	}
	if (err == -E2BIG)
		status = input_failed(name, reader.line, 0, "too many different stacks of one task");
	else if (err != 0)
		status = no_memory();
	close_file(reader.file);
	ustack_end(&reader, &stack);
	return status;
}

/* --- Output ---------------------------------------------------------------- */

/* A reader that went away, as `head` does, needs no message. */
static int output_failed(int error)
{
	if (error != EPIPE)
		fprintf(stderr, "tdt-join-ustack: standard output: %s\n", strerror(error));
	return EXIT_BAD_INPUT;
}

static int print_tasks(const struct tasks *tasks, const struct command *command)
{
	int err = 0;

	for (size_t i = 0; i < tasks->n && err == 0; i++)
		err = command->json ? joined_print_json(&tasks->task[i], stdout)
				    : joined_print_text(&tasks->task[i], stdout, command->utf8, command->color);
	if (err == 0 && fflush(stdout) != 0)
		err = -errno;
	return err == 0 ? 0 : output_failed(-err);
}

static void tell(const struct tasks *tasks)
{
	if (tasks->replaced != 0)
		fprintf(stderr, "tdt-join-ustack: traces left out: %zu, of tasks that have a later one\n",
			tasks->replaced);
	if (tasks->strangers != 0)
		fprintf(stderr,
			"tdt-join-ustack: stacks left out: %" PRIu64 ", of tasks that have no trace (task %" PRIu64
			", for one)\n",
			tasks->strangers, tasks->stranger);
}

int main(int argc, char **argv)
{
	struct command command = { 0 };
	struct tasks tasks = { 0 };
	int status;

	setlocale(LC_ALL, "");
	status = parse(&command, argc, argv);
	if (status == -1)
		return fflush(stdout) == 0 ? EXIT_SUCCESS : output_failed(errno);
	if (status == 0)
		status = read_traces(&tasks, command.traces);
	for (; status == 0 && command.stacks != NULL && *command.stacks != NULL; command.stacks++)
		status = read_stacks(&tasks, *command.stacks);
	if (status == 0)
		status = print_tasks(&tasks, &command);
	if (status == 0)
		tell(&tasks);
	for (size_t i = 0; i < tasks.n; i++)
		joined_fini(&tasks.task[i]);
	free(tasks.task);
	return status;
}
