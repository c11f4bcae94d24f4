// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Reading memory of a target.
 *
 * process_vm_readv(2) reads many ranges in one call, in their order, and stops at the first one
 * that it cannot read.  Then another call goes on behind that range.
 */

#include "reader/target.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/array.h"
#include "base/text.h"
#include "reader/core.h"

#define RANGES_AT_ONCE 512 /* less than IOV_MAX */
#define MEMORY_PAGE UINT64_C(4096)

int tdt__trouble(struct tdt__trouble *trouble, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(trouble->text, sizeof trouble->text, format, arguments);
	va_end(arguments);
	return error;
}

bool tdt__target_add_mapping(struct tdt__target *target, const struct tdt__mapping *mapping)
{
	struct tdt__mapping *added;

	if (!tdt__array_grow(&target->mapping, target->n_mappings, &target->mappings_room,
			     sizeof *added))
		return false;
	added = &target->mapping[target->n_mappings];
	*added = *mapping;
	added->path = strdup(mapping->path);
	added->file = -1;
	target->n_mappings += added->path != NULL;
	return added->path != NULL;
}

struct tdt__mapping *tdt__target_mapping(const struct tdt__target *target, uint64_t address)
{
	size_t n = tdt__array_up_to(target->mapping, target->n_mappings, sizeof target->mapping[0],
				    address);

	if (n == 0 || address >= target->mapping[n - 1].end)
		return NULL;
	return &target->mapping[n - 1];
}

/* Read from the file that is mapped.  Pages that were written to are not in the file. */
static size_t read_mapped_file(const struct tdt__target *target, uint64_t address, void *buffer,
			       size_t size)
{
	const struct tdt__mapping *mapping = tdt__target_mapping(target, address);
	ssize_t n;

	if (mapping == NULL || mapping->file < 0 || mapping->writable)
		return 0;
	if (size > mapping->end - address)
		size = mapping->end - address;
	n = pread(mapping->file, buffer, size,
		  (off_t)(mapping->offset + (address - mapping->start)));
	return n > 0 ? (size_t)n : 0;
}

/* What lies together in memory may lie in several segments and files. */
static bool read_dead(const struct tdt__target *target, uint64_t address, void *buffer,
		      size_t size)
{
	char *to = buffer;

	while (size > 0) {
		size_t n = tdt__core_read(target->core, address, to, size);

		if (n == 0)
			n = read_mapped_file(target, address, to, size);
		if (n == 0)
			return false;
		to += n;
		address += n;
		size -= n;
	}
	return true;
}

static size_t read_dead_ranges(const struct tdt__target *target, struct tdt__memory_range *range,
			       size_t n)
{
	size_t read = 0;

	for (size_t i = 0; i < n; i++) {
		range[i].read =
			read_dead(target, range[i].address, range[i].buffer, range[i].size);
		read += range[i].read;
	}
	return read;
}

/* Read ranges of a process in one call.  Returns how many were read before one that was not. */
static size_t read_at_once(const struct tdt__target *target, struct tdt__memory_range *range,
			   size_t n)
{
	struct iovec here[RANGES_AT_ONCE], there[RANGES_AT_ONCE];
	ssize_t bytes;
	size_t read = 0;

	for (size_t i = 0; i < n; i++) {
		here[i] = (struct iovec){ range[i].buffer, range[i].size };
		there[i] = (struct iovec){ (void *)(uintptr_t)range[i].address, range[i].size };
	}
	bytes = process_vm_readv(target->pid, here, n, there, n, 0);
	for (; read < n && bytes >= 0 && (size_t)bytes >= range[read].size; read++) {
		bytes -= (ssize_t)range[read].size;
		range[read].read = true;
	}
	return read;
}

static size_t read_live_ranges(const struct tdt__target *target, struct tdt__memory_range *range,
			       size_t n)
{
	size_t read = 0;

	for (size_t at = 0; at < n;) {
		size_t some = n - at < RANGES_AT_ONCE ? n - at : RANGES_AT_ONCE;
		size_t done = read_at_once(target, range + at, some);

		read += done;
		at += done;
		if (done < some)
			range[at++].read = false;
	}
	return read;
}

size_t tdt__target_read_ranges(const struct tdt__target *target, struct tdt__memory_range *range,
			       size_t n)
{
	return target->core != NULL ? read_dead_ranges(target, range, n)
				    : read_live_ranges(target, range, n);
}

bool tdt__target_read(const struct tdt__target *target, uint64_t address, void *buffer, size_t size)
{
	struct tdt__memory_range range = { address, buffer, size, false };

	return tdt__target_read_ranges(target, &range, 1) == 1;
}

bool tdt__target_string(const struct tdt__target *target, uint64_t address, char *string,
			size_t size)
{
	size_t n = 0, most = MEMORY_PAGE;

	/*
	 * Page by page, since the next page may not be there; and in smaller parts if that fails,
	 * since a core file may end anywhere.
	 */
	while (n + 1 < size && most > 0) {
		size_t part = (size_t)(MEMORY_PAGE - (address + n) % MEMORY_PAGE);

		if (part > size - 1 - n)
			part = size - 1 - n;
		if (part > most)
			part = most;
		if (!tdt__target_read(target, address + n, string + n, part)) {
			most = part / 2;
			continue;
		}
		if (memchr(string + n, '\0', part) != NULL)
			return true;
		n += part;
	}
	string[n] = '\0';
	return n > 0;
}

ssize_t tdt__thread_proc_text(const struct tdt__target *target, uint32_t here, const char *name,
			      char *text, size_t size)
{
	char file[64];

	snprintf(file, sizeof file, "task/%" PRIu32 "/%s", here, name);
	return tdt__target_proc_text(target, file, text, size);
}

char tdt__target_state(const struct tdt__target *target)
{
	char text[512];
	const char *state;

	/* The state follows the name of the program, which may contain parentheses. */
	if (tdt__target_proc_text(target, "stat", text, sizeof text) <= 0)
		return '\0';
	state = strrchr(text, ')');
	return state != NULL && state[1] == ' ' ? state[2] : '\0';
}

/* A process that is being killed has none for a while, before it is a zombie. */
static bool has_memory(const struct tdt__target *target)
{
	char pages[64];

	return tdt__target_proc_text(target, "statm", pages, sizeof pages) > 0 &&
	       !tdt__starts_with(pages, "0 ");
}

bool tdt__target_is_there(const struct tdt__target *target)
{
	return target->core != NULL ||
	       (strchr("ZXx", tdt__target_state(target)) == NULL && has_memory(target));
}

uint32_t tdt__target_own_id(const struct tdt__target *target, const char *status)
{
	char text[8192], *line, *last;

	if (tdt__target_proc_text(target, status, text, sizeof text) <= 0)
		return 0;
	line = strstr(text, "\nNSpid:");
	if (line == NULL)
		return 0;
	line[1 + strcspn(line + 1, "\n")] = '\0';
	last = strrchr(line, '\t');
	return last != NULL ? (uint32_t)strtoul(last, NULL, 10) : 0;
}

void tdt__target_close(struct tdt__target *target)
{
	for (size_t i = 0; i < target->n_mappings; i++)
		free(target->mapping[i].path);
	free(target->mapping);
	if (target->proc >= 0)
		close(target->proc);
	tdt__core_free(target->core);
	*target = (struct tdt__target){ .proc = -1 };
}
