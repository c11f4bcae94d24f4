// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Opening ELF and debug files by libdwfl.
 *
 * Each module has a Dwfl of its own, in which it is loaded at the addresses of its file: so it stays valid wherever the
 * module is loaded, unloaded and loaded again.
 */

#include <config.h>

#include "debuginfo.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "modules.h"

static char default_path[] = ":.debug:/usr/lib/debug";
char *tdt__debuginfo_path = default_path;

/* A regular file's descriptor, or -1.  The file may be another than the one loaded: a FIFO must not block us. */
static int open_file(const char *path)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool has_build_id(Dwfl_Module *elf, const char *build_id)
{
	const unsigned char *bits;
	GElf_Addr where;
	int n = dwfl_module_build_id(elf, &bits, &where);
	char hex[3];

	if (n <= 0)
		return build_id[0] == '\0';
	if (n > TDT__BUILD_ID_MAX)
		n = TDT__BUILD_ID_MAX;
	if (strlen(build_id) != 2 * (size_t)n)
		return false;
	for (int i = 0; i < n; i++) {
		snprintf(hex, sizeof(hex), "%02x", bits[i]);
		if (memcmp(hex, build_id + 2 * i, 2) != 0)
			return false;
	}
	return true;
}

/* True: that is the file. */
static bool open_as(struct tdt__debuginfo *info, const char *path, const char *build_id)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.debuginfo_path = &tdt__debuginfo_path,
	};
	int fd = open_file(path);
	GElf_Addr bias;

	if (fd < 0)
		return false;
	info->dwfl = dwfl_begin(&callbacks);
	if (info->dwfl == NULL)
		goto close_fd;
	info->elf = dwfl_report_elf(info->dwfl, "", path, fd, 0, true);
	if (info->elf == NULL)
		goto end_dwfl;
	/* The descriptor is libdwfl's now, and this closes it: the file is mapped. */
	if (dwfl_report_end(info->dwfl, NULL, NULL) == 0 && dwfl_module_getelf(info->elf, &bias) != NULL &&
	    has_build_id(info->elf, build_id))
		return true;
	fd = -1;
end_dwfl:
	dwfl_end(info->dwfl);
	*info = (struct tdt__debuginfo){ 0 };
close_fd:
	if (fd >= 0)
		close(fd);
	return false;
}

static bool open_debug_file(struct tdt__debuginfo *info, const char *build_id)
{
	char path[256];
	const char *directory = strrchr(tdt__debuginfo_path, ':');
	int n;

	directory = directory != NULL ? directory + 1 : tdt__debuginfo_path;
	n = snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", directory, build_id, build_id + 2);
	return n < (int)sizeof(path) && open_as(info, path, build_id);
}

void tdt__debuginfo_open(struct tdt__debuginfo *info, const char *path, const char *build_id)
{
	*info = (struct tdt__debuginfo){ 0 };
	if (open_as(info, path, build_id))
		return;
	/* With nothing to know the right file by, another one than `path` would be a guess. */
	if (strlen(build_id) > 2 && !open_as(info, "/proc/self/exe", build_id))
		open_debug_file(info, build_id);
}

/* Where tdt__debuginfo_try() was called: one at a time, by the lock. */
static jmp_buf *way_out;

static void __attribute__((noreturn)) leave(void)
{
	longjmp(*way_out, 1);
}

Dwarf *tdt__debuginfo_dwarf(struct tdt__debuginfo *info, Dwarf_Addr *bias)
{
	Dwarf *dwarf = info->elf != NULL ? dwfl_module_getdwarf(info->elf, bias) : NULL;
	Dwarf *shared;

	if (dwarf == NULL)
		return NULL;
	dwarf_new_oom_handler(dwarf, leave);
	shared = dwarf_getalt(dwarf); /* what dwz moved out of several modules */
	if (shared != NULL)
		dwarf_new_oom_handler(shared, leave);
	return dwarf;
}

bool tdt__debuginfo_try(void (*body)(void *data), void *data)
{
	jmp_buf here;

	if (setjmp(here) != 0)
		return false;
	way_out = &here;
	body(data);
	return true;
}
