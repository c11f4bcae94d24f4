/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_SYMBOLIZE_DEBUGFILE_H
#define TDT_SRC_SYMBOLIZE_DEBUGFILE_H

/* Where a module's debug information is, if it is not in the module's own file.  Everything is for the namer (namer.h). */

#include <elfutils/libdwfl.h>

/* See what the environment wants.  Before there is a namer: the host may change its environment later. */
void tdt__debugfile_by_environment(void);

/* A regular file's descriptor, or -1.  The file may be another than the one loaded: a FIFO must not block us. */
int tdt__debugfile_open(const char *path);

/*
 * What libdwfl calls for the debug file of `elf` (Dwfl_Callbacks, find_debuginfo): looks in the directories of
 * tdt__debuginfo_path.  Returns its descriptor, and sets `*found` to its path, to be freed; -1: there is none.
 */
int tdt__debugfile_find(Dwfl_Module *elf, void **info, const char *name, Dwarf_Addr base, const char *path,
			const char *debuglink, GElf_Word crc, char **found);

#endif
