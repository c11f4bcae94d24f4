// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Names of functions for a Perfetto trace. */

#include "perfetto.h"

#include "symbolize/modules.h"
#include "symbolize/namer.h"
#include "symbolize/symbolize.h"

static struct tdt_frame frame_of(const struct tdt__name *name, const struct tdt__place *place)
{
	struct tdt_frame frame = { .size = sizeof frame,
				   .kind = TDT_NODE_FRAME,
				   .pc = name->pc,
				   .module = tdt__module_path(name->module),
				   .module_offset = name->pc - name->module->bias };

	if (name->module->build_id[0] != '\0')
		frame.build_id = name->module->build_id;
	if (place == NULL)
		return frame;
	frame.function = place->function;
	frame.file = place->file;
	frame.directory = place->directory;
	frame.line = place->line;
	frame.column = place->column;
	return frame;
}

size_t tdt__perfetto_name(void *data, uint64_t pc, struct tdt_frame *frames, size_t max)
{
	const struct tdt__perfetto_modules *names = data;
	struct tdt__name name = { .module = tdt__modules_find(names->modules, (uintptr_t)pc - 1),
				  .pc = (uintptr_t)pc };
	size_t n;

	if (name.module == NULL || max == 0)
		return 0;
	tdt__namer_find(names->modules, &name, 1, names->deadline);
	if (name.symbol == NULL || name.symbol->n == 0) {
		frames[0] = frame_of(&name, NULL);
		return 1;
	}
	n = name.symbol->n < max ? name.symbol->n : max;
	for (size_t i = 0; i < n; i++)
		frames[i] = frame_of(&name, &name.symbol->place[i]);
	frames[n - 1].symbol = name.symbol->symbol;
	frames[n - 1].symbol_offset = name.symbol->symbol_offset;
	return n;
}
