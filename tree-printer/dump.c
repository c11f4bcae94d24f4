// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Prints a snapshot of many tasks: reads the options, checks that the snapshot is whole, looks up
 * the names, and handles the stream and its errors.
 */

#include "dumps.h"

#include <errno.h>
#include <stddef.h>

#include "forms.h"

/* The rule for the sizes of callers' structs; and names that are looked up until a deadline. */
#include "base/options.h"
#include "tree/trace.h"
#include "tree/tree.h"

#define MAX_IDS 8 /* unless the caller says otherwise */

/* Every version of the header has the fields before `parent`. */
static bool is_task(const struct tdt_task_info *info)
{
	return info != NULL && info->size >= offsetof(struct tdt_task_info, parent) &&
	       (unsigned int)info->state <= TDT_TASK_UNKNOWN;
}

static bool are_tasks(const struct tdt_task_info *const *tasks, size_t n)
{
	if (tasks == NULL || n == 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_task(tasks[i]))
			return false;
	return true;
}

/* Whether deadlocks, and no other cycles, have groups, and there are as many groups. */
static bool have_groups(const struct tdt_snapshot *snapshot)
{
	size_t left = snapshot->n_groups;

	for (size_t i = 0; i < snapshot->n_cycles; i++) {
		const struct tdt_snapshot_cycle *cycle = snapshot->cycles[i];

		if (cycle->n_groups > left || (cycle->n_groups != 0 && !cycle->deadlock))
			return false;
		left -= cycle->n_groups;
	}
	return true;
}

static bool is_misuse(const struct tdt_misuse *misuse)
{
	return misuse->size >= sizeof *misuse && misuse->kind >= TDT_MISUSE_ORDER &&
	       misuse->kind <= TDT_MISUSE_TASK_LEAVE && misuse->reason != NULL;
}

static bool is_whole(const struct tdt_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->n_groups; i++) {
		const struct tdt_snapshot_group *group = snapshot->groups[i];

		if ((unsigned int)group->answer > TDT_ANSWER_NONE ||
		    !are_tasks(group->tasks, group->n) ||
		    (group->trace == NULL && group->answer != TDT_ANSWER_NONE))
			return false;
	}
	for (size_t i = 0; i < snapshot->n_cycles; i++)
		if (!are_tasks(snapshot->cycles[i]->tasks, snapshot->cycles[i]->n))
			return false;
	for (size_t i = 0; i < snapshot->n_panics; i++)
		if (snapshot->panics[i]->n != 1 || !are_tasks(snapshot->panics[i]->tasks, 1) ||
		    snapshot->panics[i]->trace == NULL)
			return false;
	if (snapshot->misuse != NULL && !is_misuse(snapshot->misuse))
		return false;
	return have_groups(snapshot);
}

static void print_form(struct tdt__out *out, const void *arg)
{
	const struct tdt__dump *dump = arg;

	if (dump->options->format == TDT_PRINT_TEXT)
		tdt__dump_text(out, dump);
	else if (dump->options->format == TDT_PRINT_JSON)
		tdt__dump_json(out, dump);
	else
		tdt__dump_folded(out, dump);
}

static void look_up(const struct tdt_snapshot_group *const *groups, size_t n, uint64_t deadline,
		    uint64_t *unnamed, int *err)
{
	for (size_t i = 0; i < n; i++) {
		const struct tdt_trace *trace = groups[i]->trace;
		const struct tdt_node *root =
		    trace != NULL ? tdt__trace_root_by(trace, deadline) : NULL;

		if (root != NULL)
			*unnamed += root->tree->unnamed;
		else if (trace != NULL)
			*err = -ENOMEM;
	}
}

int tdt__snapshot_name(const struct tdt_snapshot *of, uint64_t deadline, uint64_t *unnamed)
{
	int err = 0;

	look_up(of->groups, of->n_groups, deadline, unnamed, &err);
	look_up(of->panics, of->n_panics, deadline, unnamed, &err);
	look_up(of->lost_wakeups, of->n_lost_wakeups, deadline, unnamed, &err);
	return err;
}

static int print(const struct tdt__dump *dump, FILE *out, uint64_t deadline)
{
	struct tdt__dump named = *dump;
	struct tdt__names *names = NULL;
	/* This may take long, so the stream is not locked yet. */
	int err = tdt__snapshot_name(dump->snapshot, deadline, &named.unnamed), written;

	if (err != 0 && dump->options->format == TDT_PRINT_JSON)
		return err; /* JSON without all names is of no use */
	if (dump->options->format == TDT_PRINT_TEXT) {
		names = tdt__names_new(dump->snapshot);
		if (names == NULL)
			err = -ENOMEM;
	}
	named.names = names;
	written = tdt__print_locked(out, dump->options, print_form, &named);
	tdt__names_free(names);
	return written != 0 ? written : err;
}

static int read_all(struct tdt_snapshot *ours, const struct tdt_snapshot *snapshot,
		    struct tdt_dump_options *options, const struct tdt_dump_options *theirs,
		    struct tdt_print_options *form, FILE *out)
{
	int err = snapshot == NULL ? -EINVAL
				   : tdt__options_read(options, sizeof(*options), theirs);

	if (err == 0)
		err = tdt__print_options_read(form, options->print, out);
	if (err == 0)
		err = tdt__options_read(ours, sizeof(*ours), snapshot);
	return err == 0 && !is_whole(ours) ? -EINVAL : err;
}

int tdt__snapshot_print_by(const struct tdt_snapshot *snapshot, FILE *out,
			   const struct tdt_dump_options *options, uint64_t deadline)
{
	int saved = errno; /* asking whether `out` is a terminal may set errno without an error */
	struct tdt_dump_options ours;
	struct tdt_print_options form;
	struct tdt_snapshot copy;
	int err = read_all(&copy, snapshot, &ours, options, &form, out);

	if (err == 0) {
		const struct tdt__dump dump = {
			.snapshot = &copy,
			.options = &form,
			.max_ids = ours.max_ids != 0 ? ours.max_ids : MAX_IDS,
		};

		err = print(&dump, out, deadline);
	}
	errno = err == 0 ? saved : -err;
	return err;
}
