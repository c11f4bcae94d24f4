/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The places of a profile: its trees with names, taken apart to stacks.  The time that a task
 * waited with several leaves is shared among their places, so that each task counts once.
 */

#include "reader/images.h"
#include "reader/profile_sum.h"

struct tdt__profile_place {
	const struct tdt__profile_group *group; /* its state, kind and name */
	const struct tdt_node *leaf; /* the innermost frame; NULL: the place is unknown */
	double ns;
	uint64_t looks; /* that found a task here */
};

struct tdt__profile_places {
	TDT__TABLE(struct tdt__profile_place, place, n); /* the one with the most time first */
};

/* Name tasks by their entries, as tdt__tasks_name() does, after tdt__profile_open_images(). */
void tdt__profile_name_entries(struct tdt__profile_sum *sum, struct tdt__modules *modules,
			       uint64_t deadline);

/*
 * Find the places of a profile that was concluded, with the names that are found by `deadline`
 * (tdt__clock()).  Places that read the same are one.  The places point to the trees of `sum`.
 * Returns 0, and the caller frees them; or -ENOMEM.
 */
int tdt__profile_places_find(struct tdt__profile_places *places, const struct tdt__profile_sum *sum,
			     uint64_t deadline);
void tdt__profile_places_fini(struct tdt__profile_places *places);

/* Open the files of the modules that the trees lead through, while the process is there. */
void tdt__profile_open_images(const struct tdt__profile_sum *sum, struct tdt__images *images);
