// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Finding the processes that use the library.  Nothing but a look at the memory of each tells, and
 * a process may be made to do harm, so each is looked at in a child with limits (apart.h).  The
 * parent reads only what the kernel knows without that memory.
 */

#include "cli/processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/proc_text.h"
#include "base/text.h"
#include "cli/ps.h"
#include "cli/text_table.h"
#include "tree-printer/forms.h"
#include "tree-printer/words.h"

#define KERNEL_THREAD 0x200000u /* PF_KTHREAD of the kernel */

static bool matches_name(const char *program, const struct options *options)
{
	for (unsigned i = 0; i < options->n_targets; i++)
		if (fnmatch(options->targets[i], program, 0) == 0)
			return true;
	return options->n_targets == 0;
}

/*
 * Whether its program is wanted, and it is neither a thread of the kernel nor a process that has
 * ended.  The file cmdline would tell, too, but the process can have the reading of its memory last
 * for ever.
 */
static bool runs_program(const struct dirent *entry, const struct options *options)
{
	char path[300], stat[512], state, *name, *name_end;
	unsigned flags;

	if (!tdt__is_digit(entry->d_name[0]) || atoi(entry->d_name) == getpid())
		return false;
	snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
	tdt__proc_text(AT_FDCWD, path, stat, sizeof stat);
	name = strchr(stat, '(');
	name_end = strrchr(stat, ')');
	if (name == NULL || name_end == NULL)
		return false;
	*name_end = '\0';
	return matches_name(name + 1, options) &&
	       sscanf(name_end + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) == 2 &&
	       state != 'Z' && (flags & KERNEL_THREAD) == 0;
}

static int compare_pids(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

pid_t *processes_all(const struct options *options, size_t *n)
{
	DIR *directory = opendir("/proc");
	const struct dirent *entry;
	pid_t *pids = NULL;
	size_t room = 0;
	bool enough = true;

	*n = 0;
	while (directory != NULL && enough && (entry = readdir(directory)) != NULL) {
		if (!runs_program(entry, options))
			continue;
		enough = tdt__array_grow(&pids, *n, &room, sizeof *pids);
		if (enough)
			pids[(*n)++] = (pid_t)atoi(entry->d_name);
	}
	if (directory == NULL)
		return NULL;
	closedir(directory);
	if (enough && *n != 0)
		qsort(pids, *n, sizeof *pids, compare_pids);
	if (enough)
		return pids != NULL ? pids : calloc(1, sizeof *pids);
	free(pids);
	return NULL;
}

int processes_open(struct outside *outside, pid_t pid, FILE *out)
{
	const struct tdt__places places = { .no_files = true };
	struct tdt__trouble trouble;
	int error = tdt__target_open_process(&outside->target, pid, &trouble);
	size_t n;
	bool other;

	if (error == -ENOMEM)
		return error;
	if (error != 0 && error != -EPERM)
		return PROCESS_WITHOUT_LIBRARY; /* it has ended */
	if (error != 0) {
		fputs(trouble.text, out);
		return PROCESS_UNREADABLE;
	}
	n = tdt__find(&outside->target, outside->found);
	other = n != 0 && !outside->found[0].known;
	/*
	 * A copy of the library without a task, as tdt itself has, does not count.  Such copies
	 * are last but for those whose layout is unknown.
	 */
	while (n != 0 && (!outside->found[n - 1].known || outside->found[n - 1].registry.pid == 0))
		n--;
	outside->n_found = n;
	if (n == 0) {
		if (other)
			fputs("the libtdt in it has a layout that this tdt does not read", out);
		tdt__target_close(&outside->target);
		return other ? PROCESS_UNREADABLE : PROCESS_WITHOUT_LIBRARY;
	}
	if (tdt__images_init(&outside->images, &outside->target, &places) == 0)
		return PROGRAM_GOES_ON;
	tdt__target_close(&outside->target);
	return -ENOMEM;
}

void processes_program(const struct tdt__target *target, char name[PROGRAM_NAME_MAX])
{
	name[0] = '\0';
	tdt__target_proc_text(target, "comm", name, PROGRAM_NAME_MAX);
	name[strcspn(name, "\n")] = '\0';
}

static int compare_reasons(const void *a, const void *b)
{
	const struct unreadable_reason *x = a, *y = b;

	return strcmp(x->text, y->text);
}

/* The reasons stay sorted, so that two pages have them in the same order. */
static void note_reason(struct unreadable *unreadable, const char *reason)
{
	char key[512], known[512];
	size_t i = 0;

	tdt__text_without_numbers(key, sizeof key, reason, '#');
	for (; i < unreadable->n; i++) {
		tdt__text_without_numbers(known, sizeof known, unreadable->reason[i].text, '#');
		if (strcmp(key, known) == 0)
			break;
	}
	if (i == unreadable->n) {
		if (!tdt__array_grow(&unreadable->reason, unreadable->n, &unreadable->room,
				     sizeof *unreadable->reason))
			return;
		unreadable->reason[i] = (struct unreadable_reason){ .n = 0 };
		snprintf(unreadable->reason[i].text, sizeof unreadable->reason[i].text, "%s",
			 reason);
		unreadable->n++;
	}
	unreadable->reason[i].n++;
	qsort(unreadable->reason, unreadable->n, sizeof *unreadable->reason, compare_reasons);
}

struct work_piece *processes_do(size_t n, piece_fn *work, void *arg, const struct options *options,
				unsigned seconds)
{
	const struct piece_limits limits = {
		.each_ns = 2 * TDT__SECOND,
		.all_ns = timeout_seconds(options, seconds) * (uint64_t)TDT__SECOND
	};

	return pieces_do(n, work, arg, &limits);
}

void unreadable_note(struct unreadable *unreadable, pid_t pid, const struct work_piece *piece)
{
	char reason[64];

	if (piece->status == EXIT_SUCCESS || piece->status == PROCESS_WITHOUT_LIBRARY)
		return;
	if (piece->status == -ETIME)
		snprintf(reason, sizeof reason, "there was no time to read process %d", (int)pid);
	else
		snprintf(reason, sizeof reason, "reading process %d %s", (int)pid,
			 piece->status == -ECANCELED ? piece->why : "failed");
	note_reason(unreadable, piece->status == PROCESS_UNREADABLE && piece->text != NULL
					? piece->text
					: reason);
}

/* The processes that were found: `rows` has a line for each copy of the library (ps_process()). */
struct process_list {
	const struct options *options;
	const pid_t *pids;
	size_t processes; /* that were read */
	struct tdt__string rows;
	struct unreadable unreadable;
};

/* A piece_fn: write the lines of one process. */
static int look_at_one(FILE *out, void *arg, size_t number)
{
	const struct process_list *list = arg;
	struct options options = *list->options;
	struct outside outside;
	int status = apart_silence();

	if (status == 0)
		status = processes_open(&outside, list->pids[number], out);
	if (status != PROGRAM_GOES_ON)
		return status;
	options.each_process = true;
	status = EXIT_SUCCESS;
	for (size_t i = 0; i < outside.n_found && status == EXIT_SUCCESS; i++)
		status = ps_registry(&options, &outside, i);
	outside_close(&outside);
	return status == EXIT_SUCCESS ? status : TDT_TROUBLE;
}

static void list_one(struct process_list *list, pid_t pid, const struct work_piece *piece)
{
	if (piece->status == EXIT_SUCCESS) {
		list->processes++;
		if (piece->text != NULL)
			tdt__string_add(&list->rows, piece->text, piece->length);
	}
	unreadable_note(&list->unreadable, pid, piece);
}

static void unreadable_lines(struct tdt__string *string, const struct unreadable *unreadable)
{
	for (size_t i = 0; i < unreadable->n; i++) {
		const struct unreadable_reason *reason = &unreadable->reason[i];

		tdt__string_printf(
		    string, "%s process%s could not be read%s: ", TDT__NUMBER(reason->n),
		    reason->n == 1 ? "" : "es", reason->n == 1 ? "" : ", for example");
		tdt__string_text(string, reason->text);
		tdt__string_puts(string, "\n");
	}
}

static void add_row_cells(struct text_table *table, char *row)
{
	for (char *cell; (cell = strsep(&row, "\t")) != NULL;) {
		tdt__string_puts(&table->text, cell);
		text_table_cell(table);
	}
}

static void list_as_text(struct tdt__out *out, struct process_list *list)
{
	static const struct text_column columns[] = { { "PID", true },
						      { "PROGRAM", false },
						      { "TASKS", true },
						      { "OLDEST, OR WRONG", false } };
	struct tdt__string string = { .options = &list->options->print };
	char *rows = list->rows.bytes;
	struct text_table table;
	size_t n = 0;

	for (size_t i = 0; i < list->rows.n; i++)
		n += rows[i] == '\n';
	if (list->processes == 0)
		tdt__string_puts(&string, "no process here that may be read uses libtdt\n");
	text_table_begin(&table, columns, 4, n);
	table.most = list->options->width;
	tdt__string_add(&list->rows, "", 1);
	rows = list->rows.bytes;
	for (char *row; n-- > 0 && (row = strsep(&rows, "\n")) != NULL && !table.text.failed;)
		add_row_cells(&table, row);
	text_table_end(&table, out);
	unreadable_lines(&string, &list->unreadable);
	tdt__out_take(out, &string);
}

static void reason_members(struct tdt__json *json, const struct unreadable_reason *reason)
{
	tdt__json_string(json, "reason", reason->text);
	tdt__json_u64(json, "processes", reason->n);
}

static void list_as_json(struct tdt__out *out, struct process_list *list)
{
	struct tdt__json json = tdt__json_document(out);
	char *rows;

	tdt__string_add(&list->rows, "", 1);
	rows = list->rows.bytes;
	tdt__json_begin(&json, "processes", '[');
	for (char *row; (row = strsep(&rows, "\n")) != NULL && *row != '\0';)
		tdt__json_raw(&json, NULL, row);
	tdt__json_end(&json, ']');
	TDT__JSON_LIST(&json, "unreadable", list->unreadable.reason, list->unreadable.n,
		       reason_members, &json);
	tdt__json_finish(&json);
}

int processes_list(const struct options *options)
{
	struct process_list list = { .options = options };
	struct tdt__out out = { .file = stdout };
	struct work_piece *piece;
	size_t n;
	pid_t *pids;
	int status;

	outside_bound(options, 0);
	pids = processes_all(options, &n);
	if (pids == NULL)
		return report_trouble("/proc cannot be listed: %s", strerror(errno));
	list.pids = pids;
	piece = processes_do(n, look_at_one, &list, options, BOUND_SECONDS);
	for (size_t i = 0; i < n && piece != NULL; i++)
		list_one(&list, pids[i], &piece[i]);
	if (options->print.format == TDT_PRINT_JSON)
		list_as_json(&out, &list);
	else
		list_as_text(&out, &list);
	out.no_memory |= list.rows.failed || piece == NULL;
	status = report_output(NULL, tdt__out_end(&out));
	tdt__string_free(&list.rows);
	free(list.unreadable.reason);
	pieces_free(piece, n);
	free(pids);
	return status;
}
