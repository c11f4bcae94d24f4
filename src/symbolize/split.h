/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Units whose debug information lies in a file of its own (-gsplit-dwarf).  The module's file has
 * the *skeleton* of such a unit: its lines, and the addresses to which the .dwo file refers by
 * number.  (With Clang's -fsplit-dwarf-inlining it has some functions, too.)
 *
 * libdw can join the two, but not in a host: it opens whatever has the file's name, whoever wrote
 * it, and maps it, so that the file must not become shorter.  So what is read (dwo.h) is a Dwarf
 * that knows no skeleton, and the addresses and ranges of its DIEs are found here.  All of this is
 * for the namer only (namer.h), and within tdt__debuginfo_try() (debuginfo.h).
 */

#include <elfutils/libdw.h>

#include "symbolize/debuginfo.h"

/* Bytes in memory.  Behind the end everything that is read is 0. */
struct tdt__split_bytes {
	const unsigned char *at, *end;
};

struct tdt__split {
	Dwarf *dwarf; /* NULL: the file was not found, or is not the right one */
	Dwarf_Die die;
	unsigned version;		   /* of DWARF */
	struct tdt__split_bytes info;	   /* where the DIEs are */
	struct tdt__split_bytes addresses; /* the unit's, in the module's file */
	struct tdt__split_bytes ranges;	   /* the lists of ranges */
	Dwarf_Addr base;		   /* to which most ranges are relative */
	char missing[];			   /* the path where the file should be */
};

/* Whether the unit's functions are in another file. */
bool tdt__split_is_skeleton(Dwarf_Die *unit);

/*
 * Find the file of the unit `skeleton`, whose module `info` describes.  Sets `*split`, which is
 * never freed.  Returns 0, also if the file was not found or is not the right one; -ENOMEM; -EMFILE
 * or -ENFILE: there are no descriptors.
 */
int tdt__split_open(struct tdt__split **split, const struct tdt__debuginfo *info,
		    Dwarf_Die *skeleton);

/* As dwarf_ranges(), for a DIE of the unit; but never negative. */
ptrdiff_t tdt__split_ranges(const struct tdt__split *split, Dwarf_Die *die, ptrdiff_t at,
			    Dwarf_Addr *base, Dwarf_Addr *low, Dwarf_Addr *high);
