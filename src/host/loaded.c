// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Describing a module from the memory of this process. */

#include "host/loaded.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/text.h"
#include "host/lasting.h"
#include "host/pages.h"
#include "symbolize/maps.h"
#include "symbolize/modules.h"

bool tdt__is_loaded(uintptr_t address)
{
	struct dl_find_object found;

	return _dl_find_object((void *)address, &found) == 0;
}

#define NOTES_SIZE 1024   /* of each segment of notes no more bytes are read */
#define SEGMENTS_MAX 32u  /* no more segments are looked at; linkers make about a dozen */
#define MODULE_PATH_SIZE 4096

/*
 * Buffers for what is read from the module.  They are not on the stack, which may be that of a
 * small coroutine.  Protected by tdt__unwind_lock.
 */
static _Alignas(8) unsigned char notes[NOTES_SIZE];
static ElfW(Phdr) segments[SEGMENTS_MAX];
static char path_read[MODULE_PATH_SIZE];

static void read_notes(struct tdt__module *module, const ElfW(Phdr) *segment)
{
	size_t size = segment->p_filesz < sizeof notes ? segment->p_filesz : sizeof notes;

	size = tdt__pages_copy(notes, module->bias + segment->p_vaddr, size);
	tdt__build_id_find(module->build_id, notes, size, segment->p_align);
}

static bool is_executable(const struct tdt__module *module)
{
	return module->link_map == (uintptr_t)_r_debug.r_map;
}

/*
 * Return where the program headers of the module lie; `*n` is how many there are.  The ELF header
 * says both, and lies where the module begins, unless a linker script placed it elsewhere.  If an
 * executable has holes between its segments, as lld often leaves them, _dl_find_object() reports
 * each segment as a module of its own; then the kernel says where the program headers are.
 */
static uintptr_t program_headers(const struct tdt__module *module, size_t *n)
{
	ElfW(Ehdr) header;

	if (tdt__pages_copy(&header, module->start, sizeof header) == sizeof header &&
	    memcmp(header.e_ident, ELFMAG, SELFMAG) == 0) {
		*n = header.e_phnum;
		return module->start + header.e_phoff;
	}
	*n = is_executable(module) ? getauxval(AT_PHNUM) : 0;
	return getauxval(AT_PHDR);
}

static void read_segments(struct tdt__module *module)
{
	size_t n;
	uintptr_t headers = program_headers(module, &n);

	n = n < SEGMENTS_MAX ? n : SEGMENTS_MAX;
	n = tdt__pages_copy(segments, headers, n * sizeof segments[0]) / sizeof segments[0];
	for (size_t i = 0; i < n && module->build_id[0] == '\0'; i++)
		if (segments[i].p_type == PT_NOTE)
			read_notes(module, &segments[i]);
}

/*
 * The executable's path, which the loader does not have.  Without /proc the result is the path by
 * which the process was started.
 */
static char *executable_path(void)
{
	const char *started = (const char *)getauxval(AT_EXECFN);
	ssize_t n = readlink("/proc/self/exe", path_read, sizeof path_read - 1);

	if (n > 0) {
		path_read[n] = '\0';
		return strdup(path_read);
	}
	return strdup(started != NULL ? started : "");
}

/*
 * The loader gives the executable no name.  The name that it gives the kernel's own module (the
 * vDSO) is not that of a file.
 */
static char *path_of(const struct tdt__module *module, uintptr_t name)
{
	if (is_executable(module))
		return executable_path();
	path_read[tdt__pages_copy(path_read, name, sizeof path_read - 1)] = '\0';
	return strdup(path_read[0] == '\0' || module->start == getauxval(AT_SYSINFO_EHDR) ?
			      "[vdso]" :
			      path_read);
}

/*
 * The whole path of the module's file.  If another file is mapped there by now, the path that the
 * loader has is better, and is the result.
 */
static char *find_path(const struct tdt__module *module)
{
	char *path = tdt__maps_path(module->start);

	if (path != NULL && strcmp(tdt__file_name(path), tdt__file_name(module->path)) == 0)
		return path;
	free(path);
	return strdup(module->path);
}

/*
 * Fill in `*module`.  Returns 0, -ENOENT (the loader's record can't be read: the module was
 * unloaded, or reading is refused) or -ENOMEM.  If the module is unloaded meanwhile, the
 * description is wrong; the number of unloads in the table reveals that.
 */
static int describe_module(struct tdt__module *module, const struct dl_find_object *found)
{
	struct link_map map;
	int saved = errno;

	tdt__pages_forget(); /* the loader's records change */
	*module = (struct tdt__module){
		.start = (uintptr_t)found->dlfo_map_start,
		.end = (uintptr_t)found->dlfo_map_end,
		.link_map = (uintptr_t)found->dlfo_link_map,
		.find_path = find_path,
		.lasting = tdt__is_lasting(found->dlfo_link_map),
	};
	if (tdt__pages_copy(&map, module->link_map, sizeof map) != sizeof map) {
		errno = saved;
		return -ENOENT;
	}
	module->bias = map.l_addr;
	module->mapped = is_executable(module) ? "/proc/self/exe" : NULL;
	read_segments(module);
	module->path = path_of(module, (uintptr_t)map.l_name);
	errno = saved;
	return module->path != NULL ? 0 : -ENOMEM;
}

static bool is_same_module(const struct tdt__module *module, const struct dl_find_object *found)
{
	return module->link_map == (uintptr_t)found->dlfo_link_map &&
	       module->start == (uintptr_t)found->dlfo_map_start &&
	       module->end == (uintptr_t)found->dlfo_map_end;
}

int tdt__loaded_meet(struct tdt__modules **table, uintptr_t pc)
{
	const struct tdt__module *known = tdt__modules_find(*table, pc);
	struct dl_find_object found;
	struct tdt__module module;
	int error;

	if (_dl_find_object((void *)pc, &found) != 0)
		return -ENOENT;
	if (known != NULL && is_same_module(known, &found))
		return 0;
	error = describe_module(&module, &found);
	if (error != 0)
		return error;
	if (!tdt__modules_add(table, &module,
			      tdt__modules_overlap(*table, module.start, module.end))) {
		free(module.path);
		return -ENOMEM;
	}
	return 0;
}
