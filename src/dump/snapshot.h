/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* What tdt_snapshot_take() does not do, but dumps do. */

#include <stdbool.h>

#include <tdt/dump.h>

struct tdt__snapshot_how {
	bool finds_busy;  /* busy loops (facts/busy.h), which may take a tenth of a second more */
	bool only_unseen; /* request no task whose last tree shows where it waits (last_tree.h) */
};

const struct tdt_snapshot *tdt__snapshot_take(const struct tdt_dump_options *options,
					      struct tdt__snapshot_how how);

/* tdt_dump(), which finds busy loops; `only_unseen` as above. */
int tdt__dump(FILE *out, const struct tdt_dump_options *options, bool only_unseen);
