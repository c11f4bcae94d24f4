/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The functions that an address lies in, by DWARF: the function that has code of its own, and the
 * functions that were inlined there.  All of this is for the namer only (namer.h), and within
 * tdt__debuginfo_try() (debuginfo.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#include "symbolize/ranges.h"

struct tdt__debuginfo;
struct tdt__unit;

/* What is known of a Dwarf.  At first all fields but `dwarf` and `info` are zero. */
struct tdt__inlines {
	Dwarf *dwarf;
	const struct tdt__debuginfo *info; /* to which the Dwarf belongs */
	struct tdt__unit *unit; /* the units that have code */
	size_t n;
	size_t room;
	struct tdt__ranges ranges; /* from addresses to indexes of `unit` */
	bool read;
};

/* A function and a place in it.  The strings live as long as the Dwarf. */
struct tdt__scope {
	const char *name; /* see diename.h; NULL: unknown */
	const char *file;
	int line;
	int column;
	uint64_t die; /* tells the function or inlined instance from all others; 0: unknown */
	bool body;    /* it is the body of a Rust async function or block */
};

/* Functions, outermost first.  A struct of all zeros is empty.  It may be used again and again. */
struct tdt__scopes {
	struct tdt__scope *scope;
	size_t n;
	size_t room;
	const char *directory; /* where the unit was compiled; NULL: unknown */
	const char *missing;   /* the file that should have the function; NULL: none is missing */
	bool unread;	       /* there were no descriptors or no memory to read that file */
};

/*
 * Find the functions that `address` (an address of `inlines->dwarf`) lies in.  There are none if no
 * unit has the address, or if the file that has the function is missing or unread; and one without
 * a name if the unit has only the line.  False: no memory; what was read so far stays usable.
 */
bool tdt__inlines_find(struct tdt__inlines *inlines, uint64_t address, struct tdt__scopes *scopes);
