/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Reading what a file has of one unit that was compiled with -gsplit-dwarf: a .dwo file, which has
 * one unit, or a package of many (.dwp), which has an index.  The sections that names need are read
 * into memory, as a .dwo file of their own, so that nothing that happens to the file changes them.
 * So libdw need not know packages (before 0.191 it does not).  All of this is for the namer only
 * (namer.h), and within tdt__debuginfo_try() (debuginfo.h).
 */

#include <stdint.h>
#include <sys/types.h>

#include <gelf.h>

#include <elfutils/libdw.h>

/*
 * Set `*dwarf` to what the file `path` has of the unit `id`; NULL: there is no such file, or it has
 * no such unit (the one unit of a .dwo file may still be another).  The directory where a module
 * was compiled may be anybody's where it runs, /tmp/build for example.  So there is no file unless
 * it belongs to root, to the user of the process or to `owner`, the user to whom the module's file
 * belongs, and unless only they (or their groups) may write to it.  Returns 0; -ENOMEM; -EMFILE or
 * -ENFILE: there are no descriptors.
 */
int tdt__dwo_read(Dwarf **dwarf, const char *path, uid_t owner, uint64_t id);

/*
 * The last section of that name; NULL: there is none.  (With DWARF 5, GCC's .dwo files have one
 * more section of DIEs for each type that has a unit of its own, before that of the unit itself.)
 */
Elf_Scn *tdt__dwo_section(Elf *elf, const char *name, GElf_Shdr *header);

/* Free what tdt__dwo_read() made. */
void tdt__dwo_free(Dwarf *dwarf);
