/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What the looks of a profile add up to.
 *
 * Each look finds each task in one state.  A task that is found waiting, and whose last tree is of
 * the poll after which it waits, was found at a place: the tree is *fresh*.  But not all waits have
 * a tree.  The watch captures the first poll of a task after each of its ticks, so of the polls
 * that come a time `gap` after the poll before, a share of gap / tick is captured.  A wait after a
 * short gap is therefore seen less often than it should be, and counts for as much more:
 *
 *	weight of a fresh tree = 1 / min(1, gap / tick)
 *
 * A task that is found waiting without a fresh tree, although the watch could have captured it, is
 * *stale*: it is known how long such tasks wait, but not where.  Their time is distributed to the
 * places of the fresh trees in proportion to the weights, among tasks of one name that wait for one
 * kind of object.  The time of tasks that the watch could not see, since they were not polled while
 * it was on, has no place.
 *
 * This is right on average, but a profile has few looks.  Two more facts, which are known of all
 * tasks, leave less to chance.  One is at which ages the looks saw young trees: profile_ages.h.
 * The other is for how long the tasks had waited that were found stale: their time is distributed
 * to fresh trees of waits of that age.
 */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/tree.h>

#include "base/array.h"
#include "reader/profile_ages.h"
#include "tree/groups.h"

struct tdt__stacks;

enum tdt__profile_state {
	TDT__PROFILE_WAITING,
	TDT__PROFILE_RUNNABLE,
	TDT__PROFILE_POLLING,
	TDT__PROFILE_STATES
};

#define TDT__PROFILE_NONE UINT32_MAX
#define TDT__PROFILE_NAME_MAX 128

/* The most trees, groups and names that are kept; what comes later has no place, or no name. */
#define TDT__PROFILE_MOST 65536

/* The name of a task's family (facts/family.h), as "conn *". */
struct tdt__profile_name {
	char text[TDT__PROFILE_NAME_MAX];
	uint64_t entry; /* the function that gives tasks without a name theirs; 0: there is none */
};

/* What was found alike: the same state, kind of wait, name of the task, and tree. */
struct tdt__profile_group {
	/* The key. */
	enum tdt__profile_state state;
	enum tdt_wait_kind kind;
	uint32_t name; /* its number */
	uint32_t tree; /* its number in `trees`; TDT__PROFILE_NONE: the place is unknown */

	struct tdt__fresh_waits *fresh; /* NULL: none was found */
	double weight;                  /* of looks that found no fresh wait */
	uint64_t looks;                 /* that found a task so */
	double ns;                      /* set by tdt__profile_conclude() */
};

/* The weights of waits with a fresh tree, by their age. */
struct tdt__fresh_waits {
	double young[TDT__AGE_BINS]; /* the tree was young */
	double old[TDT__AGE_BINS];   /* it was not */
};

/* Waiting tasks of one name and kind. */
struct tdt__profile_stratum {
	uint32_t name; /* the key, with the kind */
	enum tdt_wait_kind kind;
	uint64_t fresh_looks[TDT__AGE_BINS];
	double waited[TDT__AGE_BINS]; /* ns, by looks with a fresh tree and stale ones */
	double stale;                 /* ns, by stale looks */
	uint64_t stale_looks;
	uint64_t last_look, looks; /* with a fresh tree: of one look, the trees are of one tick */
	/* Set by tdt__profile_conclude(). */
	double fresh[TDT__AGE_BINS]; /* the weights of fresh trees */
	double worth[TDT__AGE_BINS]; /* ns that were waited for each unit of these weights */
};

/* A struct of all zeros, but for `trees`, has no groups: see tdt__profile_sum_init(). */
struct tdt__profile_sum {
	struct tdt__groups trees;
	TDT__TABLE(struct tdt__profile_group, group, n);
	TDT__TABLE(struct tdt__profile_stratum, stratum, n_strata);
	TDT__TABLE(struct tdt__young_trees, young, n_young);
	TDT__TABLE(struct tdt__profile_name, name, n_names);
	uint64_t look; /* the number of the look at hand, from 1 on */

	/* The results of tdt__profile_conclude(), in nanoseconds of all tasks together. */
	double state_ns[TDT__PROFILE_STATES];
	double stale_ns;   /* of waiting: distributed by fresh trees */
	double unknown_ns; /* of waiting: without a place */
	/*
	 * By how much the time of a place may be off, with a probability of 95 %, since stale time
	 * was distributed by a few looks: two standard deviations of a share of one half.
	 */
	double off_ns;
};

/* Returns 0 or -ENOMEM; then there is nothing to free. */
int tdt__profile_sum_init(struct tdt__profile_sum *sum);
void tdt__profile_sum_fini(struct tdt__profile_sum *sum);

/*
 * The number of the name of a task's family.  `entry`: that of the task; 0: none, or unknown.
 * TDT__PROFILE_NONE: no memory, or too many names.
 */
uint32_t tdt__profile_name(struct tdt__profile_sum *sum, const char *name, uint64_t entry,
			   const char *file, uint32_t line);

/* The name with this number; "" for TDT__PROFILE_NONE. */
const char *tdt__profile_name_of(const struct tdt__profile_sum *sum, uint32_t name);

/* The number of a tree, which is only lent.  TDT__PROFILE_NONE: no memory, or too many. */
uint32_t tdt__profile_tree(struct tdt__profile_sum *sum, const struct tdt__stacks *stacks);

/*
 * The number of a group, found or made.  TDT__PROFILE_NONE: no memory, or too many groups.
 */
uint32_t tdt__profile_group(struct tdt__profile_sum *sum, enum tdt__profile_state state,
			    enum tdt_wait_kind kind, uint32_t name, uint32_t tree);

/* A look that stands for `ns` found a task of the group, which does not wait, or has no place. */
void tdt__profile_add(struct tdt__profile_sum *sum, uint32_t group, double ns);

/* A look that found a task waiting. */
struct tdt__profile_wait {
	double ns;     /* for which the look stands */
	unsigned age;  /* of the wait: a bin (profile_ages.h) */
	double chance; /* that the watch captured the poll: more than 0, at most 1 */
	bool young;    /* the tree was: tdt__young_see() counts it too */
};

/* The task is of the group: it waits with a fresh tree, or has no place. */
void tdt__profile_add_wait(struct tdt__profile_sum *sum, uint32_t group,
			   const struct tdt__profile_wait *wait);

/* The task waits with a stale tree: only `ns` and `age` count. */
void tdt__profile_add_stale(struct tdt__profile_sum *sum, uint32_t name, enum tdt_wait_kind kind,
			    const struct tdt__profile_wait *wait);

/*
 * The number of the young trees of that shape, of tasks of that name.  TDT__PROFILE_NONE: no
 * memory, or too many.
 */
uint32_t tdt__profile_young(struct tdt__profile_sum *sum, uint32_t name, uint32_t tree);

/*
 * Compute the times of all groups, once, after the last look.  Returns 0 or -ENOMEM.
 */
int tdt__profile_conclude(struct tdt__profile_sum *sum);
