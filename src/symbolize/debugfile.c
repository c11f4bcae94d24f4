// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Finding separate debug files, and checking that they belong to the module. */

#include "symbolize/debugfile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>
#include <zlib.h>

#include "base/regular_file.h"
#include "base/text.h"
#include "symbolize/modules.h"

static char default_path[] = ":.debug:/usr/lib/debug";
char *tdt__debugfile_path = default_path;

bool tdt__debugfile_asks_servers;

void tdt__debugfile_by_environment(void)
{
	const char *wanted = secure_getenv("TDT_DEBUGINFOD");

	tdt__debugfile_asks_servers = wanted != NULL && strcmp(wanted, "1") == 0;
}

static bool same_build_id(int fd, const unsigned char *bits, size_t n)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	const void *found = NULL;
	bool same = elf != NULL && dwelf_elf_gnu_build_id(elf, &found) == (ssize_t)n &&
		    memcmp(found, bits, n) == 0;

	elf_end(elf);
	return same;
}

/* Close the file (-1: there is none) unless it is the right one, and tell where that is. */
static int keep_if(int fd, bool right, const char *place, char **found)
{
	if (right)
		*found = strdup(place);
	else if (fd >= 0)
		close(fd);
	return right ? fd : -1;
}

/*
 * Search the directories of tdt__debugfile_path that have .build-id/, which are the absolute ones,
 * for the debug file with that build-id.
 */
static int open_by_build_id(const unsigned char *bits, size_t n, char **found)
{
	char place[PATH_MAX], hex[2 * TDT__BUILD_ID_MAX + 1];
	size_t length;

	if (n < 2 || n > TDT__BUILD_ID_MAX)
		return -1;
	tdt__put_hex(hex, bits, n);
	for (const char *at = tdt__debugfile_path;; at += length + 1) {
		int fd = -1;

		length = strcspn(at, ":");
		if (at[0] == '/' &&
		    snprintf(place, sizeof place, "%.*s/.build-id/%.2s/%s.debug", (int)length, at,
			     hex, hex + 2) < PATH_MAX)
			fd = tdt__regular_open(AT_FDCWD, place);
		fd = keep_if(fd, fd >= 0 && same_build_id(fd, bits, n), place, found);
		if (fd >= 0 || at[length] == '\0')
			return fd;
	}
}

/* The checksum in .gnu_debuglink is the CRC-32 of zlib. */
static bool same_checksum(int fd, GElf_Word crc)
{
	unsigned char bytes[16384];
	uLong sum = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, bytes, sizeof bytes, at)) > 0) {
		sum = crc32(sum, bytes, (uInt)n);
		at += n;
	}
	return n == 0 && sum == crc;
}

/*
 * Whether the file is the module's debug file.  The build-id decides; if the module has none, the
 * checksum does.  With neither of them any file would be a guess.
 */
static bool is_of(Dwfl_Module *elf, int fd, const char *debuglink, GElf_Word crc)
{
	const unsigned char *bits;
	GElf_Addr where;
	int n = dwfl_module_build_id(elf, &bits, &where);

	if (n > 0)
		return same_build_id(fd, bits, (size_t)n);
	return debuglink != NULL && same_checksum(fd, crc);
}

static bool is_same_file(const char *path, int fd)
{
	struct stat a, b;

	return stat(path, &a) == 0 && fstat(fd, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/*
 * Set `place` to where the debug file `name` of the module `path` would be for one directory of
 * tdt__debugfile_path.  False: the path would be too long.
 */
static bool name_place(char place[PATH_MAX], const char *directory, size_t length, const char *path,
		       const char *name)
{
	const char *slash = strrchr(path, '/');
	int n, dir = (int)(slash - path);

	if (length > 0 && directory[0] == '/')
		n = snprintf(place, PATH_MAX, "%.*s%.*s/%s", (int)length, directory, dir, path,
			     name);
	else
		n = snprintf(place, PATH_MAX, "%.*s/%.*s%s%s", dir, path, (int)length, directory,
			     length > 0 ? "/" : "", name);
	return n < PATH_MAX;
}

/*
 * Look in all directories of tdt__debugfile_path: the directory of `path`, directories below that,
 * and separate trees.
 */
static int open_beside(Dwfl_Module *elf, const char *path, const char *debuglink, GElf_Word crc,
		       char **found)
{
	char own[NAME_MAX + sizeof ".debug"], place[PATH_MAX];
	size_t length;
	bool right;

	if (strrchr(path, '/') == NULL)
		return -1;
	snprintf(own, sizeof own, "%s.debug", strrchr(path, '/') + 1);
	for (const char *at = tdt__debugfile_path;; at += length + 1) {
		int fd = -1;

		length = strcspn(at, ":");
		if (name_place(place, at, length, path, debuglink != NULL ? debuglink : own))
			fd = tdt__regular_open(AT_FDCWD, place);
		right = fd >= 0 && !is_same_file(path, fd) && is_of(elf, fd, debuglink, crc);
		fd = keep_if(fd, right, place, found);
		if (fd >= 0 || at[length] == '\0')
			return fd;
	}
}

/*
 * Search by build-id, then by the name that the module gives for its debug file, beside the
 * module's path and beside the real path of the module.
 *
 * dwfl_standard_find_debuginfo() does the same, opens whatever has the right name, and then
 * requests the file from debuginfod.  For that it calls dlopen(), whether or not a server is
 * configured.  So it waits for the loader's lock, which may be held for ever while a constructor
 * runs, and then it waits for the server.  Therefore it is called only if the user wants
 * debuginfod.  The name passed to it is one that it does not find.
 */
int tdt__debugfile_find(Dwfl_Module *elf, void **info, const char *name, Dwarf_Addr base,
			const char *path, const char *debuglink, GElf_Word crc, char **found)
{
	const unsigned char *bits;
	GElf_Addr where;
	int n = dwfl_module_build_id(elf, &bits, &where), fd = -1;
	char *real;

	if (debuglink != NULL && crc == 0)
		return -1; /* tdt__debugfile_find_shared() finds what libdwfl searches for now */
	if (n > 0)
		fd = open_by_build_id(bits, (size_t)n, found);
	if (fd < 0 && path != NULL) {
		fd = open_beside(elf, path, debuglink, crc, found);
		real = fd < 0 ? realpath(path, NULL) : NULL;
		if (real != NULL)
			fd = open_beside(elf, real, debuglink, crc, found);
		free(real);
	}
	if (fd < 0 && tdt__debugfile_asks_servers)
		fd = dwfl_standard_find_debuginfo(elf, info, name, base, path, ".", crc, found);
	return fd;
}

/* Open `name`, which is relative to the file `path`, if its build-id is the right one. */
static int open_shared(const char *path, const char *name, const unsigned char *bits, size_t n,
		       char **found)
{
	const char *slash = strrchr(path, '/');
	int length = name[0] != '/' && slash != NULL ? (int)(slash + 1 - path) : 0, fd = -1;
	char place[PATH_MAX];

	if (snprintf(place, sizeof place, "%.*s%s", length, path, name) < PATH_MAX)
		fd = tdt__regular_open(AT_FDCWD, place);
	return keep_if(fd, fd >= 0 && same_build_id(fd, bits, n), place, found);
}

int tdt__debugfile_find_shared(Dwfl_Module *elf, const char *path, Dwarf *dwarf, char **found)
{
	const char *name;
	const void *bits;
	ssize_t n = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &bits);
	void *none = NULL;
	int fd;

	if (n <= 0)
		return -1;
	fd = open_by_build_id(bits, (size_t)n, found);
	if (fd < 0 && path != NULL)
		fd = open_shared(path, name, bits, (size_t)n, found);
	if (fd < 0 && tdt__debugfile_asks_servers)
		fd = dwfl_standard_find_debuginfo(elf, &none, "", 0, path, ".", 0, found);
	return fd;
}
