/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_DEBUGINFO_H
#define TDT_SRC_DEBUGINFO_H

/*
 * A module's ELF file and its debug information, wherever that lies: in the file, in a separate one named by build-id
 * or .gnu_debuglink.  All addresses are the ELF file's own.  Everything here under tdt__symbol_lock (fork.h).
 */

#include <stdbool.h>

#include <elfutils/libdwfl.h>

/*
 * Where separate debug files are, as libdwfl wants it: `.debug` beside the module, then, last, a directory that also
 * has .build-id/.  A test may set another.
 */
extern char *tdt__debuginfo_path;

struct tdt__debuginfo {
	Dwfl *dwfl; /* NULL: no file, or not the one that was loaded */
	Dwfl_Module *elf;
};

/*
 * Open the ELF file `path` if its build-id is `build_id` (in hexadecimal; "": it must have none).  If it is not, take
 * /proc/self/exe, whose file may have been deleted, or the debug file of that build-id.  Leaves no descriptor open.
 */
void tdt__debuginfo_open(struct tdt__debuginfo *info, const char *path, const char *build_id);

/*
 * Its DWARF, searched for at the first call; an address there is one in the ELF file minus `bias`.  NULL: none.
 * What libdw does with it may run out of memory, so all of that goes through tdt__debuginfo_try().
 */
Dwarf *tdt__debuginfo_dwarf(struct tdt__debuginfo *info, Dwarf_Addr *bias);

/*
 * Call `body(data)`.  libdw's way to report that there is no memory is to end the process: here it ends `body` instead,
 * and the answer is false.  That Dwarf must not be used any more then, not even be closed.
 */
bool tdt__debuginfo_try(void (*body)(void *data), void *data);

#endif
