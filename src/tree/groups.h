/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Which tasks of a snapshot are alike: in the source of their tree, in their state, in the tree,
 * frame by frame, and, if they are children, in the place where they were made.  The stacks of each
 * tree are kept once, so that any number of tasks that wait at the same places need the memory of
 * one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/dump.h>

#include "base/array.h"

struct tdt__stacks;

/* The counter of the tasks with this answer. */
static inline size_t *tdt__answered(struct tdt_snapshot *snapshot, enum tdt_answer answer)
{
	switch (answer) {
	case TDT_ANSWER_FRESH:
		return &snapshot->fresh;
	case TDT_ANSWER_RUNNING:
		return &snapshot->running;
	case TDT_ANSWER_LAST:
		return &snapshot->last;
	default:
		return &snapshot->unanswered;
	}
}

struct tdt__group {
	enum tdt_answer answer;
	enum tdt_task_state state;
	uint64_t child_place;    /* by tdt__child_place() */
	struct tdt_trace *trace; /* owned, with the stacks in it; NULL with TDT_ANSWER_NONE */
	size_t n;                /* tasks in this group */
	uint32_t deadlock;       /* 1 + the number of the deadlock that all tasks are in; 0: none */
	uint32_t split;          /* the last group that was split off from this one; 0: none */
	uint32_t place;          /* 1 + its index in the list; 0: none yet */
	struct tdt_snapshot_group public; /* findings.c fills it in */
};

struct tdt__groups {
	/* Groups with TDT_ANSWER_NONE come first, one per state, and may be empty. */
	TDT__TABLE(struct tdt__group, group, n);
	const struct tdt_snapshot_group **list; /* room for as many: findings.c fills it in */
	size_t list_room;
	/* The group of the last stacks: the next stacks often have it too. */
	uint32_t last;
};

/* False: no memory.  Groups that are all zero may be given to tdt__groups_fini() too. */
bool tdt__groups_init(struct tdt__groups *groups);
void tdt__groups_fini(struct tdt__groups *groups);

/*
 * Where in its file a child was made; 0: the task is none.  Children with the same tree may be
 * those of different functions, below which they are shown.
 */
static inline uint64_t tdt__child_place(const struct tdt_task_info *info)
{
	return info->child != 0 ? (uint64_t)info->line << 32 | info->column : 0;
}

/*
 * Count a task in, and return its group, found or made.  Stacks (NULL with TDT_ANSWER_NONE) are
 * only lent: the group keeps a copy if it is the first of its kind.  Without memory for another
 * group, the task goes to a group with TDT_ANSWER_NONE.
 */
uint32_t tdt__groups_add(struct tdt__groups *groups, enum tdt_answer answer,
			 enum tdt_task_state state, uint64_t child_place,
			 const struct tdt__stacks *stacks);

/*
 * Move a task from the group `*index` to a group of tasks like it that are all in deadlock
 * `deadlock` (1 or more), and set `*index` to that group.  Move the tasks of one deadlock after the
 * other.  False: no memory; nothing has changed.
 */
bool tdt__groups_split(struct tdt__groups *groups, uint32_t *index, uint32_t deadlock);
