// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Snapshots of what the dynamic loader has loaded. */

#include <config.h>

#include "modules.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct counts {
	uint64_t loads, unloads;
};

static int read_counts(struct dl_phdr_info *info, size_t size, void *data)
{
	struct counts *counts = data;

	(void)size;
	counts->loads = info->dlpi_adds;
	counts->unloads = info->dlpi_subs;
	return 1; /* the first module tells; no need to see the others */
}

void tdt__modules_now(uint64_t *loads, uint64_t *unloads)
{
	struct counts counts = { 0, 0 };

	dl_iterate_phdr(read_counts, &counts);
	*loads = counts.loads;
	*unloads = counts.unloads;
}

static size_t padded(size_t size, size_t align)
{
	return (size + align - 1) & ~(align - 1);
}

/* Notes are aligned to 4 bytes, or to 8 if their segment says so. */
static void read_build_id(struct tdt__module *module, uintptr_t notes, size_t size, size_t align)
{
	align = align == 8 ? 8 : 4;
	while (size >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)notes;
		const char *name = (const char *)(note + 1);
		const uint8_t *id = (const uint8_t *)note + padded(sizeof *note + note->n_namesz, align);
		size_t whole = padded((size_t)(id - (const uint8_t *)note) + note->n_descsz, align);

		if (whole > size)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
			for (size_t i = 0; i < note->n_descsz && i < TDT__BUILD_ID_MAX; i++)
				sprintf(module->build_id + 2 * i, "%02x", id[i]);
			return;
		}
		notes += whole;
		size -= whole;
	}
}

static bool in_segments(const struct dl_phdr_info *info, uintptr_t address, size_t size)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_R) != 0 && address >= start &&
		    address - start <= segment->p_filesz && size <= segment->p_filesz - (address - start))
			return true;
	}
	return false;
}

/* What the line of /proc/self/maps names, if it is about `address`; NULL: nothing. */
static char *mapped_path(char *line, uintptr_t address)
{
	uintptr_t start, end;
	int path = 0;

	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &start, &end, &path) < 2 ||
	    address < start || address >= end || line[path] != '/')
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	return strdup(line + path);
}

char *tdt__modules_path_at(uintptr_t address)
{
	char *line = NULL, *path = NULL;
	size_t size = 0;
	FILE *maps;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* a lock is held */
	maps = fopen("/proc/self/maps", "re");
	while (maps != NULL && path == NULL && getline(&line, &size, maps) >= 0)
		path = mapped_path(line, address);
	free(line);
	if (maps != NULL)
		fclose(maps);
	pthread_setcancelstate(cancel, NULL);
	return path;
}

/* The loader gives the executable no name, and the kernel's own module none that is a file. */
static char *path_of(const struct dl_phdr_info *info, uintptr_t start, bool executable)
{
	char exe[4096], *path = NULL;
	ssize_t n;

	if (executable) {
		n = readlink("/proc/self/exe", exe, sizeof exe - 1);
		exe[n > 0 ? n : 0] = '\0';
		return strdup(exe);
	}
	if (info->dlpi_name == NULL || info->dlpi_name[0] == '\0' || strncmp(info->dlpi_name, "linux-", 6) == 0)
		return strdup("[vdso]");
	/* The loader has the path it was given, which may be relative to a directory that was left since. */
	if (info->dlpi_name[0] != '/')
		path = tdt__modules_path_at(start);
	return path != NULL ? path : strdup(info->dlpi_name);
}

static void add_segment(struct tdt__module *module, uintptr_t start, const ElfW(Phdr) *segment)
{
	uintptr_t end = start + segment->p_memsz;

	if (start < module->start)
		module->start = start;
	if (end > module->end)
		module->end = end;
	for (int i = 0; i < TDT__SEGMENTS_MAX && (segment->p_flags & PF_R) != 0; i++) {
		if (module->readable[i].end == 0) {
			module->readable[i].start = start;
			module->readable[i].end = end;
			break;
		}
	}
}

static int describe(struct tdt__module *module, const struct dl_phdr_info *info, bool executable)
{
	memset(module, 0, sizeof *module);
	module->bias = info->dlpi_addr;
	module->start = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD) {
			add_segment(module, start, segment);
		} else if (segment->p_type == PT_NOTE && module->build_id[0] == '\0' &&
			   in_segments(info, start, segment->p_memsz)) {
			read_build_id(module, start, segment->p_memsz, segment->p_align);
		}
	}
	module->path = path_of(info, module->start, executable);
	return module->path != NULL ? 0 : -ENOMEM;
}

struct taking {
	struct tdt__modules *modules;
	size_t capacity;
	bool failed;
};

static int take_one(struct dl_phdr_info *info, size_t size, void *data)
{
	struct taking *taking = data;
	struct tdt__modules *modules = taking->modules;
	bool executable = modules->n == 0;

	(void)size;
	modules->loads = info->dlpi_adds;
	modules->unloads = info->dlpi_subs;
	if (modules->n == taking->capacity) {
		size_t capacity = 2 * taking->capacity;
		size_t bytes = sizeof *modules + capacity * sizeof modules->module[0];

		modules = realloc(modules, bytes);
		if (modules == NULL)
			goto failed;
		taking->modules = modules;
		taking->capacity = capacity;
	}
	if (describe(&modules->module[modules->n], info, executable) != 0)
		goto failed;
	modules->n++;
	return 0;

failed:
	taking->failed = true;
	return 1;
}

static int by_start(const void *a, const void *b)
{
	const struct tdt__module *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static void modules_free(struct tdt__modules *modules)
{
	for (size_t i = 0; i < modules->n; i++)
		free(modules->module[i].path);
	free(modules);
}

struct tdt__modules *tdt__modules_take(void)
{
	struct taking taking = { .capacity = 16 };

	taking.modules = calloc(1, sizeof *taking.modules + taking.capacity * sizeof taking.modules->module[0]);
	if (taking.modules == NULL)
		return NULL;
	atomic_init(&taking.modules->refs, 1);
	dl_iterate_phdr(take_one, &taking);
	if (taking.failed) {
		modules_free(taking.modules);
		return NULL;
	}
	qsort(taking.modules->module, taking.modules->n, sizeof taking.modules->module[0], by_start);
	return taking.modules;
}

struct tdt__modules *tdt__modules_ref(struct tdt__modules *modules)
{
	atomic_fetch_add_explicit(&modules->refs, 1, memory_order_relaxed);
	return modules;
}

void tdt__modules_unref(struct tdt__modules *modules)
{
	/* Release what this holder read; acquire (by the last) what all others did: pairs with itself. */
	if (modules != NULL && atomic_fetch_sub_explicit(&modules->refs, 1, memory_order_acq_rel) == 1)
		modules_free(modules);
}

const struct tdt__module *tdt__modules_find(const struct tdt__modules *modules, uintptr_t address)
{
	size_t low = 0, high = modules->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (address >= modules->module[middle].end)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < modules->n && address >= modules->module[low].start)
		return &modules->module[low];
	return NULL;
}

bool tdt__modules_readable(const struct tdt__modules *modules, uintptr_t address)
{
	const struct tdt__module *module = tdt__modules_find(modules, address);

	for (int i = 0; module != NULL && i < TDT__SEGMENTS_MAX; i++)
		if (address >= module->readable[i].start && address < module->readable[i].end &&
		    module->readable[i].end - address >= sizeof(uintptr_t))
			return true;
	return false;
}
