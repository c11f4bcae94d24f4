/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The families of a dump.  The tasks of a group may be children of tasks that are in one other
 * group (TDT_ATTR_CHILD): then the group is shown below that one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/dump.h>

struct tdt__kin {
	uint32_t above;       /* the group of the parents; TDT__NO_KIN: none, or several */
	uint32_t first, next; /* of the groups below this one */
	size_t children;      /* of the tasks of this group, in any group */
	size_t shown;         /* of these, in groups below this one that have a tree */
	bool written;         /* for the text form */
};

#define TDT__NO_KIN UINT32_MAX

struct tdt__out;

/*
 * Of each group; the caller frees it.  NULL: no task is a child, or there is no memory, which is
 * kept in `out`.
 */
struct tdt__kin *tdt__kin_find(const struct tdt_snapshot *snapshot, struct tdt__out *out);
