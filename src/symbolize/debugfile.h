/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Finding a module's debug information that is not in the module's own file.  All of this is for
 * the namer only (namer.h).
 */

#include <stdbool.h>

#include <elfutils/libdwfl.h>

/*
 * Where separate debug files are, in the form that libdwfl wants: the directory of the module,
 * `.debug` in that directory, and, last, a directory that also has .build-id/.  A test may set
 * another path.
 */
extern char *tdt__debugfile_path;

/*
 * Whether the servers of DEBUGINFOD_URLS are asked for files that are not found here.  A program
 * whose user wants that sets it.
 */
extern bool tdt__debugfile_asks_servers;

/*
 * Read from the environment whether the user wants debuginfod.  Call this before the namer starts,
 * because the host may change its environment later.
 */
void tdt__debugfile_by_environment(void);

/*
 * The function that libdwfl calls to find the debug file of `elf` (find_debuginfo in
 * Dwfl_Callbacks).  It looks in the directories of tdt__debugfile_path.  Returns the file's
 * descriptor, and sets `*found` to its path, which the caller frees; -1: there is no such file.
 */
int tdt__debugfile_find(Dwfl_Module *elf, void **info, const char *name, Dwarf_Addr base,
			const char *path, const char *debuglink, GElf_Word crc, char **found);

/*
 * Find the file with what dwz moved out of several modules, of which `dwarf` is one; it was read
 * from the file `path` of the module `elf`.  Otherwise libdw opens whatever .gnu_debugaltlink
 * names.  Returns as above.
 */
int tdt__debugfile_find_shared(Dwfl_Module *elf, const char *path, Dwarf *dwarf, char **found);
