/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_SYMBOLIZE_DEBUGINFO_H
#define TDT_SRC_SYMBOLIZE_DEBUGINFO_H

/*
 * A module's ELF file and its debug information, wherever that lies: in the file, in a separate one named by build-id
 * or .gnu_debuglink.  All addresses are the ELF file's own.  Everything here is for the namer only (namer.h).
 */

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include <elfutils/libdwfl.h>

/*
 * Where separate debug files are, as libdwfl wants it: `.debug` beside the module, then, last, a directory that also
 * has .build-id/.  A test may set another.
 */
extern char *tdt__debuginfo_path;

#define TDT__DEBUGINFO_FILES 3 /* ELF, debug information, and what dwz moved out of that */

struct tdt__debuginfo {
	Dwfl *dwfl; /* NULL: no file, or not the one that was loaded */
	Dwfl_Module *elf;
	struct tdt__debuginfo_file {
		int fd; /* that libdwfl holds open; -1: no more */
		char *path;
		dev_t device;
		ino_t inode;
		off_t size;
		struct timespec modified;
	} file[TDT__DEBUGINFO_FILES];
	int n_files;
};

/*
 * True: as much memory as libdw and libdwfl may want for one step is there now.  libdw 0.188 crashes, or ends the
 * process, where some of its own small allocations fail, so every step through it begins with this.  (Another thread
 * may still take the memory away in between.)
 */
bool tdt__debuginfo_reserve(void);

/*
 * True: as many descriptors as opening a file and its debug information may want are there now.  What fails for want of
 * one looks like a file that is not there, and would be remembered as such.
 */
bool tdt__debuginfo_descriptors(void);

/*
 * Open the ELF file `path` if its build-id is `build_id` (in hexadecimal; "": it must have none).  If it is not, take
 * what `mapped` opens, which may have been deleted (NULL: nothing), or the debug file of that build-id.  `info` must stay
 * where it is.
 */
void tdt__debuginfo_open(struct tdt__debuginfo *info, const char *path, const char *mapped, const char *build_id);

/*
 * Its DWARF, searched for at the first call; an address there is one in the ELF file minus `bias`.  NULL: none.
 * What is done with it may run out of memory, so all of that goes through tdt__debuginfo_try().
 */
Dwarf *tdt__debuginfo_dwarf(struct tdt__debuginfo *info, Dwarf_Addr *bias);

/*
 * Close what libdwfl would hold open for good: the files are mapped.  After both tdt__debuginfo_dwarf(), which gave
 * `dwarf`, and reading the symbols, which may open files.
 */
void tdt__debuginfo_close_files(struct tdt__debuginfo *info, Dwarf *dwarf);

/* A large file is to be read here and there from now on, not as a whole as its symbols are. */
void tdt__debuginfo_read_sparsely(Dwarf *dwarf);

/* Let go of the pages of a large file that were read so far.  Those read again come from the kernel's cache. */
void tdt__debuginfo_forget_pages(Dwarf *dwarf);

/*
 * Whether a file was written to since it was opened.  It is mapped, so what was read of it may be another's by now, and
 * where it became shorter reading is SIGBUS: nothing of it must be used any more.  (A file that was removed, or
 * replaced by renaming another, is whole still.)
 */
bool tdt__debuginfo_overwritten(const struct tdt__debuginfo *info);

/*
 * Call `body(data)`, which answers false if there is no memory.  0 if it answers true; -ENOMEM if it answers false, or
 * if there is not even memory to begin.  When libdw itself finds no memory, which it reports by ending the process, it
 * ends `body` instead: -ENOTRECOVERABLE, and that Dwarf must not be used any more, not even be closed.
 */
int tdt__debuginfo_try(bool (*body)(void *data), void *data);

#endif
