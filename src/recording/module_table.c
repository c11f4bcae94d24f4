// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The table of modules of a recording, and the names of tasks by it. */

#include "recording/module_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recording/read.h"
#include "symbolize/modules.h"
#include "symbolize/namer.h"

enum {
	MODULES_MAX = 4096 /* adding one takes time in proportion to all */
};

/* Returns 0 or -ENOMEM. */
static int add_recorded(struct tdt__modules **table, const struct tdt__recorded_module *recorded)
{
	struct tdt__module module = { .start = (uintptr_t)recorded->start,
				      .end = (uintptr_t)recorded->end,
				      .bias = (uintptr_t)recorded->bias,
				      .path = strdup(recorded->path) };

	if (module.path == NULL)
		return -ENOMEM;
	/* A build-id that is longer than any other is cut, so that it fits no file. */
	memcpy(module.build_id, recorded->build_id,
	       strnlen(recorded->build_id, sizeof(module.build_id) - 1));
	if (tdt__modules_add(table, &module, false))
		return 0;
	free(module.path);
	return -ENOMEM;
}

struct tdt__modules *tdt__recorded_module_table(const struct tdt__recording *recording)
{
	const struct tdt__recorded_module *module = recording->module;
	size_t n = recording->n_modules;
	struct tdt__modules *table = tdt__modules_new(0);
	int err = table != NULL ? 0 : -ENOMEM;

	for (; n > 0 && err == 0 && table->n < MODULES_MAX; n--, module++)
		if (module->path[0] != '\0' &&
		    !tdt__modules_overlap(table, module->start, module->end))
			err = add_recorded(&table, module);
	if (err == 0)
		return table;
	tdt__modules_unref(table);
	return NULL;
}

/* Most tasks began with the same function as the one before: the namer is not asked again. */
void tdt__recorded_tasks_name(struct tdt__recording *recording, struct tdt__modules *modules,
			      uint64_t deadline)
{
	const char *name = NULL;
	uint64_t named = 0;

	for (uint32_t i = 0; i < recording->n_tasks; i++) {
		struct tdt__recorded_task *task = &recording->task[i];

		if (!task->has_entry || task->name[0] != '\0')
			continue;
		if (task->poll_function != named)
			name = tdt__namer_function(modules, (uintptr_t)task->poll_function,
						   deadline);
		named = task->poll_function;
		if (name != NULL)
			task->name = name;
	}
}
