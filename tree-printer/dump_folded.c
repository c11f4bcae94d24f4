// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A dump as folded stacks: the stacks of all groups.  Each stack is counted once for every task of
 * its group.  The first frame is the tasks' name, if all tasks of the group have the same name.
 */

#include "dumps.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "forms.h"

/* The name that all tasks of the group have.  NULL: their names differ, or one has none. */
static const char *shared_name(const struct tdt_snapshot_group *group)
{
	const char *name = group->tasks[0]->name;

	for (size_t i = 1; i < group->n && name != NULL; i++)
		if (group->tasks[i]->name == NULL || strcmp(group->tasks[i]->name, name) != 0)
			name = NULL;
	return name;
}

static void first_frame(struct tdt__string *string, const struct tdt_snapshot_group *group,
			const struct tdt_print_options *options)
{
	const char *name = shared_name(group);

	string->n = 0;
	if (name != NULL && name[0] != '\0')
		tdt__string_escape(string, name, options->utf8 == TDT_PRINT_YES, '\0');
	else if (group->n == 1)
		tdt__string_printf(string, "task %" PRIu64, group->tasks[0]->id);
	else
		tdt__string_puts(string, "tasks");
}

int tdt__dump_folded(struct tdt__out *out, const struct tdt__dump *dump)
{
	struct tdt__string name = { 0 };
	int err = 0;

	for (size_t i = 0; i < dump->snapshot->n_groups && out->error == 0; i++) {
		const struct tdt_snapshot_group *group = dump->snapshot->groups[i];
		const struct tdt_node *root =
		    group->trace != NULL ? tdt_trace_root(group->trace) : NULL;

		if (group->trace == NULL)
			continue;
		first_frame(&name, group, dump->options);
		if (root == NULL || name.failed ||
		    tdt__print_stacks(out, &name, group->n, root, dump->options) != 0)
			err = -ENOMEM;
		if (name.failed)
			tdt__string_free(&name);
	}
	tdt__string_free(&name);
	return err;
}
