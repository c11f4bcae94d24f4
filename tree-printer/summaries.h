/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The forms of the summary of a recording. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <tdt/print.h>

#include "recording/summary.h"
#include "strings.h"

struct tdt__modules;

/* How many entries each list has: on one screen of text, and in the long forms. */
#define TDT__SUMMARY_ROWS 3
#define TDT__SUMMARY_ROWS_FULL 100
#define TDT__SUMMARY_ROWS_MAX 100000

/* A stack that the summary shows.  `trace` is a task with one leaf, and has its names. */
struct tdt__summary_stack {
	uint32_t number; /* in the recording */
	struct tdt_trace *trace;
};

struct tdt__summary_form {
	const struct tdt__summary *summary;
	const struct tdt_print_options *options; /* `utf8` and `color` are YES or NO */
	bool full; /* text: whole stacks, and the table of rings */
	const struct tdt__summary_stack *stack;
	size_t n_stacks;
};

/* The forms.  Errors are kept in `out`. */
void tdt__summary_text(struct tdt__out *out, const struct tdt__summary_form *form);
void tdt__summary_json(struct tdt__out *out, const struct tdt__summary_form *form);

/*
 * The root of the tree of a stack.  NULL: it is 0 or not in the recording, or there was no memory
 * for it.
 */
static inline const struct tdt_node *tdt__summary_root(const struct tdt__summary_form *form,
						       uint32_t stack)
{
	for (size_t i = 0; i < form->n_stacks; i++)
		if (form->stack[i].number == stack && form->stack[i].trace != NULL)
			return tdt_trace_root(form->stack[i].trace);
	return NULL;
}

/*
 * Print a summary to `out`, as text or JSON.  Frames are named by `modules`, until `deadline`
 * (tdt__clock()).  `options` are those of the caller and may be NULL.  Returns 0, -EINVAL (also for
 * folded stacks), -E2BIG, -ENOMEM, or the error of writing.
 */
int tdt__summary_print(const struct tdt__summary *summary, FILE *out,
		       const struct tdt_print_options *options, bool full,
		       struct tdt__modules *modules, uint64_t deadline);

/* A share that can be printed: a damaged recording may have any times, or none. */
static inline double tdt__summary_share(double share)
{
	return share >= 100000 ? 100000 : share > 0 ? share : 0;
}
