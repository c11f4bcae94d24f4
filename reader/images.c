// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Finding modules by the ELF headers in memory, and opening their files. */

#include "reader/images.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/regular_file.h"
#include "reader/core.h"
#include "reader/elf_facts.h"
#include "symbolize/intern.h"
#include "symbolize/modules.h"

#define MOST_MODULES 65536

/* In place of a descriptor. */
enum { NOT_OPENED = -2, NO_FILE = -1 };

/* A module in memory, for tdt__elf_facts(). */
struct loaded_image {
	const struct tdt__target *target;
	uint64_t start;
};

static bool read_loaded(void *image, uint64_t offset, void *buffer, size_t size)
{
	const struct loaded_image *loaded = image;

	return tdt__target_read(loaded->target, loaded->start + offset, buffer, size);
}

static bool may_be_image(const struct tdt__mapping *mapping)
{
	return mapping->readable && mapping->offset == 0 &&
	       (mapping->is_file || strcmp(mapping->path, "[vdso]") == 0);
}

/* False: there is no module. */
static bool describe_image(struct tdt__module *module, const struct tdt__target *target,
			    const struct tdt__mapping *mapping)
{
	struct loaded_image image = { target, mapping->start };
	struct tdt__elf_facts facts;

	if (!tdt__elf_facts(&facts, read_loaded, &image, true) ||
	    facts.end - facts.start > UINT64_MAX - mapping->start)
		return false;
	*module = (struct tdt__module){
		.start = mapping->start,
		.end = mapping->start + (facts.end - facts.start),
		.bias = mapping->start - facts.start,
		.path = mapping->path,
		.lasting = true,
		.foreign = true,
	};
	memcpy(module->build_id, facts.build_id, sizeof module->build_id);
	return true;
}

/*
 * Whether the mapping is of a segment of the module before it: the segment of a small file may
 * begin in the file's first page, too.
 */
static bool lies_inside_of(const struct tdt__module *before, const struct tdt__mapping *mapping)
{
	return mapping->start < before->end && strcmp(mapping->path, before->path) == 0;
}

/* The mappings are sorted, so the modules are, too.  A module ends where the next one begins. */
static size_t list_modules(struct tdt__module *module, const struct tdt__target *target)
{
	size_t n = 0;

	for (size_t i = 0; i < target->n_mappings && n < MOST_MODULES; i++) {
		if (!may_be_image(&target->mapping[i]) ||
		    !describe_image(&module[n], target, &target->mapping[i]))
			continue;
		if (n > 0 && lies_inside_of(&module[n - 1], &target->mapping[i]))
			continue;
		if (n > 0 && module[n - 1].end > module[n].start)
			module[n - 1].end = module[n].start;
		n++;
	}
	return n;
}

int tdt__images_init(struct tdt__images *images, struct tdt__target *target,
		     const struct tdt__places *places)
{
	struct tdt__module *module = calloc(target->n_mappings + 1, sizeof *module);
	size_t n = module != NULL ? list_modules(module, target) : 0;

	*images = (struct tdt__images){ .target = target, .places = *places };
	images->table = module != NULL ? tdt__modules_of(module, n) : NULL;
	images->file = malloc((n + 1) * sizeof images->file[0]);
	free(module);
	if (images->table == NULL || images->file == NULL) {
		tdt__modules_unref(images->table);
		free(images->file);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		images->file[i] = NOT_OPENED;
	return 0;
}

void tdt__images_fini(struct tdt__images *images)
{
	for (size_t i = 0; i < images->table->n; i++)
		if (images->file[i] >= 0)
			close(images->file[i]);
	free(images->file);
	tdt__modules_unref(images->table);
}

static bool read_file_image(void *image, uint64_t offset, void *buffer, size_t size)
{
	return pread(*(const int *)image, buffer, size, (off_t)offset) == (ssize_t)size;
}

/* Close `file`, and return NO_FILE, unless it is the file of `module`. */
static int accept_file(int file, const struct tdt__module *module)
{
	struct tdt__elf_facts facts;

	if (file < 0)
		return NO_FILE;
	if (module->build_id[0] != '\0' && tdt__elf_facts(&facts, read_file_image, &file, false) &&
	    strcmp(facts.build_id, module->build_id) == 0)
		return file;
	close(file);
	return NO_FILE;
}

static int open_beneath(int root, const char *path)
{
	const struct open_how how = { .flags = TDT__LOOK_FLAGS,
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int found = root >= 0 ? (int)syscall(SYS_openat2, root, path, &how, sizeof how) : NO_FILE;

	return tdt__regular_open_found(found);
}

static int open_below_directory(int at, const char *directory, const char *path)
{
	int root = openat(at, directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int file = open_beneath(root, path);

	if (root >= 0)
		close(root);
	return file;
}

/* The kernel's link to a mapped file works even if the file was deleted, but needs privileges. */
static int open_mapped_file(const struct tdt__target *target, const struct tdt__mapping *mapping)
{
	char name[64];

	snprintf(name, sizeof name, "map_files/%" PRIx64 "-%" PRIx64, mapping->start,
		 mapping->end);
	return tdt__regular_open(target->proc, name);
}

static int open_of_process(const struct tdt__images *images, const struct tdt__module *module)
{
	const struct tdt__target *target = images->target;
	const struct tdt__mapping *mapping = tdt__target_mapping(target, module->start);
	int file = mapping != NULL ? accept_file(open_mapped_file(target, mapping), module)
				   : NO_FILE;

	/* The program's own file can be had without privileges, even if it was deleted. */
	if (file < 0 && strstr(module->path, " (deleted)") != NULL)
		file = accept_file(tdt__regular_open(target->proc, "exe"), module);
	if (file < 0)
		file = accept_file(open_below_directory(target->proc, "root", module->path),
				   module);
	if (file < 0)
		file = accept_file(open_below_directory(AT_FDCWD, "/", module->path), module);
	return file;
}

static bool is_program(const struct tdt__images *images, const struct tdt__module *module)
{
	uint64_t entry = images->target->core->entry;

	return entry >= module->start && entry < module->end;
}

static int open_of_core(const struct tdt__images *images, const struct tdt__module *module)
{
	const struct tdt__places *places = &images->places;
	int file = NO_FILE;

	if (places->exe != NULL && is_program(images, module))
		file = accept_file(tdt__regular_open(AT_FDCWD, places->exe), module);
	if (file < 0 && places->sysroot != NULL)
		file = accept_file(open_below_directory(AT_FDCWD, places->sysroot, module->path),
				   module);
	if (file < 0)
		file = accept_file(open_below_directory(AT_FDCWD, "/", module->path), module);
	return file;
}

/* Let the symbolizer and readers of memory use the file. */
static void lend_file(struct tdt__images *images, struct tdt__module *module, int file)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	module->mapped = tdt__intern(path);
	for (size_t i = 0; i < images->target->n_mappings; i++) {
		struct tdt__mapping *mapping = &images->target->mapping[i];

		if (mapping->start >= module->start && mapping->start < module->end &&
		    strcmp(mapping->path, module->path) == 0)
			mapping->file = file;
	}
}

int tdt__images_open(struct tdt__images *images, uint64_t address)
{
	/* The table is ours alone until names are looked up. */
	struct tdt__module *module =
		(struct tdt__module *)(uintptr_t)tdt__modules_find(images->table, address);
	int *file;

	if (module == NULL || images->places.no_files || module->path[0] != '/')
		return NO_FILE;
	file = &images->file[module - images->table->module];
	if (*file != NOT_OPENED)
		return *file;
	*file = images->target->core != NULL ? open_of_core(images, module)
					     : open_of_process(images, module);
	if (*file >= 0)
		lend_file(images, module, *file);
	else
		module->mapped = ""; /* the symbolizer finds the debug file by the build-id */
	return *file;
}

bool tdt__images_string(struct tdt__images *images, uint64_t address, char *string, size_t size)
{
	if (tdt__target_string(images->target, address, string, size))
		return true;
	return images->target->core != NULL && tdt__images_open(images, address) >= 0 &&
	       tdt__target_string(images->target, address, string, size);
}
