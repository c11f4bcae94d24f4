/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The ELF file of a module and its debug information, wherever that lies: in the same file, or in a
 * separate file that is found by build-id or .gnu_debuglink.  All addresses are those of the ELF
 * file.  All of this is for the namer only (namer.h).
 */

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include <elfutils/libdwfl.h>

#define TDT__DEBUGINFO_FILES 3 /* the ELF file, the debug information, what dwz moved out of it */

struct tdt__debuginfo {
	Dwfl *dwfl; /* NULL: there is no file, or it is not the one that was loaded */
	Dwfl_Module *elf;
	struct tdt__debuginfo_file {
		int fd; /* libdwfl holds it open; -1: it is closed */
		char *path;
		dev_t device;
		ino_t inode;
		uid_t owner;
		off_t size;
		struct timespec modified;
	} file[TDT__DEBUGINFO_FILES];
	int n_files;
};

/*
 * Returns true if as much memory is available now as libdw and libdwfl may need for one step.
 * libdw 0.188 crashes, or ends the process, when some of its own small allocations fail, so every
 * step through libdw begins with this call.  (Another thread may still take the memory in between.)
 */
bool tdt__debuginfo_reserve(void);

/*
 * Returns true if as many descriptors are available now as opening a file and its debug information
 * may need.  A file that cannot be opened for lack of a descriptor looks like a file that does not
 * exist, and would be remembered as such.
 */
bool tdt__debuginfo_descriptors(void);

/*
 * Open the ELF file `path` (NULL: skip this) if its build-id is `build_id` (in hexadecimal; "": the
 * file must have none).  Otherwise open `mapped`, which leads to the mapped file even if that was
 * deleted (NULL: skip this), or else the debug file of that build-id.  `info` must not be moved.
 */
void tdt__debuginfo_open(struct tdt__debuginfo *info, const char *path, const char *mapped,
			 const char *build_id);

/*
 * Returns the DWARF of the module, which the first call searches for.  An address in the DWARF is
 * an address in the ELF file minus `bias`.  NULL: there is no DWARF.  Whatever is done with the
 * DWARF may run out of memory, so all of that goes through tdt__debuginfo_try().
 */
Dwarf *tdt__debuginfo_dwarf(struct tdt__debuginfo *info, Dwarf_Addr *bias);

/* As dwarf_begin_elf(), to read; but tdt__debuginfo_try() serves this Dwarf, too. */
Dwarf *tdt__debuginfo_begin(Elf *elf);

/*
 * Close the files that libdwfl would hold open for ever; they stay mapped.  Call this after
 * tdt__debuginfo_dwarf(), which returned `dwarf`, and after reading the symbols: both may open
 * files.
 */
void tdt__debuginfo_close_files(struct tdt__debuginfo *info, Dwarf *dwarf);

/*
 * Tell the kernel that a large file will be read here and there from now on, and not as a whole as
 * for its symbols.
 */
void tdt__debuginfo_read_sparsely(Dwarf *dwarf);

/*
 * Drop the pages of a large file that were read so far.  Pages that are read again come from the
 * kernel's cache.
 */
void tdt__debuginfo_forget_pages(Dwarf *dwarf);

/*
 * Whether a file was written to since it was opened.  The file is mapped, so its contents may have
 * changed since they were read; and if the file became shorter, reading it raises SIGBUS.  So
 * nothing of the file may be used any more.  (A file that was removed, or replaced by a rename, is
 * still whole.)
 */
bool tdt__debuginfo_overwritten(const struct tdt__debuginfo *info);

/*
 * Call `body(data)`, which returns false if there is no memory.  Returns 0 if `body` returned true.
 * Returns -ENOMEM if `body` returned false, or if there is not enough memory to begin.  libdw
 * reports that it has no memory by ending the process; here that ends `body` instead, and the call
 * returns -ENOTRECOVERABLE.  Then the Dwarf must not be used any more, not even to be closed.
 */
int tdt__debuginfo_try(bool (*body)(void *data), void *data);
