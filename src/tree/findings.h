/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What a snapshot finds: its tasks in order, the groups of those that wait at the same places
 * (groups.h), and the rings of those that wait for each other (cycles.h).  All of it is derived
 * from recorded values.  So the tasks may be those of this process (dump/snapshot.c), of another
 * process, or of a core file.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/dump.h>

#include "base/arena.h"
#include "tree/cycles.h"
#include "tree/groups.h"

#define TDT__LEFT_OUT UINT32_MAX

/* A task, as it was recorded. */
struct tdt__member {
	struct tdt_task_info info; /* first: a pointer to it is a pointer to its member */
	uint32_t group;             /* by tdt__groups_add(); TDT__LEFT_OUT: the task has ended */
	enum tdt__proof proof;      /* of what `info` says of a waiting task */
	/*
	 * A time (CLOCK_MONOTONIC): the task waits, and if it was woken before then, it has been
	 * polled since; 0: that is unknown.
	 */
	uint64_t settled;
};

static inline enum tdt__proof tdt__member_proof(const struct tdt_task_info *info)
{
	return ((const struct tdt__member *)(const void *)info)->proof;
}

/* An entry of the list, with the keys by which it is sorted. */
struct tdt__entry {
	unsigned rank; /* the smaller, the more suspicious */
	uint64_t state_ns;
	uint64_t id;
	struct tdt__member *member;
};

/* The lists of groups of one task each. */
enum tdt__lone { TDT__PANICKED, TDT__ORPHANED, TDT__BEFORE, TDT__LOST_WAKEUP, TDT__LONE_KINDS };

struct tdt__lones {
	const struct tdt_snapshot_group **list;
	size_t n;
};

struct tdt__findings {
	/*
	 * First.  Whoever took the snapshot sets `took_ns`, `lost` and `misuse`, and how many
	 * panicked.  The traces of the lists are freed with the findings.
	 */
	struct tdt_snapshot public;
	struct tdt__arena arena;    /* for the members, and for what they point to */
	struct tdt__groups groups;

	/* Private to findings.c. */
	struct tdt__lones lones[TDT__LONE_KINDS];
	struct tdt__cycles cycles;
	struct tdt__entry *entry;
	size_t n;
	size_t room;
	const struct tdt_task_info **tasks; /* group by group */
};

/* NULL: no memory.  The caller frees the findings with tdt__findings_free(), which takes NULL. */
struct tdt__findings *tdt__findings_new(void);
void tdt__findings_free(struct tdt__findings *findings);

/* Add a member, which lies in the arena.  False: no memory. */
bool tdt__findings_add(struct tdt__findings *findings, struct tdt__member *member);

/* Add a trace to one of the lists.  Takes it over; NULL adds nothing, as does lack of memory. */
void tdt__findings_add_lone(struct tdt__findings *findings, enum tdt__lone kind,
			    enum tdt_answer answer, struct tdt_trace *trace);

/*
 * Sort the members by what is known of them so far, the most suspicious first, and prepare for
 * tdt__findings_conclude().  False: no memory.
 */
bool tdt__findings_sort(struct tdt__findings *findings);

static inline struct tdt__member *tdt__findings_member(const struct tdt__findings *findings,
						       size_t index)
{
	return findings->entry[index].member;
}

/*
 * Complete `public` from the members as they are now, after tdt__findings_sort().  This needs no
 * memory except for the cycles, which are left out without it.
 */
void tdt__findings_conclude(struct tdt__findings *findings);
