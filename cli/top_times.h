/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_CLI_TOP_TIMES_H
#define TDT_CLI_TOP_TIMES_H

/* How long polls and waits took, in a look of tdt top. */

#include "cli/tdt.h"
#include "cli/top_round.h"

/* Read what the recorder has recorded in the last seconds. */
void top_times_read(struct top_times *times, struct outside *outside);

#endif
