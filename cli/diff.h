/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The forms in which tdt diff prints a comparison. */

#include "cli/compare.h"
#include "tree-printer/strings.h"

struct diff_result {
	const struct comparison *comparison;
	const struct tdt_snapshot *before, *after;
	const struct tdt_print_options *print; /* without TDT_PRINT_AUTO */
};

/* The forms return 0 or -ENOMEM; errors of writing are kept in `out`. */
int diff_text(struct tdt__out *out, const struct diff_result *result);
int diff_json(struct tdt__out *out, const struct diff_result *result);
