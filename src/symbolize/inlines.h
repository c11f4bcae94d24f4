/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_SYMBOLIZE_INLINES_H
#define TDT_SRC_SYMBOLIZE_INLINES_H

/*
 * Which functions an address lies in, by DWARF: the one that has code of its own, and those inlined there.  Everything
 * is for the namer only (namer.h), and within tdt__debuginfo_try() (debuginfo.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#include "symbolize/ranges.h"

struct tdt__unit;

/* What has been learned of a Dwarf.  All zero but `dwarf`: nothing yet. */
struct tdt__inlines {
	Dwarf *dwarf;
	struct tdt__unit *unit; /* those that have code */
	size_t n;
	size_t room;
	struct tdt__ranges ranges; /* to indexes of `unit` */
	bool read;
};

/* A function, and the place in it.  The strings live as long as the Dwarf. */
struct tdt__scope {
	const char *name; /* see diename.h; NULL: unknown */
	const char *file;
	int line;
	int column;
	uint64_t die; /* the offset of the function's DIE, or of its inlined instance's; 0: unknown */
	bool body;    /* of a Rust async function or block */
};

/* Outermost first.  All zero is an empty one, which may be used again and again. */
struct tdt__scopes {
	struct tdt__scope *scope;
	size_t n;
	size_t room;
	const char *directory; /* of the unit; NULL: unknown */
};

/*
 * The functions that `address` (one of `inlines->dwarf`) lies in.  None if no unit has it; one without a name if the
 * unit says only which line it is.  False: no memory; what has been read so far stays usable.
 */
bool tdt__inlines_find(struct tdt__inlines *inlines, uint64_t address, struct tdt__scopes *scopes);

#endif
