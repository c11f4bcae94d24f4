// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Opening ELF and debug files with libdwfl.
 *
 * Each module has a Dwfl of its own, in which the module is loaded at the addresses that its file
 * gives.  So the Dwfl stays valid wherever the module is loaded, unloaded and loaded again.
 */

#include "symbolize/debuginfo.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>

#include "base/regular_file.h"
#include "base/text.h"
#include "symbolize/debugfile.h"
#include "symbolize/maps.h"
#include "symbolize/modules.h"

/*
 * libdw's largest single need is the abbreviations of a unit: 100 KiB for a thousand of them.  Each
 * piece is smaller than malloc's threshold for mmap, because freeing a larger piece would raise
 * that threshold for the whole process.
 */
#define RESERVE_PIECES 4
#define RESERVE_PIECE (120 << 10)

bool tdt__debuginfo_reserve(void)
{
	/* Volatile, because a compiler may drop a malloc() that is only freed. */
	void *volatile piece[RESERVE_PIECES];
	bool all = true;

	for (int i = 0; i < RESERVE_PIECES; i++) {
		piece[i] = malloc(RESERVE_PIECE);
		all = all && piece[i] != NULL;
	}
	for (int i = 0; i < RESERVE_PIECES; i++)
		free(piece[i]);
	return all;
}

bool tdt__debuginfo_descriptors(void)
{
	int fd[TDT__DEBUGINFO_FILES + 1]; /* one is open twice for a moment */
	bool lack = false;

	for (int i = 0; i <= TDT__DEBUGINFO_FILES; i++) {
		fd[i] = open("/", O_PATH | O_CLOEXEC);
		lack = lack || (fd[i] < 0 && (errno == EMFILE || errno == ENFILE));
	}
	for (int i = 0; i <= TDT__DEBUGINFO_FILES; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	return !lack;
}

static bool has_build_id(Dwfl_Module *elf, const char *build_id)
{
	const unsigned char *bits;
	GElf_Addr where;
	int n = dwfl_module_build_id(elf, &bits, &where);
	char hex[2 * TDT__BUILD_ID_MAX + 1];

	if (n <= 0)
		return build_id[0] == '\0';
	if (n > TDT__BUILD_ID_MAX)
		n = TDT__BUILD_ID_MAX;
	tdt__put_hex(hex, bits, (size_t)n);
	return strcmp(hex, build_id) == 0;
}

static void remember_file(struct tdt__debuginfo *info, int fd, const char *path)
{
	struct tdt__debuginfo_file *file = &info->file[info->n_files];
	struct stat status;

	if (info->n_files == TDT__DEBUGINFO_FILES || fstat(fd, &status) != 0)
		return;
	*file = (struct tdt__debuginfo_file){
		.fd = fd,
		.path = realpath(path, NULL),
		.device = status.st_dev,
		.inode = status.st_ino,
		.owner = status.st_uid,
		.size = status.st_size,
		.modified = status.st_mtim,
	};
	info->n_files++;
}

static bool overwritten(const struct tdt__debuginfo_file *file)
{
	struct stat status;

	return file->path != NULL && stat(file->path, &status) == 0 &&
	       status.st_dev == file->device && status.st_ino == file->inode &&
	       (status.st_size != file->size || status.st_mtim.tv_sec != file->modified.tv_sec ||
		status.st_mtim.tv_nsec != file->modified.tv_nsec);
}

bool tdt__debuginfo_overwritten(const struct tdt__debuginfo *info)
{
	for (int i = 0; i < info->n_files; i++)
		if (overwritten(&info->file[i]))
			return true;
	return false;
}

static int find_debuginfo(Dwfl_Module *elf, void **info, const char *name, Dwarf_Addr base,
			  const char *path, const char *debuglink, GElf_Word crc, char **found)
{
	int fd = tdt__debugfile_find(elf, info, name, base, path, debuglink, crc, found);

	if (fd >= 0) {
		fcntl(fd, F_SETFD, FD_CLOEXEC);
		remember_file(*info, fd, *found);
	}
	return fd;
}

/* --- Opening ------------------------------------------------------------------ */

/*
 * Find the addresses at which the file is to be loaded, from its segments, which are in ascending
 * order.
 */
static bool find_addresses(Elf *elf, GElf_Addr *start, GElf_Addr *end)
{
	GElf_Phdr phdr;
	size_t n;

	*start = *end = 0;
	if (elf_getphdrnum(elf, &n) != 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (gelf_getphdr(elf, (int)i, &phdr) == NULL || phdr.p_type != PT_LOAD)
			continue;
		if (*end == 0)
			*start = phdr.p_vaddr & -(phdr.p_align != 0 ? phdr.p_align : 1);
		*end = phdr.p_vaddr + phdr.p_memsz;
	}
	return *start < *end;
}

/* What open_as() opened, for find_elf() to pass on. */
struct opened {
	struct tdt__debuginfo *info;
	Elf *elf;
	int fd;
	char *path;
};

/*
 * The function that libdwfl calls to get the ELF file.  From now on libdwfl owns the file and the
 * path.
 */
static int find_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
		    char **path, Elf **elf)
{
	struct opened *opened = *data;
	int fd = opened->fd;

	(void)module;
	(void)name;
	(void)base;
	*data = opened->info;
	*path = opened->path;
	*elf = opened->elf;
	*opened = (struct opened){ .fd = -1 };
	return fd;
}

/*
 * Open `path`.  Returns true if it is the module's file.
 *
 * The file is mapped read only.  libdwfl would map it writable and private.  Such a mapping is what
 * the kernel looks for when a tracer attaches to a probe: the kernel would raise the probe's
 * semaphore in our copy of the file, and not where the program reads it.
 */
static bool open_as(struct tdt__debuginfo *info, const char *path, const char *build_id)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = find_elf,
		.find_debuginfo = find_debuginfo,
		.debuginfo_path = &tdt__debugfile_path,
	};
	struct opened opened = { .info = info, .fd = tdt__regular_open(AT_FDCWD, path) };
	GElf_Addr start, end, bias;
	int fd = opened.fd;
	bool right = false;
	void **data;

	if (fd < 0)
		return false;
	info->dwfl = dwfl_begin(&callbacks);
	opened.elf = info->dwfl != NULL ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
	opened.path = strdup(path);
	if (opened.elf != NULL && opened.path != NULL && find_addresses(opened.elf, &start, &end))
		info->elf = dwfl_report_module(info->dwfl, "", start, end);
	if (info->elf != NULL) {
		dwfl_module_info(info->elf, &data, NULL, NULL, NULL, NULL, NULL, NULL);
		*data = &opened;
		right = dwfl_report_end(info->dwfl, NULL, NULL) == 0 &&
			dwfl_module_getelf(info->elf, &bias) != NULL &&
			has_build_id(info->elf, build_id);
		*data = info;
	}
	if (right) {
		remember_file(info, fd, path);
		return true;
	}
	/* dwfl_end() releases what libdwfl took over. */
	dwfl_end(info->dwfl);
	elf_end(opened.elf);
	free(opened.path);
	if (opened.fd >= 0)
		close(opened.fd);
	*info = (struct tdt__debuginfo){ 0 };
	return false;
}

static bool open_debug_file(struct tdt__debuginfo *info, const char *build_id)
{
	char path[256];
	const char *directory = strrchr(tdt__debugfile_path, ':');
	int n;

	directory = directory != NULL ? directory + 1 : tdt__debugfile_path;
	n = snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", directory, build_id,
		     build_id + 2);
	return n < (int)sizeof(path) && open_as(info, path, build_id);
}

void tdt__debuginfo_open(struct tdt__debuginfo *info, const char *path, const char *mapped,
			 const char *build_id)
{
	*info = (struct tdt__debuginfo){ 0 };
	if (path != NULL && open_as(info, path, build_id))
		return;
	/*
	 * Without a build-id nothing identifies the right file, so any file but `path` would be a
	 * guess.
	 */
	if (strlen(build_id) <= 2 || (mapped != NULL && open_as(info, mapped, build_id)))
		return;
	open_debug_file(info, build_id);
}

/*
 * Where tdt__debuginfo_try() continues after longjmp().  One variable is enough: there is one
 * namer.
 */
static jmp_buf *way_out;

static void __attribute__((noreturn)) leave_libdw(void)
{
	longjmp(*way_out, 1);
}

Dwarf *tdt__debuginfo_begin(Elf *elf)
{
	Dwarf *dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);

	if (dwarf != NULL)
		dwarf_new_oom_handler(dwarf, leave_libdw);
	return dwarf;
}

static bool shares_more(Dwarf *dwarf)
{
	const void *id;
	const char *name;

	return dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id) > 0;
}

/*
 * Open what dwz moved out of this module and others.  Returns false if it is missing: then libdw
 * must not meet a reference to it, because it would open any file of that name.  For the same
 * reason that file must not name another one.
 */
static bool open_shared_dwarf(struct tdt__debuginfo *info, Dwarf *dwarf)
{
	char *found = NULL;
	Dwarf *shared;
	Elf *elf;
	int fd = -1;

	if (!shares_more(dwarf))
		return true;
	for (int i = 0; i < info->n_files && fd < 0; i++)
		fd = tdt__debugfile_find_shared(info->elf, info->file[i].path, dwarf, &found);
	elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
	shared = elf != NULL ? tdt__debuginfo_begin(elf) : NULL;
	if (shared != NULL && shares_more(shared)) {
		dwarf_end(shared);
		shared = NULL;
	}
	if (shared != NULL) {
		remember_file(info, fd, found);
		dwarf_setalt(dwarf, shared);
	} else if (fd >= 0) {
		elf_end(elf);
		close(fd);
	}
	free(found);
	return shared != NULL;
}

Dwarf *tdt__debuginfo_dwarf(struct tdt__debuginfo *info, Dwarf_Addr *bias)
{
	Dwarf *dwarf = info->elf != NULL ? dwfl_module_getdwarf(info->elf, bias) : NULL;

	if (dwarf == NULL || !open_shared_dwarf(info, dwarf))
		return NULL;
	dwarf_new_oom_handler(dwarf, leave_libdw);
	return dwarf;
}

/*
 * From this size on a file is large.  Little of a large file is needed, but that is scattered: the
 * head of each unit, then some whole units.  The kernel reads ahead, and maps the cached pages
 * around a page that is touched.  For 27 PCs in 27 of 800 units, in a file of 262 MB, it read 262
 * MB from the disk and mapped 62 MB; with advice it read 24 MB and mapped 14 MB.
 */
#define LARGE (16 << 20)

/*
 * Whether a file of `size` bytes is mapped at `start`.  libelf reads a file into memory if it
 * cannot map the file.
 */
static bool is_mapped(const char *start, size_t size)
{
	char *path = tdt__maps_path((uintptr_t)start);
	struct stat status;
	bool mapped = path != NULL && stat(path, &status) == 0 && (uintmax_t)status.st_size == size;

	free(path);
	return mapped;
}

/*
 * Give advice for all of the file but the section headers, which come last.  libdwfl maps debug
 * files writable and private, and libelf changes the header of a section when it decompresses the
 * section.  That change is only in memory and must not be lost.
 */
static void advise(Dwarf *dwarf, int advice)
{
	Elf *elf = dwarf != NULL ? dwarf_getelf(dwarf) : NULL;
	size_t size = 0;
	char *start = elf_rawfile(elf, &size);
	GElf_Ehdr header;

	if (start == NULL || size < LARGE || gelf_getehdr(elf, &header) == NULL ||
	    !is_mapped(start, size))
		return;
	if (header.e_shoff < size)
		size = header.e_shoff;
	madvise(start, size - size % (size_t)sysconf(_SC_PAGESIZE), advice);
}

void tdt__debuginfo_read_sparsely(Dwarf *dwarf)
{
	advise(dwarf, MADV_RANDOM);
	advise(dwarf_getalt(dwarf), MADV_RANDOM);
}

void tdt__debuginfo_forget_pages(Dwarf *dwarf)
{
	advise(dwarf, MADV_DONTNEED);
}

void tdt__debuginfo_close_files(struct tdt__debuginfo *info, Dwarf *dwarf)
{
	Dwarf *shared = dwarf != NULL ? dwarf_getalt(dwarf) : NULL;
	Elf *elf[4] = { NULL }; /* those that may be in use; some may be the same */
	GElf_Sym symbol;
	GElf_Addr address;
	Dwarf_Addr bias;
	struct stat status;

	elf[0] = dwfl_module_getelf(info->elf, &address);
	elf[1] = dwarf != NULL ? dwarf_getelf(dwarf) : NULL;
	elf[2] = shared != NULL ? dwarf_getelf(shared) : NULL;
	dwfl_module_getsym_info(info->elf, 1, &symbol, &address, NULL, &elf[3], &bias);
	for (int i = 0; i < 4; i++) {
		if (elf[i] != NULL && elf_rawfile(elf[i], NULL) == NULL)
			return; /* this file is not mapped, and could not be read once closed */
	}
	/* This may fail, if the same Elf came before; that does no harm. */
	for (int i = 0; i < 4; i++)
		elf_cntl(elf[i], ELF_C_FDDONE);
	for (int i = 0; i < info->n_files; i++) {
		/*
		 * libdwfl may have closed a file that it rejected.  Another file may have its
		 * descriptor now.
		 */
		if (info->file[i].fd >= 0 && fstat(info->file[i].fd, &status) == 0 &&
		    status.st_dev == info->file[i].device && status.st_ino == info->file[i].inode)
			close(info->file[i].fd);
		info->file[i].fd = -1;
	}
}

int tdt__debuginfo_try(bool (*body)(void *data), void *data)
{
	jmp_buf here;

	if (!tdt__debuginfo_reserve())
		return -ENOMEM;
	if (setjmp(here) != 0)
		return -ENOTRECOVERABLE;
	way_out = &here;
	return body(data) ? 0 : -ENOMEM;
}
