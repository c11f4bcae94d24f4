/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Where the tasks wait or run, in a look of tdt top. */

#include "cli/top_look.h"

struct top_places;

/*
 * Find the place of each task, count those that wait there, and look up the names of the places
 * with the most tasks, unless the last round had them.  NULL: no memory.
 */
struct top_places *top_places_find(const struct top_look *look, const struct outside *outside,
				   const struct tdt_snapshot *snapshot);
void top_places_free(struct top_places *places); /* NULL does nothing */

/* The text of the place of a task in that group of the snapshot; "": it was not named. */
const char *top_places_text(const struct top_places *places, size_t group,
			    const struct tdt_task_info *task);
