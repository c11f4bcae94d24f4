/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_CLI_TOP_VIEWS_H
#define TDT_CLI_TOP_VIEWS_H

/*
 * What stands below the first lines of tdt top, apart from the lists of tasks and places.  Each
 * fills the lines that are left.
 */

#include "cli/top_lines.h"

void top_view_threads(struct screen *screen);

/* How long polls and waits took, from the recording. */
void top_view_times(struct screen *screen);

/* The tree of the open task. */
void top_view_tree(struct screen *screen);

void top_view_help(struct screen *screen);

#endif
