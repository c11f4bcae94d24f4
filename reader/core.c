// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reading a core file that was opened (core_open.c). */

#include "reader/core.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"

static const struct tdt__segment *find_segment(const struct tdt__core *core, uint64_t address)
{
	size_t n = tdt__array_up_to(core->segment, core->n_segments, sizeof core->segment[0],
				    address);

	if (n == 0 || address - core->segment[n - 1].start >= core->segment[n - 1].size)
		return NULL;
	return &core->segment[n - 1];
}

uint64_t tdt__core_end(const struct tdt__core *core, uint64_t address)
{
	const struct tdt__segment *segment = find_segment(core, address);

	return segment != NULL ? segment->start + segment->size : 0;
}

size_t tdt__core_read(const struct tdt__core *core, uint64_t address, void *buffer, size_t size)
{
	const struct tdt__segment *segment = find_segment(core, address);
	uint64_t in;
	ssize_t n;

	if (segment == NULL)
		return 0;
	in = address - segment->start;
	if (size > segment->size - in)
		size = segment->size - in;
	n = pread(core->file, buffer, size, (off_t)(segment->offset + in));
	return n > 0 ? (size_t)n : 0;
}

const struct elf_prstatus *tdt__core_thread(const struct tdt__core *core, uint32_t id)
{
	for (size_t i = 0; i < core->n_threads; i++)
		if ((uint32_t)core->thread[i].pr_pid == id)
			return &core->thread[i];
	return NULL;
}

void tdt__core_free(struct tdt__core *core)
{
	if (core == NULL)
		return;
	close(core->file);
	free(core->segment);
	free(core->thread);
	free(core);
}
