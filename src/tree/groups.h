/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_TREE_GROUPS_H
#define TDT_SRC_TREE_GROUPS_H

/*
 * Which tasks of a snapshot are alike: in where their tree comes from, in state, and in the tree, frame by frame.  Of
 * each tree the stacks are kept once, so that any number of tasks that wait at the same places need the memory of one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/dump.h>

#include "base/index.h"

struct tdt__stacks;

struct tdt__group {
	enum tdt_answer answer;
	enum tdt_task_state state;
	struct tdt_trace *trace; /* owned, with the stacks in it; NULL with TDT_ANSWER_NONE */
	size_t n;                /* tasks that were found to be in it */
};

struct tdt__groups {
	struct tdt__group *group;          /* those with TDT_ANSWER_NONE come first, one a state, and may be empty */
	struct tdt_snapshot_group *public; /* as many, for who makes the snapshot to fill in */
	size_t n;
	size_t room;
	struct tdt__index index; /* of the groups that have a trace */
	uint32_t last;           /* the one that the last stacks were of: the next often is, too */
};

/* False: no memory.  All zero may be given to tdt__groups_fini(), too. */
bool tdt__groups_init(struct tdt__groups *groups);
void tdt__groups_fini(struct tdt__groups *groups);

/*
 * Count a task in: its group, found or made.  Stacks (NULL with TDT_ANSWER_NONE) are only lent: the group keeps
 * a copy if it is the first of its kind.  Where there is no memory for one more group, the task is of one with
 * TDT_ANSWER_NONE.
 */
uint32_t tdt__groups_add(struct tdt__groups *groups, enum tdt_answer answer, enum tdt_task_state state,
			 const struct tdt__stacks *stacks);

#endif
